"""A second implementation of the DMA engine model: every packet of every engine, one after another, nothing sampled or vectorised.

Written from the description of the model in docs/cost-model.md; `tcptune.model.memory.engine_model` must agree with it.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcptune.model.timing.calibration import DmaTiming

LINE = 256

Pieces = dict[tuple[int, int], list[tuple[int, int]]]
"""(cluster, slice) to its pieces in order: (HBM byte address, bytes)."""


def packet_length(pieces: Pieces, limit: int) -> int:
    addresses = [a for walk in pieces.values() for a, _ in walk]
    run = next(iter(pieces.values()))[0][1]
    if run % LINE == 0 and all(a % LINE == 0 for a in addresses):
        return LINE
    if run <= limit:
        return run
    usable = [d for d in range(8, limit + 1, 8) if run % d == 0 and d >= limit / 2]
    if usable:
        return max([d for d in usable if run // d % 2 == 0] or usable)
    count = next(n for n in range(2, run, 2) if run / n <= limit)
    return next(d for d in range(8, limit + 1, 8) if d * count >= run)


def engine_order(slices: dict[int, int]) -> list[int]:
    """Slices (0 to 63, with the start address of each) of one engine in a round: halves alternate, replicas come last in their half."""
    halves = []
    for half in (0, 1):
        mine = sorted(s for s in slices if s // 32 == half)
        copies = {s: sum(slices[t] == slices[s] for t in mine if t < s) for s in mine}
        halves.append(sorted(mine, key=lambda s: (copies[s], s)))
    order = []
    for i in range(32):
        order += [half[i] for half in halves if i < len(half)]
    return order


def packets(walks: dict[int, list[tuple[int, int]]], length: int) -> Iterator[tuple[int, int, int]]:
    """(address, bytes, slice) of every packet of an engine."""
    order = engine_order({s: walk[0][0] for s, walk in walks.items()})
    cut = {s: [(a + i, min(length, n - i)) for a, n in walk for i in range(0, n, length)] for s, walk in walks.items()}
    for round_ in range(max(len(c) for c in cut.values())):
        for s in order:
            if round_ < len(cut[s]):
                yield (*cut[s][round_], s)


def _spacing(before: int, address: int, timing: DmaTiming) -> float:
    distance = abs(address - before)
    if distance < timing.near_distance.value:
        return timing.issue_near.value
    return timing.issue_mid.value if distance < timing.mid_distance.value else timing.issue_far.value


def engine_cycles(walks: dict[int, list[tuple[int, int]]], length: int, timing: DmaTiming, store: bool) -> float:
    issue = retired = 0.0
    line_free: dict[int, float] = {}
    port_free = {0: 0.0, 1: 0.0}
    slice_free: dict[int, float] = {}
    done: list[float] = []
    hold = join = tail = 0.0
    previous: tuple[int, int, int] | None = None
    for address, size, s in packets(walks, length):
        lines = (address + size - 1) // LINE - address // LINE + 1
        if previous is not None:
            issue += max(_spacing(previous[0], address, timing) * previous[2], hold) + join
        window = int(timing.window.value)
        if len(done) >= window:
            issue = max(issue, done[-window])
        part = address // int(timing.same_line_bytes.value)
        begin = max(issue, line_free.get(part, 0.0))
        line_free[part] = begin + timing.same_line.value * lines
        arrive = max(begin + timing.latency.value, port_free[s // 32], slice_free.get(s, 0.0))
        port_free[s // 32] = arrive + timing.port.value * lines
        slice_free[s] = arrive + timing.slice_gap.value * lines
        retired = max(retired, arrive + timing.port.value * lines)
        done.append(retired)
        hold = join = 0.0
        if store and (address % LINE or size % LINE):
            tail = timing.partial_write_tail.value
            continues = previous is None or previous[0] + previous[1] == address
            if continues and size >= 8:
                join = timing.partial_write_join.value
            elif address % 64 == 0 and size % 64 == 0:
                hold = timing.partial_write_64.value
            else:
                hold = timing.partial_write_8.value
        previous = (address, size, lines)
    return retired + tail


def transfer_cycles(pieces: Pieces, timing: DmaTiming, store: bool = False) -> float:
    length = packet_length(pieces, int(timing.max_packet.value))
    engines: dict[tuple[int, int], dict[int, list[tuple[int, int]]]] = {}
    for (cluster, s), walk in pieces.items():
        engines.setdefault((cluster, s // 64), {})[s % 64] = walk
    shared = [a // LINE for walk in pieces.values() for a, n in walk if store and n < 8]
    most = max((shared.count(line) for line in set(shared)), default=0)
    line = most * (timing.sub_word_piece.value + timing.sub_word_queue.value * most)
    start = timing.start_store.value if store else timing.start_load.value
    ends = []
    for (cluster, engine), walks in engines.items():
        skew = max(timing.skew_engine.value * engine, timing.skew_cluster.value * cluster)
        ends.append(start + skew + max(line, engine_cycles(walks, length, timing, store)))
    return max(ends)
