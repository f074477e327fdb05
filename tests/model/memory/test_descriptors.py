"""Commands and request streams of random moves: every live cell is written once, from the place that holds its coordinates."""

from __future__ import annotations

import random
from collections import Counter
from itertools import product

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tcptune.errors import RuleViolation, WorkError
from tcptune.ir.mappings.cells import joint_table
from tcptune.ir.mappings.mapping import Mapping, pair
from tcptune.ir.types import TensorType, dtype
from tcptune.model.memory.command_model import SLICE_STRIDE, Side, requests_per_packet
from tcptune.model.memory.descriptors import engine_commands
from tcptune.model.memory.streams import request_streams
from tcptune.model.memory.transfer import Move, prove_move
from tests.properties.expressions import mappings

Place = tuple[int, int, int]
"""Cluster, slice and element position."""


def placed(m: Mapping, seed: int, name: str) -> tuple[TensorType, TensorType]:
    """The factors of `m` dealt out to Cluster, Slice and Element of a DM tensor, and an HBM tensor that holds them in another order."""
    draw = random.Random(seed)
    terms = m.terms()
    draw.shuffle(terms)
    level = [draw.randrange(3) for _ in terms]
    cluster, slice_, element = (pair(*(t for t, where in zip(terms, level, strict=True) if where == wanted)) for wanted in range(3))
    assume(cluster.size <= 2 and slice_.size <= 256)
    dm = TensorType("Dm", dtype(name), element, cluster=cluster, slice=slice_)
    return dm, TensorType("Hbm", dtype(name), pair(*draw.sample(terms, len(terms))))


def proven(source: TensorType, dest: TensorType) -> Move:
    try:
        return prove_move(source, dest)
    except (RuleViolation, WorkError):
        assume(False)
        raise


def moved_cells(move: Move) -> dict[Place, Place]:
    """Source place of every destination place, from the boxes of the proof."""
    found: dict[Place, Place] = {}
    for box in move.boxes:
        for counts in product(*(range(d.extent) for d in box.digits)):
            source, dest = list(box.source_base), list(box.dest_base)
            for count, digit in zip(counts, box.digits, strict=True):
                source = [x + count * y for x, y in zip(source, digit.source, strict=True)]
                dest = [x + count * y for x, y in zip(dest, digit.dest, strict=True)]
            found[dest[1], dest[2], dest[3]] = (source[1], source[2], source[3])
    return found


def place(side: Side, address: int, element_bytes: int) -> Place:
    slice_, offset = divmod(address, SLICE_STRIDE) if side.tier == "Dm" else (0, address)
    return side.cluster if side.tier == "Dm" else 0, slice_, offset // element_bytes


@settings(max_examples=60, deadline=None)
@given(mappings(5), st.integers(0, 2**30), st.sampled_from(["i8", "bf16", "f32"]), st.sampled_from(["load", "store", "copy"]))
def test_commands_write_every_live_cell_once_from_its_source(m: Mapping, seed: int, name: str, kind: str) -> None:
    assume(m.size <= 2_000)
    dm, hbm = placed(m, seed, name)
    source, dest = {"load": (hbm, dm), "store": (dm, hbm), "copy": (dm, dm)}[kind]
    move = proven(source, dest)
    width = dest.dtype.bits // 8
    writes: Counter[Place] = Counter()
    source_of: dict[Place, Place] = {}
    for commands in engine_commands(move).values():
        for command in commands:
            first_of_packet = slice(None, None, requests_per_packet(command.packet_bytes))
            pairs = zip(command.addresses(command.read)[first_of_packet], command.addresses(command.write)[first_of_packet], strict=True)
            for read, write in pairs:
                for offset in range(0, command.packet_bytes, width):
                    to = place(command.write, int(write) + offset, width)
                    writes[to] += 1
                    source_of[to] = place(command.read, int(read) + offset, width)
    live = joint_table(dest.cluster, dest.slice, dest.element).live
    for to in map(tuple, np.argwhere(live).tolist()):
        assert writes[to] == 1
    expected = moved_cells(move)
    assert {to: source_of[to] for to in expected} == expected


@settings(max_examples=60, deadline=None)
@given(mappings(5), st.integers(0, 2**30), st.booleans())
def test_request_streams_ask_for_the_bytes_of_every_slice(m: Mapping, seed: int, store: bool) -> None:
    assume(m.size <= 2_000)
    dm, hbm = placed(m, seed, "i8")
    move = proven(*((dm, hbm) if store else (hbm, dm)))
    asked: dict[tuple[int, int], set[int]] = {}
    for streams in request_streams(move):
        for stream in streams:
            starts = stream.offsets(np.arange(stream.pieces_per_place))
            for cluster, slice_, base in zip(stream.clusters.tolist(), stream.slices.tolist(), stream.bases.tolist(), strict=True):
                bytes_of_place = asked.setdefault((cluster, slice_), set())
                for start in starts.tolist():
                    bytes_of_place.update(range(base + start, base + start + stream.run_bytes))
    needed: dict[tuple[int, int], set[int]] = {}
    for to, source in moved_cells(move).items():
        on_chip, in_hbm = (source, to) if store else (to, source)
        needed.setdefault(on_chip[:2], set()).add(in_hbm[2])
    assert set(asked) == set(needed)
    assert all(needed[p] <= asked[p] for p in needed)
