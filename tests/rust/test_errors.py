"""Broken Rust: each offence is refused with its rule, line and column, never with a traceback."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcptune.errors import TcptuneError
from tcptune.exec.rust import LocatedViolation, RustError, read_rust
from tcptune.exec.rust.check import check_rust
from tcptune.model.rules import rule
from tests.rust.programs import DOT


def _refusal(text: str) -> RustError | LocatedViolation:
    with pytest.raises((RustError, LocatedViolation)) as caught:
        check_rust(read_rust(text))
    return caught.value


def _place_of(text: str, offence: str) -> tuple[int, int]:
    """Line and column (from 1) of the first occurrence of `offence`."""
    before = text[: text.index(offence)]
    return before.count("\n") + 1, len(before) - before.rfind("\n")


BROKEN = {
    "missing bracket": (".contract_time::<m![1]>()", ".contract_time::<m![1]>(", "(\n        .contract_lane", "RUST-001"),
    "missing semicolon": ("&mut device.tdma);\n    let y_dm", "&mut device.tdma)\n    let y_dm", "\n    let y_dm", "RUST-001"),
    "unknown method": (".contract_time", ".contract_times", "contract_times", "RUST-002"),
    "method of another stage's value": ("x_dm.view()", "x_dm.fetch()", "fetch()", "RUST-002"),
    "too few type arguments": (
        "fetch::<m![1], m![A]>()\n        .collect::<m![A / 16], m![A % 16]>()\n        .to_trf",
        "fetch::<m![A]>().to_trf",
        "fetch::<m![A]>()",
        "RUST-003",
    ),
    "too many type arguments": (
        "contract_packet::<m![1]>",
        "contract_packet::<m![1], m![1]>",
        "contract_packet::<m![1], m![1]>",
        "RUST-003",
    ),
    "missing type arguments": ("contract_time::<m![1]>", "contract_time", "contract_time", "RUST-004"),
    "unknown axis": ("m![A / 32]", "m![Q / 32]", "Q / 32", "MAP-003"),
    "non-dividing stride": ("m![A / 32]", "m![A / 3]", "m![A / 3]", "MAP-010"),
    "mapping grammar": ("m![A / 32]", "m![A / / 32]", "/ 32]", "MAP-018"),
    "unknown alias": (
        "to_dm::<Cluster, Slice, m![A]>(&mut device.tdma);\n    let y",
        "to_dm::<Cluster, Slize, m![A]>(&mut device.tdma);\n    let y",
        "Slize",
        "RUST-005",
    ),
    "unknown variable": ("begin(x_dm.view())", "begin(z_dm.view())", "z_dm", "RUST-005"),
    "missing argument": ("(LaneMode::Interleaved)", "()", "contract_lane", "RUST-006"),
    "wrong enumeration": ("LaneMode::Interleaved", "TagMode::Zero", "TagMode::Zero", "RUST-006"),
    "branch in the body": ("    let x_dm", "    if ready {}\n    let x_dm", "ready {}", "RUST-008"),
    "no device function": ("#[device(chip = 1)]\n", "", "use", "RUST-010"),
    "unit not a context": ("result.to_hbm(&mut device.tdma)", "result.to_hbm(&mut device)", "&mut device)", "RUST-006"),
    "engine rule": (
        "collect::<m![A / 16], m![A % 16]>()\n        .contract_outer",
        "collect::<m![A / 8], m![A % 8]>()\n        .contract_outer",
        "collect::<m![A / 8]",
        "COLLECT-002",
    ),
    "chip size of a parameter": ("x: &HbmTensor<bf16, Chip, m![A]>", "x: &HbmTensor<bf16, m![4], m![A]>", "x: &Hbm", "HW-008"),
    "slice size": ("m![1 # 256]", "m![1 # 250]", "to_dm::<Cluster, Slice", "HW-007"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_an_offence_is_named_with_rule_line_and_column(what: str) -> None:
    old, new, offence, rule_id = BROKEN[what]
    assert old in DOT
    text = DOT.replace(old, new, 1)
    error = _refusal(text)
    assert error.rule == rule_id
    assert (error.where.line, error.where.column) == _place_of(text, offence)
    assert f"error[{rule_id}]: kernel.rs:{error.where.line}:{error.where.column}: " in error.render()


def test_every_rust_rule_can_be_explained() -> None:
    for number in range(1, 11):
        entry = rule(f"RUST-{number:03}")
        assert entry.text and entry.breaks and entry.fix


def test_a_wrong_annotation_is_refused() -> None:
    text = DOT.replace("let result = device", "let result: DmTensor<bf16, Chip, Cluster, m![2 # 256], m![1 # 8]> = device")
    error = _refusal(text)
    assert error.rule == "RUST-009" and "m![2 # 256]" in error.message


def test_a_typed_enumeration_must_name_the_streams_element_type() -> None:
    chain = ".vector_init()\n.vector_intra_slice_tag(TagMode::Zero)\n.vector_clip(ClipBinaryOpI32::Max, 0)\n.vector_final()\n.cast"
    error = _refusal(DOT.replace(".cast", chain, 1))
    assert error.rule == "RUST-009" and error.hint == "ClipBinaryOpF32::…"


def test_the_closest_known_name_is_proposed() -> None:
    assert "contract_time" in (_refusal(DOT.replace(".contract_time", ".contract_tiem", 1)).hint or "")
    assert "x_dm" in (_refusal(DOT.replace("begin(x_dm", "begin(x_dn", 1)).hint or "")


def test_a_helper_that_calls_itself_is_refused() -> None:
    text = DOT.replace("#[device", "fn again(device: &mut Device) {\n    again(device);\n}\n\n#[device").replace(
        "    let x_dm", "    again(device);\n    let x_dm"
    )
    assert _refusal(text).rule == "RUST-008"


def test_a_type_defined_by_itself_is_refused() -> None:
    assert _refusal(DOT.replace("m![1 # 2];", "m![{ Cluster } # 2];")).rule == "RUST-005"


@pytest.mark.parametrize("cut", range(0, len(DOT), 37))
def test_a_truncated_file_never_gives_a_traceback(cut: int) -> None:
    with pytest.raises(TcptuneError):
        check_rust(read_rust(DOT[:cut]))


@pytest.mark.parametrize(
    "text", ["", "\x00", "é" * 50, "fn", "#[device]", "#[device(chip = x)] fn f() {}", "axes![];", "axes![A];", "{" * 3000, "(" * 5000]
)
def test_garbage_is_refused(text: str) -> None:
    with pytest.raises(TcptuneError):
        read_rust(text)


def test_a_sum_of_thousands_of_terms_is_refused() -> None:
    text = DOT.replace("    let x_dm", f"    let n = {'1 + ' * 20_000}1;\n    let x_dm")
    assert _refusal(text).rule == "RUST-008"


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, len(DOT) - 1),
    st.integers(0, 12),
    st.sampled_from(["", "(", ")", "<", ">", "m![", "]", "A", "1", "::", ",", ".", "0 ", "é", "'", '"', "/*"]),
)
def test_any_small_damage_is_read_or_refused(at: int, length: int, put: str) -> None:
    text = DOT[:at] + put + DOT[at + length :]
    try:
        check_rust(read_rust(text))
    except TcptuneError as error:
        assert error.render()
