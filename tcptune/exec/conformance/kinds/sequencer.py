"""Runs `sequencer` cases: entries of a buffer against a stream, what follows from them, and the read or write of an engine."""

from __future__ import annotations

from math import prod
from typing import Any

from tcptune.errors import ParseError, RuleViolation
from tcptune.exec.conformance.kinds.compare import expect_refusal
from tcptune.exec.conformance.registry import NO_RESULT, Case, Mismatch, expect_equal
from tcptune.ir.mappings.axes import Axes
from tcptune.ir.types import DType, dtype, is_dtype
from tcptune.model.engines.commit import CommitWrite, plan_write
from tcptune.model.engines.fetch import FetchRead, read_size
from tcptune.model.hardware import RNGD
from tcptune.model.sequencer.derivation import Derivation, derive_read, derive_write
from tcptune.model.sequencer.trace import trace


def run(case: Case) -> None:
    """Checks one case of kind `sequencer`.

    Raises:
        Mismatch: the verdict, the rule or a number disagrees.
    """
    expect = case["expect"]
    try:
        found, extra = _derive(case)
    except (RuleViolation, ParseError) as refusal:
        expect_refusal(refusal, expect)
        if "entries" in expect:
            _compare_refused(case, expect)
        return
    if expect.get("verdict", "accept") != "accept":
        raise Mismatch(f"accepted as {found.config}, expected refusal by {expect['rule']}")
    facts: dict[str, Any] = {**found.config.to_json(), **extra}
    facts["accesses_per_packet"] = found.packet.size // found.config.access_size
    facts["live_packet_prefix"] = found.packet.live_size
    facts["time_entries"] = [[e.size, e.stride] for e in found.config.entries][: _time_entries(found)]
    for key, want in expect.items():
        if key == "terms":
            _compare_terms(found, want)
        elif key.startswith(("read_", "write_")) and key.endswith(("_main", "_sub")):
            _compare_access(found, case, key, want)
        elif key not in NO_RESULT:
            if key not in facts:
                raise Mismatch(f"no derived number {key!r}")
            expect_equal(key, facts[key], want)


def _compare_refused(case: Case, expect: dict[str, Any]) -> None:
    """Entries of a configuration that breaks a limit: as a list, or their number."""
    axes = Axes(case["axes"])
    derive = derive_write if case["direction"] == "write" else derive_read
    config = derive(*(axes.mapping(case[k]) for k in ("buf", "time", "packet"))).config
    for name, entries in (("entries", config.entries), ("merged_entries", config.merged)):
        if name in expect:
            counted = isinstance(expect[name], int)
            expect_equal(name, len(entries) if counted else [[e.size, e.stride] for e in entries], expect[name])


def _derive(case: Case) -> tuple[Derivation, dict[str, Any]]:
    """The derivation of a case and the numbers of the engine it belongs to.

    Raises:
        RuleViolation, ParseError: it is refused.
    """
    axes, element = Axes(case["axes"]), dtype(case["dtype"])
    buffer, time, packet = (axes.mapping(case[k]) for k in ("buf", "time", "packet"))
    context = case.get("context", "main")
    if case["direction"] == "write":
        is_commit = case.get("engine") == "commit" or "context" in case
        write = plan_write(buffer, time, packet, element, context, RNGD) if is_commit else None
        found = derive_write(buffer, time, packet)
        found.config.check_limits()
        return found, write.derived() if write else {}
    found = derive_read(buffer, time, packet)
    found.config.check_limits()
    if case.get("engine") == "dma":
        return found, {}
    plain = _read(found, element, context)
    adapted = _adapted_type(case)
    read = plain if adapted is None else _read(found, element, context, adapted)
    return found, {**read.derived(), "read_size_without_cast": plain.read_size}


def _read(found: Derivation, element: DType, context: str, adapted: DType | None = None) -> FetchRead:
    return FetchRead(found.buffer, found.config, element, found.time.size, read_size(found.config, element, context, RNGD, adapted))


def _adapted_type(case: Case) -> DType | None:
    """The type after the Fetch Adapter, where a case names one beside its ``dtype``: as it is, or in the adapter's operation (FA-010)."""
    for name, value in case.items():
        operations = value if isinstance(value, list) else [value]
        last = operations[-1] if operations else None
        named = last.get("dtype") if isinstance(last, dict) else last
        if name not in ("dtype", "expect") and isinstance(named, str) and is_dtype(named):
            return dtype(named)
    return None


def _time_entries(found: Derivation) -> int:
    """How many of the entries belong to Time."""
    for count in range(len(found.config.entries) + 1):
        if prod(e.size for e in found.config.entries[:count]) == found.time.size:
            return count
    return 0


def _compare_terms(found: Derivation, want: list[dict[str, Any]]) -> None:
    expect_equal("terms", [str(t.term) for t in found.terms], [w["term"] for w in want])
    steps = trace(found)
    for step, wanted in zip(steps, want, strict=True):
        expect_equal(f"entries of {step.term}", [[e.size, e.stride] for e in step.entries], wanted["entries"])
        if "buf_after" in wanted:
            expect_equal(f"buffer after {step.term}", str(step.buffer_after), wanted["buf_after"])


def _compare_access(found: Derivation, case: Case, key: str, want: dict[str, Any] | None) -> None:
    context = key.rpartition("_")[2]
    try:
        access: FetchRead | CommitWrite
        if key.startswith("read_"):
            access = _read(found, dtype(case["dtype"]), context)
        else:
            access = plan_write(found.buffer, found.time, found.packet, dtype(case["dtype"]), context, RNGD)
    except RuleViolation as refusal:
        if want is not None:
            raise Mismatch(f"{key}: refused: {refusal.render()}") from None
        return
    if want is None:
        raise Mismatch(f"{key}: accepted, expected no legal access")
    got = access.derived()
    for name, value in want.items():
        expect_equal(f"{key} {name}", got[name], value)
