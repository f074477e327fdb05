"""What a report says about a workload."""

from tcptune.ir.workload import einsum
from tcptune.reports.result_view import workload_words


def test_a_workload_that_allows_copies_in_hbm_says_so():
    plain = einsum("ij,j->i", i=8, j=64)
    assert workload_words(plain.to_json())["types"] == "bf16 to bf16, layout padded"
    copied = einsum("ij,j->i", i=8, j=64, hbm_copies=4)
    assert workload_words(copied.to_json())["types"] == "bf16 to bf16, layout padded, up to 4 copies of an input in HBM"
    assert "hbm_copies" not in plain.to_json()
