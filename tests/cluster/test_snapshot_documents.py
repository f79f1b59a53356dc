"""Snapshots read as documents, for a simulation: what it plays on, and what is left out and counted."""

from __future__ import annotations

import json
from collections import Counter as Tally
from pathlib import Path
from typing import Any

import pytest
import yaml

from wukong.cluster.snapshot_documents import MARK, read_documents
from wukong.errors import InputError

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


@pytest.mark.parametrize(
    ("mark", "is_reduced", "taken_at"),
    [
        ({"takenAt": "2026-01-01T00:00:00Z"}, True, "2026-01-01T00:00:00Z"),
        ({}, True, ""),
        (None, False, ""),
        ("yes", False, ""),
    ],
)
def test_only_a_snapshot_of_ours_is_reduced_and_says_when_it_was_taken(
    mark: object, is_reduced: bool, taken_at: str, tmp_path: Path
) -> None:
    """What kubectl wrote has every field, and what differs from it is a change."""
    path = tmp_path / "snapshot.json"
    marked = {} if mark is None else {MARK: mark}
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", **marked, "items": [POD]}))
    documents = read_documents(str(path), Tally())
    assert (documents.is_reduced, documents.taken_at) == (is_reduced, taken_at)
    assert [item["kind"] for item in documents.items] == ["Pod"]


def test_a_snapshot_that_was_taken_at_no_time_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", MARK: {"takenAt": "yesterday"}, "items": [POD]}))
    with pytest.raises(InputError, match=r"\$\.wukongSnapshot\.takenAt: expected a time such as .*, got 'yesterday'"):
        read_documents(str(path), Tally())


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ([POD], "Pod default/web"),
        ([{**POD, "metadata": {"name": "web", "namespace": "default"}}], "Pod default/web"),
        ([{"kind": "Node", "metadata": {"name": "n"}}] * 2, "Node n"),
        ([{**POD, "metadata": {"name": "web", "namespace": "shop"}}], ""),
    ],
)
def test_what_is_there_twice_is_told(objects: list[dict[str, Any]], expected: str, tmp_path: Path) -> None:
    path = a_snapshot(tmp_path, *objects)
    if not expected:
        assert len(read_documents(path, Tally()).items) == 2
        return
    with pytest.raises(InputError, match=expected):
        read_documents(path, Tally())


def test_yaml_is_read_as_json_is(tmp_path: Path) -> None:
    written, path = a_snapshot(tmp_path, {"kind": "Node", "metadata": {"name": "n"}}), tmp_path / "snapshot.yaml"
    path.write_text(yaml.safe_dump(json.loads(Path(written).read_text())))
    assert read_documents(str(path), Tally()).items == read_documents(written, Tally()).items
