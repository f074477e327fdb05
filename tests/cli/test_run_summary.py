"""What `tcptune run` prints of a run: results that the oracle has no form for are named."""

from tcptune.cli.run import print_summary
from tcptune.exec.running.interpret import RunResult
from tcptune.exec.running.verification import OracleReport, OracleRun, Verification


def test_results_without_a_form_are_named_as_not_compared(capsys):
    report = OracleReport(compared=4, undefined=0, wrong=0, worst="", max_error=0.0, not_compared=("second", "third"))
    print_summary("pair", None, "nothing prices it", RunResult({}, {}, ()), Verification((OracleRun("random", 42, report),)))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("pair: legal, agrees with its oracle")
    assert lines[1:3] == ["not compared: second", "not compared: third"]


def test_the_input_sets_that_differ_are_counted(capsys):
    good, bad = OracleReport(4, 0, 0, "", 0.0), OracleReport(4, 0, 1, "out at I = 3: got 1, expected 2", 1.0)
    runs = tuple(OracleRun(how, 42, report) for how, report in (("random", bad), ("zeros", good), ("wide", bad)))
    print_summary("pair", None, "nothing prices it", RunResult({}, {}, ()), Verification(runs))
    assert capsys.readouterr().out.splitlines()[0] == "pair: legal, differs from its oracle on 2 of 3 inputs"
