"""The search for the fastest kernel: space, knobs, suggestions, workers, journal, suites, and the certificate."""
