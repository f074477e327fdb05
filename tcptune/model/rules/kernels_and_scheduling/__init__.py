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

OWNERS: dict[str, tuple[str, ...]] = {
    "HW-001": ("TRF-003", "OUTER-008"),
    "HW-003": ("DM-003", "MAP-033"),
    "HW-004": ("TRF-006", "MAP-033"),
    "HW-005": ("VRF-004", "VE-034"),
    "HW-006": ("MAP-031", "TU-007"),
    "HW-007": ("MAP-031", "TU-007"),
    "HW-008": ("MAP-031", "TU-007"),
    "HW-009": ("DM-004",),
    "HW-012": ("HBM-005", "HBM-006", "HBM-007"),
    "HW-017": ("DM-010", "DM-011"),
    "HW-018": ("DM-008",),
    "KERNEL-004": ("VE-005",),
    "KERNEL-005": ("MAP-010", "MAP-011"),
    "KERNEL-007": ("TU-011", "VE-002", "VE-013"),
    "KERNEL-009": ("CE-002", "TU-009"),
    "KERNEL-013": ("SEM-008", "DMA-002"),
    "KERNEL-014": ("OUTER-023", "CE-014"),
    "KERNEL-020": ("FA-007", "FETCH-003", "FETCH-004", "FETCH-007"),
    "KERNEL-021": ("MOVE-001",),
    "KERNEL-022": ("MAP-023", "MAP-024", "MAP-025", "MAP-026"),
    "KERNEL-040": ("COLLECT-002", "CAST-004"),
    "KERNEL-041": ("CADAPT-003", "CADAPT-004"),
    "KERNEL-042": ("VE-001",),
    "KERNEL-043": ("VE-031", "VRF-007"),
    "KERNEL-044": ("OUTER-004",),
    "KERNEL-045": ("CAST-003",),
    "KERNEL-046": ("TIMERED-002",),
    "KERNEL-047": ("SEQ-018",),
    "KERNEL-048": ("SEQ-003", "SEQ-012", "SEQ-013"),
    "SCHED-005": ("DM-010", "DM-011"),
    "SCHED-018": ("MOVE-001",),
}
"""Rules of this page that restate a rule of another page, with the rules that own the fact: either id is the same diagnosis."""
