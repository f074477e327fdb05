"""Derived numbers of kernel cases, by the corpus's names: sizes, transfers, syncs and the numbers of each chain."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from collections.abc import Mapping as Dict
from math import prod
from typing import Any

from tcptune.exec.conformance.registry import NO_RESULT, Mismatch, expect_equal
from tcptune.exec.program.check import trip_count
from tcptune.exec.program.checked import CheckedKernel, CheckedStep, buffer_bytes
from tcptune.ir.kernels import steps as s
from tcptune.ir.types import StreamType, TensorType
from tcptune.model.hardware import RNGD
from tcptune.model.pipeline import Chain
from tcptune.model.redistribution import Syncs, syncs_of_move
from tcptune.model.stage import Step
from tcptune.model.timing.overlap import fits_trf_half

_NOT_FACTS = (*NO_RESULT, "values", "samples", "makespan")


def walk(steps: tuple[CheckedStep, ...]) -> Iterator[CheckedStep]:
    """Every step, loop bodies included, once."""
    for step in steps:
        yield step
        yield from walk(step.body)


def _syncs(checked: CheckedKernel) -> dict[str, int]:
    found = {"ChipSync": 0, "ClusterSync": 0}
    for step in walk(checked.steps):
        syncs = _syncs_of(step)
        found["ChipSync"] += syncs.chip
        found["ClusterSync"] += syncs.cluster
    return found


def _syncs_of(step: CheckedStep) -> Syncs:
    if isinstance(step.step, s.Redistribute) and step.route is not None:
        return Syncs(step.route.syncs.chip, step.route.syncs.cluster)
    if isinstance(step.step, s.ToDm) and step.result is not None:
        return syncs_of_move(step.sources[0].type, step.result.type)
    return Syncs()


def _dma_steps(checked: CheckedKernel) -> list[CheckedStep]:
    moving = (
        s.ToDm,
        s.ToHbm,
        s.ToHost,
        s.ToHbmView,
        s.Redistribute,
        s.HbmChipShuffle,
        s.DmaGatherScaled,
        s.DmaGatherUnscaled,
        s.DmaScatter,
    )
    return [step for step in walk(checked.steps) if isinstance(step.step, moving)]


def _output(checked: CheckedKernel) -> TensorType:
    return checked.outputs[0].type


def _first_dm(checked: CheckedKernel) -> TensorType:
    """The DM tensor that sizes speak of: that of an indirect move, else the first one."""
    for step in walk(checked.steps):
        if isinstance(step.step, s.DmaGatherScaled | s.DmaGatherUnscaled) and step.result is not None:
            return step.result.type
        if isinstance(step.step, s.DmaScatter):
            return step.sources[0].type
    for step in walk(checked.steps):
        if step.result is not None and step.result.type.tier == "Dm":
            return step.result.type
    return _output(checked)


def _live_elements(type_: TensorType) -> int:
    """Live positions of Element."""
    return type_.element.live_size


def _by_transfer(checked: CheckedKernel, get: Callable[[Any], int]) -> int | list[int]:
    found = [get(step.transfers[0]) for step in _dma_steps(checked) if step.transfers]
    return found[0] if len(found) == 1 else found


def _gather_row_bytes(checked: CheckedKernel) -> int:
    for step in walk(checked.steps):
        if isinstance(step.step, s.DmaGatherScaled | s.DmaGatherUnscaled) and step.result is not None:
            table, result = step.sources[0].type, step.result.type
            sizes = {a: n for _, m in table.levels for a, n in m.axes.items()}
            kept = {a for _, m in result.levels for a in m.axes}
            row = 1
            for axis, size in sizes.items():
                row *= size if axis in kept else 1
            return table.dtype.bytes_of(row)
    type_ = _first_dm(checked)
    return type_.dtype.bytes_of(_live_elements(type_) // max(_rows_per_slice(checked), 1))


def _rows_per_slice(checked: CheckedKernel) -> int:
    """Rows of an indirect move that lie in the Element of one slice: its digits of the gather index, or of the scatter key."""
    for step in walk(checked.steps):
        if isinstance(step.step, s.DmaGatherScaled | s.DmaGatherUnscaled) and step.result is not None:
            held = {a for _, m in step.sources[0].type.levels for a in m.axes}
            return _digits_of(step.result.type, lambda axis, held=held: axis not in held)  # type: ignore[misc]  # mypy cannot infer a lambda that binds its loop variable by default
        if isinstance(step.step, s.DmaScatter):
            key = set(step.step.key.axes)
            return _digits_of(step.sources[0].type, lambda axis, key=key: axis in key)  # type: ignore[misc]  # mypy cannot infer a lambda that binds its loop variable by default
    terms = _first_dm(checked).element.terms()
    return terms[0].live_size if len(terms) > 1 else 1


def _digits_of(type_: TensorType, is_row: Callable[[str], bool]) -> int:
    """Live positions of the Element terms whose axes count rows."""
    return prod(term.live_size for term in type_.element.terms() if term.axes and all(is_row(axis) for axis in term.axes))


def _tail(checked: CheckedKernel, which: Callable[[CheckedStep], bool]) -> int | None:
    """Tail bytes of the transfer that `which` picks (DMA-005)."""
    for step in _dma_steps(checked):
        if step.transfers and which(step):
            return int(step.transfers[0].tail_bytes)
    return None


def _common(checked: CheckedKernel, which: Callable[[CheckedStep], bool]) -> int | None:
    for step in _dma_steps(checked):
        if step.transfers and which(step):
            return int(step.transfers[0].common_run_bytes)
    return None


def _loads_index(checked: CheckedKernel) -> Callable[[CheckedStep], bool]:
    """Picks the transfer that brings the index of an indirect move to DM."""
    indirect = (s.DmaGatherScaled, s.DmaGatherUnscaled, s.DmaScatter)
    used = {step.step.index for step in walk(checked.steps) if isinstance(step.step, indirect)}
    return lambda step: isinstance(step.step, s.ToDm) and step.step.let in used


def _copies(checked: CheckedKernel) -> int:
    """Destination cells over source cells of the first transfer."""
    for step in _dma_steps(checked):
        if step.transfers:
            move = step.transfers[0].move
            source = 1
            for _, mapping in move.source.levels:
                source *= mapping.live_size
            return int(move.cells // source)
    return 1


def _self_routed(checked: CheckedKernel) -> list[int]:
    """Which redistributions, counted from 0, let every chip read itself."""
    shuffles = [step.route for step in walk(checked.steps) if isinstance(step.step, s.Redistribute)]
    return [i for i, route in enumerate(shuffles) if route.chip_sources == tuple(range(len(route.chip_sources)))]


def _spread_over_chips(checked: CheckedKernel) -> TensorType:
    """The first tensor that is spread over chips, else the output."""
    for step in walk(checked.steps):
        if step.result is not None and step.result.type.chip.size > 1:
            return step.result.type
    return _output(checked)


FACTS: dict[str, Callable[[CheckedKernel], Any]] = {
    "sync": _syncs,
    "dma_operations": lambda c: len(_dma_steps(c)),
    "commands": lambda c: len(_dma_steps(c)),
    "slices": lambda c: _first_dm(c).slice.live_size,
    "elements_per_slice": lambda c: _live_elements(_first_dm(c)),
    "bytes_per_slice": lambda c: _first_dm(c).element_bytes,
    "rows_per_slice": _rows_per_slice,
    "row_bytes": _gather_row_bytes,
    "bytes_total": lambda c: _output(c).dtype.bytes_of(prod(m.size for _, m in _output(c).levels)),
    "bytes_per_chip": lambda c: _spread_over_chips(c).element_bytes,
    "elements_per_chip": lambda c: prod(m.live_size for name, m in _output(c).levels if name != "chip"),
    "live_clusters": lambda c: _first_dm(c).cluster.live_size,
    "tail_bytes": lambda c: _tail(c, lambda step: True),
    "to_dm_tail_bytes": lambda c: _tail(c, lambda step: isinstance(step.step, s.ToDm)),
    "index_tail_bytes": lambda c: _tail(c, _loads_index(c)),
    "common_run_bytes": lambda c: _common(c, lambda step: True),
    "to_hbm_common_run_bytes": lambda c: _common(c, lambda step: isinstance(step.step, s.ToHbm)),
    "common_contiguous_bytes": lambda c: _by_transfer(c, lambda t: int(t.common_run_bytes)),
    "common_contiguous_elements": lambda c: _by_transfer(c, lambda t: int(t.common_run_bytes * 8 // t.move.dest.dtype.bits)),
    "copies": _copies,
    "self_routed_rounds": _self_routed,
    "deferred": lambda c: any(isinstance(step.step, s.Redistribute) for step in walk(c.steps)),
    "executes_on": lambda c: (
        "sub context parallel copy" if any(step.step.NAME.startswith("asymmetric") for step in walk(c.steps)) else "tdma"
    ),
}
"""What a case may expect, beside the verdict and values; transfers and chains have their own comparison."""


def compare_facts(checked: CheckedKernel, expect: Dict[str, Any]) -> None:
    """Compares every derived number of a case.

    Raises:
        Mismatch: a number disagrees, or nothing derives it.
    """
    for name, want in expect.items():
        if name in _NOT_FACTS:
            continue
        if name == "derived":
            _compare_derived(checked, want)
        elif name == "output_type":
            _compare_output_type(checked, want)
        elif name in FACTS:
            expect_equal(name, FACTS[name](checked), want)
        else:
            raise Mismatch(f"nothing derives {name!r}")


def _compare_output_type(checked: CheckedKernel, want: Dict[str, Any]) -> None:
    """Tier, element type and mappings of the result; a mapping may be written in another way."""
    found = _output(checked)
    got = found.to_json()
    levels = dict(found.levels)
    for key, value in want.items():
        if key not in levels or not levels[key].equivalent(checked.kernel.axes.mapping(value)):
            expect_equal(f"output_type {key}", got.get(key), value)


def _compare_derived(checked: CheckedKernel, want: Dict[str, Any]) -> None:
    results = {step.result.name: step for step in walk(checked.steps) if step.result is not None}
    for name, value in want.items():
        if name == "bytes_per_unit":
            for tensor, size in value.items():
                made = results[tensor].result if tensor in results else None
                expect_equal(f"bytes of {tensor}", made.type.element_bytes if made else None, size)
        elif name == "chains":
            for label, numbers in value.items():
                _compare_chain(label, _chain_of(checked, label), numbers)
        elif name == "dma_tail_bytes_at_least":
            tail = _tail(checked, lambda step: True)
            if tail is None or tail < value:
                raise Mismatch(f"DMA tail: got {tail} B, expected at least {value} B")
        elif name in _KERNEL_NUMBERS:
            expect_equal(name, _KERNEL_NUMBERS[name](checked), value)
        else:
            _compare_any_chain(checked, name, value)


def _chain_of(checked: CheckedKernel, label: str) -> CheckedStep:
    """The pass that binds `label`, or ``commit_view:TENSOR:start``."""
    for step in walk(checked.steps):
        if not isinstance(step.step, s.TensorUnit):
            continue
        if step.result is not None and step.result.name == label:
            return step
        if label.startswith("commit_view:") and step.target is not None:
            last = step.step.ops[-1]
            tile = getattr(last, "tile", None)
            if f"commit_view:{getattr(last, 'into', '')}:{tile.start if tile else ''}" == label:
                return step
    raise Mismatch(f"no chain {label!r}")


def _compare_chain(label: str, step: CheckedStep, want: Dict[str, Any]) -> None:
    if step.chain is None:
        raise Mismatch(f"{label} has no chain")
    got = chain_numbers(step.chain)
    for name, value in want.items():
        if name not in got:
            raise Mismatch(f"{label}: nothing derives {name!r}")
        if _plain(got[name]) != _plain(value):
            raise Mismatch(f"{label}: {name}: got {_plain(got[name])!r}, expected {value!r}")


_READING = ("fetch", "fetch_table_lookup", "fetch_cast", "fetch_zero_point_sub")


def chain_numbers(chain: Chain) -> dict[str, Any]:
    """The numbers of a whole pass by the corpus's names (conventions of spec 06)."""
    stages = {stage.op.NAME: stage for stage in chain.steps}
    numbers: dict[str, Any] = {}
    for name in _READING:
        if name in stages:
            numbers.update(stages[name].derived)
    if "collect" in stages and isinstance(stages["collect"].after, StreamType):
        numbers["flits"] = stages["collect"].after.time.size
    if "contract_outer" in stages:
        numbers.update(_contraction_numbers(stages, numbers["flits"]))
    last = chain.steps[-1]
    if isinstance(last.after, TensorType):
        numbers.update(_result_numbers(last, last.after))
    return numbers


def _contraction_numbers(stages: Dict[str, Step], flits: int) -> dict[str, Any]:
    outer = stages["contract_outer"]
    assert isinstance(outer.after, StreamType)
    lanes = outer.after.lane.size if outer.after.lane is not None else 1
    packets = outer.derived["outer_steps"]
    macs = packets * outer.after.packet.size * lanes
    cycles = max(flits, packets)
    use = outer.derived["mac_utilization"]
    return {
        "pack_size": outer.derived["pack_size"],
        "outer_packets": packets,
        "outer_cycles": cycles,
        "lanes": lanes,
        "macs_per_slice": macs,
        "spatial_mac_fraction": use["packet"] * use["lane"],
        "sustained_macs_per_cycle": macs / cycles,
        "tree_depth": stages["contract_packet"].derived["tree_depth"],
        "time_reduction": stages["contract_time"].derived["time_reduce_factor"],
        "inner_time": stages["contract_time"].derived["inner_time"],
        "slot_capacity": stages["contract_lane"].derived["slot_capacity"],
    }


def _result_numbers(last: Step, result: TensorType) -> dict[str, Any]:
    """Numbers of the end of a pass: a commit, or a register store."""
    if result.tier == "Trf":
        size = buffer_bytes(result)
        stored = {"trf_bytes_per_lane": result.element_bytes, "trf_bytes_per_slice": size, "fits_half": fits_trf_half(size)}
        return {**stored, "flits_per_lane": last.derived["flits_per_lane"]}
    if result.tier == "Vrf":
        return {"vrf_bytes": result.element_bytes}
    return {name: last.derived[name] for name in ("valid_bytes", "commit_cycles") if name in last.derived}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    return value


def _compare_any_chain(checked: CheckedKernel, name: str, value: Any) -> None:
    """A number of the one chain of the program, or an object of numbers of one of its operations."""
    found = []
    for chain in (step.chain for step in walk(checked.steps) if step.chain is not None):
        for stage in chain.steps:
            if isinstance(value, dict) and name == stage.op.NAME:
                numbers = _stage_numbers(chain, stage)
                found.append({k: _plain(numbers.get(k)) for k in value})
            elif name in stage.derived:
                found.append(stage.derived[name])
    if not any(_plain(got) == _plain(value) for got in found):
        raise Mismatch(f"{name}: got {found}, expected {value!r}")


def _stage_numbers(chain: Chain, stage: Step) -> dict[str, Any]:
    """Numbers of one stage as kernel cases name them: reading counts the Fetch Adapter in, collecting looks at the flits."""
    numbers = dict(stage.derived)
    if stage.op.NAME == "fetch":
        whole = chain_numbers(chain)
        numbers["read_size_without_cast"] = numbers.get("read_size")
        numbers.update({k: whole[k] for k in ("read_size", "reads_per_packet", "cycles") if k in whole})
    if stage.op.NAME == "collect" and isinstance(stage.after, StreamType):
        numbers["packet_bytes"] = stage.after.packet_bytes
    return numbers


def unit_groups(checked: CheckedKernel) -> int:
    """Register stores that one scheduling unit shows: those of the innermost kept body, or of all unrolled iterations."""

    def count(steps: tuple[CheckedStep, ...]) -> int:
        total = 0
        for step in steps:
            if isinstance(step.step, s.Loop):
                inner = count(step.body)
                total += inner * trip_count(step.step) if step.step.unroll else inner
            elif step.result is not None and step.result.type.tier == "Trf":
                total += 1
        return total

    return count(checked.steps)


def _active(checked: CheckedKernel, level: str) -> int:
    return int(getattr(_first_dm(checked), level).live_size)


_KERNEL_NUMBERS: dict[str, Callable[[CheckedKernel], Any]] = {
    "dma_min_align_bytes": lambda c: RNGD.dma_alignment_bytes,
    "visible_groups_per_scheduling_unit": unit_groups,
    "active_slices_per_cluster": lambda c: _active(c, "slice"),
    "active_clusters": lambda c: _active(c, "cluster"),
}
