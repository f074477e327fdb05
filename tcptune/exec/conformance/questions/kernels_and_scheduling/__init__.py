"""Questions of the chapter on kernels and scheduling."""

from tcptune.exec.conformance.questions.kernels_and_scheduling import devices, patterns, schedules, tools, workloads

__all__ = ["devices", "patterns", "schedules", "tools", "workloads"]
