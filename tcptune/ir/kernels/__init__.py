"""Kernels as plain data: operations of a chain, steps, and the text form. Importing any of them declares every operation."""

from tcptune.ir.kernels import ops, vector_ops

__all__ = ["ops", "vector_ops"]
