"""Runs `chain` cases: a pipeline fragment is checked (verdict, rule, final stream, derived numbers) and, where it is legal, executed."""

from __future__ import annotations

import zlib
from collections.abc import Mapping as Dict
from functools import reduce
from typing import Any

import numpy as np

from tcptune.errors import ParseError, RuleViolation
from tcptune.exec.conformance.kinds.chain_values import (
    CONTRACTING,
    CONVERTING,
    FOLDS,
    MOVING,
    REDUCING,
    Field,
    compare,
    contents,
    converted,
    folded,
    only_live,
    random_field,
)
from tcptune.exec.conformance.kinds.compare import expect_refusal
from tcptune.exec.conformance.registry import Case, Mismatch, expect_equal
from tcptune.ir.kernels.ops import BeginInterleaved, CommitView, ContractPacket, ContractTime, op_from_json
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.types import StreamType, TensorType, dtype
from tcptune.model.engines.switch.bitmap import Routing
from tcptune.model.numerics.elements import numpy_dtype
from tcptune.model.pipeline import Chain, apply_chain, check_chain
from tcptune.model.stage import ChainEnv
from tcptune.model.values import Values

LEVELS = ("chip", "cluster", "slice", "lane", "time", "packet", "element")
F32_RELATIVE = 1e-6
"""Tolerance of f32 samples (conventions of the corpus)."""

Contents = tuple[Values, dict[str, Values]]


def stream_type(raw: Dict[str, Any], axes: Axes) -> StreamType:
    """The stream that a ``start`` entry describes."""
    levels = {n: axes.mapping(raw[n]) for n in ("chip", "cluster", "slice", "time", "packet")}
    lane = axes.mapping(raw["lane"]) if "lane" in raw else None
    return StreamType(raw["position"], dtype(raw["dtype"]), lane=lane, **levels)


def tensor_type(raw: Dict[str, Any], axes: Axes) -> TensorType:
    """The tensor that an entry of ``operands`` describes."""
    levels = {n: axes.mapping(raw[n]) for n in LEVELS if n in raw}
    return TensorType(raw["type"], dtype(raw["dtype"]), **levels)


def build(case: Case) -> Chain:
    """The checked chain of a case.

    Raises:
        RuleViolation, ParseError, InputError: the chain is refused.
    """
    axes = Axes(case["axes"])
    operands = {name: tensor_type(raw, axes) for name, raw in case.get("operands", {}).items()}
    start = stream_type(case["start"], axes)
    ops = [op_from_json(raw, axes) for raw in case["ops"]]
    return check_chain(start, ops, ChainEnv(case.get("context", "main"), axes, operands))


def run(case: Case) -> None:
    """Checks one case of kind `chain`.

    Raises:
        Mismatch: verdict, rule, final stream, a derived number or a value disagrees.
    """
    expect = case["expect"]
    try:
        chain = build(case)
    except (RuleViolation, ParseError) as refusal:
        expect_refusal(refusal, expect)
        return
    expect_equal("verdict", "accept", expect.get("verdict", "accept"))
    compare_final(chain.final, expect.get("final", {}), chain)
    compare_derived(chain, expect.get("derived", {}))
    execute(case, chain)


def compare_final(final: StreamType | TensorType, expect: Dict[str, Any], chain: Chain) -> None:
    """Compares position, dtype and every mapping of the result (mappings by equivalence)."""
    axes = chain.env.axes
    for key, want in expect.items():
        if key == "position":
            expect_equal("final position", _position(final, chain), want)
        elif key == "dtype":
            expect_equal("final dtype", final.dtype.name, want)
        elif key in LEVELS:
            got = getattr(final, key, None)
            if got is None or not got.equivalent(axes.mapping(want)):
                raise Mismatch(f"final {key}: got {got}, expected {want}")
        else:
            expect_equal(f"final {key}", _plain(getattr(getattr(final, "details", None), key, None)), want)


def _position(final: StreamType | TensorType, chain: Chain) -> str:
    if isinstance(final, StreamType):
        return final.position
    return "DmView" if isinstance(chain.steps[-1].op, CommitView) else final.tier


def compare_derived(chain: Chain, expect: Dict[str, Any]) -> None:
    """Compares every derived number that the case lists."""
    derived = chain.derived
    routing = next((step.config for step in chain.steps if step.op.NAME == "switch"), None)
    for key, want in expect.items():
        if routing is not None and (key == "route" or key.startswith("snoop_bitmap")):
            got: Any = _routed(routing, key, want)
        elif key in derived:
            got = _in_the_words_of(want, _plain(derived[key]), chain.env.axes)
        else:
            raise Mismatch(f"no derived number {key!r}")
        if isinstance(want, float) and isinstance(got, (int, float)):
            if abs(got - want) > 1e-9 * max(1.0, abs(want)):
                raise Mismatch(f"derived {key}: got {got!r}, expected {want!r}")
        else:
            expect_equal(f"derived {key}", got, want)


def _in_the_words_of(want: Any, got: Any, axes: Axes) -> Any:
    """Numbers by digit (``Q / 2`` or ``Q / 2 = 1``), under the case's own texts of the same digits."""
    if not isinstance(want, Dict) or not isinstance(got, Dict):
        return got
    return {next((text for text in want if _same_digit(text, name, axes)), name): value for name, value in got.items()}


def _same_digit(text: str, other: str, axes: Axes) -> bool:
    """Whether two texts name equivalent mappings, or the same position of them."""
    if text == other:
        return True
    (first, _, place), (second, _, wanted) = (t.rpartition(" = ") if " = " in t else (t, "", "") for t in (text, other))
    try:
        return place == wanted and axes.mapping(first).equivalent(axes.mapping(second))
    except (ParseError, RuleViolation):
        return False


def _routed(routing: Routing, key: str, want: Any) -> Any:
    """The part of a switch's route that a case asks for."""
    if key == "route":
        return [[s, t, *routing.source_of(s, t)] for s, t, _, _ in want]
    if key == "snoop_bitmap_ring_all":
        return all(read == list(range(routing.ring_size)) for read in routing.snoop_bitmap_ring())
    return routing.snoop_bitmap_ring() if key == "snoop_bitmap_ring" else routing.snoop_bitmap()


def _plain(value: Any) -> Any:
    """`value` with tuples as lists and numpy numbers as Python numbers, as JSON has them."""
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]
    if isinstance(value, Dict):
        return {k: _plain(v) for k, v in value.items()}
    return value.item() if isinstance(value, np.generic) else value


# --- execution --------------------------------------------------------------------------------------------------------------------


def execute(case: Case, chain: Chain) -> None:
    """Executes an accepted chain and compares it with what coordinates alone demand, with its samples and with its values.

    Raises:
        Mismatch: a value differs.
    """
    expect = case["expect"]
    names = {step.op.NAME for step in chain.steps}
    rng = np.random.default_rng(zlib.crc32(str(case.get("id", "")).encode()))
    if "samples" in expect:
        _run_samples(chain, expect["samples"])
    if "values" in expect:
        _run_values(chain, expect["values"])
    if names <= MOVING | CONVERTING or (names <= MOVING | CONVERTING | CONTRACTING and "contract_outer" in names):
        _run_by_coordinates(case, chain, rng)
    elif names <= MOVING | REDUCING:
        _run_reduction(case, chain, rng)


def _fields(chain: Chain, rng: np.random.Generator) -> tuple[Field, dict[str, Field]]:
    axes = chain.env.axes
    interleaved = tuple(s.op.axis for s in chain.steps if isinstance(s.op, BeginInterleaved))
    start = random_field(chain.start, axes, rng, interleaved)
    operands = {n: random_field(t, axes, rng) for n, t in chain.env.operands.items()}
    return start, operands


def _inputs(chain: Chain, start: Field, operands: Dict[str, Field]) -> Contents:
    """Contents of the start and of all operands; the right side of an interleaved begin is the start's field at position 1 of the axis."""
    values = contents(chain.start, start.at)
    others = {n: contents(t, operands[n].at) for n, t in chain.env.operands.items()}
    for step in chain.steps:
        if isinstance(step.op, BeginInterleaved):
            at_one = {step.op.axis: np.ones((), np.int64)}
            kind = chain.env.operands[step.op.rhs]
            others[step.op.rhs] = contents(kind, lambda coords, one=at_one: start.at({**coords, **one}))  # type: ignore[misc]  # mypy cannot infer a lambda that binds its loop variable by default
    return values, others


def _run_by_coordinates(case: Case, chain: Chain, rng: np.random.Generator) -> None:
    start, operands = _fields(chain, rng)
    values, others = _inputs(chain, start, operands)
    result = apply_chain(chain, values, others)
    raw_ops = [{**raw} for raw in case["ops"]]
    final = chain.final
    first = next((i for i, raw in enumerate(raw_ops) if raw["op"] == "contract_outer"), len(raw_ops))
    before = [raw for raw in raw_ops[:first] if raw["op"] in CONVERTING]
    after = [raw for raw in raw_ops[first:] if raw["op"] in CONVERTING]
    stream = Field(start.names, reduce(converted, before, start.data), start.digits)
    if first == len(raw_ops):
        want: Any = stream.at
    else:
        name = raw_ops[first]["trf"]
        factors = [only_live(stream, chain.start), only_live(operands[name], chain.env.operands[name])]
        want = folded(factors, tuple(m for _, m in final.levels), chain.env.axes)
        if want is None or _sums_repeats(chain, factors):
            return
    partial = raw_ops[-1]["op"] == "commit_view" or _sums_padding(chain)
    compare(final, result, lambda coords: reduce(converted, after, want(coords)), partial)


def _sums_repeats(chain: Chain, factors: list[Field]) -> bool:
    """Whether a contraction sums an axis of its output that neither operand has: repeats, of which coordinates know nothing."""
    known = {name for field in factors for name in field.names}
    kept = {name for _, m in chain.final.levels for name in m.axes}
    products = next(step.after for step in chain.steps if step.op.NAME == "contract_outer")
    return any(name not in known and name not in kept for _, m in products.levels for name in m.axes)


def _sums_padding(chain: Chain) -> bool:
    """Whether a contraction may sum padding, whose products are not known (A-08)."""
    for step in chain.steps:
        if isinstance(step.op, ContractPacket) and step.config.sums_padding:
            return True
        if isinstance(step.op, ContractTime):
            before, after = step.before.time, step.op.time
            if before.live_size < before.size and after.size < before.size:
                return True
    return False


def _run_reduction(case: Case, chain: Chain, rng: np.random.Generator) -> None:
    """A chain that only moves and reduces folds everything that its result does not carry."""
    kinds = {FOLDS.get(raw["fn"]) for raw in case["ops"] if raw["op"] in REDUCING}
    fold = kinds.pop() if len(kinds) == 1 else None
    if fold is None:
        return
    start = random_field(chain.start, chain.env.axes, rng)
    if fold == "product":
        start = Field(start.names, np.where(start.data < 0, -1.0, 1.0), start.digits)
    want = folded([start], tuple(m for _, m in chain.final.levels), chain.env.axes, fold)
    if want is not None:
        compare(chain.final, apply_chain(chain, contents(chain.start, start.at)), want)


def _run_samples(chain: Chain, samples: list[Any]) -> None:
    """Feeds each sample input to every live cell and expects the sample output in every live cell of the result.

    A pair input gives the two groups of the unzip axis their own values.
    """
    axis = next((step.op.axis for step in chain.steps if step.op.NAME == "vector_intra_slice_unzip"), None)  # type: ignore[attr-defined]  # NAME tells the class, and it has an axis
    others = {n: contents(t, lambda coords: np.zeros(())) for n, t in chain.env.operands.items()}
    for given, wanted in samples:
        pair = [_number(g) for g in given] if isinstance(given, list) else None

        def fill(coords: dict[str, Any], pair: Any = pair, given: Any = given) -> Any:
            if pair is None or axis is None:
                return np.asarray(_number(given))
            return np.where(coords[axis] == 0, pair[0], pair[1])

        start = contents(chain.start, fill)
        result = apply_chain(chain, start, others)
        _expect_everywhere(chain.final, result, _number(wanted), given)


def _number(value: Any) -> float:
    """A sample number; special floats are written as text."""
    return float(value) if not isinstance(value, str) else float(value.replace("_", ""))


def _expect_everywhere(final: StreamType | TensorType, result: Values, want: float, given: Any) -> None:
    live = contents(final, lambda coords: np.zeros(())).defined & result.defined
    if not live.any():
        raise Mismatch(f"sample {given}: no cell of the result is defined")
    got = result.data[live].astype(np.float64)
    target = np.asarray(want).astype(numpy_dtype(final.dtype)).astype(np.float64) if final.dtype.is_float else np.asarray(want)
    close = (got == target) | (np.isnan(got) & np.isnan(target))
    if final.dtype.is_float:
        close |= np.abs(got - target) <= F32_RELATIVE * np.abs(target)
    if not close.all():
        raise Mismatch(f"sample {given}: got {got[~close][0]}, expected {want}")


def _run_values(chain: Chain, values: Dict[str, Any]) -> None:
    """Live cells in storage order: ``in`` fills the start, ``out`` is the result."""
    start = contents(chain.start, lambda coords: np.zeros(()))
    data = start.data.copy()
    data[start.defined] = np.asarray(values["in"]).astype(data.dtype)
    result = apply_chain(chain, Values(data, start.defined), {})
    live = contents(chain.final, lambda coords: np.zeros(())).defined
    expect_equal("values", _plain(result.data[live].astype(np.float64)), [float(v) for v in values["out"]])
