"""Library kernels as builder functions, each with an oracle and a tolerance."""
