"""The commands, sessions and numbers of the tutorial and the README are real: they are run, and the output is compared."""

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.in_process import tcptune
from tests.cli.transcripts import Block, blocks, commands, missing, printed_by, updated

ROOT = Path(__file__).parents[2]
TUTORIAL = ROOT / "docs" / "tutorial.md"
TOLERANCE = 0.25
"""Numbers may differ so much from the page where a timing constant or the search got better; words may not."""


def run_console(block: Block, folder: Path) -> None:
    for command in commands(block):
        printed = printed_by(command, folder)
        wrong = missing(command.shown, printed, TOLERANCE)
        assert wrong is None, (
            f"line {block.line}, {' '.join(command.words)}: the page shows {wrong!r}, printed was\n{printed}\n"
            "run python -m tests.cli.transcripts docs/tutorial.md"
        )


def test_the_tutorial_runs_from_end_to_end(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kinds = set()
    for block in blocks(TUTORIAL):
        kinds.add(block.kind)
        if block.file is not None:
            (tmp_path / block.file).write_text(block.body)
        elif block.kind == "console":
            run_console(block, tmp_path)
        else:
            assert block.kind == "pycon"
            session = doctest.DocTestParser().get_doctest(block.body, {}, "tutorial", str(TUTORIAL), block.line)
            report: list[str] = []
            doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL).run(session, out=report.append)
            assert not report, "".join(report)
    assert kinds == {"console", "text", "toml", "pycon"}


def test_the_kernel_of_the_page_about_kernels_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kinds = []
    for block in blocks(ROOT / "docs" / "kernels.md"):
        kinds.append(block.kind)
        if block.file is not None:
            (tmp_path / block.file).write_text(block.body)
        else:
            run_console(block, tmp_path)
    assert kinds == ["text", "console"]


def test_an_update_writes_what_is_printed_and_keeps_what_is_left_out():
    shown = ["…", "│ x_dm │ 7,598 │ …", "makespan 10 cycles", "…"]
    printed = "head\n│ x_dm │  655 │ more\nmakespan 12,000 cycles\nend\n"
    assert updated(shown, printed) == ["…", "│ x_dm │  655 │ …", "makespan 12,000 cycles", "…"]
    assert missing(shown, printed, TOLERANCE) == "│ x_dm │ 7,598 │ …"
    assert missing(updated(shown, printed), printed) is None


def test_links_of_the_documents_lead_to_files():
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for link in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
            assert link.startswith("http") or (page.parent / link).exists(), (page.name, link)


def test_the_python_of_the_readme_runs(tmp_path):
    block = next(b for b in blocks(ROOT / "README.md") if b.kind == "python")
    assert "trials=200" in block.body
    code = block.body.replace("trials=200", "trials=2").replace("i=512, j=512, k=64", "i=64, j=32, k=32")
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=120)


COMMANDS_OF_README = re.findall(r"^\| `tcptune (\w+)", (ROOT / "README.md").read_text(encoding="utf-8"), re.M)


def test_the_readme_lists_every_command():
    from tcptune.cli.commands import COMMANDS

    assert set(COMMANDS_OF_README) == set(COMMANDS)


@pytest.mark.parametrize(
    "words",
    [
        ["map", "A / 8 # 256", "-s", "A=2048"],
        ["explain", "SWITCH-011"],
        ["cost", str(ROOT / "tcptune/data/published_transfers.json")],
        ["--version"],
    ],
    ids=lambda words: words[0],
)
def test_commands_that_the_readme_shows_work(words):
    assert tcptune(*words).status == 0
