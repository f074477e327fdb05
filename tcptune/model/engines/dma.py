"""DMA Engine: which memories it connects, which levels a destination names, and which layouts it accepts (DMA-001 to DMA-033, PCIE-001)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

from tcptune.errors import RuleViolation
from tcptune.ir.types import TensorType
from tcptune.model.hardware import RNGD
from tcptune.model.memory import dm
from tcptune.model.memory.command_model import Command
from tcptune.model.memory.descriptors import EngineKey, engine_commands
from tcptune.model.memory.layout import BoxRuns, box_runs
from tcptune.model.memory.transfer import ELEMENT, Move, MoveDigit, prove_move

CONTEXTS: dict[tuple[str, str], tuple[str, ...]] = {
    ("Hbm", "Hbm"): ("tdma", "pdma"),
    ("Hbm", "Dm"): ("tdma",),
    ("Dm", "Hbm"): ("tdma",),
    ("Dm", "Dm"): ("tdma",),
    ("Host", "Hbm"): ("pdma",),
    ("Hbm", "Host"): ("pdma",),
}
"""DMA-001, DMA-003, PCIE-001: contexts that move between two memories."""

KEPT_LEVELS: dict[tuple[str, str], tuple[str, ...]] = {("Hbm", "Dm"): ("chip",)}
"""DMA-004: levels that a destination takes over from its source; all its other levels are named by the call."""

READ_ALIGNMENT = 1
"""DMA-019: reads of any memory may start at any byte; between HBM and DM `Hardware.dma_alignment_bytes` applies (DMA-020)."""

HBM_WRITE_ALIGNMENT = 1
"""DMA-019: so may writes to HBM."""

_ALIGNMENT_RULES = ("DMA-005", "DMA-019", "DMA-020", "MOVE-007", "MOVE-011")


@dataclass(frozen=True)
class TransferPlan:
    """A checked transfer: its proof, and the pieces and commands that reports show.

    `hbm_base` is the byte address of the HBM side, relative to which command addresses count.
    """

    move: Move
    hbm_base: int = 0

    @cached_property
    def runs(self) -> tuple[BoxRuns, ...]:
        """Pieces of every box of the move."""
        return tuple(box_runs(box, self.move.source, self.move.dest) for box in self.move.boxes)

    @property
    def commands(self) -> dict[EngineKey, tuple[Command, ...]]:
        """Commands of every engine (DMA-010, DMA-016, DMA-017)."""
        return engine_commands(self.move, self.hbm_base)

    @property
    def tail_bytes(self) -> int:
        """Longest run of the destination that reads consecutive source bytes, its own padding included (DMA-005)."""
        return max(r.run_bytes(self.move.dest.dtype) for r in self.runs)

    @property
    def common_run_bytes(self) -> int:
        """Bytes that both sides access consecutively (DMA-014)."""
        return max(self.move.dest.dtype.bytes_of(r.live_elements) for r in self.runs)


def check_context(source_tier: str, dest_tier: str, context: str) -> None:
    """Raises:
    RuleViolation: DMA-001 where no engine connects the memories, DMA-003 where the context does not drive that engine.
    """
    contexts = CONTEXTS.get((source_tier, dest_tier))
    if contexts is None:
        known = ", ".join(f"{a} to {b}" for a, b in CONTEXTS)
        raise RuleViolation("DMA-001", f"no DMA moves {source_tier} to {dest_tier}", got=f"{source_tier} to {dest_tier}", expected=known)
    if context not in contexts:
        raise RuleViolation(
            "DMA-003",
            f"{source_tier} to {dest_tier} is driven by {' or '.join(contexts)}",
            got=context,
            expected=" or ".join(contexts),
            nearest=contexts[0],
            also=("PCIE-001", "PCIE-002", "MOVE-001", "MOVE-002"),
        )


@lru_cache(maxsize=1024)
def check_transfer(source: TensorType, dest: TensorType, context: str = "tdma", hbm_base: int = 0) -> TransferPlan:
    """The plan of one DMA from `source` to `dest` (tensors, or tiles of them given by their view mappings).

    Args:
        context: ``tdma`` or ``pdma``.
        hbm_base: byte offset of the HBM side, for instance of a tile.

    Raises:
        RuleViolation: DMA-001, DMA-003 (memories and context), DMA-004 (levels), DM-003 (capacity), DMA-002 (the move is none),
            DMA-005, DMA-019, DMA-020 (alignment).
        WorkError: the splits of both sides line up too badly to list the loops.
    """
    check_context(source.tier, dest.tier, context)
    for level in KEPT_LEVELS.get((source.tier, dest.tier), ()):
        kept, named = getattr(source, level), getattr(dest, level)
        if not named.equivalent(kept):
            raise RuleViolation(
                "DMA-004",
                f"a transfer from {source.tier} to {dest.tier} keeps {level.capitalize()}",
                got=named,
                expected=kept,
                also=("MOVE-003",),
            )
    if dest.tier == "Dm":
        dm.check_capacity(dest.element_bytes)
    plan = TransferPlan(prove_move(source, dest), hbm_base)
    if source.tier == "Dm" and dest.tier == "Hbm":
        _check_no_new_axis(plan)
    if dest.tier == "Dm":
        _check_alignment(plan)
    return plan


def _check_no_new_axis(plan: TransferPlan) -> None:
    """A store writes what the DM holds: it does not repeat it along an axis that only the destination names (DMA-002).

    Raises:
        RuleViolation: DMA-002, naming the axis.
    """
    source, dest = plan.move.source, plan.move.dest
    held = {axis for _, m in source.levels for axis in m.axes}
    new = [axis for _, m in dest.levels for axis, size in m.axes.items() if axis not in held and size > 1]
    for axis in new:
        if any(axis == digit.term.split(" ")[0] for box in plan.move.boxes for digit in box.digits):
            raise RuleViolation(
                "DMA-002",
                f"only the destination names axis {axis}, and a store does not repeat values: cells with {axis} = 1 would stay undefined",
                got=f"element [{dest.element}]",
                expected=f"axes of the source: {', '.join(sorted(held)) or 'none'}",
                also=("SEM-008", "MOVE-003"),
            )


def _check_alignment(plan: TransferPlan) -> None:
    """Writes to DM are whole bank words; between HBM and DM reads are so too (DMA-005, DMA-019, DMA-020).

    Raises:
        RuleViolation: DMA-005 for a run, a destination stride or a destination start, DMA-020 for the HBM side.
    """
    word, dtype = RNGD.dma_alignment_bytes, plan.move.dest.dtype
    for runs in plan.runs:
        if runs.run_elements * dtype.bits % (8 * word):
            _misaligned("DMA-005", "the longest run that both sides access in a row", runs.run_elements * dtype.bits / 8)
        for digit in runs.loops:
            if digit.dest[ELEMENT] * dtype.bits % (8 * word):
                _misaligned("DMA-005", f"the destination stride of {digit.term}", digit.dest[ELEMENT] * dtype.bits / 8)
        if runs.box.dest_base[ELEMENT] * dtype.bits % (8 * word):
            _misaligned("DMA-005", "the first destination address", runs.box.dest_base[ELEMENT] * dtype.bits / 8)
        if plan.move.source.tier == "Hbm":
            _check_hbm_side(runs.loops, runs.box.source_base[ELEMENT] * dtype.bits + plan.hbm_base * 8, dtype.bits)


def _check_hbm_side(loops: Iterable[MoveDigit], first_bits: int, bits: int) -> None:
    word_bits = 8 * RNGD.dma_alignment_bytes
    if first_bits % word_bits:
        _misaligned("DMA-020", "the first source address", first_bits / 8)
    for digit in loops:
        if digit.source[ELEMENT] * bits % word_bits:
            _misaligned("DMA-020", f"the source stride of {digit.term}", digit.source[ELEMENT] * bits / 8)


def check_tile_starts(source: TensorType, dest: TensorType, source_starts: Iterable[int], dest_starts: Iterable[int]) -> None:
    """Starts of the tiles that a transfer into DM reads and writes, in elements of Element, over all turns of the loops around it.

    Raises:
        RuleViolation: DMA-020 for an HBM tile, DMA-005 for a DM tile that does not start on a bank word.
    """
    if dest.tier != "Dm":
        return
    sides = (("DMA-020", "source", source_starts if source.tier == "Hbm" else ()), ("DMA-005", "destination", dest_starts))
    for rule, side, starts in sides:
        for start in starts:
            if start * dest.dtype.bits % (8 * RNGD.dma_alignment_bytes):
                _misaligned(rule, f"the start of the {side} tile", start * dest.dtype.bits / 8)


def _misaligned(rule: str, what: str, length_bytes: float) -> None:
    word = RNGD.dma_alignment_bytes
    nearest = -(-length_bytes // word) * word
    raise RuleViolation(
        rule,
        f"{what} is {length_bytes:g} bytes",
        got=f"{length_bytes:g} bytes",
        expected=f"a multiple of {word} bytes",
        nearest=f"{nearest:g} bytes (pad the row on both sides, or move a longer run)",
        also=tuple(r for r in _ALIGNMENT_RULES if r != rule),
    )
