"""Questions of the chapter on the Vector Engine."""

from tcptune.exec.conformance.questions.vector_engine import stages, valid_counts, values

__all__ = ["stages", "valid_counts", "values"]
