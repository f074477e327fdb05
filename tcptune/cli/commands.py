"""The commands of `tcptune`: one module a command, errors turned into text and an exit status here and nowhere else.

Only the module of the command that was asked for is imported, so that `tcptune explain` does not wait for the solver.
"""

from __future__ import annotations

import difflib
import importlib
import io
import os
import sys
from collections.abc import Iterable, Sequence
from importlib import metadata
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from tcptune.cli.app import INTERRUPTED, interrupt_words
from tcptune.cli.output import note, print_error
from tcptune.errors import InputError, TcptuneError

COMMANDS = ("search", "sweep", "report", "run", "export", "map", "tilings", "explain", "validate", "cost", "analyse", "conformance")
"""Commands in the order of the help; each is a module of this package with a function ``command`` or, with subcommands, an ``app``."""


class _Commands(TyperGroup):
    """Lists the commands in the order of `COMMANDS` (typer would put those with subcommands last) and answers interrupts."""

    def list_commands(self, ctx: object) -> list[str]:
        return sorted(self.commands, key=COMMANDS.index)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:  # typer would end with the status alone
            note(interrupt_words(ctx.invoked_subcommand or ""))
            raise typer.Exit(INTERRUPTED) from None


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"tcptune {metadata.version('tcptune')}")
        raise typer.Exit


def _options(
    version: Annotated[bool, typer.Option("--version", callback=_print_version, is_eager=True, help="print the version and exit")] = False,
) -> None:
    """Options before the command."""


def build(names: Iterable[str]) -> typer.Typer:
    """The command line application with these commands."""
    app = typer.Typer(
        name="tcptune",
        cls=_Commands,
        help="Finds, proves and schedules fast kernels for FuriosaAI's RNGD, without an NPU.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # plain text, which pastes well and reads the same in a pipe
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)  # also keeps the command's name on the line when only one is registered
    for name in names:
        module = importlib.import_module(f"tcptune.cli.{name}")
        if hasattr(module, "app"):
            app.add_typer(module.app, name=name)
        else:
            app.command(name)(module.command)
    return app


def load(arguments: Sequence[str]) -> typer.Typer | None:
    """The application with the command that `arguments` ask for, or with all; None, after a word, if there is no such command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what the terminal cannot show, or bytes of arguments that are no text, must not end us
            stream.reconfigure(errors="backslashreplace")
    asked = arguments[0] if arguments else "-"
    if asked not in COMMANDS and not asked.startswith("-"):
        print_error(_no_command(asked))
        return None
    return build([asked] if asked in COMMANDS else COMMANDS)


def run(app: typer.Typer | None) -> int:
    """Runs the command of the command line; its exit status."""
    if app is None:
        return InputError.exit_status
    try:
        app()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except TcptuneError as error:
        print_error(error)
        return error.exit_status
    except BrokenPipeError:
        # the reader of our output is gone (for instance `| head`); nothing is left to say to it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _no_command(name: str) -> InputError:
    near = difflib.get_close_matches(name, COMMANDS, n=1)
    hint = f"did you mean {near[0]}?" if near else f"commands: {', '.join(COMMANDS)}"
    return InputError(f"there is no command {name[:60]!r}", hint=hint)
