"""Writes a file that others rely on: the whole of it or nothing, and where the path leads to.

    a file, or none yet    written beside it and moved into its place; the file keeps its mode, a new one is private
    a link                 the same for the file that it leads to; the link stays
    a device, a pipe       written to as it is

Called by `wukong snapshot` and `wukong manifests crds`; the trace of `wukong sim run` is put where `find_replaceable`
says, too. Whatever happens meanwhile, also Ctrl-C, nothing is left beside the file.
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path
from typing import NamedTuple

from wukong.errors import InputError


def write_whole_file(path: str, data: bytes, *, default_mode: int = 0o600) -> None:
    """Raises InputError if it cannot be written; what was there is there still. A new file gets the default mode."""
    try:
        target = find_replaceable(path)
        if target is None:
            _write_to(path, data)
        else:
            _replace(target.path, data, default_mode if target.mode is None else target.mode)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}.") from None


class Replaceable(NamedTuple):
    """A file that another may take the place of. `mode` is None if it is not there yet."""

    path: Path
    mode: int | None


def find_replaceable(path: str) -> Replaceable | None:
    """Return the file that a path leads to, through links. None if it must be written to as it is, such as a pipe."""
    before = _find(path)
    target = Path(os.path.realpath(path))
    if before is None:
        return Replaceable(target, None)
    is_plain = stat.S_ISREG(before.st_mode) and _is_same(before, target)
    return Replaceable(target, stat.S_IMODE(before.st_mode)) if is_plain else None


def _find(path: str) -> os.stat_result | None:
    """What the path leads to, through links. None if there is nothing yet."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _is_same(before: os.stat_result, target: Path) -> bool:
    """Not so behind /dev/stdout: where that leads to may have no name any more."""
    found = _find(str(target))
    return found is not None and os.path.samestat(before, found)


def _write_to(path: str, data: bytes) -> None:
    with open(os.open(path, os.O_WRONLY), "wb") as file:
        file.write(data)


def _replace(target: Path, data: bytes, mode: int) -> None:
    descriptor, beside = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:200]}.")
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        os.replace(beside, target)
    except BaseException:
        os.unlink(beside)
        raise
