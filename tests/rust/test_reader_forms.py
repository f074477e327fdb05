"""Rust that engineers write around their kernels: scopes, constants, branches, written-out loops, aliases with parameters."""

from __future__ import annotations

import numpy as np
import pytest

from tcptune.errors import TcptuneError
from tcptune.exec.rust import read_kernel
from tcptune.exec.rust.check import check_rust
from tcptune.exec.rust.reader import read_rust
from tcptune.ir.kernels.kernel import Kernel
from tcptune.ir.kernels.steps import Loop, TensorUnit, Tile, ToDm
from tcptune.ir.kernels.vector_operands import Constant

HEAD = "use furiosa_opt_std::prelude::*;\n"
AXES = "axes![T = 256, H = 1024];\n"
TYPES = "type Chip = m![1];\ntype Cluster = m![1 # 2];\n"
SIGNATURE = "pub fn k(device: &mut Device, x: &HbmTensor<bf16, Chip, m![T, H]>) -> HbmTensor<bf16, Chip, m![T, H]> {\n"
LOAD = "    let x_dm: DmTensor<bf16, Chip, Cluster, m![T], m![H]> = x.to_dm(&mut device.tdma);\n"
END = "    x_dm.to_hbm(&mut device.tdma)\n}\n"
DEVICE = "#[device(chip = 1)]\n"


def _kernel(
    *, axes: str = AXES, before: str = "", device: str = DEVICE, signature: str = SIGNATURE, body: str = LOAD, end: str = END
) -> str:
    return HEAD + axes + TYPES + before + device + signature + body + end


def _read(text: str) -> Kernel:
    rust = read_rust(text)
    check_rust(rust)
    return rust.kernel


PLAIN = _read(_kernel())

SAME = {
    "a module": HEAD + "mod kernels {\nuse super::*;\n" + AXES + TYPES + DEVICE + SIGNATURE + LOAD + END + "}\n",
    "round brackets of axes": _kernel(axes="axes!(T = 256, H = 1024,);\n"),
    "curly brackets of axes": _kernel(axes="axes! { T = 256, H = 1024 }\n"),
    "sizes that are computed": _kernel(axes="const K: usize = 1 << 8;\naxes![T = K, H = (K - 1 + 1) * 4];\n"),
    "a size by another axis": _kernel(axes="axes![T = 256];\naxes![H = T::SIZE * 4];\n"),
    "a chip count by name": _kernel(before="const CHIPS: usize = 1;\n", device="#[device(chip = CHIPS)]\n"),
    "the attribute by its path": _kernel(device="#[furiosa_opt_std::device(chip = 1)]\n"),
    "return": _kernel(end="    return x_dm.to_hbm(&mut device.tdma);\n}\n"),
    "the result by a name": _kernel(end="    let out = x_dm.to_hbm(&mut device.tdma);\n    out\n}\n"),
    "the returned result by the name of something before it": _kernel(
        end="    let out = x_dm.view();\n    let mut out = x_dm.to_hbm(&mut device.tdma);\n    return out;\n}\n"
    ),
    "a helper that names its result": _kernel(
        before="fn load(device: &mut Device, x: &HbmTensor<bf16, Chip, m![T, H]>) -> DmTensor<bf16, Chip, Cluster, m![T], m![H]> {\n"
        "    let loaded = x.to_dm(&mut device.tdma);\n    loaded\n}\n",
        body="    let x_dm = load(device, x);\n",
    ),
    "a block": _kernel(body=LOAD.replace("x.to_dm(&mut device.tdma)", "{ x.to_dm(&mut device.tdma) }")),
    "contexts taken out of the device": _kernel(
        body="    let Device { tdma: dma, .. } = device;\n" + LOAD.replace("&mut device.tdma", "dma"), end="    x_dm.to_hbm(dma)\n}\n"
    ),
    "a context by a name of its own": _kernel(
        body="    let dma = &mut device.tdma;\n" + LOAD.replace("&mut device.tdma", "dma"), end="    x_dm.to_hbm(dma)\n}\n"
    ),
    "a tensor alias with parameters": _kernel(
        before="type Act<E> = DmTensor<bf16, Chip, Cluster, m![T], E>;\n",
        body=LOAD.replace("DmTensor<bf16, Chip, Cluster, m![T], m![H]>", "Act<m![H]>"),
    ),
    "a mapping alias with parameters": _kernel(
        before="type Whole<E> = m![{ E } # 1024];\n", body=LOAD.replace("m![T], m![H]", "m![T], Whole<m![H]>")
    ),
    "a tensor alias of a parameter": _kernel(
        before="type Rows = HbmTensor<bf16, Chip, m![T, H]>;\n", signature=SIGNATURE.replace("HbmTensor<bf16, Chip, m![T, H]>", "Rows")
    ),
    "a constant in a mapping": _kernel(
        before="const N: usize = H::SIZE / 64;\n", body=LOAD.replace("m![T], m![H]", "m![T], m![H / { N }, H % { N }]")
    ),
    "a constant branch": _kernel(
        before="const WIDE: bool = H::SIZE > 512;\n",
        body=LOAD.replace("x.to_dm(", "if WIDE { x.to_dm::<Cluster, m![T], m![H]>(&mut device.tdma) } else { x.to_dm(").replace(";", " };"),
    ),
    "assertions": _kernel(before="const _: () = assert!(H::SIZE % 16 == 0);\n", body="    assert_eq!(H::SIZE, 1024);\n" + LOAD),
    "a value let go": _kernel(body=LOAD + "    drop(x);\n"),
    "tests with names of their own": _kernel()
    + "#[cfg(test)]\nmod tests {\n    use super::*;\n    type Chip = m![7];\n    fn k(x: f32) -> f32 { x }\n"
    + "    #[tokio::test]\n    async fn works() { assert!(k(1.0) > 0.0); }\n}\n",
    "an associated function": _kernel(
        before="struct Ops;\nimpl Ops {\n    fn load(device: &mut Device, x: &HbmTensor<bf16, Chip, m![T, H]>)\n"
        "        -> DmTensor<bf16, Chip, Cluster, m![T], m![H]> { x.to_dm(&mut device.tdma) }\n}\n",
        body="    let x_dm = Ops::load(device, x);\n",
    ),
    "a tuple with its types": _kernel(
        before="fn both(device: &mut Device, x: &HbmTensor<bf16, Chip, m![T, H]>)\n"
        "    -> (DmTensor<bf16, Chip, Cluster, m![T], m![H]>, usize) {\n"
        "    (x.to_dm(&mut device.tdma), 3)\n}\n",
        body="    let (x_dm, _) = both(device, x);\n",
    ),
}


@pytest.mark.parametrize("form", SAME)
def test_a_form_of_the_language_reads_as_the_plain_one(form: str) -> None:
    kernel = _read(SAME[form])
    assert [type(s) for s in kernel.steps] == [type(s) for s in PLAIN.steps]
    assert kernel.axes == PLAIN.axes
    load = kernel.steps[0]
    assert isinstance(load, ToDm)
    assert load.element.equivalent(kernel.axes.mapping("H"))


def test_an_alias_is_that_of_the_innermost_block() -> None:
    helpers = "".join(
        f"fn {name}(device: &mut Device, x: &HbmTensor<bf16, Chip, m![T, H]>) -> DmTensor<bf16, Chip, Cluster, {slices}, {element}> {{\n"
        f"    type Slice = {slices};\n    type Row = {element};\n    x.to_dm::<Cluster, Slice, Row>(&mut device.tdma)\n}}\n"
        for name, slices, element in (("rows", "m![T]", "m![H]"), ("columns", "m![H / 4]", "m![T, H % 4]"))
    )
    kernel = _read(_kernel(before=helpers, body="    let _c = columns(device, x);\n    let x_dm = rows(device, x);\n"))
    columns, rows = (s for s in kernel.steps if isinstance(s, ToDm))
    assert str(columns.slice) == "H / 4"
    assert str(rows.slice) == "T"


def test_a_function_without_the_attribute_is_read_by_its_name() -> None:
    text = _kernel(device="")
    with pytest.raises(TcptuneError) as refusal:
        read_kernel(text)
    assert refusal.value.rule == "RUST-010"
    assert [type(s) for s in read_rust(text, function="k").kernel.steps] == [type(s) for s in PLAIN.steps]


# numbers

VECTOR = """\
    let x_dm: DmTensor<bf16, Chip, Cluster, m![T], m![H]> = device
        .main
        .begin(x_dm.view())
        .fetch::<m![H / 8], m![H % 8]>()
        .fetch_cast::<f32>()
        .collect::<m![H / 8], m![H % 8]>()
        .vector_init()
        .vector_intra_slice_tag(TagMode::Zero)
        .vector_clip(ClipBinaryOpF32::Max, OPERAND)
        .vector_final()
        .cast::<bf16, m![H % 8 # 16]>()
        .commit_trim::<m![H % 8]>()
        .commit();
"""
F = np.float32
NUMBERS = {
    "0.1": 0.1,
    "-1.5f32": -1.5,
    "1e-5_f32": 1e-5,
    "SCALE": 0.125,
    "SCALE * 2.0": 0.25,
    "1.0 / 3.0": float(F(1) / F(3)),
    "1.0 / H::SIZE as f32": 1 / 1024,
    "(1.0 / 3.0_f64) as f32": float(F(1 / 3)),
    "(H::SIZE as f32).sqrt().recip()": 1 / 32,
    "f32::from_bits(0x3f800000)": 1.0,
    "f32::NEG_INFINITY": float("-inf"),
    "std::f32::consts::LN_2": float(np.log(2)),
    "local": 0.5,
    "half(8) as f32": 4.0,
    "if H::SIZE > 1000 { 2.0 } else { 3.0 }": 2.0,
    "{ 7.5 }": 7.5,
}


@pytest.mark.parametrize("text", NUMBERS)
def test_a_constant_expression_is_an_operand(text: str) -> None:
    before = "const SCALE: f32 = 0.125;\nconst fn half(n: usize) -> usize { n / 2 }\n"
    kernel = _read(_kernel(before=before, body=LOAD + "    let local = SCALE * 4.0;\n" + VECTOR.replace("OPERAND", text)))
    (unit,) = (s for s in kernel.steps if isinstance(s, TensorUnit))
    (operand,) = (op.operand for op in unit.ops if op.NAME == "vector_clip")
    assert operand == Constant(NUMBERS[text])


@pytest.mark.parametrize("text", ["LOOP", "1.0 / 0", "1 / 0", "true", "2.0 + 1", "missing * 2.0", "half(1, 2)", "1u64.pow(200)"])
def test_what_is_no_number_is_refused(text: str) -> None:
    before = "const LOOP: f32 = LOOP + 1.0;\nconst fn half(n: usize) -> usize { n / 2 }\n"
    with pytest.raises(TcptuneError) as refusal:
        _read(_kernel(before=before, body=LOAD + VECTOR.replace("OPERAND", text)))
    assert refusal.value.exit_status == 2


# loops

TILE = "        let t = x_dm.view().tile::<m![H / 256], 1, m![1 # 4, H % 256]>(i);\n"


@pytest.mark.parametrize(
    ("head", "starts"),
    [
        ("0..4", [0, 1, 2, 3]),
        ("0..=3", [0, 1, 2, 3]),
        ("(0..4).rev()", [3, 2, 1, 0]),
        ("(0..4).step_by(2)", [0, 2]),
        ("(1..4).step_by(2).rev()", [3, 1]),
        ("0..H::SIZE / 256", [0, 1, 2, 3]),
    ],
)
def test_a_kept_loop_takes_the_values_of_its_range(head: str, starts: list[int]) -> None:
    kernel = read_kernel(_kernel(body=LOAD + f"    for i in {head} {{\n{TILE}    }}\n"))
    (loop,) = (s for s in kernel.steps if isinstance(s, Loop))
    (tile,) = (s for s in loop.body if isinstance(s, Tile))
    assert isinstance(loop.count, int)
    assert [eval(str(tile.start), {loop.var: turn}) for turn in range(loop.count)] == starts


def test_an_unrolled_loop_that_branches_is_written_out() -> None:
    body = LOAD + "    #[unroll]\n    for i in 0..4 {\n        if i % 2 == 1 {\n" + TILE + "        }\n    }\n"
    tiles = [s for s in read_kernel(_kernel(body=body)).steps if isinstance(s, Tile)]
    assert [t.start for t in tiles] == [1, 3]


def test_a_variable_may_change_in_an_unrolled_loop_but_not_in_a_kept_one() -> None:
    tile = TILE.replace("let t", "now")
    body = LOAD + "    let mut now = x_dm.view();\n    MARK\n    for i in 0..2 {\n" + tile + "    }\n"
    tiles = [s for s in read_kernel(_kernel(body=body.replace("MARK", "#[unroll]"))).steps if isinstance(s, Tile)]
    assert [t.start for t in tiles] == [0, 1]
    with pytest.raises(TcptuneError) as refusal:
        read_kernel(_kernel(body=body.replace("MARK", "")))
    assert refusal.value.rule == "RUST-008"


def test_arrays_and_tuples_hold_tensors_by_constant_places() -> None:
    """Two buffers that alternate in an unrolled loop are two tensors, read in turn."""
    body = (
        LOAD
        + "    let y_dm: DmTensor<bf16, Chip, Cluster, m![T], m![H]> = x.to_dm(&mut device.tdma);\n"
        + "    let both = [&x_dm, &y_dm];\n    let again = (both[1], both[0]);\n    #[unroll]\n    for i in 0..3 {\n"
        + "        let t = both[i % 2].view().tile::<m![H / 256], 1, m![1 # 4, H % 256]>(i);\n    }\n"
        + "    let t = again.0.view().tile::<m![H / 256], 1, m![1 # 4, H % 256]>(3);\n"
    )
    tiles = [s for s in read_kernel(_kernel(body=body)).steps if isinstance(s, Tile)]
    assert [(t.source, t.start) for t in tiles] == [("x_dm", 0), ("y_dm", 1), ("x_dm", 2), ("y_dm", 3)]


@pytest.mark.parametrize(("index", "rule"), [("2", "RUST-007"), ("n", "RUST-007"), ("i", "RUST-007"), ("0.5", "RUST-007")])
def test_a_place_that_is_not_there_or_not_known_is_refused(index: str, rule: str) -> None:
    body = LOAD + f"    let both = [&x_dm, &x_dm];\n    for i in 0..2 {{\n        let t = both[{index}].view();\n    }}\n"
    with pytest.raises(TcptuneError) as refusal:
        read_kernel(_kernel(body=body))
    assert refusal.value.rule == rule
