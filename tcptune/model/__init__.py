"""The machine: hardware facts, rule texts, numerics, engines, memories, and every timing constant with its evidence."""
