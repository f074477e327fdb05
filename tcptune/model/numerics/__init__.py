"""Bits and arithmetic: element types, casts, accumulation, and the functions of the Vector Engine."""
