"""The memories behind a transfer: its proof, request streams, HBM and DM, and its price."""
