"""Oracles: references against numpy, tolerances, and that a wrong kernel is caught."""

import numpy as np
import pytest

from tcptune.errors import InputError, WorkError
from tcptune.exec.library import patterns, perceptron, vector_rows
from tcptune.exec.program.build import KernelBuilder
from tcptune.exec.program.check import check_kernel
from tcptune.exec.running.differences import FailingCell, number_text, told_apart, within
from tcptune.exec.running.fill import declared_inputs, drawn_inputs
from tcptune.exec.running.interpret import run_kernel
from tcptune.exec.running.oracle import compare_with_oracle, dense, has_oracle, reference, verify
from tcptune.exec.running.verification import OracleReport, Verification
from tcptune.ir.kernels.kernel import Kernel, Tolerance

SMALL = {
    "constant_add": lambda: patterns.constant_add(64),
    "elementwise_mul": lambda: patterns.elementwise_mul(64),
    "dot": lambda: patterns.dot(256),
    "gemv": lambda: patterns.gemv(256, 64),
    "gemm": lambda: patterns.gemm(128, 128, 32),
    "fetch_commit": patterns.fetch_commit,
    "batched_matmul": lambda: patterns.batched_matmul(4, 8, 32, 8),
    "batched_matmul_in_v": lambda: patterns.batched_matmul(8, 4, 32, 8, time="V"),
    "batched_matmul_i8": lambda: patterns.batched_matmul(4, 8, 64, 8, element="i8"),
    "batched_matmul_relu": lambda: patterns.batched_matmul(4, 8, 32, 8, relu=True),
    "add": vector_rows.add,
    "mul": vector_rows.mul,
    "reduce_sum": vector_rows.reduce_sum,
    "reduce_sum_ragged": lambda: vector_rows.reduce_sum_ragged(256, 100),
    "reduce_sum_exp": lambda: vector_rows.reduce_sum_exp(256, 100),
    "softmax": lambda: vector_rows.softmax(256, 100),
    "rmsnorm": lambda: vector_rows.rmsnorm(256, 128),
    "mnist": lambda: perceptron.mnist(32, 256, 16),
}


@pytest.mark.parametrize("name", sorted(SMALL))
def test_a_library_kernel_passes_on_random_and_adversarial_inputs(name):
    verification = verify(check_kernel(SMALL[name]()))
    verification.require()
    assert verification.undefined_reads == 0
    assert len(verification.runs) == 7


def swapped(kernel, **changes):
    document = kernel.to_json()
    document.update(changes)
    return Kernel.from_json(document)


def test_a_wrong_result_is_caught_with_its_place():
    wrong = swapped(patterns.gemv(256, 64), oracle="einsum ij,j->i | mul 2")
    verification = verify(check_kernel(wrong), seeds=(1,), patterns=())
    assert not verification.passed
    with pytest.raises(WorkError, match="I = "):
        verification.require()


def test_undefined_cells_fail_the_oracle():
    b = KernelBuilder("k", {"A": 8, "S": 256})
    x = b.input("x", "Hbm", "i32", element="A")
    claimed = x.to_dm(cluster="1 # 2", slice="1 # 256", element="A").reshape(slice="S", unsafe=True)
    kernel = b.build(claimed.to_hbm(element="S, A"), oracle="einsum a->a")
    report = verify(check_kernel(kernel), seeds=(1,), patterns=()).runs[0].report
    assert report.undefined == 255 * 8
    assert not report.passed


def test_nothing_compared_is_no_pass():
    assert not OracleReport(0, 0, 0, "", 0.0).passed
    assert not Verification(()).passed


class TestSeveralResults:
    def kernel(self, oracle):
        b = KernelBuilder("k", {"A": 8, "B": 4})
        x, y = b.input("x", "Hbm", "i32", element="A"), b.input("y", "Hbm", "i32", element="B, A")
        place = {"cluster": "1 # 2", "slice": "1 # 256"}
        first, second = x.to_dm(**place, element="A").to_hbm(element="A"), y.to_dm(**place, element="B, A").to_hbm(element="A, B")
        return b.build(first, second, oracle=oracle)

    def report(self, oracle):
        return verify(check_kernel(self.kernel(oracle)), seeds=(1,), patterns=()).runs[0].report

    def test_each_is_compared_with_its_form(self):
        report = self.report("einsum(x) a->a; permute(y) ba->ab")
        assert report.passed
        assert report.compared == 8 + 32
        assert report.not_compared == ()

    def test_a_wrong_second_result_is_caught_by_name(self):
        report = self.report("einsum a->a; einsum(y) ba->ab | mul 2")
        assert report.wrong > 0
        assert self.kernel(None).outputs[1] in report.worst

    def test_a_result_without_a_form_is_named(self):
        report = self.report("einsum a->a")
        assert report.not_compared == self.kernel(None).outputs[1:]
        assert "not compared" in str(report)

    @pytest.mark.parametrize("oracle", ["einsum a->a; einsum a->a; einsum a->a", "einsum(z) a->a", "einsum(x, y) a->a"])
    def test_forms_must_fit_the_kernel(self, oracle):
        with pytest.raises(InputError):
            self.report(oracle)

    @pytest.mark.parametrize(
        "form",
        ["einsum a->aa", "einsum a->b", "einsum aa->a", "einsum(y) b->b", "permute(y) ba->bb"]
        + [f"einsum a->a | {step}" for step in ("add 1.e.3", "mul +", "bias:y(ba)", "bias:y(b)", "bias:x(b)", "bias:x()", "square")],
    )
    def test_a_form_that_does_not_fit_its_tensors_is_refused(self, form):
        with pytest.raises(InputError):
            self.report(form)

    def test_words_after_a_semicolon_are_a_remark(self):
        assert self.report("einsum a->a; rounded to the nearest").not_compared


class TestReferences:
    def arrays(self, kernel, how="random"):
        inputs = drawn_inputs(kernel, how, 5)
        return inputs, {i.name: dense(i.type, inputs[i.name], list(i.type.element.axes)) for i in kernel.inputs}

    def test_an_einsum_is_numpys(self):
        kernel = patterns.gemm(128, 128, 32)
        inputs, x = self.arrays(kernel)
        assert np.allclose(reference(kernel, inputs).values, x["a"] @ x["b"].T)

    def test_the_bound_is_k_ulps_of_the_sum_of_magnitudes(self):
        kernel = patterns.gemm(128, 128, 32)
        inputs, x = self.arrays(kernel)
        assert np.allclose(reference(kernel, inputs).bound, 32 * 2**-24 * (np.abs(x["a"]) @ np.abs(x["b"]).T))

    def test_integers_are_exact_modulo_two_to_the_32(self):
        kernel = patterns.elementwise_mul(64)
        inputs, x = self.arrays(kernel, "wide")
        want = (x["lhs"].astype(np.int64) * x["rhs"].astype(np.int64)).astype(np.int32)
        assert np.array_equal(reference(kernel, inputs).values, want.astype(np.float64))

    @pytest.mark.parametrize("stage", ["add 7", "mul 3", "mul 2147483647", "mul -2147483648", "bias:lhs(a)", "residual:rhs(a)"])
    def test_an_integer_epilogue_keeps_the_low_32_bits(self, stage):
        """`mul 2147483647` has products of up to 62 bits: float64 would lose the low ones."""
        kernel = swapped(patterns.elementwise_mul(64), oracle=f"einsum a,a->a | {stage}")
        inputs, x = self.arrays(kernel, "wide")
        want = [int(p) * int(q) for p, q in zip(x["lhs"], x["rhs"], strict=True)]
        kind, _, number = stage.partition(" ")
        if kind == "mul":
            want = [w * int(number) for w in want]
        else:
            other = [int(number)] * len(want) if kind == "add" else [int(v) for v in x[stage.split(":")[1][:3]]]
            want = [w + o for w, o in zip(want, other, strict=True)]
        assert reference(kernel, inputs).values.tolist() == [(w + 2**31) % 2**32 - 2**31 for w in want]

    def test_epilogues_apply_in_order(self):
        document = patterns.gemm(128, 128, 32).to_json()
        document["inputs"]["c"] = {"type": "Hbm", "dtype": "bf16", "element": "J"}
        document["oracle"] = "einsum ik,jk->ij | bias:c(j) | mul 0.5 | relu"
        kernel = Kernel.from_json(document)
        inputs, x = self.arrays(kernel)
        assert np.allclose(reference(kernel, inputs).values, np.maximum(0.5 * (x["a"] @ x["b"].T + x["c"]), 0))

    def test_prose_is_no_oracle(self):
        assert not has_oracle(swapped(patterns.dot(), oracle="the sum of products"))
        with pytest.raises(InputError, match="no oracle"):
            reference(swapped(patterns.dot(), oracle="words"), declared_inputs(patterns.dot()))

    @pytest.mark.parametrize("text", ["formula unknown", "einsum ij,j->i | cube", "einsum zj,j->z", "einsum i,j,k->i"])
    def test_an_oracle_that_names_what_is_not_there_is_refused(self, text):
        kernel = swapped(patterns.gemv(256, 64), oracle=text)
        with pytest.raises(InputError):
            reference(kernel, declared_inputs(kernel))


class TestIntegersAreComparedExactly:
    """The device adds 1 and goes through f32 and back, which loses the low bits of numbers beyond 2^24."""

    def kernel(self, oracle, *, lossy, tolerance=None):
        b = KernelBuilder("k", {"A": 2048})
        x = b.input("x", "Hbm", "i32", element="A")
        stored = x.to_dm(cluster="1 # 2", slice="A / 8", element="A % 8")
        run = b.main.begin(stored).fetch("1", "A % 8").collect("1", "A % 8").vector_init().vector_intra_slice_tag("Zero")
        run = run.vector_fxp(fn="AddFxp", operand=1)
        if lossy:
            run = run.vector_fxp_to_fp(int_width=31).vector_fp_to_fxp(int_width=31)
        out = run.vector_final().commit_trim("A % 8").commit("A % 8")
        return b.build(out.to_hbm(element="A"), oracle=oracle, tolerance=tolerance)

    @pytest.mark.parametrize("oracle", ["einsum a->a | add 1", "einsum a->a | mul 1 | add 1", "einsum a->a | add 1 | mul 1"])
    @pytest.mark.parametrize("tolerance", [None, Tolerance(form="exact")])
    @pytest.mark.parametrize("lossy", [False, True])
    def test_a_lossy_kernel_differs_whatever_the_epilogue(self, oracle, tolerance, lossy):
        assert verify(check_kernel(self.kernel(oracle, lossy=lossy, tolerance=tolerance))).passed is not lossy

    @pytest.mark.parametrize("form", ["exact", "sum", "max"])
    def test_only_an_exact_tolerance_refuses_the_bound_of_the_arithmetic(self, form):
        close = within(np.asarray([1.5]), np.asarray([1.0]), Tolerance(form=form), np.asarray([0.5]))
        assert bool(close.all()) is (form != "exact")


@pytest.mark.parametrize(
    ("form", "error", "passes"),
    [("exact", 0, True), ("exact", 1e-9, False), ("max", 0.5, True), ("max", 0.6, False), ("sum", 0.6, True), ("sum", 0.71, False)],
)
def test_the_two_tolerance_forms(form, error, passes):
    """Expected 10, rel 0.02 (0.2), abs 0.5: max allows 0.5, sum 0.7."""
    assert within(np.asarray([10 + error]), np.asarray([10.0]), Tolerance(0.02, 0.5, form)).all() == passes


def test_equal_infinities_and_nan_agree():
    x = np.asarray([np.inf, -np.inf, np.nan])
    assert within(x, x, Tolerance(form="exact")).all()


def test_the_same_seed_draws_the_same_inputs():
    kernel = patterns.gemv()
    first, second = (drawn_inputs(kernel, "random", 3) for _ in range(2))
    assert all(np.array_equal(first[n].data, second[n].data) for n in first)


def test_a_report_of_a_good_run_says_how_far_it_is_off():
    checked = check_kernel(patterns.gemv(256, 64))
    inputs = drawn_inputs(checked.kernel, "random", 1)
    report = compare_with_oracle(checked.kernel, inputs, run_kernel(checked, inputs))
    assert report.passed
    assert "256 cells agree" in str(report)


class TestMessages:
    @pytest.mark.parametrize(
        ("got", "expected", "texts"),
        [
            (1511470.0, 1511471.0, ("1511470", "1511471")),
            (-(2.0**31), 2.0**31 - 1, ("-2147483648", "2147483647")),
            (0.5, 0.25, ("0.5", "0.25")),
            (1.0000001, 1.0000002, ("1.0000001", "1.0000002")),
            (1.5, 2.0, ("1.5", "2")),
            (float(np.float32(0.1)), 0.1, ("0.100000001", "0.1")),
            (np.inf, 1e30, ("inf", "1e+30")),
            (np.nan, 0.0, ("nan", "0")),
        ],
    )
    def test_two_numbers_are_told_apart_with_the_fewest_figures(self, got, expected, texts):
        assert told_apart(got, expected) == texts

    def test_whole_numbers_are_written_in_full(self):
        assert [number_text(x) for x in (0.0, -7.0, 2.0**31, 2.0**-10)] == ["0", "-7", "2147483648", "0.000976562"]

    def test_a_cell_is_a_json_value_even_if_its_contents_are_not(self):
        cell = FailingCell("out", (("I", 3), ("J", 0)), float("inf"), 1.5)
        assert str(cell) == "out at I = 3, J = 0: got inf, expected 1.5"
        assert cell.to_json() == {"result": "out", "at": {"I": 3, "J": 0}, "got": "inf", "expected": 1.5}

    def test_failures_name_their_input_set_and_cell(self):
        """Doubled zeros are zeros: that set agrees."""
        wrong = swapped(patterns.elementwise_mul(64), oracle="einsum a,a->a | mul 2")
        verification = verify(check_kernel(wrong), seeds=(1,), patterns=("zeros",))
        (failure,) = verification.to_json()["failures"]
        assert (failure["inputs"], failure["seed"]) == ("random", 1)
        assert failure["cell"]["got"] != 0
        assert (failure["cell"]["expected"] - 2 * failure["cell"]["got"]) % 2**32 == 0
        assert failure["cell"]["result"] == "out"


class TestShareOfTheBound:
    def share(self, tolerance):
        verification = verify(check_kernel(swapped(patterns.gemv(256, 64), tolerance=tolerance.to_json())), seeds=(1,))
        return verification, verification.to_json()["max_bound_share"]

    def test_it_lies_between_nothing_and_the_limit_for_a_kernel_that_passes(self):
        verification, share = self.share(Tolerance())
        assert verification.passed
        assert 0 < share <= 1

    def test_a_wider_tolerance_leaves_a_smaller_share(self):
        assert self.share(Tolerance(1.0, 1.0))[1] < self.share(Tolerance())[1] / 10

    def test_exact_integers_use_none(self):
        assert verify(check_kernel(patterns.elementwise_mul(64))).to_json()["max_bound_share"] == 0


class TestIntegersAreExact:
    def wrong(self, oracle):
        """Adds 2 where the oracle says so much, with a tolerance that would cover the difference."""
        loose = Tolerance(0.02, 5.0, "max").to_json()
        return verify(check_kernel(swapped(patterns.constant_add(64, constant=2), oracle=oracle, tolerance=loose)), seeds=(1,))

    def test_no_tolerance_covers_a_wrong_integer(self):
        found = self.wrong("einsum a->a | add 1")
        assert len(found.failures) == len(found.runs)
        assert found.failures[0].report.max_error == 1.0
        assert found.tolerance_ignored

    def test_the_right_integers_pass_and_the_unused_tolerance_is_told(self):
        found = self.wrong("einsum a->a | add 2")
        assert found.passed and found.tolerance_ignored and found.closest is None
        assert "no difference allowed" in found.margin()

    def test_moved_integers_are_exact_too(self):
        loose = Tolerance(0.0, 300.0, "sum").to_json()
        kernel = patterns.fetch_commit()
        found = verify(check_kernel(swapped(kernel, tolerance=loose)), seeds=(1,))
        assert found.passed and found.tolerance_ignored

    def test_a_tolerance_of_floats_is_used(self):
        assert not verify(check_kernel(patterns.gemv(256, 64)), seeds=(1,)).tolerance_ignored


def test_the_cell_closest_to_its_limit_is_the_one_with_the_largest_share_of_what_it_is_allowed():
    found = verify(check_kernel(patterns.gemv(256, 64)), seeds=(1, 2))
    run, cell = found.closest
    assert cell.share == pytest.approx(abs(cell.cell.got - cell.cell.expected) / cell.allowed)
    assert cell.share == max(r.report.max_bound_share for r in found.runs) <= 1
    allowed = max(0.02 * abs(cell.cell.expected), 0.5)  # ORACLE-005; the arithmetic's own bound may be wider
    assert cell.allowed >= allowed
    assert f"{100 * cell.share:.3g} % of what is allowed" in found.margin() and run.how in found.margin() and "I = " in found.margin()
    assert found.to_json()["closest"]["at"] == dict(cell.cell.at)
