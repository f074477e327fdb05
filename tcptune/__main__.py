"""`python -m tcptune` is the `tcptune` command."""

from tcptune.cli.app import main

main()
