"""Tokens that callers show, from a file that is read again when it changes. Used by the hook.

One token for each line, so that a new one can be good beside the old while callers are told. A file that is gone, empty
or unreadable lets nobody in: whoever takes the tokens away means it. Comparing takes the same time whatever is shown.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
from pathlib import Path

from wukong.errors import InputError

SHORTEST = 16  # characters of a token
LARGEST = 64 << 10  # bytes of the file
_SCHEME = "bearer"
log = logging.getLogger(__name__)


class BearerTokens:
    """Raises InputError where there is no token to begin with."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, int, int] | None = None
        self._digests: list[bytes] = []
        self._problem = ""  # told already
        self._stamp, self._digests = _read(path)

    def authorize(self, header: str) -> bool:
        """Whether an Authorization header shows one of the tokens."""
        self._refresh()
        scheme, _, shown = header.partition(" ")
        if scheme.lower() != _SCHEME:
            return False
        digest = _digest(shown.strip().encode("utf-8", "surrogateescape"))
        matches = [hmac.compare_digest(digest, known) for known in self._digests]  # all of them, always
        return any(matches)

    def _refresh(self) -> None:
        try:
            if _stamp_of(self._path) == self._stamp:
                return
            self._stamp, self._digests = _read(self._path)
        except InputError as error:
            self._stamp, self._digests = None, []
            if str(error) != self._problem:
                log.warning("nobody is let in: %s", error)
            self._problem = str(error)
        else:
            self._problem = ""
            log.info("tokens reloaded", extra={"file": str(self._path), "tokens": len(self._digests)})


def _read(path: Path) -> tuple[tuple[int, int, int], list[bytes]]:
    """When the file was written, and what its tokens hash to. Raises InputError."""
    stamp = _stamp_of(path)
    if stamp[1] > LARGEST:
        raise InputError(f"{path}: expected tokens, one for each line, got {stamp[1]} bytes.")
    try:
        lines = [line.strip() for line in path.read_bytes().splitlines()]
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}.") from None
    tokens = [line for line in lines if line]
    if not tokens or min(map(len, tokens)) < SHORTEST:
        got = f"one of {min(map(len, tokens))}" if tokens else "none"
        raise InputError(f"{path}: expected a token of {SHORTEST} characters or more on each line, got {got}.")
    return stamp, [_digest(token) for token in tokens]


def _stamp_of(path: Path) -> tuple[int, int, int]:
    try:
        status = path.stat()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}.") from None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _digest(token: bytes) -> bytes:
    """All of one length, so that comparing tells nothing of a token's own."""
    return hashlib.sha256(token).digest()
