"""The engines of the Tensor Unit and the movers, one module each: `HANDLES`, `check` (legality and derivation), `apply` (values)."""
