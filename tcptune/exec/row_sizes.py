"""Sizes of a row of a published schedule: those it gives, and those that follow from them.

Rows of different sources leave out different sizes: bytes a slice where all bytes and the live slices are given, the length of a piece
where the pieces are counted, the source layout where it says how often a byte is replicated. What follows from other sizes is filled in;
nothing is assumed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping as Dict
from typing import Any

from tcptune.errors import TcptuneError
from tcptune.model.hardware import RNGD

Row = Dict[str, Any]

LARGEST = 2**40
"""Largest size a row may name."""

_WHOLE_STEP, _FLOAT_STEP = RNGD.vector_ways
"""Elements of a step of the Vector Engine; the second where a float stage is used (VT-005)."""


class Skipped(TcptuneError):
    """A row that cannot be priced; the message says why."""


def size(row: Row, name: str, default: int | None = None) -> int:
    """A size of a row, a whole number above zero.

    Raises:
        Skipped: it is missing and has no default, or is no size.
    """
    value = row.get(name, default)
    if value is None:
        value = default
    if value is None:
        raise Skipped(f"the row lacks {name}")
    whole = isinstance(value, int | float) and not isinstance(value, bool) and value == value // 1
    if not whole or not 0 < value <= LARGEST:
        raise Skipped(f"{name} is {value!r}, not a size")
    return int(value)


def optional_size(row: Row, name: str) -> int | None:
    """A size that a row may leave out."""
    return size(row, name) if row.get(name) is not None else None


def says(row: Row, *words: str) -> bool:
    """Whether the operation or the description of a row holds one of the words, which are in lower case."""
    text = f"{row.get('op', '')} {row.get('description', '')}".lower()
    return any(word in text for word in words)


def transfer_sizes(row: Row) -> Row:
    """The row of a transfer with ``slices``, ``per_slice_bytes``, ``run_bytes`` and ``source`` where they follow from what it gives.

    Known are ``bytes`` of all slices, ``segments`` or ``pieces`` (their number over all slices), ``replication`` (slices that read the same
    byte) and ``unique_bytes``.
    """
    found = dict(row)
    total, clusters = optional_size(row, "bytes"), size(row, "clusters", 1)
    if total is not None and row.get("per_slice_bytes") is None and row.get("slices") is not None:
        _fill(found, "per_slice_bytes", total, size(row, "slices") * clusters)
    if total is not None and row.get("slices") is None and row.get("per_slice_bytes") is not None:
        _fill(found, "slices", total, size(row, "per_slice_bytes") * clusters)
    pieces = optional_size(row, "segments") or optional_size(row, "pieces")
    if row.get("run_bytes") is None and pieces is not None and found.get("per_slice_bytes") and found.get("slices"):
        _fill(found, "run_bytes", size(found, "per_slice_bytes") * size(found, "slices") * clusters, pieces)
    if row.get("source") is None and found.get("per_slice_bytes") and found.get("slices"):
        found["source"] = _source(found, clusters)
    return found


def _fill(row: dict[str, Any], name: str, whole: int, parts: int) -> None:
    """Sets a size to a part of a whole, if it divides it."""
    if whole % parts == 0:
        row[name] = whole // parts


def _source(row: Row, clusters: int) -> str | None:
    """The source layout that the replication of a row decides; None where several layouts have it."""
    per_slice, places = size(row, "per_slice_bytes"), size(row, "slices") * clusters
    unique, copies = optional_size(row, "unique_bytes"), optional_size(row, "replication")
    if copies is None and unique is not None and per_slice * places % unique == 0:
        copies = per_slice * places // unique
    return "distinct" if copies == 1 else "replicated" if copies == places else None


def streamed_flits(row: Row) -> int | None:
    """Flits that a pass fetches a slice: given, or as many as its bytes a slice fill."""
    flits, fetched = optional_size(row, "flits"), optional_size(row, "per_slice_bytes")
    return flits if flits is not None or fetched is None else -(-fetched // RNGD.flit_bytes)


def staged_bytes(row: Row) -> int | None:
    """Bytes that a pass on Sub fetches a slice: given, or those of its flits."""
    fetched, flits = optional_size(row, "per_slice_bytes"), optional_size(row, "flits")
    return fetched if fetched is not None or flits is None or row.get("ring") is not None else flits * RNGD.flit_bytes


def vector_steps(row: Row) -> int | None:
    """Steps of the Vector Engine: given, or as many as the ``elements`` a slice take in the element type of the row (VT-005)."""
    steps, elements = optional_size(row, "time_steps"), optional_size(row, "elements")
    if steps is not None or elements is None or not isinstance(row.get("dtype"), str) or says(row, "lookup"):
        return steps
    return -(-elements // (_WHOLE_STEP if row["dtype"].strip().startswith("i") else _FLOAT_STEP))


def result_dtype(row: Row) -> str | None:
    """Element type that an operation gives: of ``f8->bf16`` the second."""
    named = row.get("dtype")
    return named.split("->")[-1].strip() if isinstance(named, str) else None


def fetched_elements(row: Row) -> int | None:
    """Elements that a pass fetches a slice: given, or as many of the first element type of ``f4->f8`` as its bytes hold."""
    elements, streamed = optional_size(row, "elements"), staged_bytes(row)
    named = row.get("dtype")
    width = re.match(r"\s*[a-z]+(\d{1,2})", named) if isinstance(named, str) and "->" in named else None
    if elements is not None or streamed is None or width is None or not int(width.group(1)):
        return elements
    return streamed * 8 // int(width.group(1))


def cast_packets(row: Row) -> int | None:
    """Packets of eight elements that a pass on Sub casts and commits: given, or those of its elements (VT-008)."""
    packets = optional_size(row, "packets")
    if packets is None and says(row, "cast") and says(row, "commit"):
        elements = fetched_elements(row)
        return None if elements is None else -(-elements // _WHOLE_STEP)
    return packets


_GROUPS = (
    r"(\d{1,4})[- ]slice inter-slice reduc",
    r"inter-slice reduc\w* (?:over|of|among|across) (?:all |the |groups? of )*(\d{1,4})",
    r"reduc\w* groups? of (\d{1,4})",
)


def reduced_slices(row: Row) -> int | None:
    """Slices of an inter-slice reduce, given or in the description; None where the pass has none.

    Raises:
        Skipped: it has one of unknown size.
    """
    given = optional_size(row, "reduce_slices")
    if given is not None:
        return given
    text = f"{row.get('op', '')} {row.get('description', '')}".lower()
    found = next((match for pattern in _GROUPS if (match := re.search(pattern, text))), None)
    if found is None and "inter-slice reduc" in text:
        raise Skipped("the row lacks reduce_slices")
    return int(found.group(1)) if found else None


def written_rows(row: Row) -> int | None:
    """Rows that a transpose writes, given or in the description."""
    found = re.search(r"into (\d{1,6}) rows", str(row.get("description", "")))
    return int(found.group(1)) if found and row.get("rows") is None and says(row, "transpose") else optional_size(row, "rows")
