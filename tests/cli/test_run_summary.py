"""What `tcptune run` prints of a run: results that the oracle has no form for are named."""

from tcptune.cli.run import print_summary
from tcptune.exec.running.interpret import RunResult
from tcptune.exec.running.oracle import OracleReport, OracleRun, Verification


def test_results_without_a_form_are_named_as_not_compared(capsys):
    report = OracleReport(compared=4, undefined=0, wrong=0, worst="", max_error=0.0, not_compared=("second", "third"))
    print_summary("pair", None, "nothing prices it", RunResult({}, {}, ()), Verification((OracleRun("random", 42, report),)))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("pair: legal, agrees with its oracle")
    assert lines[1:3] == ["not compared: second", "not compared: third"]
