"""The progress bar of searches, on standard error: the best so far and the lower bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from tcptune.search.options import Progress as SearchState

Begin = Callable[[str, int], None]
"""Starts the bar of a search, given its name and its budget of trials."""

Show = Callable[[SearchState], None]


@contextmanager
def search_progress() -> Iterator[tuple[Begin, Show]]:
    """A bar that is erased in the end; it shows one search at a time."""
    columns = (TextColumn("{task.fields[name]}"), BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:  # a pipe would get an empty line
        task = bar.add_task("", name="", total=None)

        def begin(name: str, budget: int) -> None:
            bar.reset(task, name=name, total=budget, description="pricing placements")

        def show(state: SearchState) -> None:
            best = "none yet" if state.makespan is None else f"{state.makespan:,}"
            bar.update(task, completed=state.trials, total=state.budget, description=f"best {best}, bound {state.bound:,} cycles")

        yield begin, show
