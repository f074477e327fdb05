"""Functions on streams, as the manual writes its examples of single engines: legal ones make what they declare, wrong ones are refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tcptune.errors import TcptuneError
from tcptune.exec.rust.stream_functions import stream_functions
from tcptune.ir.types import StreamType
from tests.rust import manual

EXAMPLES = manual.stream_examples() if manual.available() else {}

ONE_SLICE = ("fetch_decode_e2m1", "fetch_with_type_cast", "commit_trim_", "commit_cast_")
"""Examples whose types leave out what does not matter to them: one cluster, one slice. The device has two and 256 (TU-007)."""

WRONG = {
    "invalid_too_many_slots": "ISR-004",
    "reduce_wrong_ordering": "VCG-006",
    "reduce_wrong_interleave": "VCG-011",
    "reduce_time_major_wrong": "VCG-010",
    "reduce_wrong_packet_outer": "VCG-013",
    "reduce_wrong_mixed_packet": "VCG-014",
    "reduce_wrong_slice_packet": "VE-017",
    "reduce_slice_time_packet": "VCG-016",
}
"""Examples that the manual's own rules refuse, the last one against what its text says (a known contradiction)."""


@pytest.mark.parametrize("which", EXAMPLES)
def test_an_example_of_the_manual_is_read_and_makes_what_it_declares(which: str) -> None:
    name = which.split(":")[0]
    rule = "TU-007" if name.startswith(ONE_SLICE) else WRONG.get(name)
    if rule is None:
        (found,) = stream_functions(EXAMPLES[which], function=name)
        assert found.chains
        return
    with pytest.raises(TcptuneError) as refusal:
        stream_functions(EXAMPLES[which], function=name)
    assert refusal.value.rule == rule


@pytest.mark.skipif(not EXAMPLES, reason="the manual is not here")
def test_most_of_the_manual_is_covered() -> None:
    assert len(EXAMPLES) > 90


RELU = """\
axes![A = 512, B = 2];

fn relu<'l>(
    input: CollectTensor<'l, { Tu::Sub }, i32, m![1], m![B], m![A / 2], m![1], m![A % 2 # 8]>,
) -> VectorFinalTensor<'l, { Tu::Sub }, i32, m![1], m![B], m![A / 2], m![1], m![A % 2 # 8]> {
    input.vector_init().vector_intra_slice_tag(TagMode::Zero).vector_clip(ClipBinaryOpI32::Max, 0).vector_final()
}
"""


def test_a_function_runs_in_the_context_that_its_stream_names() -> None:
    (found,) = stream_functions(RELU)
    (chain,) = found.chains
    assert chain.env.context == "sub"
    assert isinstance(chain.final, StreamType)
    assert chain.final.position == "VectorFinal"
    assert str(chain.final.packet) == "A % 2 # 8"


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("m![A % 2 # 8]> {", "m![A % 2]> {", "RUST-009"),
        (") -> VectorFinalTensor<'l, { Tu::Sub }, i32", ") -> VectorFinalTensor<'l, { Tu::Sub }, f32", "RUST-009"),
        (") -> VectorFinalTensor", ") -> CollectTensor", "RUST-009"),
        (".vector_intra_slice_tag(TagMode::Zero)", "", "VE-005"),
        (".vector_final()", ".vector_final().vector_init()", "VE-002"),
    ],
)
def test_what_a_function_may_not_do_is_named(old: str, new: str, rule: str) -> None:
    assert old in RELU
    with pytest.raises(TcptuneError) as refusal:
        stream_functions(RELU.replace(old, new))
    assert refusal.value.rule == rule
    assert "kernel.rs:" in refusal.value.render()


def test_the_command_line_shows_every_operation(tmp_path: Path) -> None:
    file = tmp_path / "relu.rs"
    file.write_text(RELU)
    run = subprocess.run([sys.executable, "-m", "tcptune", "run", str(file), "--json"], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    (function,) = json.loads(run.stdout)["functions"]
    operations = [step["op"] for step in function["passes"][0]["steps"]]
    assert operations == ["vector_init", "vector_intra_slice_tag", "vector_clip", "vector_final"]
