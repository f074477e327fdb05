"""Kernels on numpy arrays: contents of inputs, the interpreter, the oracles."""
