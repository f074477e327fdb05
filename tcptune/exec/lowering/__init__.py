"""From candidates to kernels: loads, staging, passes, epilogues, the way of the result to HBM."""
