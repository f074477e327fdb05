"""Every timing constant with its evidence, and the formulas of passes and whole kernels."""
