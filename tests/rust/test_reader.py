"""What the reader understands: aliases, escapes, helpers, loops, views, `new()`, several results, notes in the header."""

from __future__ import annotations

import pytest

from tcptune.exec.rust import RustError, read_kernel, read_rust
from tcptune.exec.rust.check import check_rust
from tcptune.exec.rust.syntax.index import Linear, parse_start
from tcptune.ir.kernels import steps as s
from tcptune.ir.kernels.kernel import Kernel
from tcptune.ir.kernels.ops import Collect, CommitView, Fetch
from tests.rust.programs import DOT

HEAD = """\
axes![Group = 4, A = 2048, B = 8];
const PARTS: usize = 2;
type Chip = m![1];
type Cluster = m![1 # 2];
type Slice = m![A / 8];
type Inner = m![A % 8];
type Whole = m![{ Slice }, { Inner }];
"""


def _kernel(
    body: str, parameters: str = "x: &HbmTensor<i32, Chip, m![A]>", returns: str = "HbmTensor<i32, Chip, m![A]>", more: str = ""
) -> Kernel:
    arrow = f" -> {returns}" if returns else ""
    return read_kernel(f"{HEAD}{more}\n#[device(chip = 1)]\nfn test_kernel(device: &mut Device, {parameters}){arrow} {{\n{body}\n}}\n")


COPY = "let y = device.main.begin(d.view()).fetch::<m![1], Inner>().collect::<m![1], Inner>().commit_trim::<Inner>().commit::<Inner>();"
LOAD = "let d = x.to_dm::<Cluster, Slice, Inner>(&mut device.tdma);"
STORE = "y.to_hbm(&mut device.tdma)"


def test_aliases_and_escapes_stand_for_their_mappings() -> None:
    kernel = _kernel(f"let d = x.to_dm::<Cluster, m![{{ Slice }}], m![{{ Whole }} % 8]>(&mut device.tdma); {COPY} {STORE}")
    (load, *_) = kernel.steps
    assert isinstance(load, s.ToDm)
    assert str(load.slice) == "A / 8"
    assert load.element.equivalent(kernel.axes.mapping("A % 8"))


def test_sizes_and_constants_are_numbers_in_mappings() -> None:
    kernel = _kernel(f"let d = x.to_dm::<m![1 # {{ PARTS }}], m![A / B::SIZE], m![A % Inner::SIZE]>(&mut device.tdma); {COPY} {STORE}")
    load = kernel.steps[0]
    assert isinstance(load, s.ToDm)
    assert (str(load.cluster), str(load.slice), str(load.element)) == ("1 # 2", "A / 8", "A % 8")


def test_constants_may_be_computed() -> None:
    more = "const EIGHT: usize = 4 * PARTS;\nconst ONE: usize = (EIGHT - 6) / 2;"
    kernel = _kernel(f"let d = x.to_dm::<m![1 # {{ PARTS }}], m![A / {{ EIGHT }}], m![A % 8]>(&mut device.tdma); {COPY} {STORE}", more=more)
    assert str(kernel.steps[0].slice) == "A / 8"  # type: ignore[attr-defined]


def test_the_length_of_a_tile_may_be_computed() -> None:
    tile = "let t = d.view().tile::<Inner, { Inner::SIZE / 2 }, m![A % 8 = 4 # 8]>(4);"
    kernel = _kernel(f"{LOAD} {tile} {COPY.replace('d.view()', 't')} {STORE}")
    assert kernel.steps[1].len == 4  # type: ignore[attr-defined]


def test_comments_inside_a_mapping_are_ignored() -> None:
    kernel = _kernel(f"{LOAD.replace('Inner', 'm![A /* of a slice */ % 8]')} {COPY} {STORE}")
    assert str(kernel.steps[0].element) == "A % 8"  # type: ignore[attr-defined]


def test_shadowed_names_become_names_of_their_own() -> None:
    kernel = _kernel(LOAD.replace("let d", "let x") + COPY.replace("d.view", "x.view") + STORE)
    assert [getattr(step, "let", None) for step in kernel.steps] == ["x_dm", "y", "out"]


def test_a_helper_is_inlined_with_names_of_its_own_each_time() -> None:
    helper = f"""
fn copy<E: M>(device: &mut Device, d: &DmTensor<i32, Chip, Cluster, Slice, E>) -> DmTensor<i32, Chip, Cluster, Slice, E> {{
    {COPY.replace("Inner", "E").replace("let y = ", "").removesuffix(";")}
}}
"""
    kernel = _kernel(f"{LOAD} let once = copy(device, &d); let y = copy::<Inner>(device, &once); {STORE}", more=helper)
    passes = [step for step in kernel.steps if isinstance(step, s.TensorUnit)]
    assert [p.let for p in passes] == ["once", "y"]
    assert [p.begin for p in passes] == ["d", "once"]
    assert all(str(p.ops[0].packet) == "A % 8" for p in passes)  # type: ignore[attr-defined]


def test_a_helper_may_take_a_stream_and_return_one() -> None:
    helper = """
fn stage<'l, const T: Tu>(s: FetchTensor<'l, T, i32, Chip, Cluster, Slice, m![1], Inner>) -> CollectTensor<'l, T> {
    s.collect::<m![1], Inner>()
}
"""
    begin = "let s = device.main.begin(d.view()).fetch::<m![1], Inner>();"
    body = f"{LOAD} {begin} let y = stage(s).commit_trim::<Inner>().commit::<Inner>(); {STORE}"
    (_, unit, _) = _kernel(body, more=helper).steps
    assert isinstance(unit, s.TensorUnit)
    assert isinstance(unit.ops[0], Fetch) and isinstance(unit.ops[1], Collect)


def test_a_type_parameter_that_nothing_determines_is_an_error_where_it_is_used() -> None:
    helper = """
fn copy<E: M>(device: &mut Device, d: &DmTensor<i32, Chip, Cluster, Slice, Inner>) -> DmTensor<i32, Chip, Cluster, Slice, E> {
    d.to_dm(&mut device.tdma)
}
"""
    with pytest.raises(RustError) as caught:
        _kernel(f"{LOAD} let y = copy(device, &d); {STORE}", more=helper)
    assert caught.value.rule == "RUST-004" and "E" in caught.value.message


LOOP_PARAMETERS = "x: &HbmTensor<i32, Chip, m![Group, A]>"
LOOP_HEAD = """
    let d = x.to_dm::<Cluster, Slice, m![Group, A % 8]>(&mut device.tdma);
    let mut out: DmTensor<i32, Chip, Cluster, Slice, m![Group, A % 8]> = DmTensor::new();
"""


def _loop(head: str, start: str, more: str = "") -> s.Loop:
    part = f"d.view().tile::<m![Group], 1, m![1 # 4, A % 8]>({start})"
    target = f"out.view_mut().tile::<m![Group], 1, m![1 #{{!}} 4, A % 8]>({start})"
    pass_ = f"device.main.begin({part}).fetch::<m![1], Inner>().collect::<m![1], Inner>().commit_trim::<Inner>().commit_view({target});"
    body = f"{LOOP_HEAD} {head} {{ {more} {pass_} }} out.to_hbm(&mut device.tdma)"
    kernel = _kernel(body, LOOP_PARAMETERS, "HbmTensor<i32, Chip, m![Group, A]>")
    return next(step for step in kernel.steps if isinstance(step, s.Loop))


@pytest.mark.parametrize(
    ("head", "count", "unroll"),
    [
        ("for g in 0..Group::SIZE", 4, False),
        ("#[unroll]\nfor g in 0..4", 4, True),
        ("for g in 0..=3", 4, False),
        ("for g in (0..2 * PARTS)", 4, False),
    ],
)
def test_loops_have_constant_counts(head: str, count: int, unroll: bool) -> None:
    loop = _loop(head, "g")
    assert (loop.var, loop.count, loop.unroll) == ("g", count, unroll)
    tile, unit = loop.body
    assert isinstance(tile, s.Tile) and isinstance(unit, s.TensorUnit)
    assert (tile.start, tile.mutable, unit.begin) == ("g", False, tile.let)
    assert isinstance(unit.ops[-1], CommitView) and unit.ops[-1].tile is not None and unit.ops[-1].tile.mutable


def test_starts_are_linear_in_the_loop_variable() -> None:
    loop = _loop("for pair in 1..2", "second", "let first = (pair - 1) * 2; let second = first + 1;")
    assert loop.body[0].start == "2*pair+1"  # type: ignore[attr-defined]


def test_a_range_that_does_not_begin_at_zero_is_shifted() -> None:
    loop = _loop("for g in 1..4", "g")
    assert loop.count == 3
    assert loop.body[0].start == "g+1"  # type: ignore[attr-defined]


def test_a_count_known_at_run_time_only_is_kept_as_such() -> None:
    kernel = _kernel(f"{LOAD} {COPY} for g in 0..n {{}} {STORE}", "x: &HbmTensor<i32, Chip, m![A]>, n: usize")
    loop = next(step for step in kernel.steps if isinstance(step, s.Loop))
    assert loop.count == s.RuntimeCount("n")


@pytest.mark.parametrize("bound", ["x", "g * g", "n / 2", "0.5"])
def test_other_bounds_are_refused(bound: str) -> None:
    with pytest.raises(RustError) as caught:
        _kernel(f"{LOAD} for g in 0..{bound} {{}} {COPY} {STORE}", "x: &HbmTensor<i32, Chip, m![A]>, n: usize")
    assert caught.value.rule in ("RUST-007", "RUST-005")


def test_new_takes_its_type_from_the_helper_it_is_passed_to() -> None:
    ended = COPY.replace("let y = ", "").replace("commit::<Inner>()", "commit_view(out.view_mut())")
    tensor = "DmTensor<i32, Chip, Cluster, Slice, Inner>"
    helper = f"fn copy(device: &mut Device, d: &{tensor}, out: &mut {tensor}) {{ {ended} }}\n"
    kernel = _kernel(f"{LOAD} let mut y = DmTensor::new(); copy(device, &d, &mut y); {STORE}", more=helper)
    new = kernel.steps[1]
    assert isinstance(new, s.NewDm) and str(new.slice) == "A / 8"


def test_new_without_any_type_is_refused() -> None:
    with pytest.raises(RustError) as caught:
        _kernel(f"{LOAD} let z = DmTensor::new(); {COPY} {STORE}")
    assert caught.value.rule == "RUST-004" and "'z'" in caught.value.message


def test_several_results_are_a_tuple() -> None:
    returns = "(HbmTensor<i32, Chip, m![A]>, HbmTensor<i32, Chip, m![A]>)"
    stores = [f"let {n}: HbmTensor<i32, Chip, m![A]> = {t}.to_hbm(&mut device.tdma);" for n, t in (("p", "y"), ("q", "d"))]
    assert _kernel(f"{LOAD} {COPY} {' '.join(stores)} (p, q)", returns=returns).outputs == ("p", "q")


def test_a_function_without_result_writes_its_mutable_parameter() -> None:
    body = f"{LOAD} {COPY} y.view().to_hbm_view(&mut device.tdma, out.view_mut());"
    assert _kernel(body, "x: &HbmTensor<i32, Chip, m![A]>, out: &mut HbmTensor<i32, Chip, m![A]>", "").outputs == ("out",)


def test_notes_carry_what_rust_has_no_place_for() -> None:
    notes = """\
//! tcptune kernel: my.dot
//! tcptune oracle: einsum a,a->
//! tcptune tolerance: form=max rel=0.02 abs=0.5
//! tcptune fill x: A % 3
//! tcptune values y: [1, 2.5]
"""
    kernel = read_kernel(notes + DOT)
    assert (kernel.name, kernel.oracle) == ("my.dot", "einsum a,a->")
    assert kernel.tolerance is not None and (kernel.tolerance.form, kernel.tolerance.rel, kernel.tolerance.abs) == ("max", 0.02, 0.5)
    assert (kernel.inputs[0].fill, kernel.inputs[1].values) == ("A % 3", (1, 2.5))


def test_one_of_several_device_functions_is_chosen_by_name() -> None:
    two = DOT + DOT[DOT.index("#[device") :].replace("dot_kernel", "other_kernel")
    assert read_kernel(two, function="other_kernel").name == "other"
    with pytest.raises(RustError) as caught:
        read_kernel(two)
    assert caught.value.rule == "RUST-010" and "other_kernel" in (caught.value.hint or "")


def test_the_statement_of_every_step_is_known() -> None:
    rust = read_rust(DOT)
    assert len(rust.spans) == 5
    trf = rust.spans[(2,)]
    assert trf.text.startswith("device\n        .sub") and trf.text.endswith(".to_trf::<m![1], m![A]>()")
    assert str(trf.place) == "kernel.rs:17:17"


def test_the_dot_product_is_legal() -> None:
    assert check_rust(read_rust(DOT)).outputs[0].type.element.size == 1


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("2*pair+1", Linear(1, (("pair", 2),))),
        ("g", Linear(0, (("g", 1),))),
        (3, Linear(3)),
        ("g*4-2", Linear(-2, (("g", 4),))),
        ("a+2*b", Linear(0, (("a", 1), ("b", 2)))),
    ],
)
def test_starts_are_read_and_printed(text: int | str, form: Linear) -> None:
    assert parse_start(text) == form
    assert parse_start(form.start()) == form


def test_a_start_that_is_not_linear_is_none() -> None:
    assert parse_start("g*g") is None
