"""The Python interface: wrong arguments are refused in words, never by an error of the language; objects show themselves in one line."""

import numpy as np
import pytest

import tcptune as tt
from tcptune.errors import InputError, ParseError, RuleViolation, TcptuneError
from tcptune.exec.compile import compile_kernel
from tcptune.ir.mappings.mapping import Broadcast, PadKind

AX = tt.axes(A=8, B=512)
M = AX.mapping("B / 64, B % 64")
RELU = tt.einsum("i->i", i=64, epilogue="relu")

WRONG = {
    "workload that is a number": lambda: tt.tune(3),
    "workload that is a text": lambda: tt.tune("ik,jk->ij"),
    "trials that are no number": lambda: tt.tune(RELU, trials="many"),
    "time limit that is a text": lambda: tt.tune(RELU, time_limit="5"),
    "profile that is a list": lambda: tt.tune(RELU, profile=[]),
    "journal that is a number": lambda: tt.tune(RELU, study=3),
    "progress that cannot be called": lambda: tt.tune(RELU, progress=3),
    "epilogue that is a number": lambda: tt.einsum("i->i", i=4, epilogue=3),
    "epilogue that is a list": lambda: tt.einsum("i->i", i=4, epilogue=["relu"]),
    "element type that is a number": lambda: tt.einsum("i->i", i=4, epilogue="relu", dtype=3),
    "fuse that is a text": lambda: tt.einsum("i->i", i=4, epilogue="relu", fuse="no"),
    "sizes that are a number": lambda: tt.einsum("i->i", sizes=3, epilogue="relu"),
    "sizes that are a list": lambda: tt.einsum("i->i", sizes=[("i", 3)], epilogue="relu"),
    "size given twice": lambda: tt.einsum("i->i", sizes={"i": 3}, i=4, epilogue="relu"),
    "size that is a float": lambda: tt.einsum("i->i", i=4.0, epilogue="relu"),
    "size that is a truth value": lambda: tt.einsum("i->i", i=True, epilogue="relu"),
    "negative size": lambda: tt.einsum("i->i", i=-4, epilogue="relu"),
    "cell of a text": lambda: M.cell("x"),
    "cell of a float": lambda: M.cell(1.5),
    "cell of a truth value": lambda: M.cell(True),
    "mapping of nothing": lambda: AX.mapping(None),
    "mapping of a float": lambda: AX.mapping(1.5),
    "mapping of bytes": lambda: AX.mapping(b"A"),
    "aliases that are a number": lambda: AX.mapping("{X}", 3),
    "alias that is a float": lambda: AX.mapping("{X}", {"X": 1.5}),
    "equivalence with a text": lambda: M.equivalent("B"),
    "division by a number": lambda: M.divide(3),
    "containment of a text": lambda: M.contains("B"),
    "permutation of a number": lambda: M.is_permutation_of(3),
    "padding of an unknown kind": lambda: M.pad(600, kind="zero"),
    "padding to a multiple of 0": lambda: M.pad_to_multiple(0),
    "stride that is a text": lambda: M.stride("x"),
    "modulo that is a truth value": lambda: M.modulo(True),
    "axis of a list": lambda: tt.axes(A=[]),
    "axis of size 0": lambda: tt.axes(A=0),
    "negative axis": lambda: tt.axes(A=-1),
    "axis without size": lambda: tt.axes(A=None),
    "axes that are a number": lambda: tt.Axes(3),
    "axis whose name is a number": lambda: tt.Axes({3: 4}),
    "symbol of a list": lambda: AX.symbol([]),
}


@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG.keys())
def test_a_wrong_argument_is_refused_with_what_was_given(call):
    with pytest.raises(TcptuneError) as refusal:
        call()
    assert refusal.value.exit_status == 2
    assert len(refusal.value.render()) < 500


@pytest.mark.parametrize("name", ["epilog", "trial"])
def test_a_misspelt_option_is_refused_and_the_hint_lists_the_options(name):
    with pytest.raises(InputError) as refusal:
        if name == "trial":
            tt.tune(RELU, trial=3)
        else:
            tt.einsum("i->i", i=4, epilog="relu")
    assert name in refusal.value.message
    assert {"epilog": "epilogue", "trial": "trials"}[name] in (refusal.value.hint or "")


def test_a_size_is_refused_whatever_was_built_before():
    """``True`` and ``8.0`` equal ``1`` and ``8`` as dictionary keys, under which nodes are shared."""
    kept = [Broadcast(1), tt.axes(A=8).mapping("A"), tt.axes(A=1).mapping("A"), tt.axes(A=8).mapping("A").stride(4)]
    for wrong in (8.0, True):
        with pytest.raises(RuleViolation):
            tt.axes(A=wrong)
        with pytest.raises(RuleViolation):
            kept[1].stride(wrong)
    with pytest.raises(RuleViolation):
        Broadcast(True)
    assert type(tt.axes(A=8)["A"]) is int


def test_integers_of_numpy_are_sizes_too():
    assert dict(tt.axes(A=np.int64(8))) == {"A": 8}
    assert tt.axes({"A": 8}, B=2).mapping("A, B").size == 16
    assert tt.einsum("i->i", i=np.int32(64), epilogue="relu") == RELU
    assert M.cell(np.int64(130)).to_json() == {"B": 130}
    assert AX.mapping("A").stride(np.int64(4)) is AX.mapping("A / 4")
    assert AX.mapping("A").pad_to_multiple(np.int64(32)) is AX.mapping("A").pad(32, PadKind.TOP)


def test_a_divisor_that_does_not_fit_is_answered_by_its_neighbours():
    with pytest.raises(RuleViolation) as refusal:
        AX.mapping("A, B / 48")
    text = refusal.value.render()
    assert "such as 32 or 64" in text, text
    assert "(column 6)" in text
    assert text.splitlines()[2].index("^") == text.splitlines()[1].index("/")
    with pytest.raises(ParseError) as unknown:
        AX.mapping("A, C")
    assert unknown.value.column == 3


def test_objects_show_themselves_in_one_short_line():
    result = tt.tune(tt.einsum("ik,jk->ij", i=64, j=32, k=32), trials=3)
    compiled = compile_kernel(result.kernel)
    makespan = f"{result.makespan:,} cycles"
    for shown in (result, result.best, result.schedule, compiled):
        assert makespan in repr(shown)
    for shown in (result, result.best, result.kernel, result.schedule, compiled, compiled.checked, compiled.program, RELU, M, AX):
        assert len(repr(shown)) < 160, shown
        assert "\n" not in repr(shown)
    assert repr(RELU) == "<Workload i->i, i=64, bf16, relu>"
    assert "inputs a, b" in repr(result.kernel)


def test_every_public_name_is_there_and_the_package_loads_it_on_first_use():
    from tcptune import api

    assert sorted(tt.__all__) == sorted(api.__all__)
    for name in tt.__all__:
        assert getattr(tt, name) is getattr(api, name)
        assert name in dir(tt)
    with pytest.raises(AttributeError):
        tt.no_such_name  # noqa: B018  # the access is what is tested


def test_a_kernel_by_hand_is_loaded_verified_and_analysed(tmp_path):
    kernel = "kernel copy\naxes A=256\nchips 1\ninput x: Hbm i8 chip=[1] element=[A]\ny = to_hbm(x, chip=[1], element=[A])\noutput y\n"
    (tmp_path / "copy.visa").write_text(kernel)
    loaded = tt.load_kernel(tmp_path / "copy.visa")
    assert loaded == tt.load_kernel(str(tmp_path / "copy.visa")) == tt.Kernel.from_text(kernel)
    with pytest.raises(tt.InputError):
        tt.verify(loaded)  # it has no oracle
    with pytest.raises(tt.InputError):
        tt.load_kernel(tmp_path / "missing.visa")
    result = tt.tune(tt.einsum("i->i", i=2048, dtype="i32", epilogue="add 1"), trials=2)
    assert tt.verify(result.kernel).passed
    assert tt.analyse(tt.compile_kernel(result.kernel).schedule).makespan == result.makespan
