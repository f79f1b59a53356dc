"""Makes UTF-8 of the bytes of a text, or says where they are not text. Pure; every reader of files calls it first."""

from __future__ import annotations

import codecs

from wukong.errors import InputError

_CHUNK = 1 << 20
# A text that begins with one of these is in that encoding: Windows' PowerShell writes UTF-16 when told `> file`.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def to_utf8(data: bytes | bytearray) -> bytes | bytearray:
    """Return the text as UTF-8 without a byte order mark. Raises InputError with line and column of what is no text."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            try:
                return data.decode(encoding).encode()
            except UnicodeError:
                raise InputError(f"expected text, got broken {encoding.upper()}. Save the file as UTF-8.") from None
    if data.startswith(codecs.BOM_UTF8):
        data = data[len(codecs.BOM_UTF8) :]
    _check_utf8(data)
    return data


def locate(data: bytes | bytearray, offset: int) -> str:
    """Return `line 3, column 7` for a byte of a text."""
    line_start = data.rfind(b"\n", 0, offset) + 1
    column = len(bytes(data[line_start:offset]).decode(errors="replace"))
    line = data.count(b"\n", 0, offset) + 1
    return f"line {line}, column {column + 1}"


def _check_utf8(data: bytes | bytearray) -> None:
    """Raise InputError for the first byte that is no text. Decodes by pieces: a second copy of it all is not made."""
    if data.isascii():
        return
    decoder = codecs.getincrementaldecoder("utf-8")()
    view = memoryview(data)
    for start in range(0, len(data), _CHUNK):
        waiting = len(decoder.getstate()[0])
        try:
            decoder.decode(view[start : start + _CHUNK], final=start + _CHUNK >= len(data))
        except UnicodeDecodeError as error:
            offset = start - waiting + error.start
            problem = f"expected UTF-8 text, got the byte 0x{data[offset]:02x}"
            raise InputError(f"{locate(data, offset)}: {problem}. Save the file as UTF-8.") from None
