"""Kernels as programs: the fluent builder, the checker behind it and what it hands on."""
