"""Answers the cost and table questions of the Vector Engine chapter from the model: stages, ALUs, operands, valid counts, reducers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tcptune.errors import RuleViolation
from tcptune.exec.conformance.kinds.chain import stream_type
from tcptune.exec.conformance.kinds.compare import expect_derived, expect_rows_among
from tcptune.exec.conformance.registry import Case, Mismatch, cost, expect_equal, table
from tcptune.ir.kernels.ops import Op, op_from_json
from tcptune.ir.kernels.vector_operands import Constant, TagGuard, TagMode, TernaryOperand
from tcptune.ir.kernels.vector_ops import (
    VectorClip,
    VectorFilter,
    VectorFinal,
    VectorFpBinary,
    VectorFpDiv,
    VectorFpTernary,
    VectorFpToFxp,
    VectorFpUnary,
    VectorFxp,
    VectorFxpToFp,
    VectorInit,
    VectorInterSliceReduce,
    VectorIntraSliceReduce,
    VectorIntraSliceTag,
    VectorIntraSliceUnzip,
    VectorLogic,
    VectorNarrowSplit,
    VectorNarrowTrim,
    VectorReinterpret,
    VectorStash,
    VectorWidenConcat,
    VectorWidenPad,
)
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.mappings.mapping import IDENTITY, pair
from tcptune.ir.types import StreamType, dtype
from tcptune.model.engines.inter_slice_reduce import tail_cycles
from tcptune.model.engines.vector.alus import FUNCTIONS, INTRA_SLICE_REDUCTIONS, POOLS
from tcptune.model.engines.vector.narrow import INVERSE
from tcptune.model.engines.vector.operands import OPERAND_READS, operand_room_bytes
from tcptune.model.engines.vector.reduce import first_output_delay_flits
from tcptune.model.engines.vector.state import FINAL_POSITION, STAGES, Stage, VectorState, stage_named
from tcptune.model.hardware import RNGD
from tcptune.model.pipeline import check_chain
from tcptune.model.stage import ChainEnv

AXES = Axes(A=512, B=2, I=2, R=4, S=2, U=2)
ENV = ChainEnv("main", AXES)
TAG = VectorIntraSliceTag(TagMode("Zero"))
_STAGE_DTYPE = {"Fxp": "i32", "FxpToFp": "i32", "Float": "f32", "FpDiv": "f32", "FpToFxp": "f32"}


# --- stages -----------------------------------------------------------------------------------------------------------


@table("ve_stages")
def stages(case: Case) -> None:
    rows = [
        {
            "n": number,
            "stage": s.name,
            "method": " | ".join(s.methods),
            "way_in": s.way_in,
            "way_out": s.way_out,
            "operand": s.operand,
            "to_inter_slice_reducer": s.to_reducer,
        }
        for number, s in enumerate(STAGES, 1)
    ]
    expect_rows_among(case, rows, ("stage",))


@table("ve_stage_dtypes")
def stage_dtypes(case: Case) -> None:
    rows = [{"stage": s.name, "dtypes": [d.name for d in s.dtypes], "result": s.result.name if s.result else None} for s in STAGES]
    expect_rows_among(case, rows, ("stage",))


@table("ve_stashable")
def stashable(case: Case) -> None:
    """Every row is tried: a stash right after the stage, which the corpus sometimes names by its cluster."""
    for row in case["rows"]:
        stage = {"Tag": "Entry", "Fp": "Float", "InterSliceReduce": "InterSliceReduce(InterFirst)"}.get(row["stage"], row["stage"])
        expect_equal(f"stash at {row['stage']}", not isinstance(_try(stage, "vector_stash", None), RuleViolation), row["stashable"])


@table("ve_stage_prefixes")
def stage_prefixes(case: Case) -> None:
    for row in case["rows"]:
        axes = Axes(row["axes"])
        ops = [op_from_json(raw, axes) for raw in row["ops"]]
        final = check_chain(stream_type(row["start"], axes), ops, ChainEnv("main", axes)).final
        assert isinstance(final, StreamType)
        expect_equal(f"stage after {len(ops)} operations", _stage_name(final), row["stage"])


def _stage_name(stream: StreamType) -> str:
    state: VectorState = stream.details
    return f"{state.stage}({state.order})" if state.stage == "InterSliceReduce" else state.stage


@table("ve_stage_transitions")
def stage_transitions(case: Case) -> None:
    """Every row is tried on a stream brought to its stage by real operations; the rule of a refused row is a right diagnosis."""
    for row in case["rows"]:
        reached = _try(row["from"], row["method"], row.get("dtype"))
        where = f"{row['method']} from {row['from']}"
        at = _stream_at(row["from"], row.get("dtype")).details
        way = at.way if isinstance(at, VectorState) else STAGES[0].way_in
        expect_equal(f"way of {row['from']}", way, row.get("way", way))
        if isinstance(reached, RuleViolation):
            expect_equal(where, "reject", row["verdict"])
            if row.get("rule", reached.rule) not in {reached.rule, *reached.also}:
                raise Mismatch(f"{where}: refused by {reached.rule}, expected {row['rule']}")
        else:
            expect_equal(where, "accept", row["verdict"])
            expect_equal(f"stage after {where}", reached, (row.get("to", reached[0]), row.get("to_way", reached[1])))


def _try(stage: str, method: str, dtype_name: str | None) -> tuple[str, int] | RuleViolation:
    """Stage and way after `method` on a stream at `stage`, or why it is refused."""
    stream = _stream_at(stage, "f32" if method == "vector_fp_to_fxp" else dtype_name)
    op = _call(method, stream)
    try:
        after = check_chain(stream, [op], ENV).final
    except RuleViolation as refusal:
        return refusal
    assert isinstance(after, StreamType)
    if after.position == FINAL_POSITION:
        return FINAL_POSITION, STAGES[0].way_in
    return after.details.stage, after.details.way


def _stream_at(stage: str, dtype_name: str | None) -> StreamType:
    """A stream at `stage`, reinterpreted to `dtype_name` where the stage leaves another type."""
    name, _, order = stage.partition("(")
    start = dtype(_STAGE_DTYPE.get(name, dtype_name or "i32"))
    m = AXES.mapping
    stream = StreamType("Collect", start, IDENTITY, m("B"), m("[A / 8, R]"), m("[S, U]"), m("A % 2 # 8"))
    path = ["vector_init"]
    if name == "InterSliceReduce":
        path += ["vector_inter_slice_reduce"] if order.startswith("Inter") else ["tag", "vector_logic", "vector_inter_slice_reduce"]
    elif name != "VectorInit":
        path += ["tag", *_PATHS[name]]
    for method in path:
        after = check_chain(stream, [_call(method, stream)], ENV).final
        assert isinstance(after, StreamType)
        stream = after
    if dtype_name and stream.dtype.name != dtype_name and name != "VectorInit":
        stream = replace(stream, dtype=dtype(dtype_name))
    return stream


_NARROW = "vector_narrow_trim"
_PATHS: dict[str, list[str]] = {
    "Entry": [],
    "Logic": ["vector_logic"],
    "Fxp": ["vector_fxp"],
    "FxpToFp": ["vector_fxp_to_fp"],
    "Narrow": [_NARROW],
    "Float": [_NARROW, "vector_fp_binary"],
    "IntraSliceReduce": [_NARROW, "vector_intra_slice_reduce"],
    "FpDiv": [_NARROW, "vector_fp_div"],
    "Widen": [_NARROW, "vector_widen_pad"],
    "FpToFxp": ["vector_fp_to_fxp"],
    "Clip": ["vector_clip"],
    "Filter": ["vector_filter"],
}


def _call(method: str, stream: StreamType) -> Op:
    """A call of `method` that is legal in shape on `stream` and uses an ALU that no path uses."""
    joint = pair(stream.time, stream.packet)
    one = Constant(1.0) if stream.dtype.is_float else Constant(1)
    if method in ("vector_narrow_split", "vector_widen_concat"):
        time, packet = joint.split_at(4 if method == "vector_narrow_split" else 8)
        return VectorNarrowSplit(time, packet) if method == "vector_narrow_split" else VectorWidenConcat(time, packet)
    used = getattr(stream.details, "alus", ())
    free = "BitOr" if "LogicAnd" in used else "BitAnd"
    calls: dict[str, Callable[[], Op]] = {
        "tag": lambda: TAG,
        "vector_intra_slice_tag": lambda: TAG,
        "vector_init": VectorInit,
        "vector_logic": lambda: VectorLogic(free, operand=one),
        "vector_fxp": lambda: VectorFxp("MulInt" if "FxpAdd" in used else "AddFxp", operand=one),
        "vector_fxp_to_fp": lambda: VectorFxpToFp(31),
        "vector_fp_to_fxp": lambda: VectorFpToFxp(31),
        "vector_narrow_trim": lambda: VectorNarrowTrim(AXES.mapping("A % 2 # 4")),
        "vector_widen_pad": lambda: VectorWidenPad(AXES.mapping("A % 2 # 8")),
        "vector_fp_unary": lambda: VectorFpUnary("Exp"),
        "vector_fp_binary": lambda: VectorFpBinary("MulF", "Mul1" if "FpMul0" in used else "Mul0", operand=one),
        "vector_fp_ternary": lambda: VectorFpTernary("FmaF", operand=TernaryOperand(one, one)),
        "vector_fp_div": lambda: VectorFpDiv(operand=one),
        "vector_clip": lambda: VectorClip("Min" if "ClipMax" in used else "Max", operand=one),
        "vector_filter": lambda: VectorFilter(TagGuard.group(0)),
        "vector_reinterpret": lambda: VectorReinterpret("i32"),
        "vector_stash": VectorStash,
        "vector_final": VectorFinal,
        "vector_intra_slice_reduce": lambda: VectorIntraSliceReduce(
            "S", AXES.mapping("U"), stream.packet, "Add" if stream.dtype.is_float else "AddSat"
        ),
        "vector_inter_slice_reduce": lambda: VectorInterSliceReduce(AXES.mapping("[A / 8, 1 # 4]"), stream.time, "Add"),
    }
    return calls[method]()


# --- ALUs -------------------------------------------------------------------------------------------------------------


@table("alu_classes")
def alu_classes(case: Case) -> None:
    """The corpus names the dedicated units by what they are; everything else is compared as it stands."""
    rows: dict[tuple[str, str, str], dict[str, Any]] = {
        key: {"cluster": f.cluster, "dtype": f.dtype, "arity": f.arity, "fn": f.name, "alu": f.alu} for key, f in FUNCTIONS.items()
    }
    for r in INTRA_SLICE_REDUCTIONS:
        rows["IntraSliceReduce", r.dtype, r.name] = {"cluster": "IntraSliceReduce", "dtype": r.dtype, "fn": r.name, "alu": "ReduceAccTree"}
    dedicated = {"dedicated accumulator tree": "ReduceAccTree", "dedicated divider": "ReduceFpDiv"}
    wanted = {(r["cluster"], r["dtype"], r["fn"]): {**r, "alu": dedicated.get(r["alu"], r["alu"])} for r in case["rows"]}
    for key, row in wanted.items():
        if key not in rows:
            raise Mismatch(f"there is no function {key}")
        expect_equal(f"function {key}", {k: rows[key].get(k) for k in row}, row)


@table("alu_pools")
def alu_pools(case: Case) -> None:
    dedicated = {"(accumulator tree)": "ReduceAccTree", "(divider)": "ReduceFpDiv"}
    for row in case["rows"]:
        stage = next((s for s in STAGES if s.name == row["cluster"]), None)
        if stage is None:
            raise Mismatch(f"there is no stage {row['cluster']!r}")
        got = (POOLS[row["cluster"]], stage.way_in, len(POOLS[row["cluster"]]))
        expect_equal(row["cluster"], got, (tuple(dedicated.get(a, a) for a in row["alus"]), row["way"], row["count"]))


@cost("ve_chain_latency")
def chain_latency(case: Case) -> None:
    """One cycle an ALU; reinterprets are free. Measured on a chain that uses one function of every named ALU, in pipeline order."""
    params = case["params"]
    stream = _stream_at("Entry", "i32")
    for _ in range(params.get("reinterprets", 0)):
        stream = _after(stream, VectorReinterpret(stream.dtype.name))
    order = [s.name for s in STAGES]
    latency = 0
    for alu in sorted(params["alus"], key=lambda name: order.index(_cluster_of(name))):
        stream = _brought_to(stream, stage_named(_cluster_of(alu)))
        chain = check_chain(stream, [_use_of(alu, stream)], ENV)
        latency += chain.steps[-1].derived["alu_latency_cycles"] - len(stream.details.alus)
        stream = _after(stream, _use_of(alu, stream))
    expect_derived(case, {"added_cycles": latency}, ignore=("note",))


def _cluster_of(alu: str) -> str:
    found = next((cluster for cluster, pool in POOLS.items() if alu in pool), None)
    if found is None:
        raise Mismatch(f"there is no ALU {alu!r}")
    return found


def _after(stream: StreamType, op: Op) -> StreamType:
    after = check_chain(stream, [op], ENV).final
    assert isinstance(after, StreamType)
    return after


def _brought_to(stream: StreamType, stage: Stage) -> StreamType:
    """The stream in the way and with an element type of `stage`, by methods that use no ALU."""
    if stream.details.way != stage.way_in:
        stream = _after(stream, _call("vector_narrow_trim" if stage.way_in == RNGD.vector_ways[1] else "vector_widen_pad", stream))
    return stream if stream.dtype in stage.dtypes else _after(stream, VectorReinterpret(stage.dtypes[0].name))


def _use_of(alu: str, stream: StreamType) -> Op:
    """A call of some function that runs on `alu`."""
    cluster = _cluster_of(alu)
    if cluster in ("FpDiv", "IntraSliceReduce"):
        return _call("vector_fp_div" if cluster == "FpDiv" else "vector_intra_slice_reduce", stream)
    f = next(f for f in FUNCTIONS.values() if f.alu == alu and f.dtype == stream.dtype.name)
    name, _, select = f.name.rstrip(")").partition("(")
    methods = {1: "vector_fp_unary", 2: "vector_fp_binary", 3: "vector_fp_ternary"}
    one = 1.0 if stream.dtype.is_float else 1
    raw: dict[str, Any] = {"op": methods[f.arity] if cluster == "Float" else f"vector_{cluster.lower()}", "fn": name}
    raw |= {"alu": select} if select else {}
    raw |= {"operand": one} if f.arity == 2 else {"operand": [one, one]} if f.arity == 3 else {}
    return op_from_json(raw, AXES)


@cost("ve_throughput")
def throughput(case: Case) -> None:
    way = case["params"]["way"]
    stream = _stream_at("Entry" if way == RNGD.vector_ways[0] else "Float", "f32")
    elements = check_chain(stream, [_call("vector_reinterpret", stream)], ENV).derived["elements_per_cycle"]
    expect_derived(case, {"elements_per_cycle": elements, "relative": elements / RNGD.vector_ways[0]})


@cost("ve_narrow")
def narrowing(case: Case) -> None:
    """Packets a slice after the narrowing method of the case, on as many flits as it names."""
    flits = case["params"]["way8_packets"]
    axes = Axes(A=8, T=flits, X=256)
    trims = case["params"].get("method", "vector_narrow_split") == "vector_narrow_trim"
    packet = axes.mapping("A % 4 # 8" if trims else "A")
    start = StreamType("VectorBranch", dtype("f32"), IDENTITY, IDENTITY, axes.mapping("X"), axes.mapping("T"), packet)
    time, narrow = pair(start.time, start.packet).split_at(RNGD.vector_ways[1])
    op: Op = VectorNarrowTrim(axes.mapping("A % 4")) if trims else VectorNarrowSplit(time, narrow)
    chain = check_chain(start, [op], ChainEnv("main", axes))
    expect_derived(case, {"way4_packets": chain.derived["way4_flits"]}, ignore=("note",))


# --- operands ---------------------------------------------------------------------------------------------------------


@table("operand_sources")
def operand_sources(case: Case) -> None:
    rows = [{"source": name, "reads": "unlimited" if reads is None else reads, "broadcast": True} for name, reads in OPERAND_READS.items()]
    expect_rows_among(case, rows, ("source",), ignore=("example", "note"))


@cost("vrf_capacity")
def register_capacity(case: Case) -> None:
    params = case["params"]
    reserved = RNGD.vrf_stash_bytes_per_slice if params.get("stash") else 0
    size = params.get("vrf_bytes", RNGD.vrf_bytes_per_slice)
    expect_derived(case, {"reserved_bytes": reserved, "rhs_bytes": operand_room_bytes(size, reserved)})


@table("narrow_widen")
def narrow_widen(case: Case) -> None:
    rows = [{"method": m, "inverse": INVERSE.get(m)} for stage in ("Narrow", "Widen") for s in STAGES if s.name == stage for m in s.methods]
    expect_rows_among(case, rows, ("method",), ignore=("use", "note"))


@table("pair_mode_availability")
def pair_availability(case: Case) -> None:
    """Every method is tried on a pair and on a merged stream, at the stage and type that suit it."""
    for row in case["rows"]:
        for phase in ("paired", "merged"):
            expect_equal(f"{row['method']} on a {phase} stream", _offered_on_pair(row["method"], phase), row[phase])


def _offered_on_pair(method: str, phase: str) -> bool:
    base = method.removesuffix("_zip")
    stage = next((s for s in STAGES if base in s.methods or (base == "vector_fp" and s.name == "Float")), None)
    narrow = stage is not None and stage.way_in == RNGD.vector_ways[1]
    type_name = "f32" if stage is not None and len(stage.dtypes) == 1 and stage.dtypes[0].is_float else "i32"
    m = AXES.mapping
    stream = StreamType("Collect", dtype(type_name), IDENTITY, m("B"), m("[A / 8, R]"), m("[S, I]"), m("A % 2 # 8"))
    ops: list[Op] = [VectorInit(), VectorIntraSliceUnzip("I", m("S"))]
    if phase == "merged":
        ops.append(op_from_json({"op": "vector_logic_zip", "fn": "BitXor"}, AXES))
    if narrow:
        ops.append(VectorNarrowSplit(m("[S, 1 # 2]"), m("A % 2 # 4")))
    op = _pair_call(method, phase, type_name)
    try:
        check_chain(stream, [*ops, op], ENV)
    except RuleViolation as refusal:
        if refusal.rule.startswith("PAIR-"):
            return False
        raise Mismatch(f"{method} on a {phase} stream is refused by {refusal.rule}: {refusal.message}") from None
    return True


def _pair_call(method: str, phase: str, type_name: str) -> Op:
    one: Any = 1.0 if type_name == "f32" else 1
    ternary = [one, one]
    fn = {"vector_logic": "BitAnd", "vector_fxp": "AddFxp", "vector_fp_binary": "AddF", "vector_clip": "Max", "vector_fp": "AddF"}
    raw: dict[str, Any] = {"op": method}
    base = method.removesuffix("_zip")
    if base == "vector_fp_unary":
        raw |= {"fn": "Exp", **({"group0_apply": True, "group1_apply": True} if phase == "paired" else {})}
    elif base in (*fn, "vector_fp_ternary", "vector_fp_div"):
        operand = ternary if base == "vector_fp_ternary" else one
        raw |= {"fn": fn[base]} if base in fn else {"fn": "FmaF"} if base == "vector_fp_ternary" else {}
        if method == base:
            raw |= {"group0": operand, "group1": operand} if phase == "paired" else {"operand": operand}
    shapes: dict[str, dict[str, Any]] = {
        "vector_fxp_to_fp": {"int_width": 31},
        "vector_fp_to_fxp": {"int_width": 31},
        "vector_narrow_split": {"time": "[S, 1 # 2]", "packet": "A % 2 # 4"},
        "vector_widen_concat": {"time": "S", "packet": "A % 2 # 8"},
        "vector_narrow_trim": {"packet": "A % 2 # 4"},
        "vector_widen_pad": {"packet": "A % 2 # 4 # 8"},
        "vector_filter": {"guard": {"group": 0}},
        "vector_intra_slice_reduce": {"axis": "S", "time": "1 # 2", "packet": "A % 2 # 4", "fn": "AddSat"},
        "vector_inter_slice_reduce": {"slice": "[A / 8, 1 # 4]", "time": "S", "fn": "Add"},
    }
    return op_from_json({**raw, **shapes.get(method, {})}, AXES)


# --- reducers and valid counts ----------------------------------------------------------------------------------------


@cost("isr")
def intra_slice_reduce(case: Case) -> None:
    """One flit a cycle; the first result waits for all steps of the reduced axis."""
    params = case["params"]
    axes = Axes(A=4, T=params.get("flits", params.get("reduce_time_steps")), X=256)
    start = StreamType("VectorBranch", dtype("f32"), IDENTITY, IDENTITY, axes.mapping("X"), axes.mapping("T"), axes.mapping("A # 8"))
    ops: list[Op] = [VectorNarrowTrim(axes.mapping("A")), VectorIntraSliceReduce("T", IDENTITY, axes.mapping("A"), "Add")]
    step = check_chain(start, ops, ChainEnv("main", axes)).steps[-1]
    derived = {
        "cycles_per_flit": step.cost.cycles / step.before.time.size,
        "first_output_delay_flit_cycles": first_output_delay_flits(params.get("reduce_time_steps", 0), params.get("inner_time", 1)),
    }
    expect_derived(case, derived, ignore=("note",))


@cost("xsr")
def inter_slice_reduce(case: Case) -> None:
    params = case["params"]
    tail = tail_cycles(params["reduction_ratio"])
    expect_derived(case, {"tail_cycles": tail, "total_cycles": params.get("input_stream_cycles", 0) + tail})
