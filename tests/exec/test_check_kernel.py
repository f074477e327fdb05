"""The builder and the checker: what a kernel may not do, and the rule that says so."""

import pytest

from tcptune.errors import InputError, RuleViolation
from tcptune.exec.library import double_buffer, patterns
from tcptune.exec.program.build import KernelBuilder
from tcptune.exec.program.check import check_kernel
from tcptune.ir.kernels.kernel import Kernel

PLACE = {"cluster": "1 # 2", "slice": "A / 8 # 256", "element": "A % 8"}


def builder(**axes):
    return KernelBuilder("k", axes or {"A": 2048})


def rule_of(action):
    with pytest.raises(RuleViolation) as caught:
        action()
    return {caught.value.rule, *caught.value.also}


def test_the_builder_writes_the_kernel_that_the_checker_accepts():
    kernel = patterns.gemv()
    checked = check_kernel(kernel)
    assert [b.name for b in checked.outputs] == ["out"]
    assert str(checked.outputs[0].type.element) == "I"


def test_a_refused_call_leaves_the_builder_as_it_was():
    b = builder()
    x = b.input("x", "Hbm", "bf16", element="A")
    with pytest.raises(RuleViolation):
        x.to_dm(cluster="1 # 3", slice="A / 8 # 256", element="A % 8", let="dm")
    assert x.to_dm(**PLACE, let="dm").name == "dm"


def test_level_sizes_are_those_of_the_device():
    b = builder()
    x = b.input("x", "Hbm", "bf16", element="A")
    assert "HW-006" in rule_of(lambda: x.to_dm(cluster="1 # 4", slice="A / 8 # 256", element="A % 8"))
    assert "HW-007" in rule_of(lambda: x.to_dm(cluster="1 # 2", slice="A / 8 # 512", element="A % 8"))
    assert "HW-008" in rule_of(lambda: b.input("y", "Hbm", "bf16", element="A", chip="1 # 2"))


def test_a_tensor_must_fit_its_slice():
    b = builder(A=256, B=300_000)
    x = b.input("x", "Hbm", "bf16", element="A, B")
    assert "HW-003" in rule_of(lambda: x.to_dm(cluster="1 # 2", slice="A", element="B"))


def test_a_stream_begins_in_dm():
    b = builder()
    x = b.input("x", "Hbm", "bf16", element="A")
    assert "SCHED-018" in rule_of(lambda: b.main.begin(x))


def test_contraction_runs_on_main_only():
    b = builder(A=2048)
    dm = b.input("x", "Hbm", "bf16", element="A").to_dm(cluster="1 # 2", slice="1 # 256", element="A")
    trf = b.sub.begin(dm).fetch("1", "A").collect("A / 16", "A % 16").to_trf("1", "A")
    s = b.sub.begin(dm).fetch("1", "A").collect("A / 16", "A % 16")
    assert "CE-002" in rule_of(lambda: s.contract_outer("A / 32", "A % 32", trf))


def test_a_pass_has_to_end_in_a_tensor():
    document = patterns.constant_add().to_json()
    document["steps"][1]["ops"].pop()
    assert "COMMIT-002" in rule_of(lambda: check_kernel(Kernel.from_json(document)))


def test_names_are_bound_once_and_exist():
    b = builder()
    x = b.input("x", "Hbm", "bf16", element="A")
    x.to_dm(**PLACE, let="dm")
    with pytest.raises(InputError, match="bound twice"):
        x.to_dm(**PLACE, let="dm")
    with pytest.raises(InputError, match="no tensor is called 'nobody'"):
        b.add({"let": "y", "op": "to_hbm", "from": "nobody", "element": "A"})


def test_a_name_of_a_loop_body_is_unknown_outside():
    b = builder(A=2048, G=4)
    x = b.input("x", "Hbm", "bf16", element="G, A")
    dm = x.to_dm(cluster="1 # 2", slice="A / 8 # 256", element="G, A % 8", let="dm")
    with b.loop(4, var="g"):
        dm.tile("G", 1, "g", "1 # 4, A % 8", let="part")
    with pytest.raises(InputError, match="'part'"):
        b.add({"let": "y", "op": "to_hbm", "from": "part", "element": "A"})


class TestTiles:
    def setup_method(self):
        self.b = builder(G=20, A=8)
        self.x = self.b.input("x", "Hbm", "bf16", element="G, A").to_dm(cluster="1 # 2", slice="1 # 256", element="G, A", let="dm")

    def tile(self, element, *, start=0, length=1, mutable=False, axis="G"):
        return self.x.tile(axis, length, start, element, mutable=mutable)

    def test_the_footprint_of_the_axis_stays(self):
        assert self.tile("1 # 20, A").type.element.size == 160
        assert "MAP-023" in rule_of(lambda: self.tile("A"))
        assert "MAP-023" in rule_of(lambda: self.tile("G = 2 # 20, A"))

    def test_holes_are_top_for_reading_and_bottom_for_writing(self):
        assert self.tile("1 #{!} 20, A", mutable=True).bound.mutable
        assert "MAP-024" in rule_of(lambda: self.tile("1 # 20, A", mutable=True))
        assert "MAP-024" in rule_of(lambda: self.tile("1 #{!} 20, A"))

    def test_the_window_stays_inside_the_axis(self):
        assert self.tile("G = 4 # 20, A", length=4, start=16).name
        assert "MAP-025" in rule_of(lambda: self.tile("G = 4 # 20, A", length=4, start=17))
        assert "MAP-025" in rule_of(lambda: self.tile("1 # 20, A", start=-1))

    def test_every_iteration_of_a_loop_is_looked_at(self):
        with self.b.loop(10, var="p") as p:
            assert self.tile("1 # 20, A", start=f"2*{p}+1").name
            assert "MAP-025" in rule_of(lambda: self.tile("1 # 20, A", start=f"2*{p}+2"))

    def test_the_axis_is_a_part_of_the_source(self):
        assert "MAP-023" in rule_of(lambda: self.tile("G, A", axis="A, G"))

    def test_nothing_is_written_through_a_read_view(self):
        view = self.tile("1 # 20, A")
        assert "MAP-024" in rule_of(lambda: view.tile("A", 1, 0, "1 # 20, 1 #{!} 8", mutable=True))


def test_a_trip_count_known_at_run_time_is_refused():
    document = double_buffer.rolled().to_json()
    loop = next(s for s in document["steps"] if "for" in s)
    loop["count"] = {"runtime": "n"}
    assert "TUNE-009" in rule_of(lambda: check_kernel(Kernel.from_json(document)))


def test_reshape_keeps_every_level_size():
    b = builder(A=4, B=2, AB=8)
    x = b.input("x", "Hbm", "i32", element="A, B")
    assert str(x.reshape(element="AB").type.element) == "AB"
    assert "DMA-006" in rule_of(lambda: x.reshape(element="A"))


def test_a_reshape_that_only_claims_a_broadcast_cannot_be_lifted():
    b = builder(A=128, H=2, G=2, V=16, Rep=2)

    def lifted(axis, element):
        x = b.input(f"x{axis}", "Hbm", "bf16", element=element)
        dm = x.to_dm(cluster="1 # 2", slice=f"A, {axis}", element="H, V").reshape(slice="A, 2", unsafe=True)
        return b.main.begin(dm).fetch("H", "V").fetch_slice_lift("A, H", "1")

    assert lifted("Rep", "A, H, V")
    assert "LIFT-011" in rule_of(lambda: lifted("G", "A, G, H, V"))


@pytest.mark.parametrize(
    ("cluster", "slice_", "rule"),
    [
        ("1 # 2", "A # 65760 / 240", "HW-007"),
        ("1 # 2", "A / 64", "HW-007"),
        ("1 # 2", "A", "HW-007"),
        ("1 # 2", "A % 1024", "HW-007"),
        ("A / 256", "A / 256 % 256", "HW-006"),
    ],
)
def test_a_level_with_too_many_positions_is_told_one_that_fits(cluster, slice_, rule):
    x = KernelBuilder("k", {"A": 65536}).input("x", "Hbm", "i32", element="A")
    with pytest.raises(RuleViolation) as refusal:
        x.to_dm(cluster=cluster, slice=slice_, element="A % 8")
    wanted = {"HW-006": 2, "HW-007": 256}[rule]
    assert (refusal.value.rule, refusal.value.nearest.size) == (rule, wanted)
