"""Small values that Vector Engine operations take: tag modes, guards and operands, as plain data.

The grammar (S name)::

    operand = Constant(number) | VrfOperand(name S) | StashOperand | TernaryOperand(operand0, operand1)
            | Branched({Slot(slot, guard, value)})
    guard   = TagGuard(pattern of One | Zero | Ignore, LSB first; negated)
    mode    = TagMode(kind S, {Comparison(test S, boundary)}, axis S)

Whether a name, a slot order or a boundary is legal is the engine's business (`model.engines.vector.operands`).
"""

from __future__ import annotations

from collections.abc import Mapping as Dict
from dataclasses import dataclass
from typing import Any

from tcptune.errors import InputError, RuleViolation

STASH = "Stash"
"""The operand name that reads the stash (STASH-001); no register tensor can have it."""

IGNORE, ONE, ZERO = "Ignore", "One", "Zero"
TAG_BITS = 4
GROUP_BIT = TAG_BITS - 1


@dataclass(frozen=True, slots=True)
class TagGuard:
    """A condition on the 4-bit tag of an element (TAG-006), in canonical form (TAG-007).

    Attributes:
        pattern: demand per tag bit, least significant first: ``One``, ``Zero`` or ``Ignore``.
        negated: the guard admits what does *not* match the pattern.
    """

    pattern: tuple[str, ...] = (IGNORE,) * TAG_BITS
    negated: bool = False

    def __post_init__(self) -> None:
        demands = [i for i, bit in enumerate(self.pattern) if bit != IGNORE]
        if self.negated and demands == [GROUP_BIT]:
            other = ZERO if self.pattern[GROUP_BIT] == ONE else ONE
            object.__setattr__(self, "pattern", (*self.pattern[:GROUP_BIT], other))
            object.__setattr__(self, "negated", False)

    @classmethod
    def group(cls, group_id: int) -> TagGuard:
        """Admits the elements whose GroupId (bit 3) is `group_id`."""
        return cls((IGNORE,) * GROUP_BIT + (ONE if group_id else ZERO,))

    @property
    def is_unconditional(self) -> bool:
        """Whether it admits every tag."""
        return not self.negated and all(bit == IGNORE for bit in self.pattern)

    @property
    def admits_nothing(self) -> bool:
        """Whether no tag can pass (TAG-010)."""
        return self.negated and all(bit == IGNORE for bit in self.pattern)

    def admits(self, tag: int) -> bool:
        """Whether an element with this tag takes part."""
        matches = all(bit == IGNORE or (tag >> i) & 1 == (bit == ONE) for i, bit in enumerate(self.pattern))
        return matches != self.negated

    @classmethod
    def from_json(cls, raw: Any) -> TagGuard:
        """Reads ``"all"``, ``{"group": k}``, ``{"matches": bits}`` or ``{"not_matches": bits}``."""
        if raw == "all":
            return cls()
        if isinstance(raw, dict) and len(raw) == 1:
            ((kind, value),) = raw.items()
            if kind == "group" and value in (0, 1):
                return cls.group(value)
            if kind == "group" and isinstance(value, int):
                raise RuleViolation(
                    "TAG-006", f"there is no group {value}: the group of an element is one bit", expected="0 or 1", got=value
                )
            if kind in ("matches", "not_matches") and isinstance(value, list | tuple):
                return cls(tuple(str(bit) for bit in value), kind == "not_matches")
        raise InputError(
            f"{raw!r:.60} is no tag guard", hint='"all", {"group": 0}, {"matches": [b0, b1, b2, b3]} or {"not_matches": [...]}'
        )

    def to_json(self) -> Any:
        if self.is_unconditional:
            return "all"
        if not self.negated and self.pattern[:-1] == (IGNORE,) * GROUP_BIT:
            return {"group": int(self.pattern[-1] == ONE)}
        return {"not_matches" if self.negated else "matches": list(self.pattern)}


@dataclass(frozen=True, slots=True)
class Comparison:
    """One of the four tests of the Comparison tag mode; `boundary` is absent for True and False (TAG-003)."""

    test: str
    boundary: int | float | None = None

    def to_json(self) -> list[Any]:
        return [self.test] if self.boundary is None else [self.test, self.boundary]


@dataclass(frozen=True, slots=True)
class TagMode:
    """How the entry of the chain fills the tags (TAG-002).

    Attributes:
        kind: ``Zero``, ``Comparison``, or a mode that exists in name only (``AxisToggle``, ``ValidCount``, ``Vrf``).
        comparisons: the tests of ``Comparison``, bit 0 first.
        axis: the axis of ``AxisToggle``.
    """

    kind: str = "Zero"
    comparisons: tuple[Comparison, ...] = ()
    axis: str | None = None

    @classmethod
    def from_json(cls, raw: Any) -> TagMode:
        if isinstance(raw, str):
            return cls(raw)
        if not isinstance(raw, dict) or len(raw) != 1:
            raise InputError(f"{raw!r:.60} is no tag mode", hint='"Zero" or {"Comparison": [[test, boundary], ...]}')
        ((kind, value),) = raw.items()
        if kind == "Comparison" and isinstance(value, list | tuple):
            return cls(kind, tuple(_comparison(entry) for entry in value))
        axis = value.get("axis") if isinstance(value, dict) else value
        return cls(kind, axis=None if axis is None else str(axis))

    def to_json(self) -> Any:
        if self.kind == "Comparison":
            return {"Comparison": [c.to_json() for c in self.comparisons]}
        return self.kind if self.axis is None else {self.kind: self.axis}


def _comparison(raw: Any) -> Comparison:
    if isinstance(raw, str):
        return Comparison(raw)
    if isinstance(raw, list | tuple) and raw and isinstance(raw[0], str):
        test, *boundary = raw
        if not boundary or (len(boundary) == 1 and isinstance(boundary[0], int | float) and not isinstance(boundary[0], bool)):
            return Comparison(test, *boundary)
    raise InputError(f"{raw!r:.60} is no comparison", hint='["Less", 0] or ["True"]')


@dataclass(frozen=True, slots=True)
class Constant:
    """A scalar that every element sees; an int is an i32 value, a float an f32 value (VE-030)."""

    value: int | float

    def to_json(self) -> int | float:
        return self.value

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, slots=True)
class VrfOperand:
    """A tensor in the vector register file, by name."""

    name: str

    def to_json(self) -> str:
        return self.name

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class StashOperand:
    """The snapshot that `VectorStash` took."""

    def to_json(self) -> str:
        return STASH

    def __str__(self) -> str:
        return STASH


@dataclass(frozen=True, slots=True)
class TernaryOperand:
    """Both operands of a ternary operation; `operand1` is a constant (VE-030)."""

    operand0: Operand
    operand1: Operand

    def to_json(self) -> list[Any]:
        return [self.operand0.to_json(), self.operand1.to_json()]

    def __str__(self) -> str:
        return f"({self.operand0}, {self.operand1})"


@dataclass(frozen=True, slots=True)
class Slot:
    """One call of the operand builder: an immediate (``imm``) or the register-file port (``rf``) under a guard (TAG-008)."""

    slot: str
    guard: TagGuard
    value: Operand

    def to_json(self) -> dict[str, Any]:
        return {"slot": self.slot, "guard": self.guard.to_json(), "value": self.value.to_json()}


@dataclass(frozen=True, slots=True)
class Branched:
    """Conditional operands: an element takes the first slot whose guard admits its tag (TAG-009)."""

    slots: tuple[Slot, ...]

    def to_json(self) -> dict[str, Any]:
        return {"branched": [s.to_json() for s in self.slots]}

    def __str__(self) -> str:
        return f"Branched of {len(self.slots)} slots"


Operand = Constant | VrfOperand | StashOperand | TernaryOperand | Branched


def operand_from_json(raw: Any) -> Operand:
    """The operand that a number, a name, a pair or a ``branched`` list describes.

    Raises:
        InputError: none of these.
    """
    if isinstance(raw, Constant | VrfOperand | StashOperand | TernaryOperand | Branched):
        return raw
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        return Constant(raw)
    if isinstance(raw, str):
        return StashOperand() if raw == STASH else VrfOperand(raw)
    if isinstance(raw, list | tuple) and len(raw) == 2:
        return TernaryOperand(operand_from_json(raw[0]), operand_from_json(raw[1]))
    if isinstance(raw, dict) and set(raw) == {"branched"} and isinstance(raw["branched"], list | tuple):
        return Branched(tuple(_slot(entry) for entry in raw["branched"]))
    raise InputError(f"{raw!r:.60} is no operand", hint='a number, a register tensor, "Stash", [operand0, operand1] or {"branched": [...]}')


def _slot(raw: Dict[str, Any]) -> Slot:
    missing = [key for key in ("slot", "guard", "value") if not isinstance(raw, dict) or key not in raw]
    if missing:
        raise InputError(f"a branched slot misses the field {missing[0]!r}", hint="fields: slot, guard, value")
    return Slot(str(raw["slot"]), TagGuard.from_json(raw["guard"]), operand_from_json(raw["value"]))
