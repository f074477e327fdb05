"""The default result folder tells searches apart, and every workload has one."""

import pytest

from tcptune.cli.search import folder_name
from tcptune.ir.workload import einsum

SIZES = {"i": 8, "j": 8}


@pytest.mark.parametrize(
    ("text", "options"),
    [("i->i", {"epilogue": "relu"}), ("ij->i", {}), ("i,j->ij", {"epilogue": "bias:b(j), relu"}), ("i,j->ij", {})],
)
def test_searches_that_differ_have_different_folders(text, options):
    sizes = {axis: size for axis, size in SIZES.items() if axis in text}
    plain = einsum(text, sizes=sizes, **options)
    others = [{"out_dtype": "f32"}, {"layout": "dense"}]
    others += [{"fuse": False}] if "epilogue" in options else []
    others += [{"reduce": "max"}] if text == "ij->i" else []
    others += [{"hbm_copies": 2}] if "," in text else []
    names = [folder_name(plain), folder_name(plain, profile="manual"), folder_name(plain, seed=1)]
    names += [folder_name(einsum(text, sizes=sizes, **options, **other)) for other in others]
    assert len(set(names)) == len(names), names
