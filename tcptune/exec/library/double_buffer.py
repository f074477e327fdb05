"""The manual's double-buffer trio: twenty weight groups staged and contracted rolled, in two stages, and unrolled (KERNEL-023 to 026)."""

from __future__ import annotations

from tcptune.exec.program.build import KernelBuilder, Tensor
from tcptune.ir.kernels.kernel import Kernel, Tolerance

GROUPS = 20


class _Trio:
    """The common part: loads, and one group staged and contracted."""

    def __init__(self, name: str) -> None:
        self.b = KernelBuilder(name, {"Tok": 16, "Red": 64, "Out": 8, "Group": GROUPS})
        place = {"cluster": "Tok / 8 % 2", "slice": "Tok % 8 # 256"}
        activation = self.b.input("activation", "Hbm", "bf16", element="Tok, Red")
        weight = self.b.input("weight", "Hbm", "bf16", element="Group, Out, Red")
        self.activation = activation.to_dm(**place, element="Red", let="activation_dm")
        self.weight = weight.to_dm(**place, element="Group, Out, Red", let="weight_dm")
        self.output = self.b.new_dm("bf16", **place, element="Group, Out", let="output_dm")

    def stage(self, group: str, let: str) -> Tensor:
        tile = self.weight.tile("Group", 1, group, f"1 # {GROUPS}, Out, Red", let=f"{let}_weight")
        return self.b.sub.begin(tile).fetch("Out, Red / 16", "Red % 16").collect("Out, Red / 16", "Red % 16").to_trf("Out", "Red", let=let)

    def contract(self, group: str, trf: Tensor) -> None:
        s = self.b.main.begin(self.activation).fetch("Red / 16", "Red % 16").collect("Red / 16", "Red % 16")
        s = s.contract_outer("Red / 32", "Red % 32", trf).contract_packet("1").contract_time("1").contract_lane("1", "Out", "Interleaved")
        tile = {"axis": "Group", "len": 1, "start": group, "element": f"1 #{{!}} {GROUPS}, Out", "mutable": True}
        s.cast("bf16", "Out # 16").commit_trim("Out").commit_view(into=self.output, tile=tile)

    def finish(self) -> Kernel:
        out = self.b.new_hbm("bf16", element="Tok, Group, Out", let="out")
        self.output.to_hbm_view(out)
        return self.b.build(out, oracle="einsum tr,gor->tgo", tolerance=Tolerance(0.05, 1.0, "max"))


def rolled(*, unroll: bool = False) -> Kernel:
    """One group an iteration, the loop kept (or, with `unroll`, written out)."""
    trio = _Trio("unrolled" if unroll else "rolled")
    with trio.b.loop(GROUPS, unroll=unroll, var="g") as g:
        trio.contract(g, trio.stage(g, "group"))
    return trio.finish()


def unrolled() -> Kernel:
    """All groups in one scheduling unit."""
    return rolled(unroll=True)


def software_pipelined() -> Kernel:
    """Two groups an iteration: both staged, then both contracted."""
    trio = _Trio("software_pipelined")
    with trio.b.loop(GROUPS // 2, var="pair") as pair:
        first, second = f"2*{pair}", f"2*{pair}+1"
        staged = trio.stage(first, "first"), trio.stage(second, "second")
        trio.contract(first, staged[0])
        trio.contract(second, staged[1])
    return trio.finish()
