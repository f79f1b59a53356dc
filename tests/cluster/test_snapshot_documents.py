"""Snapshots read as documents, for a simulation: what it plays on, and what is left out and counted."""

from __future__ import annotations

import json
from collections import Counter as Tally
from pathlib import Path
from typing import Any

import pytest

from wukong.cluster.snapshot_documents import read_documents

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {"containers": [{"name": "web", "image": "web:1"}]},
}


def a_snapshot(folder: Path, *objects: dict[str, Any]) -> str:
    path = folder / "snapshot.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [POD, *objects]}))
    return str(path)


@pytest.mark.parametrize(
    ("version", "kind", "is_read"),
    [
        ("batch/v1", "Job", True),
        ("batch/v1beta1", "Job", False),
        ("", "Job", True),
        ("apps/v1", "ControllerRevision", True),
        ("apps/v1beta2", "ControllerRevision", False),
        ("v1", "ConfigMap", False),
    ],
)
def test_what_is_not_read_is_counted(version: str, kind: str, is_read: bool, tmp_path: Path) -> None:
    skipped: Tally[str] = Tally()
    document = {"kind": kind, "metadata": {"name": "a"}} | ({"apiVersion": version} if version else {})
    kinds = [item["kind"] for item in read_documents(a_snapshot(tmp_path, document), skipped).items]
    assert kinds == (["Pod", kind] if is_read else ["Pod"])
    assert skipped == ({} if is_read else {kind: 1})
