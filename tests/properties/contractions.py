"""Random contractions, legal by construction: every kind of axis on every level that may hold it, digits split and padded."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from random import Random

from tcptune.ir.kernels.ops import Op, op_from_json
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.types import StreamType, TensorType, dtype
from tcptune.model.numerics.elements import packing_bits
from tcptune.model.pipeline import Chain, check_chain
from tcptune.model.stage import ChainEnv

DTYPES = ("i4", "i5", "i8", "i9", "f8e4m3", "f8e5m2", "bf16")
FLIT_BITS = 256


@dataclass(frozen=True)
class Factor:
    """One factor of a level: its text, how many positions it has, and what becomes of it.

    `stream` and `weight` say which operand holds it, `kept` whether it survives into the result.
    """

    text: str
    size: int
    stream: bool
    weight: bool
    kept: bool


@dataclass(frozen=True)
class Drawn:
    """A random contraction before it is checked."""

    axes: Axes
    start: StreamType
    weight: TensorType
    ops: tuple[Op, ...]

    def check(self) -> Chain:
        """The checked chain; RuleViolation where capacities do not suffice."""
        return check_chain(self.start, self.ops, ChainEnv("main", self.axes, {"w": self.weight}))


def _listed(factors: list[Factor]) -> str:
    return ", ".join(f.text for f in factors) or "1"


class _Axes:
    """Axes as they are needed, each used by one or two factors."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.sizes: dict[str, int] = {}

    def whole(self, size: int, padded_to: int | None = None) -> tuple[str, int]:
        name = f"X{len(self.sizes)}"
        self.sizes[name] = size
        return (f"{name} # {padded_to}", padded_to) if padded_to else (name, size)

    def digits(self, outer: int, inner: int) -> tuple[str, str]:
        name = f"X{len(self.sizes)}"
        self.sizes[name] = outer * inner
        return f"{name} / {inner}", f"{name} % {inner}"


def _packet(rng: Random, axes: _Axes, elements: int) -> list[Factor]:
    """Factors of OutPacket, major first: repeated stream axes, surviving columns, summed positions."""
    depth = rng.randint(0, elements.bit_length() - 1)
    summed, left = 1 << depth, elements >> depth
    factors: list[Factor] = []
    if left > 32 or rng.random() < 0.2:
        live = min(left, rng.choice((1, 2, 4)))
        if live < left:
            text, size = axes.whole(live, left)
            factors.append(Factor(text, size, True, False, True))
            left = 1
    while left > 1:
        size = rng.choice([n for n in (2, 4, 8, 16, 32) if n <= left])
        is_weight = rng.random() < 0.6 or any(f.weight for f in factors)
        factors.append(Factor(axes.whole(size)[0], size, True, is_weight, True))
        left //= size
    while summed > 1:
        size = rng.choice([n for n in (2, 4, 8, 16, 32, 64, 128) if n <= summed])
        is_weight = rng.random() < 0.8 or any(f.weight for f in factors)
        factors.append(Factor(axes.whole(size)[0], size, True, is_weight, False))
        summed //= size
    return factors


def _time(rng: Random, axes: _Axes) -> tuple[list[Factor], list[Factor]]:
    """(factors of the packed Time, broadcast factors of OutTime)."""
    streamed, repeated = [], []
    for _ in range(rng.randint(0, 3)):
        weight, kept = rng.random() < 0.5, rng.random() < 0.6
        if rng.random() < 0.3:
            for text, size in zip(axes.digits(2, 3), (2, 3), strict=True):
                streamed.append(Factor(text, size, True, weight, rng.random() < 0.6))
        elif rng.random() < 0.2 and kept:
            text, size = axes.whole(3, 4)
            streamed.append(Factor(text, size, True, weight, True))
        else:
            size = rng.choice((2, 3, 4))
            streamed.append(Factor(axes.whole(size)[0], size, True, weight, kept))
    for _ in range(rng.randint(0, 2)):
        size = rng.choice((2, 3))
        repeated.append(Factor(axes.whole(size)[0], size, False, rng.random() < 0.7, rng.random() < 0.7))
    rng.shuffle(streamed)
    rng.shuffle(repeated)
    return streamed, repeated


def _split_flit(packet: list[Factor], flit: int, axes: _Axes) -> tuple[list[Factor], str, str]:
    """(packet factors cut at the flit, Time factor that was packed, Packet): the outermost factor loses a factor of 2 to Time."""
    if prod(f.size for f in packet) == flit:
        return packet, "", _listed(packet)
    head, rest = packet[0], packet[1:]
    if head.text.count("#"):
        name, padded = head.text.split(" # ")
        return packet, "1 # 2", _listed([Factor(f"{name} # {int(padded) // 2}", head.size // 2, True, False, True), *rest])
    if head.size == 2:
        return packet, head.text, _listed(rest)
    return (
        packet,
        f"{head.text} / {head.size // 2}",
        _listed([Factor(f"{head.text} % {head.size // 2}", head.size // 2, True, True, True), *rest]),
    )


def draw(rng: Random) -> Drawn:
    """A random contraction whose result may still be refused for its slots."""
    axes = _Axes(rng)
    element_type = dtype(rng.choice(DTYPES))
    flit = FLIT_BITS // packing_bits(element_type)
    packet, packed, flit_text = _split_flit(_packet(rng, axes, flit * rng.choice((1, 2))), flit, axes)
    streamed, repeated = _time(rng, axes)
    lanes = rng.choice((1, 2, 4, 8))
    lane = axes.whole(lanes)[0] if lanes > 1 else "1"
    read = [f for f in packet if f.weight]
    stored = [f for f in (*streamed, *repeated) if f.weight]
    rng.shuffle(stored)
    columns = [f for f in packet if f.kept]
    kept_time = [f for f in (*streamed, *repeated) if f.kept]
    sizes = Axes(axes.sizes)
    spatial = {"chip": sizes.mapping("1"), "cluster": sizes.mapping("1 # 2"), "slice": sizes.mapping("1 # 64")}
    time = ", ".join(t for t in (_listed(streamed), packed) if t)
    start = StreamType("Collect", element_type, time=sizes.mapping(time), packet=sizes.mapping(flit_text), **spatial)
    weight = TensorType("Trf", element_type, sizes.mapping(_listed([*stored, *read])), lane=sizes.mapping(lane), **spatial)
    left = _listed(columns)
    if columns and "#" in columns[0].text and (columns[0].size > 32 or rng.random() < 0.7):
        left = columns[0].text.split(" # ")[0]
    width = sizes.mapping(left).size
    mode = rng.choice(("Interleaved", "Sequential"))
    bus = -(-width // 8) * 8
    folded = (
        (f"{_listed(kept_time)}, {left}", f"{lane} # 8")
        if mode == "Interleaved"
        else (f"{_listed(kept_time)}, {lane}, [{left}] # {bus} / 8", f"[{left}] # {bus} % 8")
    )
    raw = (
        {"op": "contract_outer", "time": f"{_listed(streamed)}, {_listed(repeated)}", "packet": _listed(packet), "trf": "w"},
        {"op": "contract_packet", "packet": left},
        {"op": "contract_time", "time": _listed(kept_time)},
        {"op": "contract_lane", "time": folded[0], "packet": folded[1], "mode": mode},
    )
    return Drawn(sizes, start, weight, tuple(op_from_json(op, sizes) for op in raw))
