"""The contraction: outer product, reducers, its loops and its values."""
