"""Documents that strangers wrote are refused with the file's name and a reason, whatever is in them."""

import pytest

from tcptune.errors import InputError
from tcptune.ir.files import read_json


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "line 1, column 1"),
        (b'{"a": [1,\n 2', "line 2"),
        (b"\xff\xfe", "byte 0 is not UTF-8"),
        (b"[" * 100_000 + b"]" * 100_000, "nests too deeply"),
        (b'{"a":' * 100_000, "nests too deeply"),
        (b"[" + b"9" * 10_000 + b"]", "too long to be read"),
    ],
)
def test_what_is_no_document_is_refused_with_the_reason(tmp_path, content, reason):
    path = tmp_path / "document.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=reason) as refusal:
        read_json(path)
    assert str(path) in refusal.value.message


def test_what_is_no_file_is_refused(tmp_path):
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(InputError, match="cannot read"):
            read_json(path)
