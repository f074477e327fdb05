"""Sequencers: configurations, their derivation with its proof, and the trace of a derivation."""
