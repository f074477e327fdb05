"""Rules of mapping expressions, tensor semantics, moves, the Sequencer, the Fetch and the Commit Engine, in the order of their page."""

from tcptune.model.rules.mapping_and_streams import access, expressions, placement, sequencer

RULES = (*expressions.RULES, *placement.RULES, *sequencer.RULES, *access.RULES)
