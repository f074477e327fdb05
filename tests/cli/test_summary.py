"""The summary that a search prints at its end."""

from dataclasses import replace
from pathlib import Path

from tcptune.cli.search import print_summary
from tcptune.ir.workload import einsum
from tcptune.search.entry import tune


def test_a_missing_default_is_said_not_left_out(capsys):
    result = tune(einsum("i->i", i=64, epilogue="relu"), trials=1)
    print_summary(replace(result, default=None), Path("out"))
    assert "not legal here (manual template" in " ".join(capsys.readouterr().out.split())
