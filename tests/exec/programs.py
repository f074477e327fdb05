"""Small programs of instructions for scheduling tests."""

from tcptune.ir.schedule import DMA, MAIN, SUB, VECTOR, Instruction, Launch, Program, Region

AT_ZERO = Launch(0, 0, 600)
CONTEXTS = {"main": (MAIN,), "sub": (SUB,), "dma": (DMA,), "main+ve": (MAIN, VECTOR), "sub+ve": (SUB, VECTOR), "main+sub": (MAIN, SUB)}


def op(name, context, cycles, reads=(), writes=(), **more):
    """An instruction; reads and writes are buffer names or regions."""

    def regions(items):
        return tuple(r if isinstance(r, Region) else Region(r) for r in items)

    return Instruction(name, "Main", CONTEXTS[context], cycles, regions(reads), regions(writes), **more)


def program(*parts, buffers=(), launch=AT_ZERO):
    return Program(tuple(parts), tuple(buffers), launch)


def begins(schedule):
    return {o.id: o.begin for o in schedule.operations}
