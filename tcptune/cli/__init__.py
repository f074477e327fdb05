"""The command line: one module a command, each a thin reader of options around a library call."""
