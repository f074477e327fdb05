"""Kernels as programs: built, checked, lowered, scheduled, interpreted, compared with their oracles; nothing here searches."""
