"""One module a kind of case with a function ``run(case)``, and what they compare."""
