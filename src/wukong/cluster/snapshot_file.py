"""The file of a snapshot: a List as kubectl would print it, marked, with the time it was taken.

Written by `wukong snapshot` and `wukong sim run --save`, whole or not at all; read by snapshot_documents.py, files.py.
"""

from __future__ import annotations

import gzip
import os
from collections import Counter as Tally
from collections.abc import Sequence
from pathlib import Path

import msgspec

from wukong.cluster.snapshot_documents import MARK
from wukong.cluster.whole_file import write_whole_file
from wukong.errors import InputError
from wukong.ports import Document


def encode_snapshot(documents: Sequence[Document | msgspec.Raw], taken_at: str) -> bytes:
    """Return the text of a snapshot."""
    head = {"apiVersion": "v1", "kind": "List", MARK: {"version": 1, "takenAt": taken_at}}
    return msgspec.json.encode({**head, "items": documents}) + b"\n"


def write_snapshot(path: str, text: bytes) -> None:
    """Write it, with gzip if the name ends in .gz. Raises InputError if it cannot be; then what was there stays."""
    write_whole_file(path, gzip.compress(text) if path.endswith(".gz") else text)


def refuse_unwritable(path: str) -> None:
    """Raise InputError if a file cannot be put there, before long work is done for it."""
    target = Path(os.path.realpath(path))
    if target.is_dir() or not os.access(target if target.exists() else target.parent, os.W_OK):
        raise InputError(f"{path}: cannot be written. Name a file in a folder that is there and may be written to.")


def summarize(numbers: Tally[str]) -> str:
    """How many objects a snapshot holds, nodes and pods by name."""
    kinds = ", ".join(f"{numbers[kind]:,} {kind}" for kind in ("Node", "Pod"))
    total = numbers.total()
    return f"{kinds} and {total:,} object{'' if total == 1 else 's'} in all"
