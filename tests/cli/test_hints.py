"""What is refused says what would be right."""

import pytest

from tests.cli.in_process import tcptune

SEARCH = ["search", "einsum", "ik,jk->ij"]
SIZES = ["-s", "i=64,j=64", "-s", "k=64"]
HINTS = {
    "copies between powers of two": ([*SEARCH, *SIZES, "--hbm-copies", "3"], "2 or 4"),
    "more copies than there may be": ([*SEARCH, *SIZES, "--hbm-copies", "128"], "64"),
    "copies of the only input": (["search", "einsum", "i->i", "-s", "i=64", "--epilogue", "relu", "--hbm-copies", "2"], "1 copy"),
    "no time": ([*SEARCH, *SIZES, "--time-limit", "0"], "for example 60"),
    "time that is no number": ([*SEARCH, *SIZES, "--time-limit", "nan"], "for example 60"),
    "size above the limit": ([*SEARCH, "-s", f"i={2**62 + 1}", "-s", "j=4,k=4"], "2^62"),
    "size of many digits": ([*SEARCH, "-s", f"i={10**40}", "-s", "j=4,k=4"], "2^62"),
    "axis without a size": (["tilings", "I, K", "-s", "I=512"], "K=SIZE (after -s"),
    "operator without a number": (["map", "A /", "-s", "A=8"], "take a number"),
    "list without a comma": (["tilings", "I K", "-s", "I=512,K=64"], "commas"),
}


@pytest.mark.parametrize(("arguments", "hint"), HINTS.values(), ids=HINTS.keys())
def test_a_refusal_says_what_would_be_right(arguments, hint, tmp_path):
    run = tcptune(*arguments, cwd=tmp_path)
    assert run.status == 2 and run.out == ""
    assert hint in run.err


def test_sizes_of_a_search_may_stand_in_one_option():
    from tcptune.cli.search import read_sizes

    assert read_sizes(["i=64, j=32", "k=16,"]) == {"i": 64, "j": 32, "k": 16}
