"""The `tcptune` command: loads the command that was asked for, and answers an interrupt in one line whenever it comes.

Nothing but the standard library's interpreter modules is imported before `main` holds the interrupt: the command, its libraries and the
solver take a second to load, and an interrupt in between must not show where.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

_FROM_SIGNAL = 128
INTERRUPTED = _FROM_SIGNAL + signal.SIGINT
"""Exit status of an interrupted command: 128 and the number of the signal."""


def main() -> None:
    """Entry point: exit status 0 done, 1 the work failed, 2 unusable input, 130 interrupted, 143 terminated.

    A request to terminate is answered like an interrupt, so that a search keeps the best so far; a second one ends the process at once.
    """
    handler = signal.getsignal(signal.SIGINT)
    heeds = handler is signal.default_int_handler  # a process in the background may have been started to ignore interrupts
    if heeds:
        signal.signal(signal.SIGINT, _leave)
    stops = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if stops:
        signal.signal(signal.SIGTERM, _leave)
    from tcptune.cli.commands import load, run

    app = load(sys.argv[1:])
    terminated: list[int] = []

    def terminate(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        terminated.append(number)
        raise KeyboardInterrupt

    try:
        if stops:
            signal.signal(signal.SIGTERM, terminate)
        signal.signal(signal.SIGINT, handler)
        status = run(app)
    except KeyboardInterrupt:  # between the command and its own answers
        _leave(terminated[0] if terminated else signal.SIGINT)
    if stops:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if heeds:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is said and written; the interpreter only ends
    sys.exit(_FROM_SIGNAL + terminated[0] if terminated else status)


def interrupt_words(command: str) -> str:
    """What an interrupted command says where it has not said more."""
    return "interrupted before a plan was found" if command == "search" else "interrupted"


def _leave(number: int = signal.SIGINT, frame: FrameType | None = None) -> None:
    """Ends the process at once: an exception could be lost or shown in the midst of a module that is being loaded."""
    sys.stderr.write(interrupt_words(sys.argv[1] if len(sys.argv) > 1 else "") + "\n")
    sys.stderr.flush()
    os._exit(_FROM_SIGNAL + number)


if __name__ == "__main__":
    main()
