"""Decodes JSON that users or servers wrote: what is wrong becomes an InputError with its place. Pure; knows no kinds.

Typed values are checked by msgspec, whose ValidationErrors pass: callers know the path. Depth and names that are there
twice are looked for here, because msgspec only minds what recursion minds, and takes the last of two names.
"""

from __future__ import annotations

import json
import re
from typing import Any, TypeVar

import msgspec

from wukong.api.text_encoding import locate
from wukong.api.yaml_values import MOST_DEPTH, load_documents
from wukong.errors import InputError

MOST_BYTES_OF_PEOPLE = 1 << 20  # longer texts are written by programs, and are not searched for repeated names
_OFFSET = re.compile(r" \(byte (\d+)\)$")
_STRING = re.compile(rb'"[^"]*"')
_BRACES = bytes.maketrans(b"[]", b"{}")
_OTHERS = bytes(byte for byte in range(256) if byte not in b'{}[]"')

T = TypeVar("T")
Text = bytes | bytearray | msgspec.Raw
_values = msgspec.json.Decoder(object)


def decode_json(data: Text, decoder: msgspec.json.Decoder[T], hint: str = "Was it cut off while being written?") -> T:
    """Decode a JSON text. Raises InputError, or msgspec.ValidationError for a value of the wrong type."""
    try:
        return decoder.decode(data)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError as error:
        raise InputError(f"broken JSON: {_describe(error, data)}. {hint}") from None
    except UnicodeDecodeError:
        raise InputError("broken JSON: expected UTF-8 text. Save the file as UTF-8.") from None
    except RecursionError:
        raise InputError(_TOO_DEEP) from None


def load_json(data: Text) -> Any:
    """Return the value of a JSON text whose depth has been checked. Raises InputError."""
    try:
        return decode_json(data, _values)
    except msgspec.ValidationError as error:  # only numbers: 1e400, or thousands of digits
        raise InputError(f"broken JSON: {str(error).partition(' - at ')[0].lower()}. Mend the number.") from None


def check_depth(data: Text) -> None:
    """Raise InputError for a text that is nested too deeply to be walked through. Strings are left out."""
    text = bytes(data)
    if text.count(b"{") + text.count(b"[") <= MOST_DEPTH:
        return
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    text = _STRING.sub(b"", text.translate(_BRACES, _OTHERS).replace(b'""', b""))
    for _ in range(MOST_DEPTH):  # each round takes the innermost level away
        shorter = text.replace(b"{}", b"")
        if len(shorter) == len(text):
            return  # nothing is left, or it is broken: decoding says how
        text = shorter
    if text:
        raise InputError(_TOO_DEEP)


def check_repeated_names(data: bytes | bytearray) -> None:
    """Raise InputError for a name that is there twice in one map, of which one would be overlooked."""
    if len(data) > MOST_BYTES_OF_PEOPLE:
        return
    try:
        json.loads(data, object_pairs_hook=_refuse_repeated, parse_int=len, parse_float=len)
    except _RepeatedNameError as repeated:
        load_documents(bytes(data))  # JSON is YAML, whose reader knows line and column
        raise InputError(f"broken JSON: {repeated} is there twice in one map. Remove one of the two.") from None
    except (ValueError, RecursionError):
        return  # decoding says what is broken


class _RepeatedNameError(Exception):
    pass


def _refuse_repeated(pairs: list[tuple[str, Any]]) -> None:
    names = set()
    for name, _ in pairs:
        if name in names:
            raise _RepeatedNameError(f"{name!r:.100}")
        names.add(name)


def _describe(error: msgspec.DecodeError, data: Text) -> str:
    message = str(error)
    offset = _OFFSET.search(message)
    if offset is None:
        return message
    problem = message[: offset.start()].removeprefix("JSON is malformed: ")
    return f"{locate(bytes(data), int(offset[1]))}: {problem}"


_TOO_DEEP = f"nested too deeply, more than {MOST_DEPTH} levels. Flatten it."
