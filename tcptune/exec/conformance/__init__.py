"""Runs the conformance corpus against the model: verdicts, derived numbers, cycles and values of every case."""

from tcptune.exec.conformance.registry import Mismatch, cost, expect_equal, table
from tcptune.exec.conformance.runner import CaseResult, run_case, run_corpus

__all__ = ["CaseResult", "Mismatch", "cost", "expect_equal", "run_case", "run_corpus", "table"]
