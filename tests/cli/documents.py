"""The documents of ``--json`` as their readers rely on them: fields, types and what must hold between them. Further fields are allowed."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Cycles = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]
Context = Literal["MainContext", "SubContext", "VectorEngine", "DmaEngine", "PcieDmaEngine", "PeCore"]
Level = Literal["Chip", "Cluster", "Slice", "Lane", "Time", "Packet", "Tile"]
Cell = dict[str, int] | Literal["padding:top", "padding:zero", "padding:bottom", "oob"]


class Document(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow")


class Oracle(Document):
    passed: bool
    cases: Count
    max_abs_error: Share
    max_rel_error: Share
    max_bound_share: Share
    undefined_reads: Count


class FailingCell(Document):
    result: str
    at: dict[str, int]
    got: Share | str
    expected: Share | str


class Failure(Document):
    inputs: str
    seed: Count
    compared: Count
    wrong: Count
    undefined: Count
    cell: FailingCell | None
    message: str


class RunOracle(Oracle):
    failures: list[Failure]

    @model_validator(mode="after")
    def what_passes_has_no_failures(self) -> RunOracle:
        assert self.passed is (self.cases > 0 and not self.failures)
        return self


class SearchOracle(Oracle):
    what: str


class Workload(Document):
    einsum: str
    sizes: dict[str, int]
    dtype: str
    out_dtype: str
    layout: Literal["padded", "dense"]


class Default(Document):
    makespan: Cycles | None
    what: str


class Candidates(Document):
    enumerated: Count
    pruned: Count
    duplicates: Count
    rejected: Count
    scheduled: Count

    @model_validator(mode="after")
    def every_candidate_has_one_fate(self) -> Candidates:
        assert self.enumerated == self.pruned + self.duplicates + self.rejected + self.scheduled
        return self


class Top(Document):
    makespan: Cycles
    placement: dict[str, dict[str, int]]
    knobs: dict[str, Any]


class Best(Document):
    placement: dict[str, dict[str, int]]
    knobs: dict[str, Any]
    kernel: str | None = None
    busy: dict[Context, Cycles]
    top: list[Top]


class SearchResult(Document):
    schema_: Literal["tcptune/search-result/1"] = Field(alias="schema")
    workload: Workload
    hardware: str
    profile: Literal["vendor", "manual"]
    seed: Count
    trials: Count
    makespan: Cycles
    lower_bound: Cycles
    gap: Share
    proven: bool
    default: Default
    oracle: SearchOracle
    candidates: Candidates
    rejections: dict[str, Count]
    best: Best
    wall_time_s: Share
    files: dict[str, str]

    @model_validator(mode="after")
    def certificate_holds(self) -> SearchResult:
        assert self.lower_bound <= self.makespan
        assert abs(self.gap - (self.makespan / self.lower_bound - 1)) < 1e-12
        assert not self.proven or self.makespan == self.lower_bound or self.gap >= 0
        assert sum(self.rejections.values()) >= self.candidates.rejected
        return self


class Output(Document):
    shape: list[int]
    dtype: str
    checksum: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    undefined_cells: Count


class Run(Document):
    schema_: Literal["tcptune/run/1"] = Field(alias="schema")
    kernel: str
    oracle: RunOracle | None
    outputs: dict[str, Output]
    makespan: Cycles | None
    busy: dict[Context, Cycles] | None


class Digit(Document):
    axis: str | None
    extent: Annotated[int, Field(ge=1)]
    stride: Annotated[int, Field(ge=1)]


class Map(Document):
    schema_: Literal["tcptune/map/1"] = Field(alias="schema")
    expr: str
    canonical: str
    size: Annotated[int, Field(ge=1)]
    cells: list[Annotated[list[int | Cell], Field(min_length=2, max_length=2)]]
    normal_form: list[Digit]
    equivalent: bool | None = None


class Explain(Document):
    schema_: Literal["tcptune/explain/1"] = Field(alias="schema")
    rule: Annotated[str, Field(pattern=r"^[A-Z]+-\d{3}$")]
    title: str
    text: str
    breaks: str
    fix: str
    manual: str


class Priced(Document):
    row: str
    predicted: Cycles
    published: float | int | None
    error: Share | None


class SkippedRow(Document):
    model_config = ConfigDict(strict=True, extra="forbid")
    row: str
    skipped: str


class Summary(Document):
    count: Count
    median_abs_error: Share | None
    p90_abs_error: Share | None


class Cost(Document):
    schema_: Literal["tcptune/cost/1"] = Field(alias="schema")
    rows: list[Priced | SkippedRow]
    summary: Summary


class Chapter(Document):
    total: Count
    passed: Count
    failed: Count
    known: Count

    @model_validator(mode="after")
    def every_case_counts_once(self) -> Chapter:
        assert self.total == self.passed + self.failed + self.known
        return self


class FailedCase(Document):
    id: str
    why: Annotated[str, Field(min_length=1)]


class Conformance(Document):
    schema_: Literal["tcptune/conformance/1"] = Field(alias="schema")
    chapters: dict[str, Chapter]
    failed: list[FailedCase]

    @model_validator(mode="after")
    def failures_are_listed(self) -> Conformance:
        assert len(self.failed) == sum(chapter.failed for chapter in self.chapters.values())
        return self


class ValidatedKernel(Document):
    published: Cycles
    predicted: Cycles
    error: Share
    predicted_published_order: Cycles | None


class Operations(Summary):
    worst: list[dict[str, Any]]


class ValidationDocument(Document):
    schema_: Literal["tcptune/validation/1"] = Field(alias="schema")
    kernels: dict[str, ValidatedKernel]
    operations: Operations

    @model_validator(mode="after")
    def errors_are_relative_to_the_published(self) -> ValidationDocument:
        for kernel in self.kernels.values():
            assert abs(kernel.error - (kernel.predicted / kernel.published - 1)) < 1e-12
        return self


class SweepRun(Document):
    name: str
    result: SearchResult


class Sweep(Document):
    schema_: Literal["tcptune/sweep/1"] = Field(alias="schema")
    config: dict[str, Any]
    runs: list[SweepRun]

    @model_validator(mode="after")
    def results_have_no_kernel(self) -> Sweep:
        assert all(run.result.best.kernel is None for run in self.runs)
        return self


class ScheduledOperation(Document):
    id: str
    kind: str
    contexts: list[str]
    begin: Cycles
    end: Cycles


class Gap(Document):
    resource: Context
    begin: Cycles
    end: Cycles
    reason: Annotated[str, Field(min_length=1)]


class Lifetime(Document):
    name: str
    tier: str
    address: Count
    size: Count
    begin: Cycles
    end: Cycles


class ScheduleAnalysis(Document):
    schema_: Literal["tcptune/schedule-analysis/1"] = Field(alias="schema")
    makespan: Cycles
    operations: list[ScheduledOperation]
    busy: dict[Context, Cycles]
    exclusive: dict[Context, Cycles]
    gaps: list[Gap]
    critical: list[str]
    memory: list[Lifetime]

    @model_validator(mode="after")
    def parts_agree(self) -> ScheduleAnalysis:
        assert self.makespan == max((o.end for o in self.operations), default=0)
        assert set(self.critical) <= {o.id for o in self.operations}
        for context, busy in self.busy.items():
            assert busy == sum(o.end - o.begin for o in self.operations if context in o.contexts)
            assert self.exclusive[context] <= busy
        return self
