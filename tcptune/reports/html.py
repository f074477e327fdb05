"""HTML pages: one self-contained file each, style and script inlined, nothing loaded from a network."""

from __future__ import annotations

from functools import cache
from importlib import metadata, resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from tcptune.reports.tables import cell


@cache
def _environment() -> Environment:
    env = Environment(
        loader=PackageLoader("tcptune.reports", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    env.filters["cell"] = cell
    return env


def _asset(name: str) -> Markup:
    """A style or script of the package; it is ours, so it needs no escaping."""
    return Markup(resources.files("tcptune.reports").joinpath("templates", name).read_text(encoding="utf-8"))


def render(template: str, **context: Any) -> str:
    """The page of a template; texts are escaped, SVG must be wrapped by `picture`."""
    page = _environment().get_template(template)
    return page.render(version=metadata.version("tcptune"), style=_asset("style.css"), script=_asset("timeline.js"), **context)


def picture(svg: str) -> Markup:
    """Marks an SVG made by this package as ready for the page."""
    return Markup(svg)
