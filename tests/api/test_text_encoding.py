"""Bytes of files as UTF-8, or where they are no text."""

from __future__ import annotations

import pytest

from wukong.api.text_encoding import locate, to_utf8
from wukong.errors import InputError


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_a_text_with_or_without_a_mark_is_read(encoding: str) -> None:
    assert to_utf8("name: ä\n".encode(encoding)) == "name: ä\n".encode()


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"a: 1\nb: \xff", "line 2, column 4: expected UTF-8 text, got the byte 0xff. Save the file as UTF-8."),
        ("ä\n".encode() * 2 + b"\xc3", "line 3, column 1: expected UTF-8 text, got the byte 0xc3."),
        (b"\xff\xfea\x00b", "expected text, got broken UTF-16. Save the file as UTF-8."),
        (b"a" * ((1 << 20) - 1) + b"\xc3" + b"z", "line 1, column 1048576: expected UTF-8 text, got the byte 0xc3"),
        (b"\xed\xa0\x80", "line 1, column 1: expected UTF-8 text, got the byte 0xed"),
    ],
)
def test_what_is_no_text_is_told_with_its_place(data: bytes, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        to_utf8(data)
    assert problem in str(caught.value)


def test_a_letter_across_two_pieces_is_one_letter() -> None:
    text = b"a" * ((1 << 20) - 1) + "ä".encode()
    assert to_utf8(text) == text
    assert locate("ä\näß".encode(), 4) == "line 2, column 2", "a byte in the middle of a letter"
    assert locate(text, len(text)) == f"line 1, column {(1 << 20) + 1}"
