"""Runs every benchmark of this folder in turn; each prints a table whose meaningful figures are ratios within one run."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path


def main() -> int:
    """Runs the benchmarks named on the command line (without ``.py``), or all; the first that raises ends the run."""
    here = Path(__file__).parent
    names = sys.argv[1:] or sorted(f.stem for f in here.glob("*.py") if f.stem != "run")
    sys.path.insert(0, str(here))
    for name in names:
        print(f"== {name}", flush=True)
        sys.argv = [name]
        runpy.run_path(str(here / f"{name}.py"), run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
