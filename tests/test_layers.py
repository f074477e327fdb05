"""Imports flow downwards only: errors, ir, model, exec, solver, search, reports, cli."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "tcptune"
LAYERS = ["errors", "ir", "model", "exec", "solver", "search", "reports", "cli"]
TOP = {"api": "reports", "__init__": "cli", "__main__": "cli"}
"""Modules beside the layers and the layer they may import up to."""

MODULES = sorted(PACKAGE.rglob("*.py"))


def layer_of(module: Path) -> str:
    first = module.relative_to(PACKAGE).parts[0].removesuffix(".py")
    return TOP.get(first, first)


def imported_layers(module: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [f"{node.module}.{alias.name}" if node.module == "tcptune" else node.module for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        assert not (isinstance(node, ast.ImportFrom) and node.level > 0), f"{module}: relative import"
        found |= {TOP.get(n.split(".")[1], n.split(".")[1]) for n in names if n.startswith("tcptune.")}
    return found & set(LAYERS)


def test_the_package_has_modules_in_every_layer():
    assert {layer_of(m) for m in MODULES} >= set(LAYERS)


@pytest.mark.parametrize("module", MODULES, ids=lambda m: str(m.relative_to(PACKAGE)))
def test_a_module_imports_only_from_its_own_layer_and_those_before_it(module):
    mine = layer_of(module)
    assert mine in LAYERS, f"{module} lies in no layer"
    above = {name for name in imported_layers(module) if LAYERS.index(name) > LAYERS.index(mine)}
    assert not above, f"{module.relative_to(PACKAGE)} (layer {mine}) imports from {sorted(above)}"
