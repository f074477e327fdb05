"""The forms in which a JSON document holds schedules, and their instructions as rows that can be priced.

The vendor writes one schedule a file, an object with ``instructions`` (and ``tensors``). Collections are read too: a bare list of
instructions, lists and objects of schedules by name, one in another (``{"kernels": {"a": {"launches": [...]}}}``), and rows with ``op``,
``begin`` and ``end`` as the calibration data lists them. Schedules of one name are told apart by where they stand.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tcptune.errors import InputError
from tcptune.exec.scheduling.schedule_json import context_name, from_json
from tcptune.ir.schedule import Schedule
from tcptune.model.hardware import RNGD

_DEPTH = 5
"""Collections in one another that are looked into."""
_NAMED = 8
"""Schedules that a message names."""
_NOT_OPERATIONS = ("makespan", "launch overhead")
_TIMES = {"begin", "end"}
_KINDS = {
    **dict.fromkeys(("Switch", "Transpose", "CustomBroadcast"), "Main"),
    **dict.fromkeys(("StoTrf", "StoVrf", "StoTab"), "Sub"),
    **dict.fromkeys(("ExplicitSync", "DramReuse"), "Core"),
}
"""The vendor's type of an operation that a row calls by what it does."""
_SYNC = re.compile(r"ExplicitSync\((\d{1,9})\)")
_SLICES = RNGD.slices_per_cluster * RNGD.clusters_per_chip
_TABLE_BYTES, _BITMAP_BYTES = 4_096, 16_384
"""Sizes in the file of the tensors that the compiler's own loads write: lookup table and switch configuration."""


def schedules_of(document: Any, path: Path | None = None) -> dict[str, Schedule]:
    """Every schedule of a document, by name (empty where the document is one schedule); `path` is where it was read, for messages.

    Raises:
        InputError: it holds none, or one that cannot be read, or rows without times.
    """
    found = _raw_schedules(document)
    if not found:
        return {"": from_json(document, path=path)}  # says what is missing
    if not any(raw["instructions"] for raw in found.values()) and not _raw_schedules(document, rows=False):
        where = "" if path is None else f"{path}: "
        raise InputError(f"{where}the rows have no 'begin' and 'end'", hint="durations alone are no schedule; tcptune cost prices rows")
    return {name: from_json(raw, path=path) for name, raw in found.items()}


def one_schedule(document: Any, name: str, path: Path | None = None) -> Schedule:
    """The schedule of a document, or of several the one with a name.

    Raises:
        InputError: there are several and none has the name; or as `schedules_of`.
    """
    found = schedules_of(document, path)
    if len(found) == 1:
        return next(iter(found.values()))
    if name not in found:
        where = "the document" if path is None else str(path)
        names = ", ".join(list(found)[:_NAMED])
        raise InputError(f"{where} holds {len(found)} schedules, none of {name!r}", hint=f"give a file with one of them: {names}")
    return found[name]


def _raw_schedules(document: Any, *, rows: bool = True) -> dict[str, dict[str, Any]]:
    """Schedule objects by name, as the vendor writes them; lists of `rows` too, if asked for."""
    found = list(_walk(document, (), rows))
    last = Counter(place[-1:] for place, _ in found)
    named: dict[str, dict[str, Any]] = {}
    for place, raw in found:
        name = "/".join(place if last[place[-1:]] > 1 else place[-1:])
        copies = (name, *(f"{name} ({n})" for n in range(2, len(named) + 2)))
        named[next(copy for copy in copies if copy not in named)] = raw
    return named


def _walk(document: Any, place: tuple[str, ...], rows: bool) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Schedule objects with the names that lead to them."""
    if isinstance(document, list):
        if _are_instructions(document, rows):
            yield place, {"instructions": [_instruction(e, i) for i, e in enumerate(document) if not _left_out(e)]}
            return
        entries = [(str(_name(entry, i)), entry) for i, entry in enumerate(document)]
    elif not isinstance(document, dict):
        return
    elif isinstance(document.get("instructions"), list):
        yield place, document
        return
    else:
        entries = list(document.items())
    if len(place) < _DEPTH:
        for name, entry in entries:
            if isinstance(entry, dict | list):
                yield from _walk(entry, (*place, name), rows)


def _name(entry: Any, number: int) -> Any:
    known = [entry.get(key) for key in ("name", "kernel", "title")] if isinstance(entry, dict) else []
    return next((k for k in known if isinstance(k, str) and k and k != "Schedule"), f"schedule {number}")


def _are_instructions(entries: list[Any], rows: bool) -> bool:
    """Whether a list is one of instructions, of which some may lack their times."""
    plain = all(isinstance(entry, dict) and not isinstance(entry.get("instructions"), list) for entry in entries)
    return plain and any(_is_instruction(entry, rows) for entry in entries)


def _is_instruction(entry: Any, rows: bool) -> bool:
    return isinstance(entry, dict) and (isinstance(entry.get("lifetime"), dict) or (rows and _is_row(entry)))


def _is_row(entry: dict[str, Any]) -> bool:
    """Whether an entry is a row of the calibration data: an operation, or a summary such as the makespan."""
    return isinstance(entry.get("op"), str) and ("begin" in entry or "cycles" in entry)


def _left_out(entry: dict[str, Any]) -> bool:
    """Whether a row is no operation of a schedule: a summary, or without its times."""
    return "lifetime" not in entry and (
        entry.get("op") in _NOT_OPERATIONS or not isinstance(entry.get("op"), str) or not {*entry} >= _TIMES
    )


def rows_left_out(document: Any) -> tuple[str, ...]:
    """Rows of a document that stand in a list of operations and have no times, one line each; such rows are in no schedule."""
    if isinstance(document, dict):
        return tuple(line for entry in document.values() for line in rows_left_out(entry))
    if not isinstance(document, list):
        return ()
    if not _are_instructions(document, rows=True):
        return tuple(line for entry in document for line in rows_left_out(entry))
    untimed = [(n, e.get("op")) for n, e in enumerate(document) if _left_out(e) and e.get("op") not in _NOT_OPERATIONS]
    return tuple(f"row {n} ({op if isinstance(op, str) else 'no op'}) has no begin and end and is left out" for n, op in untimed)


def _instruction(entry: dict[str, Any], number: int) -> dict[str, Any]:
    """A row in the form of the vendor's instructions."""
    if "lifetime" in entry:
        return entry
    kind = (entry["op"].split() or [""])[0]
    share = {"total_util": entry["util"]} if isinstance(entry.get("util"), int | float) else {}
    return {
        "index": str(entry.get("id", f"{number} {entry['op']}")),
        "tpe": _KINDS.get(kind, kind),
        "contexts": entry.get("contexts"),
        "lifetime": {"begin": entry["begin"], "end": entry["end"]},
        "description": entry.get("description", ""),
        "util": share,
    }


def rows_of_schedules(document: Any, path: Path | None = None) -> dict[str, list[dict[str, Any]]]:
    """The instructions of every schedule of a document as rows: kind, contexts, duration and the sizes that the file gives.

    The file does not say how many flits or steps a pass streams, nor which slices read which bytes of HBM; such rows stay without price.
    Empty where the document holds no schedule of the vendor's form.
    """
    found = _raw_schedules(document, rows=False)
    for raw in found.values():
        from_json(raw, path=path)  # refuses what is no schedule
    return {name: _rows(raw["instructions"], _sizes(raw)) for name, raw in found.items()}


def _rows(instructions: list[dict[str, Any]], sizes: dict[str, tuple[str, int]]) -> list[dict[str, Any]]:
    """The instructions as rows; a sync after the staging of an index is told from the others, by the place that its index names."""
    rows = [_row(i, sizes) for i in instructions]
    for row in rows:
        after = _SYNC.fullmatch(row.get("description", ""))
        place = int(after.group(1)) if after else len(rows)
        if place < len(rows) and instructions[place].get("tpe") == "DmaOther":
            row["description"] += " of an index"
    return rows


def _sizes(raw: dict[str, Any]) -> dict[str, tuple[str, int]]:
    """Memory and size of every tensor, by its id."""
    tensors = raw.get("tensors") or []
    return {
        str(t.get("index")): (str(t.get("buffer_type")), t["size"])
        for t in tensors
        if isinstance(t, dict) and isinstance(t.get("size"), int) and not isinstance(t.get("size"), bool)
    }


def _row(instruction: dict[str, Any], sizes: dict[str, tuple[str, int]]) -> dict[str, Any]:
    life = instruction["lifetime"]
    index, kind = str(instruction.get("index", "")), str(instruction.get("tpe", ""))
    text = str(instruction.get("description") or "")
    contexts = [context_name(c) for c in instruction.get("contexts") or []]
    row: dict[str, Any] = {"op": kind, "contexts": contexts, "cycles": life["end"] - life["begin"]}
    reads, writes = (_tensors(instruction.get(key), sizes) for key in ("input_tensors", "output_tensors"))
    if kind == "Core":
        row["description"] = index if "(" in index else _view_work(instruction) if row["cycles"] else ""
    elif kind == "DmaLoad" and not text:
        row["description"] = {_TABLE_BYTES: "lookup table", _BITMAP_BYTES: "switch configuration"}.get(_only(writes, "Sram"), "")
    elif kind == "Sub" and not text and _only(reads, "Sram") == _TABLE_BYTES:
        row["description"] = "table store"
    elif kind == "Sub" and any(memory in ("Trf", "Vrf") for memory, _ in writes) and ".switch" not in text:
        row["per_slice_bytes"] = max(1, _only(reads, "Sram") // _SLICES) if _only(reads, "Sram") else None
    elif kind == "DmaStos":
        row["bytes"] = _only(writes, "Sram") or None
    return {name: value for name, value in row.items() if value is not None}


def _view_work(instruction: dict[str, Any]) -> str:
    """What a Core operation does for a tile view: it computes an address from nothing, or binds a view of tensors."""
    return "bind of a view" if instruction.get("input_tensors") else "address of a view"


def _tensors(ids: Any, sizes: dict[str, tuple[str, int]]) -> list[tuple[str, int]]:
    return [sizes[str(i)] for i in ids or [] if str(i) in sizes] if isinstance(ids, list | None) else []


def _only(tensors: list[tuple[str, int]], memory: str) -> int:
    """Size of the one tensor in a memory; 0 where there are none or several."""
    found = [size for kind, size in tensors if kind == memory]
    return found[0] if len(found) == 1 else 0
