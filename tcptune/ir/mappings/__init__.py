"""Mapping expressions: nodes, parser, printer, the symbolic algebra and the enumerated view."""
