"""Sequencer: nested loops over a buffer, as data (SEQ-001 to SEQ-021).

A configuration is a list of entries ``size : stride`` outermost first and the size of one packet, all in elements. The loops run like an
odometer; the address of an iteration is the base plus the sum of index times stride. `tcptune.model.sequencer.derivation` finds the
configuration of a buffer and a stream; this module says what a configuration means, what it costs and what the hardware accepts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd, prod

import numpy as np
import numpy.typing as npt

from tcptune.errors import RuleViolation
from tcptune.ir.types import DType
from tcptune.model.hardware import RNGD, Hardware


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """One loop: `size` iterations, `stride` elements apart."""

    size: int
    stride: int

    def __str__(self) -> str:
        return f"{self.size}:{self.stride}"


@dataclass(frozen=True)
class SequencerConfig:
    """A configuration.

    Attributes:
        entries: loops, outermost first; their sizes multiply to the positions of the stream.
        packet_size: elements of one packet.
        base: element address of the first iteration.
        max_iterations: most iterations of one entry; merging stops there (SEQ-011).
    """

    entries: tuple[Entry, ...]
    packet_size: int
    base: int = 0
    max_iterations: int = RNGD.sequencer_max_iterations

    def __str__(self) -> str:
        return f"[{', '.join(str(e) for e in self.entries)}] : {self.packet_size}"

    @cached_property
    def iterations(self) -> int:
        """Elements transferred, padding included."""
        return prod(e.size for e in self.entries)

    @cached_property
    def merged(self) -> tuple[Entry, ...]:
        """Entries after merging every neighbour that continues the other (SEQ-009), never past `max_iterations`."""
        out: list[Entry] = []
        for entry in reversed(self.entries):
            if out:
                inner = out[-1]
                if entry.stride == inner.size * inner.stride and entry.size * inner.size <= self.max_iterations:
                    out[-1] = Entry(entry.size * inner.size, inner.stride)
                    continue
            out.append(entry)
        return tuple(reversed(out))

    @cached_property
    def contiguous_run(self) -> int:
        """Elements that the innermost loops cover without a jump (SEQ-012)."""
        if not self.entries:
            return 1
        inner = self.entries[-1]
        run = inner.size
        for entry in reversed(self.entries[:-1]):
            if entry.stride != inner.size * inner.stride:
                break
            run *= entry.size
            inner = entry
        return run

    @property
    def max_access_size(self) -> int:
        """Most elements of one hardware access (SEQ-013)."""
        return gcd(self.packet_size, self.contiguous_run)

    @property
    def innermost_stride(self) -> int:
        """Stride of the innermost loop of the merged list; 1 without loops."""
        return self.merged[-1].stride if self.merged else 1

    @property
    def is_discrete(self) -> bool:
        """Whether elements must be accessed one by one: the innermost stride is neither 0 nor 1 (SEQ-016)."""
        return self.innermost_stride not in (0, 1)

    @property
    def access_size(self) -> int:
        """Elements of one access: one by one where the innermost stride leaves no choice, else the largest."""
        return 1 if self.is_discrete else self.max_access_size

    def steps(self) -> Iterator[int]:
        """Addresses in the order in which the hardware visits them, loop by loop."""
        indices = [0] * len(self.entries)
        address = self.base
        while True:
            yield address
            place = len(self.entries) - 1
            while place >= 0:
                entry = self.entries[place]
                indices[place] += 1
                address += entry.stride
                if indices[place] < entry.size:
                    break
                address -= entry.size * entry.stride
                indices[place] = 0
                place -= 1
            if place < 0:
                return

    def addresses(self) -> npt.NDArray[np.int64]:
        """All addresses, shape ``(iterations,)``; the same as `steps`, at once."""
        address = np.full((1,), self.base, np.int64)
        for entry in self.entries:
            address = (address[:, None] + np.arange(entry.size, dtype=np.int64) * entry.stride).reshape(-1)
        return address

    def packets(self) -> npt.NDArray[np.int64]:
        """Addresses by packet, shape ``(packets, packet_size)``."""
        return self.addresses().reshape(-1, self.packet_size)

    def check_limits(self, hw: Hardware = RNGD) -> None:
        """Refuses what no Sequencer can run.

        Raises:
            RuleViolation: SEQ-011 an entry is too long, SEQ-010 too many entries after merging.
        """
        for entry in self.entries:
            if entry.size > hw.sequencer_max_iterations:
                raise RuleViolation(
                    "SEQ-011",
                    f"one entry runs {entry.size} iterations, at most {hw.sequencer_max_iterations} are possible",
                    got=str(entry),
                    expected=f"entries of at most {hw.sequencer_max_iterations} iterations",
                    nearest=_split_entry(entry, hw.sequencer_max_iterations),
                )
        if len(self.merged) > hw.sequencer_max_entries:
            raise RuleViolation(
                "SEQ-010",
                f"the configuration has {len(self.merged)} entries after merging, at most {hw.sequencer_max_entries} are possible",
                got=f"[{', '.join(str(e) for e in self.merged)}]",
                expected=f"at most {hw.sequencer_max_entries} entries",
                nearest="an order of Time and Packet that keeps neighbouring axes of the buffer together",
            )

    def largest_access(self, dtype: DType, sizes_bytes: Sequence[int]) -> int | None:
        """Most elements of one access whose bytes are one of `sizes_bytes`; None if there are none (SEQ-015, SEQ-016)."""
        for size_bytes in sorted(sizes_bytes, reverse=True):
            elements, rest = divmod(size_bytes * 8, dtype.bits)
            if rest == 0 and elements and self.access_size % elements == 0:
                return elements
        return None

    def to_json(self) -> dict[str, object]:
        """The configuration with what follows from it."""
        return {
            "entries": [[e.size, e.stride] for e in self.entries],
            "packet_size": self.packet_size,
            "base": self.base,
            "merged_entries": [[e.size, e.stride] for e in self.merged],
            "contiguous_run": self.contiguous_run,
            "max_access_size": self.max_access_size,
        }


def _split_entry(entry: Entry, limit: int) -> str | None:
    """The entry as two loops, the inner one as long as possible."""
    for inner in range(limit, 1, -1):
        if entry.size % inner == 0 and entry.size // inner <= limit:
            return f"two terms: {entry.size // inner}:{entry.stride * inner}, {inner}:{entry.stride}"
    return None
