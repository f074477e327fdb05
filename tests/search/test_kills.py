"""Kills at fixed moments: no finished step is lost, no journal is corrupt, and the resumed result is that of an uninterrupted run."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tcptune.errors import WorkError
from tcptune.ir.workload import einsum
from tcptune.search.entry import tune
from tcptune.search.parallel import Workers
from tcptune.search.space import Space
from tcptune.search.store import Study, _valid_lines, program_version

WORKLOAD = {"text": "ik,jk->ij", "sizes": {"i": 24, "j": 40, "k": 32}}
TRIALS = 40
CHILD = """
import sys
from pathlib import Path
from tcptune.ir.workload import einsum
from tcptune.search.entry import tune
print("ready", flush=True)
tune(einsum({text!r}, sizes={sizes!r}), trials={trials}, seed=0, study=Path(sys.argv[1]))
print("done", flush=True)
"""
DELAYS_MS = [0, 900, 30, 450, 210, 1, 700, 130, 60, 1200, 15, 350, 520, 80, 260, 5, 980, 170, 640, 45, 300, 110, 410, 25, 820]


def killed_after(path, delay_ms):
    """Starts a search on the study, kills it `delay_ms` after it is ready; returns whether it had finished."""
    code = CHILD.format(trials=TRIALS, **WORKLOAD)
    with subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline().strip() == "ready"
        time.sleep(delay_ms / 1000)
        child.kill()
        return "done" in child.stdout.read()


def check_kills(tmp_path, delays):
    path = tmp_path / "study.journal"
    whole_before = 0
    for delay in delays:
        killed_after(path, delay)
        if path.exists():
            lines, _ = _valid_lines(path.read_bytes())
            assert len(lines) >= whole_before, "a finished step was lost"
            whole_before = len(lines)
    workload = einsum(WORKLOAD["text"], sizes=WORKLOAD["sizes"])
    resumed = tune(workload, trials=TRIALS, seed=0, study=path)
    fresh = tune(workload, trials=TRIALS, seed=0)
    assert json.dumps({**resumed.to_json(), "wall_time_s": 0}) == json.dumps({**fresh.to_json(), "wall_time_s": 0})
    with Study(path, {"workload": workload.to_json(), "seed": 0, "profile": "vendor", "program": program_version()}) as study:
        assert sorted(study.records) == list(range(len(study.records)))


def test_four_kills_lose_nothing(tmp_path):
    check_kills(tmp_path, [300, 20, 900, 150])


def test_a_search_resumed_after_any_step_ends_as_the_uninterrupted_one(tmp_path):
    workload = einsum(WORKLOAD["text"], sizes=WORKLOAD["sizes"])
    path = tmp_path / "study.journal"
    whole = {**tune(workload, trials=TRIALS, seed=0, study=path).to_json(), "wall_time_s": 0}
    lines = path.read_bytes().splitlines(keepends=True)
    assert sum(b'"kind":"suggest"' in line for line in lines) > 3
    for kept in range(2, len(lines), 4):
        path.write_bytes(b"".join(lines[:kept]))
        resumed = {**tune(workload, trials=TRIALS, seed=0, study=path).to_json(), "wall_time_s": 0}
        assert resumed == whole, f"resumed after {kept} lines"
        assert path.read_bytes() == b"".join(lines)


@pytest.mark.slow
def test_fifty_kills_lose_nothing(tmp_path):
    check_kills(tmp_path, DELAYS_MS + DELAYS_MS[::-1])


INTERRUPTED = """
import sys
from tcptune.cli.app import main
sys.argv = ["tcptune", "search", "einsum", "ik,jk->ij", "-s", "i=512", "-s", "j=512", "-s", "k=64", "--out", sys.argv[1], *sys.argv[2:]]
print("ready", file=sys.stderr, flush=True)
main()
"""


@pytest.mark.parametrize(("delay_s", "options"), [(0.2, []), (1.5, []), (3, []), (2, ["--jobs", "2"])], ids=str)
def test_an_interrupt_writes_the_best_so_far_or_nothing(tmp_path, delay_s, options):
    code = [sys.executable, "-c", INTERRUPTED, str(tmp_path / "out"), "--trials", "100000", *options]
    with subprocess.Popen(code, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True) as child:
        assert child.stderr is not None
        assert child.stderr.readline() == "ready\n"
        time.sleep(delay_s)
        os.killpg(child.pid, signal.SIGINT)  # as a terminal does: to the workers, too
        errors = child.communicate(timeout=60)[1]
    assert "Traceback" not in errors, errors
    assert child.returncode in (0, 130)
    written = (tmp_path / "out" / "report.html").exists()
    assert written if child.returncode == 0 else not written


WORKING = """
import sys
from tcptune.ir.workload import einsum
from tcptune.search.parallel import Workers
from tcptune.search.space import Space

if __name__ == "__main__":
    workers = Workers(Space(einsum("i,i->", i=8)), 2)
    workers.wait_started()
    print(*workers._pool._processes, flush=True)
    workers.call("slice_orders", [(0,)] * 1_000_000)
"""


def is_running(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_with_the_process_that_started_them_however_it_ends(tmp_path, number):
    script = tmp_path / "working.py"
    script.write_text(WORKING)
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        workers = [int(process) for process in parent.stdout.readline().split()]
        assert len(workers) == 2
        parent.send_signal(number)
    patience = time.monotonic() + 10
    while any(map(is_running, workers)) and time.monotonic() < patience:
        time.sleep(0.05)
    left = [process for process in workers if is_running(process)]
    for process in left:
        os.kill(process, signal.SIGKILL)
    assert not left


def test_a_worker_that_dies_is_a_clear_error():
    workload = einsum(WORKLOAD["text"], sizes=WORKLOAD["sizes"])
    with Workers(Space(workload), 2) as workers, pytest.raises(WorkError, match="worker process died"):
        workers._results(os._exit, [(1,)])
