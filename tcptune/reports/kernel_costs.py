"""What the cycles of every step of a kernel are made of: pieces and descriptors of transfers, stages and rings of passes.

A transfer is priced by its pieces and packets (VT-020 to VT-030), a pass by what streams through its stages (VT-001 to VT-014). A step in a
loop is listed once; `times` says how often it runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as Dict
from dataclasses import dataclass, field
from typing import Any

from tcptune.exec.program.check import trip_count
from tcptune.exec.program.checked import CheckedKernel, CheckedStep
from tcptune.ir.kernels.steps import Loop, TensorUnit
from tcptune.model.memory.price import TransferPrice, Unpriced, price_transfer
from tcptune.model.pipeline import Chain
from tcptune.model.timing.passes import pass_timing

_SHOWN_OF_STAGES = (
    "ring_size",
    "sub_rings",
    "read_bytes",
    "reads_per_packet",
    "flits_per_packet",
    "write_bytes",
    "writes_per_packet",
    "outer_steps",
    "lane_broadcast",
    "time_broadcast",
    "time_reduce_factor",
    "tree_depth",
    "vector_steps",
    "contiguous_run",
)
"""Derived numbers of a stage that say why it takes its cycles; the others are in the document of a chain."""


@dataclass(frozen=True)
class StepCost:
    """One step of a kernel with its price.

    Attributes:
        step: the name it binds or writes, or its operation.
        kind: ``to_dm``, ``to_hbm`` …, ``main`` or ``sub``.
        cycles: static duration of one run; None where nothing prices it in this profile, `unpriced` then says why.
        terms: (what, cycles) that the duration is made of; of a pass only the largest stage counts beside the start.
        facts: numbers that explain the terms: pieces, run bytes, descriptors; or, of a pass, what is shown of its stages.
        stages: of a pass, (operation, cycles, derived numbers) in order.
        times: runs, by the trip counts of the loops around it.
    """

    step: str
    kind: str
    cycles: int | None
    terms: tuple[tuple[str, float], ...] = ()
    facts: dict[str, int | float | str] = field(default_factory=dict)
    stages: tuple[tuple[str, int, dict[str, Any]], ...] = ()
    times: int = 1
    unpriced: str = ""

    def to_json(self) -> dict[str, Any]:
        """A row of the ``cost/1`` document."""
        if self.cycles is None:
            return {"row": self.step, "skipped": self.unpriced}
        return {
            "row": self.step,
            "predicted": self.cycles,
            "published": None,
            "error": None,
            "kind": self.kind,
            "times": self.times,
            "terms": [{"what": what, "cycles": cycles} for what, cycles in self.terms],
            "facts": self.facts,
            "stages": [{"op": op, "cycles": cycles, "derived": derived} for op, cycles, derived in self.stages],
        }


def kernel_costs(checked: CheckedKernel, profile: str = "vendor") -> tuple[StepCost, ...]:
    """Prices of all transfers and passes of a checked kernel, in program order; views and reshapes cost nothing and are left out.

    Raises:
        InputError: no such profile.
    """
    return tuple(_costs(checked.steps, profile, 1))


def _costs(steps: tuple[CheckedStep, ...], profile: str, times: int) -> Iterator[StepCost]:
    for checked in steps:
        if isinstance(checked.step, Loop):
            yield from _costs(checked.body, profile, times * trip_count(checked.step))
        elif checked.chain is not None and isinstance(checked.step, TensorUnit):
            yield _pass_cost(checked, checked.chain, checked.step.context, profile, times)
        elif checked.transfers:
            yield _transfer_cost(checked, profile, times)


def _name(checked: CheckedStep) -> str:
    bound = checked.target or checked.result
    return checked.step.NAME if bound is None else bound.name


def _transfer_cost(checked: CheckedStep, profile: str, times: int) -> StepCost:
    source = checked.sources[0].type if checked.route is None else checked.route.footprint
    dest = checked.target or checked.result
    if dest is None:
        return StepCost(_name(checked), checked.step.NAME, None, unpriced="it moves nothing", times=times)
    try:
        price = price_transfer(source, dest.type, profile)
    except Unpriced as reason:
        return StepCost(_name(checked), checked.step.NAME, None, unpriced=reason.message, times=times)
    return StepCost(_name(checked), checked.step.NAME, price.cycles, price.terms, _transfer_facts(price), times=times)


def _transfer_facts(price: TransferPrice) -> dict[str, int | float | str]:
    return {
        "bytes": price.delivered_bytes,
        "pieces": price.pieces,
        "run_bytes": price.run_bytes,
        "packets": price.packets,
        "descriptors": price.descriptors,
        "utilisation": price.utilisation,
    }


def _pass_cost(checked: CheckedStep, chain: Chain, context: str, profile: str, times: int) -> StepCost:
    timing = pass_timing(chain, context, profile)
    stages = tuple((step.op.NAME, step.cost.cycles, _numbers(step.derived)) for step in chain.steps)
    facts: dict[str, int | float | str] = {"rule": timing.base, "bound": timing.bound}
    return StepCost(_name(checked), context, timing.cycles, tuple(timing.terms.items()), facts, stages, times)


def _numbers(derived: Dict[str, Any]) -> dict[str, Any]:
    return {key: derived[key] for key in _SHOWN_OF_STAGES if isinstance(derived.get(key), int | float)}
