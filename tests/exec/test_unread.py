"""Values that are loaded and that no pass reads are said; what is read in parts, viewed or stored whole is not."""

import pytest

from tcptune.exec.library import patterns, transformer, vector_rows
from tcptune.exec.program.check import check_kernel
from tcptune.exec.program.unread import unread_notes
from tcptune.ir.kernels.kernel import Kernel
from tests.cli.in_process import tcptune

HEAD = """kernel part
axes I=256 K=64
chips 1
input x: Hbm i32 chip=[1] element=[I, K]
d = to_dm(x, cluster=[1 # 2], slice=[I], element=[K])
"""


def read(let: str, source: str, time: str, packet: str, element: str) -> str:
    ops = (f"fetch(time=[{time}], packet=[{packet}])", f"collect(time=[{time}], packet=[{packet}])", f"commit_trim(packet=[{packet}])")
    return f"{let} = main.begin({source})\n" + "".join(f"  .{op}\n" for op in ops) + f"  .commit(element=[{element}])\n"


def notes(body: str, output: str = "y") -> tuple[str, ...]:
    return unread_notes(check_kernel(Kernel.from_text(f"{HEAD}{body}output {output}\n")))


def test_a_forgotten_term_of_a_fetch_is_counted():
    assert notes(read("y", "d", "1", "K % 8", "K % 8")) == ("no pass reads 56 of the 64 live values a slice of d (SEQ-007)",)
    assert notes(read("y", "d", "K / 16", "K % 8", "K / 16, K % 8")) == ("no pass reads 32 of the 64 live values a slice of d (SEQ-007)",)


def test_what_is_read_whole_or_in_parts_that_add_up_is_not_noted():
    assert notes(read("y", "d", "K / 8", "K % 8", "K")) == ()
    halves = read("y", "d", "K / 8 = 4", "K % 8", "K / 8 = 4, K % 8") + read("z", "d", "K / 8", "K % 8", "K")
    assert notes(halves, "y, z") == ()


def test_what_something_else_reads_too_is_not_noted():
    assert notes(read("y", "d", "1", "K % 8", "K % 8") + "z = to_hbm(d, chip=[1], element=[I, K])\n", "y, z") == ()


@pytest.mark.parametrize(
    "build", [patterns.gemm, patterns.gemv, patterns.dot, patterns.constant_add, vector_rows.softmax, transformer.rmsnorm]
)
def test_library_kernels_read_what_they_load(build):
    assert unread_notes(check_kernel(build())) == ()


def test_run_prints_the_note(tmp_path):
    (tmp_path / "k.visa").write_text(HEAD + read("y", "d", "1", "K % 8", "K % 8") + "output y\n")
    assert "note: no pass reads 56 of the 64 live values" in tcptune("run", tmp_path / "k.visa").out
