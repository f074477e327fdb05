"""Developer's entry to the corpus runner: ``python -m tcptune.exec.conformance [FILE] [--chapter STEM] [--ids PREFIX] [-v]``."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from tcptune.exec.conformance.runner import corpus_files, run_corpus


def main() -> int:
    parser = argparse.ArgumentParser(prog="tcptune.exec.conformance")
    parser.add_argument("path", nargs="?", type=Path)
    parser.add_argument("--chapter")
    parser.add_argument("--ids", default="")
    parser.add_argument("-v", "--verbose", action="store_true", help="print every failure, not the first 20")
    options = parser.parse_args()
    files = [f for f in corpus_files(options.path) if options.chapter in (None, f.stem)]
    results = list(run_corpus(files, options.ids))
    failed = [r for r in results if r.outcome == "failed"]
    for result in failed if options.verbose else failed[:20]:
        print(f"{result.id}: {result.why[:400]}")
    for chapter in sorted({r.chapter for r in results}):
        counts = Counter(r.outcome for r in results if r.chapter == chapter)
        print(f"{chapter}: {counts['passed']} passed, {counts['failed']} failed, {counts['known']} known of {sum(counts.values())}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
