"""The cell-by-cell reference path: what every operation of a chain does to one element, in plain Python.

Slow and simple on purpose. It shares with the model only the checked steps (types and configurations) and the mapping's `cell`; every
rule of movement and arithmetic is written down again from the manual.
"""
