"""The vendor's schedule JSON: read (any SDK version, unknown keys ignored) and written (0.8.1 flavour), so that its viewer opens ours.

Reading needs only ``instructions[].lifetime`` and tolerates everything else missing. Sizes and addresses in the file are totals over all
512 slices of a chip; here they are bytes a slice.
"""

from __future__ import annotations

import json
from math import ceil, isfinite
from pathlib import Path
from typing import Any

from tcptune.errors import InputError
from tcptune.ir.fields import LARGEST_BITS
from tcptune.ir.files import read_json, write_text
from tcptune.ir.schedule import CORE, DMA, MAIN, NOOP, PCIE, SUB, VECTOR, Buffer, Lifetime, Operation, Schedule
from tcptune.model.hardware import RNGD, Hardware

_KIND_LANES = {"Main": MAIN, "Sub": SUB, "Core": CORE}
_VIEWER_NAMES = {"Main": MAIN, "Sub": SUB, "VE": VECTOR, "TDMA": DMA, "PDMA": PCIE, "Core": CORE}
LANES = {MAIN: "Main", SUB: "Sub", VECTOR: "VE", DMA: "TDMA", PCIE: "PDMA", CORE: "Core"}
"""Viewer lane of every resource, in the viewer's order (VIEWER-009)."""

MEMORY_LANES = ("Spm", "Vrf", "Trf", "Sram")
"""Memory lanes above them."""

_DMA_KINDS = ("DmaLoad", "DmaStore", "DmaGather", "DmaScatter")
_SPILLY = {"DmaLoad": "SpillyLoad", "DmaStore": "SpillyStore"}
"""What the viewer calls the compiler's spill traffic, which only the description tells; everything else of it is a sync."""

_TYPES = {"SpillyLoad": "DmaLoad", "SpillyStore": "DmaStore", "SpillySync": "Core"}
_FIRST_TENSOR = 1000
_SPM_BYTES = 32
"""Size of the result of an address computation; one slot each."""

VIEW_PREFIX = "view "
"""Names of the links from a bind to the readers of a tile; they are no tensors."""


def lanes_of(contexts: tuple[str, ...], kind: str = "") -> tuple[str, ...]:
    """Viewer lanes in which an instruction appears; without contexts its type decides (VIEWER-009)."""
    if not contexts:
        contexts = (_KIND_LANES.get(kind, DMA),)
    return tuple(lane for resource, lane in LANES.items() if resource in contexts)


def visible(begin: int, end: int, first: int, last: int) -> tuple[int, int] | None:
    """The part of an interval inside a cycle window, both half-open, or None (VIEWER-007)."""
    clipped = max(begin, first), min(end, last)
    return clipped if clipped[0] < clipped[1] else None


# reading


def _integer(value: Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value != int(value):
        raise InputError(f"{where} must be a whole number, got {value!r:.60}")
    if not 0 <= value < 1 << LARGEST_BITS:
        raise InputError(f"{where} must be from 0 to below 2^{LARGEST_BITS}, got {value!r:.60}")
    return int(value)


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise InputError(f"{where} must be a number, got {value!r:.60}")
    return float(value)


def _list(raw: dict[str, Any], key: str, where: str) -> list[Any]:
    """The list in a field that may be missing or null."""
    value = raw.get(key)
    if value is not None and not isinstance(value, list):
        raise InputError(f"{where}.{key} must be a list, got {value!r:.60}")
    return value or []


def _tensor_name(index: Any, tensors: dict[int, str]) -> str:
    number = int(index) if isinstance(index, str) and index.isdecimal() else index
    return tensors.get(number, f"T{index}") if isinstance(number, int) else f"T{index}"


def context_name(name: Any) -> str:
    """The name of a resource, also where a file has the viewer's name of its lane."""
    return _VIEWER_NAMES.get(str(name), str(name))


def _operation(raw: Any, place: int, tensors: dict[int, str]) -> Operation:
    where = f"instructions[{place}]"
    if not isinstance(raw, dict):
        raise InputError(f"{where} is no object")
    life = raw.get("lifetime")
    if not isinstance(life, dict) or "begin" not in life or "end" not in life:
        raise InputError(f"{where} misses the field 'lifetime.begin' or 'lifetime.end'")
    begin, end = (_integer(life[k], f"{where}.lifetime.{k}") for k in ("begin", "end"))
    if end < begin:
        raise InputError(f"{where} ends at {end} before it begins at {begin}")
    description, tpe = str(raw.get("description") or ""), str(raw.get("tpe") or "")
    kind = _SPILLY.get(tpe, "SpillySync") if "Spilly" in description else tpe
    if raw.get("contexts") is None:
        contexts: tuple[str, ...] = (_KIND_LANES.get(tpe, DMA),)  # as the viewer does (VIEWER-009)
    else:
        contexts = tuple(context_name(c) for c in _list(raw, "contexts", where))
    util = raw.get("util") if isinstance(raw.get("util"), dict) else {}
    share = (
        _number(0.0 if util.get("total_util") is None else util["total_util"], f"{where}.util.total_util")
        if isinstance(util, dict)
        else 0.0
    )
    moved = round(share * (end - begin) * RNGD.reported_peak_bytes_per_cycle) if contexts in ((DMA,), ()) and tpe in _DMA_KINDS else 0
    reads, writes = (tuple(_tensor_name(t, tensors) for t in _list(raw, k, where)) for k in ("input_tensors", "output_tensors"))
    name = str(raw.get("index", place))
    return Operation(name, kind, contexts, begin, end, description, reads, writes, moved)


def _lifetime(raw: Any, place: int, hw: Hardware) -> Lifetime | None:
    if not isinstance(raw, dict) or "buffer_type" not in raw:
        return None
    slices = hw.slices_per_cluster * hw.clusters_per_chip
    given = raw.get("lifetime")
    life = given if isinstance(given, dict) else {}
    size = _integer(raw.get("size", 0), f"tensors[{place}].size") // slices
    address = _integer(raw.get("address", 0), f"tensors[{place}].address") // slices
    buffer = Buffer(str(raw.get("name", "")), str(raw["buffer_type"]), size, str(raw.get("shape", "")))
    begin, end = (_integer(life.get(k, 0), f"tensors[{place}].lifetime.{k}") for k in ("begin", "end"))
    return Lifetime(buffer, address, begin, end)


def from_json(document: Any, hw: Hardware = RNGD, *, path: Path | None = None) -> Schedule:
    """A schedule from the vendor's JSON document; `path` is where it was read, for messages.

    Raises:
        InputError: it holds no list of instructions, or one without a lifetime; the message names the field.
    """
    try:
        return _schedule(document, hw)
    except InputError as error:
        error.message = error.message if path is None else f"{path}: {error.message}"
        raise


def _schedule(document: Any, hw: Hardware) -> Schedule:
    if not isinstance(document, dict) or not isinstance(document.get("instructions"), list):
        raise InputError("a schedule document is an object with a list 'instructions'")
    tensors = document.get("tensors")
    if tensors is not None and not isinstance(tensors, list):
        raise InputError("'tensors' must be a list")
    names: dict[int, str] = {}
    for raw in tensors or []:
        if isinstance(raw, dict) and str(raw.get("index", "")).isdigit():
            names[int(raw["index"])] = str(raw.get("name") or f"T{raw['index']}")
    operations = tuple(_operation(raw, i, names) for i, raw in enumerate(document["instructions"]))
    lives = tuple(life for i, raw in enumerate(tensors or []) if (life := _lifetime(raw, i, hw)) is not None)
    return Schedule(operations, lives, str(document.get("title", "Schedule")))


def read_schedule(path: Path) -> Schedule:
    """A schedule from a file.

    Raises:
        InputError: it cannot be read, is no JSON or no schedule.
    """
    return from_json(read_json(path), path=path)


# writing


def _util(operation: Operation, hw: Hardware) -> dict[str, float]:
    if operation.kind not in _DMA_KINDS or not operation.duration_cycles or not operation.moved_bytes:
        return {"total_util": 0.0, "base_util": 0.0, "efficiency": 0.0}
    share = ceil(operation.moved_bytes / hw.reported_peak_bytes_per_cycle) / operation.duration_cycles
    return {"total_util": share, "base_util": share, "efficiency": 1.0}


def _tensor(life: Lifetime, index: int, hw: Hardware) -> dict[str, Any]:
    slices = hw.slices_per_cluster * hw.clusters_per_chip
    buffer = life.buffer
    page = hw.trf_half_bytes_per_slice
    total = slices
    if buffer.tier == "Spm":
        size, total = _SPM_BYTES, 1
    elif buffer.tier == "Trf":
        size = page * max(1, ceil(buffer.size_bytes / page))
    else:
        size = max(buffer.size_bytes, hw.flit_bytes if buffer.tier == "Vrf" else 1)
    pages = list(range(life.address // page, (life.address + size - 1) // page + 1)) if buffer.tier == "Sram" else []
    return {
        "name": buffer.name,
        "index": str(index),
        "buffer_type": buffer.tier,
        "lifetime": {"begin": life.begin, "end": life.end, "block_begin": 0, "block_end": 0},
        "address": life.address * slices,
        "size": size * total,
        "physical_pages": pages,
        "shape": buffer.shape,
        "fingerprint": None,
    }


def to_json(schedule: Schedule, hw: Hardware = RNGD) -> dict[str, Any]:
    """The vendor's document of a schedule; HBM tensors have ids but no entry, as in the vendor's files."""
    slices = hw.slices_per_cluster * hw.clusters_per_chip
    ids: dict[str, int] = {}

    def number(name: str) -> int:
        return ids.setdefault(name, _FIRST_TENSOR + len(ids))

    def tensor_id(name: str, operation: Operation) -> int:
        local = f"{name}@{operation.id.partition('@')[2]}"
        return number(local if local in placed else name)

    placed = {life.buffer.name for life in schedule.lifetimes}
    for life in schedule.lifetimes:
        number(life.buffer.name)
    instructions = []
    for i, operation in enumerate(schedule.operations):
        inserted = operation.kind == "Core" and (operation.id == "closing sync" or operation.id.startswith("sync of"))
        instructions.append(
            {
                "index": f"ExplicitSync({max(i - 1, 0)})" if inserted else str(i),
                "history": {} if inserted else {"resourcelir": f"O{i}"},
                "tpe": _TYPES.get(operation.kind, operation.kind),
                "contexts": [c for c in operation.contexts if c in LANES or c == NOOP],
                "lifetime": {"begin": operation.begin, "end": operation.end},
                "input_tensors": [tensor_id(n, operation) for n in operation.reads if not n.startswith(VIEW_PREFIX)],
                "output_tensors": [tensor_id(n, operation) for n in operation.writes if not n.startswith(VIEW_PREFIX)],
                "description": _description(operation, i),
                "util": _util(operation, hw),
            }
        )
    return {
        "title": schedule.title,
        "total_memory": slices * hw.dm_bytes_per_slice,
        "page_size": slices * hw.trf_half_bytes_per_slice,
        "instructions": instructions,
        "tensors": [_tensor(life, number(life.buffer.name), hw) for life in schedule.lifetimes],
    }


def _description(operation: Operation, line: int) -> str:
    """``--> path:line:column``, a blank line and the source text, as the vendor writes it; empty for inserted work."""
    if not operation.description:
        return ""
    return f"--> {operation.id}:{line + 1}:1\n\n{operation.description}"


def write_schedule(schedule: Schedule, path: Path) -> None:
    """Writes the vendor's document to a file, whole or not at all.

    Raises:
        InputError: the file cannot be written.
    """
    write_text(path, json.dumps(to_json(schedule), indent=1) + "\n")
