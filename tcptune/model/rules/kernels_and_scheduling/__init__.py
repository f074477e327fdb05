"""Rules of kernels, oracles, scheduling, tuning, the transformer case and the vendor's tools, in the order of their page."""

from tcptune.model.rules.kernels_and_scheduling import hardware, kernels, oracles, scheduling, tools, transformer, tuning

RULES = (
    *hardware.RULES,
    *kernels.RULES,
    *oracles.RULES,
    *scheduling.RULES,
    *tuning.RULES,
    *transformer.RULES,
    *tools.RULES,
)
