"""The page of the cost model says what the code charges, and the plot holds every published shape."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tcptune.errors import InputError
from tcptune.reports import cost_model

PAGE = Path(__file__).parents[2] / "docs" / "cost-model.md"


def test_the_page_holds_the_current_tables() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert cost_model.with_tables(page) == page, "run python -m tcptune.reports.cost_model --update docs/cost-model.md"


def test_a_page_without_the_blocks_is_refused() -> None:
    with pytest.raises(InputError, match="vendor-constants"):
        cost_model.with_tables("# Cost model\n")


def test_every_constant_has_its_evidence() -> None:
    for _, name, constant in cost_model.constants(cost_model.VENDOR):
        assert constant.unit and constant.evidence and constant.error, name


def test_the_plot_is_one_file_without_the_network(tmp_path: Path) -> None:
    file = tmp_path / "plot.html"
    cost_model.plot(cost_model.residuals(), file)
    text = file.read_text(encoding="utf-8")
    assert "d044" in text
    assert not re.search(r"<(script|link)[^>]+(src|href)=", text)
