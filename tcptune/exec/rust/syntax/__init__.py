"""Rust text of the kernel API: syntax tree, items, types, literals, operands and signatures."""
