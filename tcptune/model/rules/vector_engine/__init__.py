"""Rules of the Vector Engine: chain, ALUs, operands, pairs and tags, intra-slice reduce, valid counts, inter-slice reducer."""

from tcptune.model.rules.vector_engine import alus, chain, operands, pairs_tags, reducers, valid_count

RULES = (
    *chain.RULES,
    *operands.OPERAND_RULES,
    *chain.COST_RULES,
    *alus.RULES,
    *operands.STASH_RULES,
    *pairs_tags.RULES,
    *reducers.INTRA_RULES,
    *valid_count.RULES,
    *reducers.INTER_RULES,
)
