"""The `tcptune` command: one module a command, errors turned into text and an exit status here and nowhere else."""

from __future__ import annotations

import os
import sys

import typer

from tcptune.cli import analyse, conformance, cost, explain, run, validate
from tcptune.cli import map as mapping
from tcptune.cli.output import note, print_error
from tcptune.errors import TcptuneError

app = typer.Typer(
    name="tcptune",
    help="Finds, proves and schedules fast kernels for FuriosaAI's RNGD, without an NPU.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("explain")(explain.command)
app.command("conformance")(conformance.command)
app.command("run")(run.command)
app.command("map")(mapping.command)
app.command("analyse")(analyse.command)
app.command("cost")(cost.command)
app.command("validate")(validate.command)


def main() -> None:
    """Entry point: exit status 0 done, 1 the work failed, 2 unusable input, 130 interrupted."""
    try:
        app()
    except TcptuneError as error:
        print_error(error)
        sys.exit(error.exit_status)
    except KeyboardInterrupt:
        note("interrupted")
        sys.exit(130)
    except BrokenPipeError:
        # the reader of our output is gone (for instance `| head`); nothing is left to say to it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


if __name__ == "__main__":
    main()
