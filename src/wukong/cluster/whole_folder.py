"""Writes a folder of files that is not there yet: all of them, or nothing. Nothing is ever overwritten.

Called by `wukong plan --write-patch`. The files are written into a folder beside it, which is moved into its place.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from wukong.errors import InputError


def check_new_folder(path: str) -> None:
    """Raises InputError where `write_new_folder` would, as far as can be told before."""
    folder = Path(path)
    try:
        is_empty = folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir())
        if os.path.lexists(path) and not is_empty:
            raise InputError(f"{path}: expected a folder that is not there yet, or is empty. Name another one.")
        if not (parent := folder.absolute().parent).is_dir():
            raise InputError(f"{path}: expected a folder below one that is there. Make {parent} first.")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}.") from None


def write_new_folder(path: str, files: Mapping[str, str]) -> None:
    """Raises InputError if it cannot be written, or is there meanwhile; then nothing of it is there."""
    check_new_folder(path)
    target = Path(path).absolute()
    try:
        beside = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name[:200]}."))
        try:
            for name, text in files.items():
                (beside / name).write_text(text, "utf-8")
            beside.chmod(0o755)
            os.rename(beside, target)  # an empty folder gives way, any other refuses
        except BaseException:
            shutil.rmtree(beside, ignore_errors=True)
            raise
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}.") from None
