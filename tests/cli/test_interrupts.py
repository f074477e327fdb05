"""An interrupt is answered by one line and status 130, whenever it comes."""

import signal
import subprocess
import sys
import time

import pytest

from tests.cli.in_process import tcptune

ONE_INPUT = ["search", "einsum", "ik->i", "-s", "i=512", "-s", "k=512"]
TILED = ["search", "einsum", "ik,jk->ij", "-s", "i=4096", "-s", "j=4096", "-s", "k=4096"]
# tells when the command's own code runs, which no clock can
READY = "import sys; from tcptune.cli import app; sys.argv = ['tcptune', *sys.argv[1:]]; print('ready', flush=True); app.main()"


@pytest.mark.parametrize("delay_s", [0.01, 0.1, 0.3])
def test_an_interrupt_while_modules_load_is_one_line(tmp_path, delay_s):
    words = [sys.executable, "-c", READY, *TILED, "--out", str(tmp_path / "out")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        time.sleep(delay_s)
        child.send_signal(signal.SIGINT)
        errors = child.communicate(timeout=60)[1]
    assert errors == "interrupted before a plan was found\n"
    assert child.returncode == 130


@pytest.mark.parametrize("search", [ONE_INPUT, TILED], ids=["one input", "tiled"])
def test_a_search_that_is_interrupted_before_a_plan_says_so(tmp_path, monkeypatch, search):
    from tcptune.search.frame import Search

    def interrupted(self, *arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(Search, "_steps", interrupted)
    run = tcptune(*search, "--out", tmp_path / "out")
    assert (run.status, run.out, run.err) == (130, "", "interrupted before a plan was found\n")


def test_other_commands_say_that_they_are_interrupted(monkeypatch):
    from tcptune.cli import map as command

    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "document", interrupted)
    run = tcptune("map", "A", "-s", "A=8")
    assert (run.status, run.out, run.err) == (130, "", "interrupted\n")


def test_a_search_that_is_terminated_keeps_the_best_so_far(tmp_path):
    """SIGTERM, as `timeout` and batch systems send it, once there is a plan: the result is written, the status is 128 + 15."""
    sent = (
        "import os, signal, sys\n"
        "from tcptune.search.frame import Search\n"
        "from tcptune.cli import app\n"
        "steps = Search._steps\n"
        "def terminated(self, *arguments):\n"
        "    stopped = steps(self, *arguments)\n"
        "    assert self.state.best\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    return stopped\n"
        "Search._steps = terminated\n"
        "sys.argv = ['tcptune', *sys.argv[1:]]\n"
        "app.main()\n"
    )
    small = ["search", "einsum", "i->i", "-s", "i=2048", "--dtype", "i32", "--epilogue", "add 1", "--trials", "2"]
    words = [sys.executable, "-c", sent, *small, "--out", str(tmp_path / "out")]
    run = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert "this is the best so far" in run.stderr
    assert (tmp_path / "out" / "kernel.visa").is_file() and (tmp_path / "out" / "report.html").is_file()
    assert run.returncode == 143


def test_a_request_to_terminate_while_modules_load_is_one_line(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", READY, *TILED, "--out", str(tmp_path / "out")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.1)
        child.send_signal(signal.SIGTERM)
        errors = child.communicate(timeout=60)[1]
    assert (errors, child.returncode) == ("interrupted before a plan was found\n", 143)
