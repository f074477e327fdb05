"""The cache of arrays: bounded by bytes, least recently used first out."""

import numpy as np
import pytest

from tcptune.ir.array_cache import array_cache


def counted(most_bytes):
    computed = []

    @array_cache(most_bytes, lambda a: a.nbytes)
    def zeros(count):
        computed.append(count)
        return np.zeros(count, np.int8)

    return zeros, computed


def test_what_fits_is_computed_once():
    zeros, computed = counted(100)
    assert zeros(40) is zeros(40)
    assert zeros(60) is zeros(60)
    assert computed == [40, 60]


def test_the_least_recently_used_goes_first():
    zeros, computed = counted(100)
    for count in (40, 50, 40, 30, 40, 50):  # 40 + 50 + 30 exceed 100: 50 goes
        zeros(count)
    assert computed == [40, 50, 30, 50]


def test_the_latest_stays_however_large_it_is():
    zeros, computed = counted(100)
    assert zeros(500) is zeros(500)
    zeros(1)
    zeros(500)
    assert computed == [500, 1, 500]


def test_arguments_by_name_are_refused():
    zeros, _ = counted(100)
    with pytest.raises(TypeError, match="positional"):
        zeros(count=3)


def test_an_error_is_not_remembered():
    calls = []

    @array_cache(100, len)
    def fails(n):
        calls.append(n)
        raise ValueError("no")

    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            fails(1)
    assert calls == [1, 1]
