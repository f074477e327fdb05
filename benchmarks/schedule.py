"""Scheduling: time against the number of instructions, on random graphs and on unrolled loops; the exponent of growth.

Targets: 2,000 instructions in under 2 s, growth near linear (exponent of 500 to 8,000 close to 1).
"""

from __future__ import annotations

import random
import time
from math import log

from tcptune.exec.scheduling.allocate import plan_memory
from tcptune.exec.scheduling.schedule import schedule_program
from tcptune.ir.schedule import DMA, MAIN, SUB, VECTOR, Buffer, Instruction, Launch, Program, Region

SIZES = (500, 1000, 2000, 4000, 8000)
_LAUNCH = Launch(1000, 1003, 600)


def staged(instructions: int) -> Program:
    """Groups of load, register store, contraction and store into tiles of one result, as an unrolled kernel has them."""
    parts: list[Instruction] = []
    buffers = [Buffer("result", "Sram", 65_536)]
    for g in range(instructions // 4):
        buffers += [Buffer(f"w{g}", "Sram", 256), Buffer(f"t{g}", "Trf", 4096)]
        part = Region("result", 8 * g, 8 * g + 8)
        parts += [
            Instruction(f"load {g}", "DmaLoad", (DMA,), 700, writes=(Region(f"w{g}"),)),
            Instruction(f"stage {g}", "Sub", (SUB,), 391, (Region(f"w{g}"),), (Region(f"t{g}"),)),
            Instruction(f"contract {g}", "Main", (MAIN, VECTOR), 269, (Region(f"t{g}"),), (part,)),
            Instruction(f"store {g}", "DmaStore", (DMA,), 500, (part,), (Region("out", 8 * g, 8 * g + 8),)),
        ]
    return Program(tuple(parts), tuple(buffers), _LAUNCH)


def random_graph(instructions: int, seed: int = 1) -> Program:
    """Operations on random contexts that read two recent buffers and write a new one or overwrite an old one."""
    rng = random.Random(seed)
    contexts = ((MAIN,), (MAIN, VECTOR), (SUB,), (SUB, VECTOR), (DMA,), (MAIN, SUB))
    parts = []
    for i in range(instructions):
        reads = tuple(Region(f"b{rng.randrange(max(0, i - 40), i)}") for _ in range(2)) if i else ()
        target = f"b{i}" if rng.random() < 0.9 or not i else f"b{rng.randrange(max(0, i - 40), i)}"
        parts.append(Instruction(f"op {i}", "Main", rng.choice(contexts), rng.randrange(100, 2000), reads, (Region(target),)))
    return Program(tuple(parts), (), _LAUNCH)


def seconds(program: Program) -> float:
    begin = time.process_time()
    schedule_program(plan_memory(program).program)
    return time.process_time() - begin


def main() -> None:
    for name, make in (("unrolled groups", staged), ("random graph", random_graph)):
        times = {n: seconds(make(n)) for n in SIZES}
        exponent = log(times[SIZES[-1]] / times[SIZES[0]]) / log(SIZES[-1] / SIZES[0])
        row = "  ".join(f"{n:,}: {t:.3f} s" for n, t in times.items())
        print(f"{name}: {row}  exponent {exponent:.2f}")


if __name__ == "__main__":
    main()
