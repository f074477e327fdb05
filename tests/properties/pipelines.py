"""Random pipelines: legal by construction, and mutations of them that may or may not be legal."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from random import Random

from tcptune.errors import RuleViolation
from tcptune.ir.kernels.ops import (
    OPS,
    Cast,
    Collect,
    Commit,
    CommitTrim,
    ContractLane,
    ContractOuter,
    ContractPacket,
    ContractTime,
    Fetch,
    FetchCast,
    FetchTableLookup,
    FetchZeroPointSub,
    Op,
    Switch,
    SwitchConfig,
    ToTrf,
    ToVrf,
    op_from_json,
)
from tcptune.ir.kernels.vector_ops import VectorFinal, VectorInit
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.mappings.mapping import IDENTITY, Mapping, broadcast, pair
from tcptune.ir.types import DType, StreamType, TensorType, dtype
from tcptune.model.engines.collect import flit_elements
from tcptune.model.engines.switch.custom import derived_ring_size
from tcptune.model.hardware import RNGD

DTYPES = ("i4", "i8", "i16", "i32", "f4e2m1", "f8e4m3", "f8e5m2", "bf16", "f32")
ADAPTED = {
    "i4": (FetchCast(dtype("i32")), FetchZeroPointSub(dtype("i5"), 3)),
    "i8": (FetchCast(dtype("i32")), FetchZeroPointSub(dtype("i9"), -7)),
    "i16": (FetchCast(dtype("i32")),),
    "f4e2m1": (FetchTableLookup(dtype("f8e4m3")), FetchTableLookup(dtype("f8e5m2"))),
    "f8e4m3": (FetchTableLookup(dtype("bf16")), FetchCast(dtype("f32"))),
    "f8e5m2": (FetchTableLookup(dtype("bf16")), FetchCast(dtype("f32"))),
    "bf16": (FetchCast(dtype("f32")),),
    "f32": (FetchCast(dtype("bf16")),),
}
AXES = Axes(G=2, S=64, U=4, V=8, W=16, A=3, B=4, C=5, D=8, K=16, L=32, M=2, N=8, X=2, Y=4, Z=8, Q=16)
SLICES = ("S", "S, U", "Q, W", "U, W, M # 4", "W, A # 16", "V, B, A # 4", "W, 1 # 16", "S # 128", "L, V", "C # 8, W, M")

_TAG = {"op": "vector_intra_slice_tag", "mode": "Zero"}
VECTOR_WORK = {
    "i32": [op_from_json(raw, AXES) for raw in (_TAG, {"op": "vector_fxp", "fn": "AddFxp", "operand": 3})],
    "f32": [op_from_json(raw, AXES) for raw in (_TAG, {"op": "vector_clip", "fn": "Max", "operand": 0.0})],
}


@dataclass(frozen=True)
class Pipeline:
    """A chain with its start, surroundings and operands."""

    start: StreamType
    ops: tuple[Op, ...]
    context: str
    operands: dict[str, TensorType]


def legal_pipeline(rng: Random) -> Pipeline:
    """A pipeline that every rule accepts."""
    stream, fetch = _fetched(rng)
    ops: list[Op] = [fetch]
    begin = stream.with_(position="Begin", time=IDENTITY, packet=pair(fetch.time, fetch.packet))
    if rng.random() < 0.5 and stream.dtype.name in ADAPTED:
        ops.append(rng.choice(ADAPTED[stream.dtype.name]))
        stream = stream.with_(dtype=ops[-1].dtype)  # type: ignore[attr-defined]
    if rng.random() < 0.7:
        switch = _switched(stream, rng)
        if switch is not None:
            ops.append(switch)
            stream = stream.with_(slice=switch.slice, time=switch.time)
    per_flit = flit_elements(stream.dtype, RNGD)
    outer, flit = stream.packet.pad_to_multiple(per_flit).split_at(per_flit)
    stream = stream.with_(time=pair(stream.time, outer), packet=flit)
    ops.append(Collect(stream.time, stream.packet))
    more, operands = _ending(stream, rng)
    return Pipeline(begin, (*ops, *more), "main", operands)


def _fetched(rng: Random) -> tuple[StreamType, Fetch]:
    element = dtype(rng.choice(DTYPES))
    sizes = [n for n in ("D", "K", "L", "N, K", "M, K") if AXES.mapping(n).size * element.bits % 64 == 0]
    packet = AXES.mapping(rng.choice(sizes))
    free = [n for n in ("A", "B", "C", "M", "V") if n not in packet.axes]
    slice_ = AXES.mapping(rng.choice([s for s in SLICES if not set(AXES.mapping(s).axes) & {*packet.axes, *free[:3]}]))
    names = rng.sample(free[:3], rng.randrange(3))
    time = pair(*(AXES.mapping(n) for n in names))
    cluster = AXES.mapping(rng.choice(("G", "1 # 2")))
    return StreamType("Fetch", element, IDENTITY, cluster, slice_, time, packet), Fetch(time, packet)


def _switched(stream: StreamType, rng: Random) -> Switch | None:
    """A legal switch of a random kind, or none that fits."""
    kind = rng.choice(("Broadcast01", "Broadcast1", "Transpose", "InterTranspose", "TransposedBroadcast1", "CustomBroadcast"))
    slice1, slice0 = rng.choice((1, 2, 4, 8)), rng.choice((1, 2, 4))
    slices, steps = stream.slice.size, stream.time.size
    outer, inner = stream.slice.split_at(slice1 * slice0)
    digit1, digit0 = inner.split_at(slice0)
    new1, new0 = _filling(slice1, stream, rng), _filling(slice0, stream, rng)
    if kind == "Transpose":
        return Switch(pair(outer, digit0, digit1), stream.time, SwitchConfig(kind, slice1, slice0))
    if kind == "Broadcast1":
        return Switch(pair(outer, new1, digit0), pair(stream.time, digit1), SwitchConfig(kind, slice1, slice0))
    if kind == "TransposedBroadcast1":
        return Switch(pair(outer, new0, digit1), pair(stream.time, digit0), SwitchConfig(kind, slice1, slice0))
    if kind == "Broadcast01":
        time0 = rng.choice([n for n in (1, 2, 3, 4, 5) if steps % n == 0])
        time1, inner_time = stream.time.split_at(time0)
        filled = _filling(slice1 * slice0, stream, rng)
        return Switch(pair(outer, filled), pair(time1, digit1, inner_time, digit0), SwitchConfig(kind, slice1, slice0, time0))
    if kind == "InterTranspose":
        if slices != RNGD.slices_per_cluster or steps % slice1:
            return None
        time2, time1 = stream.time.split_at(slice1)
        return Switch(pair(outer, time1, digit0), pair(time2, digit1), SwitchConfig(kind, slice1, slice0, 1))
    return _custom(stream, outer, digit1, digit0, rng)


def _custom(stream: StreamType, outer: Mapping, digit1: Mapping, digit0: Mapping, rng: Random) -> Switch:
    filled = _filling(digit1.size, stream, rng)
    moves = rng.random() < 0.5
    parts = [outer, filled, digit0] if moves else rng.sample([outer, digit1, digit0], 3)
    out = pair(*parts)
    time = pair(stream.time, digit1) if moves else stream.time
    return Switch(out, time, SwitchConfig("CustomBroadcast", ring_size=derived_ring_size(stream.slice, out)))


def _filling(size: int, stream: StreamType, rng: Random) -> Mapping:
    """Something new of this size: an axis, a broadcast, or padding."""
    held = _names(stream)
    axes = [AXES.symbol(n) for n, s in AXES.items() if s == size and n not in held]
    return rng.choice([broadcast(size), IDENTITY.pad(size), *axes])


def _ending(stream: StreamType, rng: Random) -> tuple[list[Op], dict[str, TensorType]]:
    """Operations after collect, by element type, and the operands they name."""
    endings: list[tuple[list[Op], dict[str, TensorType]]] = [([], {})]
    name = stream.dtype.name
    if name in ("i4", "i8", "i5", "i9", "f8e4m3", "f8e5m2", "bf16") and "N" not in _names(stream):
        endings.append(_contraction(stream))
    if name in ("i5", "i9"):
        return rng.choice(endings)
    lanes = [n for n in RNGD.legal_lane_counts if stream.time.size % n == 0]
    lane, rest = stream.time.split_at(stream.time.size // rng.choice(lanes))
    if stream.time.size * RNGD.flit_bytes <= RNGD.trf_bytes_per_slice:
        endings.append(([ToTrf(lane, pair(rest, stream.packet))], {}))
    endings.append(([CommitTrim(stream.packet), Commit(pair(stream.time, stream.packet))], {}))
    if name in ("i32", "f32"):
        if stream.time.size * RNGD.flit_bytes <= RNGD.vrf_bytes_per_slice:
            endings.append(([ToVrf(pair(stream.time, stream.packet), sub_arg=True)], {}))
        endings.append(([VectorInit(), *VECTOR_WORK[name], VectorFinal()], {}))
        narrow = dtype("i8" if name == "i32" else "bf16")
        endings.append(([Cast(narrow, stream.packet.pad(flit_elements(narrow, RNGD)))], {}))
    return rng.choice(endings)


def _names(stream: StreamType) -> set[str]:
    return {n for _, m in stream.levels for n in m.axes}


def _contraction(stream: StreamType) -> tuple[list[Op], dict[str, TensorType]]:
    """The whole packet is contracted with eight lanes of the same width."""
    element = dtype({"i5": "i4", "i9": "i8"}.get(stream.dtype.name, stream.dtype.name))
    lane = AXES.symbol("N")
    weight = TensorType("Trf", element, stream.packet, stream.chip, stream.cluster, stream.slice, lane)
    return [
        ContractOuter(stream.time, stream.packet, "w"),
        ContractPacket(IDENTITY),
        ContractTime(stream.time),
        ContractLane(stream.time, lane, "Interleaved"),
    ], {"w": weight}


# --- mutations --------------------------------------------------------------------------------------------------------------------


def mutated(pipeline: Pipeline, rng: Random) -> Pipeline:
    """The pipeline with one to three random changes."""
    for _ in range(rng.randrange(1, 4)):
        pipeline = _mutate_once(pipeline, rng)
    return pipeline


def _mutate_once(pipeline: Pipeline, rng: Random) -> Pipeline:
    ops = list(pipeline.ops)
    choice = rng.randrange(7)
    if choice == 0:
        return dataclasses.replace(pipeline, context="sub")
    if choice == 1:
        level = rng.choice(("slice", "cluster", "packet", "time"))
        return dataclasses.replace(pipeline, start=pipeline.start.with_(**{level: _changed(getattr(pipeline.start, level), rng)}))
    if choice == 2:
        return dataclasses.replace(pipeline, start=pipeline.start.with_(dtype=dtype(rng.choice((*DTYPES, "i5", "i9", "f16")))))
    place = rng.randrange(len(ops)) if ops else 0
    if choice == 3 and ops:
        ops.pop(place)
    elif choice == 4 and len(ops) > 1:
        other = rng.randrange(len(ops))
        ops[place], ops[other] = ops[other], ops[place]
    elif choice == 5 and ops:
        ops.insert(place, ops[rng.randrange(len(ops))])
    elif ops:
        ops[place] = _changed_op(ops[place], rng)
    return dataclasses.replace(pipeline, ops=tuple(ops))


def _changed_op(op: Op, rng: Random) -> Op:
    fields = list(dataclasses.fields(op))
    if not fields:
        return OPS[rng.choice(("vector_final", "vector_init"))]()
    field = rng.choice(fields)
    value = getattr(op, field.name)
    if isinstance(value, Mapping):
        return dataclasses.replace(op, **{field.name: _changed(value, rng)})
    if isinstance(value, DType):
        return dataclasses.replace(op, **{field.name: dtype(rng.choice(DTYPES))})
    if isinstance(value, SwitchConfig):
        sizes = {n: rng.choice((0, 1, 2, 3, 4, 8, 64)) for n in ("slice1", "slice0", "time0", "ring_size") if getattr(value, n) is not None}
        return dataclasses.replace(op, config=dataclasses.replace(value, **sizes))
    if isinstance(value, int) and not isinstance(value, bool):
        return dataclasses.replace(op, **{field.name: value + rng.choice((-300, -1, 1, 300))})
    return op


def _changed(mapping: Mapping, rng: Random) -> Mapping:
    """A mapping near the given one; itself where the change is not possible."""
    try:
        return _change(mapping, rng)
    except RuleViolation:
        return mapping


def _change(mapping: Mapping, rng: Random) -> Mapping:
    terms = mapping.terms() or [IDENTITY]
    place = rng.randrange(len(terms))
    choice = rng.randrange(7)
    if choice == 0:
        return mapping.pad(mapping.size + rng.choice((1, 2, 8)))
    if choice == 1:
        return mapping.resize(max(1, mapping.size - rng.randrange(1, 9)))
    if choice == 2:
        return pair(*rng.sample(terms, len(terms)))
    if choice == 3:
        return pair(*terms[:place], *terms[place + 1 :])
    if choice == 4:
        return pair(*terms[:place], AXES.symbol(rng.choice(tuple(AXES))), *terms[place:])
    if choice == 5:
        return pair(*terms[:place], rng.choice((broadcast(2), IDENTITY.pad(4))), *terms[place:])
    n = rng.choice((2, 4, 8))
    return pair(mapping.modulo(n), mapping.stride(n))
