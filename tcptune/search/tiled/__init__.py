"""The search over tile loops: which axes are cut into how many tiles, in which order of loops, around which one-pass body."""
