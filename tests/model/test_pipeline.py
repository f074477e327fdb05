"""The chain runner: the edge list of the Tensor Unit, staging types, contexts and spatial sizes."""

import pytest

from tcptune.errors import InputError, RuleViolation
from tcptune.ir.kernels.ops import OPS
from tcptune.ir.mappings.axes import Axes
from tcptune.model.pipeline import ENTRY_POSITIONS, check_chain, require_entry, successors
from tcptune.model.stage import ChainEnv
from tcptune.model.tensor_unit import ENGINES
from tests.model.chains import collect, refused, run, stream, switch

AX = Axes(A=256, B=8, K=32, X=4)

FETCH_SIDE = ["fetch_table_lookup", "fetch_cast", "fetch_zero_point_sub", "switch", "collect"]
EDGES = {
    "Begin": "begin_interleaved fetch",
    "Fetch": "fetch_chip_lift fetch_cluster_lift fetch_slice_lift fetch_table_lookup fetch_cast fetch_zero_point_sub switch collect",
    "FetchChipLift": "fetch_cluster_lift fetch_slice_lift fetch_table_lookup fetch_cast fetch_zero_point_sub switch collect",
    "FetchClusterLift": "fetch_slice_lift fetch_table_lookup fetch_cast fetch_zero_point_sub switch collect",
    "FetchSliceLift": "fetch_table_lookup fetch_cast fetch_zero_point_sub switch collect",
    "FetchTableLookup": "fetch_cast fetch_zero_point_sub switch collect",
    "FetchCast": "fetch_zero_point_sub switch collect",
    "FetchZeroPointSub": "switch collect",
    "Switch": "collect",
    "Collect": "to_trf to_vrf contract_outer vector_init cast transpose commit_trim",
    "ContractOuter": "contract_packet",
    "ContractPacket": "contract_time",
    "ContractTime": "contract_lane",
    "Contract": "vector_init cast transpose commit_trim",
    "VectorFinal": "to_vrf cast transpose commit_trim",
    "Cast": "transpose commit_trim",
    "Transpose": "commit_trim",
    "CommitTrim": "commit_cast commit_cast_relu commit commit_view",
    "CommitCast": "commit commit_view",
}
"""The manual's flow chart, position by position."""


@pytest.mark.parametrize("position", EDGES)
def test_a_position_offers_exactly_the_next_steps_of_the_flow_chart(position):
    assert sorted(successors(position)) == sorted(EDGES[position].split())


def test_every_operation_outside_the_vector_engine_has_entry_positions():
    outside = {name for name in OPS if not name.startswith("vector_")}
    assert outside <= set(ENTRY_POSITIONS)


def test_engines_are_in_pipeline_order():
    """An operation may only follow operations of its own engine or of earlier ones; stores into register files leave the pipeline."""
    owner = {name: place for place, engine in enumerate(ENGINES) for name in engine.operations}
    for name, positions in ENTRY_POSITIONS.items():
        for position in positions if name not in ("to_trf", "to_vrf") else ():
            producers = [n for n in owner if n.replace("_", "") == position.lower()]
            assert all(owner[p] <= owner[name] for p in producers), (name, position)


@pytest.mark.parametrize(
    ("position", "op", "rule"),
    [
        ("Fetch", {"op": "commit_trim", "packet": "K"}, "CADAPT-003"),
        ("Fetch", {"op": "to_trf", "lane": "B", "element": "K"}, "TRF-001"),
        ("Fetch", {"op": "to_vrf", "element": "K"}, "VRF-001"),
        ("Cast", {"op": "to_vrf", "element": "K"}, "VRF-006"),
        ("Switch", {"op": "fetch_cast", "dtype": "i32"}, "FA-001"),
        ("Switch", switch("A / 4, X", "B, A % 4", "Broadcast1", slice1=4, slice0=1), "SWITCH-035"),
        ("Collect", collect("B", "K"), "COLLECT-006"),
        ("Collect", {"op": "fetch_slice_lift", "slice": "A", "time": "B"}, "LIFT-001"),
        ("FetchSliceLift", {"op": "fetch_chip_lift", "chip": "1", "time": "B"}, "LIFT-008"),
        ("Collect", {"op": "contract_packet", "packet": "K"}, "CE-001"),
        ("Fetch", {"op": "contract_outer", "time": "B", "packet": "K", "trf": "w"}, "OUTER-025"),
        ("Cast", {"op": "cast", "dtype": "i8", "packet": "K"}, "CAST-001"),
        ("Cast", {"op": "commit", "element": "K"}, "CADAPT-003"),
        ("Cast", {"op": "vector_init"}, "VE-002"),
        ("Collect", {"op": "vector_final"}, "VE-005"),
    ],
)
def test_a_misplaced_operation_is_refused_by_the_most_specific_rule(position, op, rule):
    error = refused(stream(AX, "i8", position, slice="A", time="B", packet="K"), AX, op)
    assert rule in (error.rule, *error.also)
    assert "TU-011" in (error.rule, *error.also)
    assert position in error.nearest


@pytest.mark.parametrize("position", EDGES)
def test_streams_of_i9_go_to_the_contraction_engine_only(position):
    start = stream(AX, "i9", position, slice="A", time="B", packet="K")
    for name in EDGES[position].split():
        op = object.__new__(OPS[name])
        if name in ("switch", "collect", "contract_outer"):
            require_entry(start, op)
        else:
            with pytest.raises(RuleViolation) as caught:
                require_entry(start, op)
            assert caught.value.rule == "FA-014"


def test_sub_has_no_contraction():
    op = {"op": "contract_outer", "time": "B", "packet": "K", "trf": "w"}
    error = refused(stream(AX, "i8", "Collect", slice="A", time="B", packet="K"), AX, op, context="sub")
    assert error.rule == "TU-009"


@pytest.mark.parametrize(("level", "mapping"), [("slice", "K"), ("slice", "A, X"), ("cluster", "X")])
def test_spatial_sizes_are_those_of_the_hardware(level, mapping):
    error = refused(stream(AX, "i8", packet="K", **{level: mapping}), AX, collect("1", "K"))
    assert error.rule == "TU-007"


def test_nothing_follows_a_stored_tensor():
    start = stream(AX, "i8", "Collect", slice="A", time="B", packet="K")
    ops = ({"op": "to_trf", "lane": "B", "element": "K"}, collect("B", "K"))
    assert refused(start, AX, *ops).rule == "TU-011"


def test_an_unknown_context_is_an_input_error():
    with pytest.raises(InputError):
        check_chain(stream(AX, "i8"), [], ChainEnv("third", AX))


def test_an_empty_chain_is_its_start():
    start = stream(AX, "i8", packet="K")
    chain = run(start, AX)
    assert chain.final is start
    assert (chain.derived, chain.cost.cycles) == ({}, 0)


def test_a_chain_costs_its_busiest_stage_and_all_latencies():
    ops = (
        {"op": "fetch_cast", "dtype": "i32"},
        switch("A / 4, X", "B, A % 4", "Broadcast1", slice1=4, slice0=1),
        collect("B, A % 4, K / 8", "K % 8"),
    )
    chain = run(stream(AX, "i8", slice="A", time="B", packet="K"), AX, *ops)
    assert [s.cost.cycles for s in chain.steps] == [0, 4 * 8 * 4, 8 * 4 * 4]
    assert (chain.cost.cycles, chain.cost.latency_cycles) == (128, 2)
