"""Reads snapshots, manifests and every other file of a user: directories, gzip, standard input ("-"); JSON and YAML.

Called by the command line. Turns what is wrong into InputError with the file's name in front: every problem of every
file at once. Never decides anything about placement, never writes.

What is read has a limit, and what gzip unpacks has another: a few kilobytes may stand for gigabytes. Devices and
binaries are refused by their first bytes.
"""

from __future__ import annotations

import codecs
import gc
import gzip
import io
import os
import sys
import zlib
from collections import Counter as Tally
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from wukong.api.decode import decode_objects
from wukong.api.kinds import KINDS, group_kind_of
from wukong.api.meta import Object
from wukong.api.objects import Objects
from wukong.api.text_encoding import to_utf8
from wukong.cluster.checks import add_defaults, find_oversized_numbers, problems_of
from wukong.cluster.interning import Interner
from wukong.errors import InputError, nearest

SNAPSHOT_COMMAND = (
    "kubectl get nodes,pods,ns,svc,rc,rs,sts,deploy,ds,pdb,pc,pvc,pv,sc,csinodes,csidrivers,csistoragecapacities,"
    "volumeattachments -A -o json"
)
STANDARD_INPUT = "-"
MOST_BYTES = 2 << 30  # of a snapshot or a scenario
MOST_SETTINGS_BYTES = 4 << 20  # of a file that people write: a kubeconfig, a policy, a table of prices
MOST_LINE_BYTES = 64 << 20  # of a recording
_MOST_RATIO = 250  # of a text and its gzip, once it is large; pods that differ in names alone come to some 40
_LARGE = 64 << 20
_GZIP = b"\x1f\x8b"
_CHUNK = 1 << 20
_ENDINGS = (".json", ".yaml", ".yml", ".json.gz", ".yaml.gz", ".yml.gz")


def read_objects(path: str, skipped: Tally[str] | None = None) -> Objects:
    """Read a snapshot: every object in a file, in a directory and all below it, or on standard input.

    Objects are checked, and get the defaults that the API server sets.

    Objects of kinds that do not decide placement are left out and counted in `skipped`, by kind.
    """
    skipped_kinds: Tally[str] = Tally() if skipped is None else skipped
    with pause_garbage_collector():
        objects = _Reader(skipped_kinds, problems_of).read(path)
        problems = add_defaults(objects, place_name(path))
    if problems:
        raise InputError(*problems)
    if objects.missing_kinds() == KINDS.list_deciding():
        content = f"only {', '.join(sorted(skipped_kinds))}" if skipped_kinds else "none"
        fix = f"Take a snapshot: {SNAPSHOT_COMMAND}"
        raise InputError(f"{place_name(path)}: expected Kubernetes objects, found {content}. {fix}")
    return objects


def read_manifests(path: str, skipped: Tally[str], set_namespace: Callable[[Object], None]) -> Objects:
    """Read objects as people write them, unchecked. Validating them is left to the caller.

    `set_namespace` gets every object first: one that is written without a namespace has none.
    """
    return _Reader(skipped, lambda subject, thorough: [], set_namespace).read(path)


def read_text(path: str, most_bytes: int = MOST_BYTES) -> bytes | bytearray:
    """Return the whole content of a file or of standard input as UTF-8, unpacked if it is gzip. Raises InputError."""
    with _raise_input_errors(path), _open_stream(path) as stream:
        size = os.fstat(stream.fileno()).st_size if path != STANDARD_INPUT else 0
        _check_size(size, most_bytes)
        is_plain = stream.peek(2)[:2] != _GZIP
        text = bytearray()  # grows in place: gzip.decompress would hold a large text twice
        if is_plain and size > 0:
            _check_beginning(stream.peek(_CHUNK))
            return to_utf8(stream.read())  # at once: of a size that was allowed
        for part in _read_parts(stream) if is_plain else _unpack(stream):
            if not text:
                _check_beginning(part)
            text += part
            _check_size(len(text), most_bytes)
        return to_utf8(text)


def read_settings(path: str) -> bytes:
    """Return the text of a file that people write, which is never large."""
    return bytes(read_text(path, MOST_SETTINGS_BYTES))


def read_lines(
    path: str, report_progress: Callable[[int, int], object] = lambda done, total: None
) -> Iterator[tuple[int, bytes]]:
    """Yield number and text of every line that is not blank. `report_progress(done, total)` gets the bytes read so far.

    The total is 0 for standard input, whose length is unknown.
    """
    number = 0
    with _raise_input_errors(path, lambda: f"after line {number}: "), _open_stream(path) as stream:
        total = os.fstat(stream.fileno()).st_size if path != STANDARD_INPUT else 0
        is_packed = stream.peek(2)[:2] == _GZIP
        packed = _CountedReader(stream)
        lines = gzip.GzipFile(fileobj=cast(IO[bytes], packed)) if is_packed else stream
        unpacked_bytes = 0
        _check_beginning(lines.peek(_CHUNK))
        while line := lines.readline(MOST_LINE_BYTES + 1):
            number += 1
            unpacked_bytes += len(line)
            if len(line) > MOST_LINE_BYTES:
                raise InputError(f"expected lines of at most {_describe_size(MOST_LINE_BYTES)}, got a longer one.")
            if is_packed:
                _check_ratio(packed.count, unpacked_bytes)
            line = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
            if line.strip():
                yield number, line
            report_progress(stream.tell() if total else 0, total)


def place_name(path: str) -> str:
    """Return the name of a path in messages."""
    return "standard input" if path == STANDARD_INPUT else path


@contextmanager
def pause_garbage_collector() -> Iterator[None]:
    """Stop collecting garbage while millions of objects are made that all stay: it only costs time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class _Reader:
    """Collects the objects and the problems of several files."""

    def __init__(
        self,
        skipped: Tally[str],
        check: Callable[[Object, bool], list[str]],
        set_namespace: Callable[[Object], None] | None = None,
    ) -> None:
        self._skipped, self._check, self._set_namespace = skipped, check, set_namespace
        self._objects = Objects()
        self._problems: list[str] = []
        self._places: dict[str, dict[str, str]] = {}  # group and kind → key → file
        self._interner = Interner()

    def read(self, path: str) -> Objects:
        for file in files_of(path):
            self._read_file(file)
        if self._problems:
            raise InputError(*self._problems)
        return self._objects

    def _read_file(self, path: str) -> None:
        name = place_name(path)
        try:
            data = read_text(path)
        except InputError as error:  # names the file already
            self._problems += error.problems
            return
        try:
            namespace = "default" if self._set_namespace is None else ""
            for subject in decode_objects(data, skipped=self._skipped, namespace=namespace):
                if self._set_namespace is not None:
                    self._set_namespace(subject)
                self._add(subject, name)
        except InputError as error:
            self._problems += error.at(name).problems

    def _add(self, subject: Object, file: str) -> None:
        try:
            is_new = self._interner.intern_object(subject)
            problems = self._check(subject, is_new)
        except OverflowError:
            problems = list(find_oversized_numbers(subject))
        self._problems.extend(f"{file}: {subject.kind} {subject.key}: {problem}" for problem in problems)
        group_kind = group_kind_of(subject)
        places, subjects = self._places.setdefault(group_kind, {}), self._objects.of(group_kind)
        first_file = places.setdefault(subject.key, file)
        if len(places) == len(subjects):  # nothing was added: it has been there
            where = "twice in this file" if first_file == file else f"in {first_file}, too"
            self._problems.append(f"{file}: {subject.kind} {subject.key} is {where}. Remove one of the two.")
        else:
            subjects.append(subject)


def files_of(path: str) -> list[str]:
    """Return the file itself, or those of the directory by name, without hidden files and other formats."""
    if path == STANDARD_INPUT or not Path(path).is_dir():
        return [path]
    below = (entry for entry in Path(path).rglob("*") if entry.name.endswith(_ENDINGS) and entry.is_file())
    return sorted(str(entry) for entry in below if not _is_hidden(entry.relative_to(path)))


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


class _CountedReader:
    """A stream that counts what is read of it."""

    def __init__(self, stream: io.BufferedReader) -> None:
        self._stream, self.count = stream, 0

    def read(self, size: int = -1) -> bytes:
        part = self._stream.read(size)
        self.count += len(part)
        return part


def _read_parts(stream: io.BufferedReader) -> Iterator[bytes]:
    while part := stream.read(_CHUNK):
        yield part


def _unpack(stream: io.BufferedReader) -> Iterator[bytes]:
    packed, unpacked_bytes = _CountedReader(stream), 0
    with gzip.GzipFile(fileobj=cast(IO[bytes], packed)) as unpacked:
        while part := unpacked.read(_CHUNK):
            unpacked_bytes += len(part)
            _check_ratio(packed.count, unpacked_bytes)
            yield part


def _check_size(size: int, most_bytes: int) -> None:
    if size > most_bytes:
        raise InputError(f"expected at most {_describe_size(most_bytes)}, got more. Is it the right file?")


def _check_ratio(packed_bytes: int, unpacked_bytes: int) -> None:
    if unpacked_bytes > _LARGE and unpacked_bytes > packed_bytes * _MOST_RATIO:
        raise InputError("gzip that unpacks to hundreds of times its size. Unpack it first, if it is the right file.")


def _check_beginning(part: bytes) -> None:
    """Refuse what is no text by its first bytes, before the rest is read."""
    if b"\0" in part and not part.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)):
        raise InputError("expected text, got a binary file. Is it the right file?")


def _describe_size(size: int) -> str:
    return f"{size >> 30} GiB" if size >= 1 << 30 else f"{size >> 20} MiB"


@contextmanager
def _open_stream(path: str) -> Iterator[io.BufferedReader]:
    if path != STANDARD_INPUT:
        with open(path, "rb") as file:
            yield file
        return
    stream: io.BufferedReader = io.BufferedReader(cast(io.RawIOBase, sys.stdin.buffer))  # can peek, whatever stdin is
    try:
        yield stream
    finally:
        stream.detach()  # stdin stays open


@contextmanager
def _raise_input_errors(path: str, where: Callable[[], str] = lambda: "") -> Iterator[None]:
    """Turn the errors of reading a file into InputErrors with its name and what to do."""
    name = place_name(path)
    try:
        yield
    except InputError as error:
        raise error.at(f"{name}: {where()}".removesuffix(": ")) from None
    except FileNotFoundError:
        folder = Path(path).parent
        siblings = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
        raise InputError(f"{name}: no such file.{nearest(Path(path).name, siblings)}") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{name}: {where()}damaged gzip: {error}. Copy or write the file again.") from None
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror or error}.") from None
    except ValueError as error:  # a name with a zero byte
        raise InputError(f"{name!r:.200}: cannot be read: {error}.") from None
