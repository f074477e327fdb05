"""Tilings of a load: counted by hand for a small tensor, priced as their kernels are, each of them a legal kernel."""

import json

from tcptune.exec.compile import compile_kernel
from tcptune.ir.kernels.kernel import Kernel
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.types import dtype
from tcptune.reports.tilings import tilings
from tests.cli.in_process import tcptune

AXES = Axes(I=512, K=64)


def test_the_ways_to_cut_a_small_axis_are_counted():
    """8 = outer x slice x inner: one way whole, slice 2, 4 and 8 leave 4, 2 and 1 for inner times outer: 1 + 3 + 2 + 1 = 7.

    With half of it on the cluster, 4 is cut in 1 + 2 + 1 = 4 ways.
    """
    axes = Axes(A=8)
    found = tilings(axes.mapping("A"), axes, dtype("i32"))
    assert found.enumerated == 7 + 4
    assert len({(t.cluster, t.slice, t.element) for t in found.found}) == len(found.found)
    assert len(found.found) + sum(found.refused.values()) == found.enumerated


def test_every_tiling_is_a_kernel_with_that_duration():
    found = tilings(AXES.mapping("I, K"), AXES, dtype("bf16"))
    assert [t.cycles for t in found.found] == sorted(t.cycles for t in found.found)
    for t in found.found[:: len(found.found) // 8]:
        text = (
            "kernel load\naxes I=512 K=64\nchips 1\ninput x: Hbm bf16 chip=[1] element=[I, K]\n"
            f"y = to_dm(x, cluster=[{t.cluster}], slice=[{t.slice}], element=[{t.element}])\noutput y\n"
        )
        compiled = compile_kernel(Kernel.from_text(text))
        (load,) = [o for o in compiled.schedule.operations if o.kind == "DmaLoad"]
        assert load.duration_cycles == t.cycles, t
        assert t.pieces * t.run_bytes >= 512 * 64 * 2
    whole_rows = next(t for t in found.found if t.slice == "I / 2 % 128 # 256" and t.cluster == "I / 256")
    assert (whole_rows.pieces, whole_rows.run_bytes, whole_rows.bytes_per_slice) == (256, 256, 256)


def test_a_store_is_priced_as_a_store():
    load, store = (tilings(AXES.mapping("I, K"), AXES, dtype("bf16"), store=store) for store in (False, True))
    assert load.enumerated == store.enumerated
    assert load.found[0].cycles != store.found[0].cycles


def test_the_command_prints_the_document_and_fails_where_nothing_is_legal():
    run = tcptune("tilings", "I, K", "-s", "I=512", "-s", "K=64", "--json")
    document = json.loads(run.out)
    assert document["schema"] == "tcptune/tilings/1"
    assert document["tilings"][0]["cycles"] == tilings(AXES.mapping("I, K"), AXES, dtype("bf16")).found[0].cycles
    odd = tcptune("tilings", "I, K", "-s", "I=7", "-s", "K=5")
    assert odd.status == 1
    assert "DMA-005" in odd.err
