"""The file of `--trace`, written while a scenario is played, however long that takes: whole in the end, or not there.

Lines go to a file beside it, which takes its place when the story is over; if a play fails, nothing has changed. What
is no plain file, such as a pipe or /dev/stderr, is written to as it is. A link stays: what it leads to is replaced.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from wukong.cluster.whole_file import find_replaceable
from wukong.errors import InputError


class TraceFile:
    """`with TraceFile(path) as file: file.write(line)`. Without a path the lines are dropped."""

    def __init__(self, path: str | None) -> None:
        self.path = path
        self._target: Path | None = None  # what it is moved to in the end
        self._beside: Path | None = None
        self._file: IO[str] | None = None

    def __enter__(self) -> Self:
        if self.path is not None:
            try:
                self._file = self._open(self.path)
            except OSError as error:
                raise self._refusal(error) from None
        return self

    def _open(self, path: str) -> IO[str]:
        target = find_replaceable(path)
        if target is None:
            return open(path, "w", encoding="utf-8")
        handle, name = tempfile.mkstemp(dir=target.path.parent, prefix=f".{target.path.name[:200]}.")
        self._target, self._beside = target.path, Path(name)
        os.fchmod(handle, 0o644 if target.mode is None else target.mode)
        return os.fdopen(handle, "w", encoding="utf-8")

    def write(self, line: str) -> None:
        if self._file is not None:
            try:
                self._file.write(line)
            except OSError as error:
                raise self._refusal(error) from None

    def write_all(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._file is None or self.path is None:
            return
        try:
            self._file.close()
            if kind is None and self._beside is not None and self._target is not None:
                self._beside.replace(self._target)
        except OSError as failure:
            if kind is None:
                raise self._refusal(failure) from None
        finally:
            if self._beside is not None:
                self._beside.unlink(missing_ok=True)

    def _refusal(self, error: OSError) -> InputError:
        return InputError(f"--trace {self.path}: cannot be written: {error.strerror or error}.")
