"""Rules of the Contraction, Cast and Transpose Engines and of the Commit Adapter, in the order of their page."""

from tcptune.model.rules.contraction_cast_transpose_commit import cast_commit, contraction, outer, reducers, transpose

RULES = (*contraction.RULES, *outer.RULES, *reducers.RULES, *cast_commit.CAST_RULES, *transpose.RULES, *cast_commit.COMMIT_RULES)
