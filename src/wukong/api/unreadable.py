"""Objects that cannot be read: who they are, and what is wrong with them and where.

One object that nobody can read (nested too deeply, broken text, an operator that is not known) must not hide the others
of its kind. cluster.kube and embedded.store read the items of a list and the events of a watch one by one and give an
Unreadable for each that fails. State keeps those apart from what it mirrors. Pure: bytes and documents in, values out.
"""

from __future__ import annotations

import sys
from typing import Any, TypeVar, cast

import msgspec

from wukong.api.decode import readable
from wukong.api.documents import without_nulls
from wukong.api.json_text import MOST_DEPTH, find_deep_path, is_too_deep, members_of
from wukong.api.meta import Object, ObjectMeta
from wukong.errors import InputError

T = TypeVar("T")
LONGEST_PROBLEM = 500  # characters
# What reading a hostile text raises. ValueError: text that is not UTF-8, digits without end.
READ_ERRORS = (msgspec.MsgspecError, RecursionError, ValueError, OverflowError, TypeError, InputError)
_NAMELESS = "$.metadata.name: expected a name, got none."


class Unreadable(Object):
    """An object that could not be read. Of its metadata there is what could be read, at least its name if any.

    `remains` is the object with its metadata and status alone, where these can be read: what a controller of its kind
    needs to report the problem on its status. Its spec is empty, so nobody may decide by it.
    """

    problem: str = ""
    remains: Object | None = None


class _Name(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


def read_json(data: bytes | msgspec.Raw, read: type[T]) -> T | Unreadable:
    """Decode the JSON of one object into a struct or dict. Null lists, which Go writes, are read as absent."""
    try:
        return _check_name(decode_json(data, read))
    except READ_ERRORS as error:
        return _build_from_json(bytes(data), read, error)


def read_document(document: dict[str, Any], read: type[T]) -> T | Unreadable:
    """Convert a document into a struct. The document stays as it is."""
    try:
        try:
            return _check_name(msgspec.convert(document, read))
        except msgspec.ValidationError:
            return _check_name(msgspec.convert(without_nulls(document), read))  # only then pay for the slow way
    except READ_ERRORS as error:
        parts = {name: document.get(name) for name in ("metadata", "status")}
        return _build(parts, read, describe_read_error(error))


def _build_from_json(data: bytes, read: Any, error: Exception) -> Unreadable:
    members = members_of(data)
    parts: dict[str, Any] = {}
    for name in ("metadata", "status"):
        try:
            parts[name] = msgspec.json.decode(members.get(name, b"null"))
        except READ_ERRORS:
            parts[name] = None
    return _build(parts, read, describe_read_error(error, data))


_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}  # one per struct ever read


def decoder_of(read: type[T]) -> msgspec.json.Decoder[T]:
    return _decoders.get(read) or _decoders.setdefault(read, msgspec.json.Decoder(read))


def decode_json(data: bytes | msgspec.Raw, read: type[T]) -> T:
    """Decode JSON text. Raises one of READ_ERRORS, also for a dict that is nested too deeply to be walked through."""
    if cast(Any, read) is dict and is_too_deep(bytes(data)):
        raise RecursionError
    if is_too_large(data, read):
        raise InputError(f"expected at most {_most_bytes_of(read) >> 10} KiB, got {len(bytes(data)) >> 10} KiB.")
    try:
        return decoder_of(read).decode(data)
    except msgspec.ValidationError as error:
        try:
            document = msgspec.json.decode(data)
        except READ_ERRORS:
            raise error from None  # it knows the place better
        return msgspec.convert(without_nulls(document), read)


def is_too_large(data: bytes | msgspec.Raw, read: Any) -> bool:
    """Whether a text is larger than what is read into such a struct, or a list of which an item may be so."""
    return len(memoryview(data)) > _most_bytes_of(read)


def _most_bytes_of(read: Any) -> int:
    return read.most_bytes if isinstance(read, type) and issubclass(read, Object) else sys.maxsize


def _check_name(subject: T) -> T:
    """Raises InputError for an object without a name: nobody could tell it from others."""
    if isinstance(subject, dict):
        metadata = subject.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        if not isinstance(name, str) or not name:
            raise InputError(_NAMELESS)
    elif isinstance(subject, Object) and not subject.metadata.name:
        raise InputError(_NAMELESS)
    return subject


def _build(parts: dict[str, Any], read: Any, problem: str) -> Unreadable:
    metadata = _convert(parts["metadata"], ObjectMeta) or ObjectMeta()
    if not metadata.name and (name := _convert(parts["metadata"], _Name)) is not None:
        metadata = ObjectMeta(**msgspec.structs.asdict(name))
    remains = None
    if isinstance(read, type) and issubclass(read, Object):
        remains = _convert(parts, read) or _convert({"metadata": parts["metadata"]}, read)
    return Unreadable(metadata=metadata, problem=problem, remains=remains)


def _convert(value: Any, read: type[T]) -> T | None:
    try:
        return msgspec.convert(without_nulls(value), read)
    except READ_ERRORS:
        return None


def describe_read_error(error: Exception, data: bytes = b"") -> str:
    """What is wrong and where, in one line of printable characters. `data` is the text, where there is one."""
    if isinstance(error, msgspec.ValidationError):
        problem = readable(error)
    elif isinstance(error, RecursionError):
        path = find_deep_path(data) if data else "$"
        problem = f"{path}: expected at most {MOST_DEPTH} levels, got more. Make it flatter."
    elif isinstance(error, UnicodeDecodeError):
        problem = f"expected UTF-8, got other bytes: {error.reason}."
    else:
        problem = str(error)
    printable = "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in problem[:LONGEST_PROBLEM])
    return printable if len(problem) <= LONGEST_PROBLEM else f"{printable}…"
