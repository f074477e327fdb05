"""Plain data of every layer above: axes and mappings, types, operations, kernels, workloads, placements, schedules; no hardware number."""
