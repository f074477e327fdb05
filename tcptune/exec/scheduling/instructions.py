"""From checked kernels to instructions: durations, contexts, regions, and the work a compiler inserts (VT-013, 014, 029, 040 to 046).

A step becomes one instruction (tiles and reshapes none or a few Core operations); unrolled loops are written out, kept loops become
`Repeat`. Inserted work: lookup tables, custom switch bitmaps, syncs between a store and a read of the same HBM buffer, waits before a
buffer is overwritten, Core operations of tile views.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tcptune.errors import WorkError
from tcptune.exec.program.check import trip_count
from tcptune.exec.program.checked import Bound, CheckedKernel, CheckedStep, buffer_bytes
from tcptune.exec.program.views import start_at
from tcptune.exec.scheduling.bank_runs import longest_bank_run
from tcptune.exec.scheduling.schedule_json import VIEW_PREFIX
from tcptune.ir.kernels import steps as s
from tcptune.ir.kernels.ops import Cast, FetchTableLookup, Op, Switch, ToVrf
from tcptune.ir.schedule import (
    CORE,
    DMA,
    MAIN,
    NOOP,
    PCIE,
    SUB,
    VECTOR,
    Buffer,
    Instruction,
    Lag,
    Launch,
    Program,
    Region,
    Repeat,
)
from tcptune.ir.types import DType, TensorType
from tcptune.model.hardware import RNGD, Hardware
from tcptune.model.memory.dm import max_consecutive_accesses
from tcptune.model.memory.price import Unpriced, price_transfer
from tcptune.model.pipeline import Chain
from tcptune.model.timing.kernels import KernelTiming, kernel_timing
from tcptune.model.timing.passes import pass_cycles

_TIERS = {"Dm": "Sram", "Trf": "Trf", "Vrf": "Vrf", "Hbm": "Hbm", "Host": "Host"}
_KINDS = {("Hbm", "Dm"): "DmaLoad", ("Dm", "Hbm"): "DmaStore", ("Dm", "Dm"): "DmaStos"}


def shape_text(type_: TensorType) -> str:
    """The mappings of a tensor as the vendor's schedules print them."""
    levels = ", ".join(f"{name.capitalize()}: {m}" for name, m in type_.levels)
    return f"MappingShape[{levels}]"


def pass_contexts(chain: Chain, context: str) -> tuple[str, ...]:
    """Resources a pass books (VT-041): casts and vector operations need the Vector Engine; a VRF store from Main books Sub."""
    books = [MAIN if context == "main" else SUB]
    ops = [step.op for step in chain.steps]
    if context == "main" and ops and isinstance(ops[-1], ToVrf):
        books.append(SUB)
    if any(isinstance(op, Cast) or op.NAME.startswith("vector_") for op in ops):
        books.append(VECTOR)
    return tuple(books)


def needs_stash(chain: Chain) -> bool:
    """Whether the pass keeps one operand in an implicit VRF tensor (HW-026)."""
    return any(step.op.NAME in ("vector_stash", "vector_intra_slice_unzip") for step in chain.steps)


def table_name(source: DType, target: DType) -> str:
    """Name of the lookup table between two element types."""
    return f"{source}_{target}"


def tables_of(steps: tuple[CheckedStep, ...]) -> set[str]:
    """Lookup tables that passes of these steps use."""
    found: set[str] = set()
    for step in steps:
        found |= tables_of(step.body)
        for stage in step.chain.steps if step.chain is not None else ():
            if isinstance(stage.op, FetchTableLookup):
                found.add(table_name(stage.before.dtype, stage.op.dtype))
    return found


@dataclass
class _Written:
    """What a program has done to an HBM buffer so far.

    Attributes:
        touched: the parts that were read or written, or that hold an input.
        stores: the parts that were written, with the instruction that did it.
    """

    touched: list[Region] = field(default_factory=list)
    stores: list[tuple[Region, str]] = field(default_factory=list)


@dataclass
class _Lowering:
    """Lowers steps in program order; loop variables and the names of the current iteration are state."""

    profile: str
    timing: KernelTiming
    hw: Hardware
    parts: list[Instruction | Repeat] = field(default_factory=list)
    head: list[Instruction] = field(default_factory=list)
    buffers: dict[str, Buffer] = field(default_factory=dict)
    variables: dict[str, int] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    bound_views: dict[str, str] = field(default_factory=dict)
    hbm: dict[str, _Written] = field(default_factory=dict)
    table: str | None = None
    ids: dict[str, int] = field(default_factory=dict)
    mark: str = ""
    kept_loops: int = 0

    # names and buffers

    def fresh(self, stem: str) -> str:
        """A unique instruction id."""
        self.ids[stem] = self.ids.get(stem, 0) + 1
        return stem if self.ids[stem] == 1 else f"{stem}.{self.ids[stem]}"

    def buffer(self, name: str, tier: str, size: int, type_: TensorType | None = None) -> str:
        unique = name
        while unique in self.buffers:
            unique += "'"
        shape, dtype = (shape_text(type_), type_.dtype.name) if type_ else ("", "")
        self.buffers[unique] = Buffer(unique, tier, size, shape, dtype)
        return unique

    def define(self, bound: Bound) -> str:
        """The buffer of a new tensor, unique over unrolled iterations."""
        name = self.buffer(bound.name + self.mark, _TIERS[bound.type.tier], buffer_bytes(bound.type), bound.type)
        self.names[bound.name] = name
        return name

    def region(self, bound: Bound) -> Region:
        """Bytes of the storage that a name covers (all of it where the tile does not lie in one piece)."""
        buffer = self.names[bound.storage]
        outer = next((v for v in bound.views if v.level == "element"), None)
        if outer is None or not outer.contiguous or self.kept_loops:
            return Region(buffer)
        first = bound.type.dtype.bits * outer.stride * start_at(outer.start, self.variables)
        end = first + bound.type.dtype.bits * outer.stride * outer.length
        return Region(buffer, first // 8, -(-end // 8))

    def reads(self, *bounds: Bound) -> tuple[Region, ...]:
        regions = []
        for bound in bounds:
            regions.append(self.region(bound))
            if bound.name in self.bound_views:
                regions.append(Region(self.bound_views[bound.name]))
        return tuple(dict.fromkeys(regions))

    def emit(self, instruction: Instruction) -> Instruction:
        self.parts.append(instruction)
        return instruction

    def core(self, stem: str, cycles: float, **fields: object) -> Instruction:
        return Instruction(self.fresh(stem), "Core", (CORE,), int(cycles), **fields)  # type: ignore[arg-type]  # the keywords are fields of Instruction, passed on unchanged

    # steps

    def step(self, checked: CheckedStep) -> None:
        step = checked.step
        if isinstance(step, s.Loop):
            self.loop(checked, step)
        elif isinstance(step, s.TensorUnit):
            self.unit(checked, step)
        elif isinstance(step, s.Tile | s.ChipTile | s.ClusterTile):
            self.tile(checked)
        elif isinstance(step, s.Reshape):
            return
        elif isinstance(step, s.NewDm | s.NewHbm):
            self.new(checked)
        elif isinstance(step, s.AsymmetricChipSlice | s.AsymmetricClusterSlice | s.DmaGatherScaled | s.DmaGatherUnscaled | s.DmaScatter):
            raise Unpriced(f"no published schedule prices {step.NAME}", hint="such a kernel can be checked and run, not scheduled")
        else:
            self.move(checked)

    def loop(self, checked: CheckedStep, step: s.Loop) -> None:
        count = trip_count(step)
        if step.unroll:
            for i in range(count):
                self.variables[step.var] = i
                mark, self.mark = self.mark, f"{self.mark}.{i}"
                for inner in checked.body:
                    self.step(inner)
                self.mark = mark
            del self.variables[step.var]
            return
        tables = tables_of(checked.body)
        if len(tables) == 1:
            self.lookup_table(tables.pop())
        elif tables:
            self.table = None
        outer, self.parts = self.parts, []
        self.kept_loops += 1
        self.variables[step.var] = 0
        for inner in checked.body:
            self.step(inner)
        del self.variables[step.var]
        self.kept_loops -= 1
        body, self.parts = tuple(self.parts), outer
        self.parts.append(Repeat(count, body, int(self.timing.loop_iteration.value)))

    def new(self, checked: CheckedStep) -> None:
        """A zero-length node, so that the tensor lives from here on."""
        if checked.result is not None:
            region = Region(self.define(checked.result))
            self.emit(Instruction(self.fresh(f"new {checked.result.name}{self.mark}"), "Sub", (NOOP,), 0, writes=(region,)))

    def tile(self, checked: CheckedStep) -> None:
        """Address computation at kernel start and a bind before use (VT-045); inside kept loops the iteration's cost covers both."""
        result = checked.result
        if result is None or self.kept_loops or not self.timing.view_bind.value:
            return
        if self.names.get(result.storage) is None:
            return
        name = result.name + self.mark
        slot = self.buffer(f"address of {name}", "Spm", 1)
        address = self.core(f"address {name}", self.timing.view_address.value, writes=(Region(slot),))
        self.head.append(address)
        view = self.buffer(f"{VIEW_PREFIX}{name}", "Spm", 0)
        bind = self.core(
            f"bind {name}", self.timing.view_bind.value, reads=(*self.reads(checked.sources[0]), Region(slot)), writes=(Region(view),)
        )
        self.bound_views[result.name] = view
        self.emit(bind)

    def unit(self, checked: CheckedStep, step: s.TensorUnit) -> None:
        chain = checked.chain
        if chain is None:
            raise WorkError("the pass was not checked")
        reads = list(self.reads(*checked.sources))
        reads += self.inserted(chain)
        contexts = pass_contexts(chain, step.context)
        cycles = pass_cycles(chain, step.context, self.profile)
        if self.kept_loops:
            cycles = max(cycles - int(self.timing.loop_pass_saving.value), 0)
        run = longest_bank_run(chain, self.hw)
        if run > max_consecutive_accesses(self.hw):
            contexts = (*contexts, DMA)
        written = checked.target or checked.result
        writes = [self.region(written) if checked.target is not None else Region(self.define(written))] if written is not None else []
        if needs_stash(chain):
            writes.append(
                Region(self.buffer(f"stash {written.name if written else ''}{self.mark}", "Vrf", self.hw.vrf_stash_bytes_per_slice))
            )
        name = f"{written.name if written is not None else step.context}{self.mark}"
        kind = "Main" if step.context == "main" else "Sub"
        self.emit(
            Instruction(
                self.fresh(name), kind, contexts, cycles, tuple(dict.fromkeys(reads)), tuple(writes),
                description=describe(step), bank_accesses=run, step=name,
            )
        )  # fmt: skip
        if checked.target is not None and checked.target.views and not self.kept_loops and self.timing.view_bind.value:
            self.emit(self.core(f"merge {name}", self.timing.view_bind.value, writes=(self.region(checked.target),)))

    def inserted(self, chain: Chain) -> list[Region]:
        """Compiler-inserted work of a pass: the tensors it leaves for the pass to read."""
        found = []
        for checked in chain.steps:
            if isinstance(checked.op, FetchTableLookup):
                found.append(self.lookup_table(table_name(checked.before.dtype, checked.op.dtype)))
            elif isinstance(checked.op, Switch) and checked.op.config.kind == "CustomBroadcast":
                found.append(self.bitmap())
        return found

    def lookup_table(self, table: str) -> Region:
        """Loads and stores a lookup table unless it is the one in place (VT-013)."""
        stored = f"table {table}"
        if self.table == stored:
            return Region(self.names[stored])
        loaded = self.buffer(f"loaded {table}", "Sram", self.hw.loaded_table_bytes)
        load = self.timing.table_load.value
        self.emit(Instruction(self.fresh(f"load {table}"), "DmaLoad", (DMA,), int(load), writes=(Region(loaded),)))
        self.names[stored] = self.buffer(stored, "Sram", self.hw.stored_table_bytes)
        region = Region(self.names[stored])
        store = self.timing.table_store.value
        self.emit(Instruction(self.fresh(f"store {table}"), "Sub", (SUB,), int(store), (Region(loaded),), (region,)))
        self.table = stored
        return region

    def bitmap(self) -> Region:
        """Loads the bitmap of a CustomBroadcast (VT-014)."""
        region = Region(self.buffer("bitmap", "Sram", self.hw.switch_bitmap_bytes))
        self.emit(Instruction(self.fresh("load bitmap"), "DmaLoad", (DMA,), int(self.timing.bitmap_load.value), writes=(region,)))
        return region

    def move(self, checked: CheckedStep) -> None:
        source = checked.sources[0]
        dest = checked.target or checked.result
        if dest is None:
            raise WorkError(f"{checked.step.NAME} moves nothing")
        from_type = checked.route.footprint if checked.route is not None else source.type
        price = price_transfer(from_type, dest.type, self.profile)
        reads = self.reads(source)
        waits = self.wait_for_store(self.region(source)) if source.type.tier == "Hbm" else ()
        if checked.target is not None:
            region = self.region(dest)
            if dest.type.tier == "Hbm":
                self.guard_reuse(dest, region)
        else:
            region = Region(self.define(dest))
        kind = _KINDS.get((source.type.tier, dest.type.tier), "DmaOther")
        context = PCIE if "Host" in (source.type.tier, dest.type.tier) or getattr(checked.step, "context", "") == "pdma" else DMA
        name = self.fresh(f"{dest.name}{self.mark}" if checked.target is None else f"{source.name} to {dest.name}{self.mark}")
        instruction = self.emit(
            Instruction(
                name, kind, (context,), price.cycles, reads, (region,), waits,
                description=f"{source.name}.{checked.step.NAME}", moved_bytes=price.delivered_bytes, step=dest.name,
            )
        )  # fmt: skip
        for bound in (source, dest):
            if bound.type.tier == "Hbm":
                state = self.hbm.setdefault(self.names[bound.storage], _Written())
                state.touched.append(self.region(bound) if bound is source else region)
                if bound is dest:
                    state.stores.append((region, instruction.id))

    def wait_for_store(self, region: Region) -> tuple[Lag, ...]:
        """A sync after the last store that wrote a part of this HBM buffer, and the wait of the load for it (VT-029)."""
        state = self.hbm.get(region.buffer, _Written())
        written = [store for part, store in state.stores if part.overlaps(region)]
        if not written:
            return ()
        sync = self.core("sync of " + written[-1], self.timing.store_sync.value, reads=(region,))
        self.emit(sync)
        return (Lag(sync.id, int(self.timing.load_after_sync.value), why="an HBM buffer is read after it was written"),)

    def guard_reuse(self, dest: Bound, region: Region) -> None:
        """A wait before a part of an HBM buffer that was in use is overwritten."""
        state = self.hbm.get(region.buffer, _Written())
        if self.timing.buffer_reuse.value and any(part.overlaps(region) for part in state.touched):
            self.emit(self.core(f"reuse of {dest.name}", self.timing.buffer_reuse.value, writes=(region,)))


def describe(step: s.TensorUnit) -> str:
    """The pass as source text on one line."""
    begin = ", ".join(step.begins_on)
    return f"{step.context}.begin({begin})" + "".join(f".{_call(op)}" for op in step.ops)


def _call(op: Op) -> str:
    fields = {k: v for k, v in op.to_json().items() if k != "op"}
    return f"{op.NAME}({', '.join(str(v) for v in fields.values())})"


def lower(checked: CheckedKernel, profile: str = "vendor", hw: Hardware = RNGD) -> Program:
    """Instructions of a checked kernel in program order.

    Raises:
        WorkError: a step that no data prices in this profile.
    """
    timing = kernel_timing(profile)
    lowering = _Lowering(profile, timing, hw)
    for bound in checked.inputs:
        lowering.names[bound.name] = lowering.buffer(bound.name, _TIERS[bound.type.tier], buffer_bytes(bound.type), bound.type)
        if bound.type.tier == "Hbm":
            lowering.hbm[lowering.names[bound.name]] = _Written([Region(lowering.names[bound.name])])
        elif bound.type.tier == "Dm":
            lowering.emit(Instruction(f"argument {bound.name}", "Sub", (NOOP,), 0, writes=(Region(lowering.names[bound.name]),)))
    for step in checked.steps:
        lowering.step(step)
    for bound in checked.outputs:
        if bound.type.tier == "Dm":
            lowering.emit(Instruction(f"returned {bound.name}", "Sub", (NOOP,), 0, reads=(Region(lowering.names[bound.storage]),)))
    launch = Launch(int(timing.core_begin.value), int(timing.first_begin.value), int(timing.closing_sync.value))
    return Program((*lowering.head, *lowering.parts), tuple(lowering.buffers.values()), launch)


def with_launch(program: Program, first_begin: int) -> Program:
    """The program launched later (the MNIST schedule begins at 2,003)."""
    shift = first_begin - program.launch.first_begin
    return replace(program, launch=Launch(program.launch.core_begin + shift, first_begin, program.launch.sync_cycles))
