"""The Vector Engine: state and stages of a chain, ALUs, operands, pairs and reductions."""
