"""The form of a step in a journal: every field of what a file claims is checked before a search believes it."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from tcptune.ir.candidate import FILLER

NUMBER_LIMIT = 1 << 63
"""Above every cycle count and every entry."""

Count = Annotated[int, Field(ge=0, lt=NUMBER_LIMIT)]
Extent = Annotated[int, Field(ge=1, lt=NUMBER_LIMIT)]
Level = Literal["Cluster", "Slice", "Lane", "Time", "Packet"]
Spread = Literal["outer", "inner", "lane"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Knobs(_Strict):
    stationary: Literal[0, 1]
    slice_order: list[str]
    rings: tuple[Extent, Extent]
    spread: tuple[Spread, Spread]
    copies: tuple[Extent, Extent]
    relayout: tuple[str, str]
    refetch: bool
    k_inner: bool
    lane_mode: Literal["Interleaved", "Sequential"]
    transpose: bool
    cast: Literal["engine", "commit"]
    staging: Literal["sub", "main"]
    gather: Literal["none", "exchange", "collect"]
    gather_ring: Extent
    slice_sum: Literal["reducer", "gather", "exchange", "transfer"]
    cluster_sum: Literal["one", "scatter"]


class _Loop(_Strict):
    axis: str
    count: Extent
    unroll: bool


class _Tiles(_Strict):
    loops: list[_Loop]
    lengths: dict[str, Extent]


class _Candidate(_Strict):
    placement: dict[str, dict[Level, Extent]]
    knobs: _Knobs
    tiles: _Tiles | None = None

    @model_validator(mode="after")
    def _names_axes(self) -> Self:
        named = {*self.knobs.slice_order} - {FILLER} | {*self.knobs.relayout} - {""}
        if self.tiles is not None:
            named |= {*self.tiles.lengths, *(loop.axis for loop in self.tiles.loops)}
        if strange := sorted(named - self.placement.keys()):
            raise ValueError(f"axis {strange[0]!r:.40} has no placement")
        return self


class _Outcome(_Strict):
    candidate: _Candidate
    fate: Literal["duplicate", "rejected", "scheduled"]
    kernel_hash: str
    makespan: Count
    price: Count
    rule: str

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.fate == "rejected" and (not self.rule or self.makespan):
            raise ValueError("a rejected candidate has the rule that refused it and no makespan")
        if self.fate != "rejected" and (self.rule or not self.kernel_hash or not self.makespan):
            raise ValueError(f"a {self.fate} candidate has a kernel and a makespan of at least 1 cycle, and no rule")
        return self


class Step(_Strict):
    """A step as `search.store.StepRecord` writes it."""

    number: Count
    kind: Literal["template", "explore", "fill", "suggest", "enumerate", "tile"]
    entries: list[Count]
    outcomes: list[list[_Outcome]]
    params: dict[str, Any]

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        if (self.kind == "template") != (self.number == 0):
            raise ValueError("step 0, and no other, is the template")
        one = self.kind in ("template", "suggest")
        if one and (self.entries or len(self.outcomes) != 1 or len(self.outcomes[0]) > 1):
            raise ValueError(f"a step of kind {self.kind} has no entries, and one candidate")
        if self.kind == "suggest" and not self.outcomes[0]:
            raise ValueError("a suggestion has its outcome")
        if not one and (not self.entries or len(self.outcomes) != len(self.entries)):
            raise ValueError(f"{len(self.entries)} entries need as many lists of outcomes, got {len(self.outcomes)}")
        if bool(self.params) != (self.kind == "suggest"):
            raise ValueError("a suggestion, and no other step, has parameters")
        return self

    def axes(self) -> set[tuple[str, ...]]:
        """The axes, sorted, that candidates place."""
        return {tuple(sorted(outcome.candidate.placement)) for outcomes in self.outcomes for outcome in outcomes}
