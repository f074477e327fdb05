"""Documents that strangers wrote are refused with the file's name and a reason, whatever is in them."""

import os
import stat
import threading

import pytest

from tcptune.errors import InputError
from tcptune.ir import files
from tcptune.ir.files import read_json, read_text, require_writable, write_text


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "line 1, column 1"),
        (b'{"a": [1,\n 2', "line 2"),
        (b"\xff\xfe", "byte 0 is not UTF-8"),
        (b"[" * 100_000 + b"]" * 100_000, "nests too deeply"),
        (b'{"a":' * 100_000, "nests too deeply"),
        (b"[" + b"9" * 10_000 + b"]", "too long to be read"),
        (b"[1e999]", "too large to be read: 1e999"),
        (b"[NaN]", "it holds NaN"),
        (b"[-Infinity]", "it holds -Infinity"),
        (b'[{"a": 1, "b": 2, "a": 3}]', "'a' twice in one object"),
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


def test_a_document_with_a_byte_order_mark_is_read(tmp_path):
    (tmp_path / "d.json").write_bytes(b'\xef\xbb\xbf{"a": 1}')
    assert read_json(tmp_path / "d.json") == {"a": 1}


def test_a_missing_file_is_answered_by_names_like_it_and_a_folder_by_its_files(tmp_path):
    (tmp_path / "kernel.visa").write_text("kernel k")
    hints = {}
    for path in (tmp_path / "kernal.visa", tmp_path, tmp_path / "no" / "kernel.visa"):
        with pytest.raises(InputError) as refusal:
            read_text(path)
        hints[path] = refusal.value.hint
    assert hints[tmp_path / "kernal.visa"] == "names like it: kernel.visa"
    assert hints[tmp_path] == "it is a folder; its files: kernel.visa"
    assert hints[tmp_path / "no" / "kernel.visa"] == f"there is no folder {tmp_path / 'no'}"


def test_a_file_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LARGEST_BYTES", 1 << 20)
    (tmp_path / "long").write_bytes(b" " * ((1 << 20) + 1))
    with pytest.raises(InputError, match="longer than 1 MiB"):
        read_text(tmp_path / "long")


def test_what_is_written_appears_whole_and_alone(tmp_path):
    write_text(tmp_path / "new" / "file", "text")
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["file"]
    assert (tmp_path / "new" / "file").read_text() == "text"


def test_half_a_character_is_written_as_its_number(tmp_path):
    write_text(tmp_path / "file", "a\ud800b")
    assert (tmp_path / "file").read_text() == "a\\ud800b"


def test_a_link_is_followed_and_a_pipe_is_not_replaced(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"
    os.mkfifo(tmp_path / "pipe")
    got = []
    reader = threading.Thread(target=lambda: got.append((tmp_path / "pipe").read_text()))
    reader.start()
    write_text(tmp_path / "pipe", "through")
    reader.join(10)
    assert got == ["through"]
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_a_place_that_cannot_be_written_says_what_stands_in_the_way(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    cases = {
        tmp_path / "file" / "below": f"{tmp_path / 'file'} is a file, not a folder",
        tmp_path / "folder": "it is a folder: give the name of a file",
        tmp_path / ("n" * 300): "choose another place",
        tmp_path / "loop": "choose another place",
        tmp_path / "zero\0byte": "choose another place",
    }
    for path, hint in cases.items():
        with pytest.raises(InputError, match="cannot write") as refusal:
            write_text(path, "text")
        assert refusal.value.hint == hint, path
    with pytest.raises(InputError) as refusal:
        require_writable(tmp_path / "file" / "below")
    assert refusal.value.hint == f"{tmp_path / 'file'} is a file, not a folder"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "folder", "loop"]
    assert list((tmp_path / "folder").iterdir()) == []
