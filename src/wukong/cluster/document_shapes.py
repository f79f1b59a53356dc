"""Checks the parts of a snapshot's documents that a simulation reads as they are, beyond what the kinds' structs hold.

Called by snapshot_documents.py. An API server lets nothing else pass; a file may hold anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec

from wukong.api.decode import readable
from wukong.api.documents import without_nulls
from wukong.api.kinds import KINDS, NODES, PODS
from wukong.ports import Document

# As the API writes times. A year beyond this is no time of a cluster, and clocks that go on from it overflow.
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)")
_LAST_YEAR = "2199"
_PERCENT = re.compile("[0-9]{1,9}%")
_ROLLING = "rollingUpdate"
_SHARES = {  # by kind, the fields that hold a number of pods or a share of them
    "Deployment": (f"spec.strategy.{_ROLLING}.maxSurge", f"spec.strategy.{_ROLLING}.maxUnavailable"),
    "StatefulSet": (f"spec.updateStrategy.{_ROLLING}.maxUnavailable",),
    "DaemonSet": (f"spec.updateStrategy.{_ROLLING}.maxSurge", f"spec.updateStrategy.{_ROLLING}.maxUnavailable"),
    "PodDisruptionBudget": ("spec.minAvailable", "spec.maxUnavailable"),
}
_TYPED = (PODS, NODES)  # most of a snapshot; their structs hold what is read of them
_Text = str | None


class _Shape(msgspec.Struct, rename="camel"):
    pass


class _Owner(_Shape):
    api_version: _Text = None
    kind: _Text = None
    name: _Text = None
    uid: _Text = None


class _Meta(_Shape):
    name: _Text = None
    namespace: _Text = None
    uid: _Text = None
    creation_timestamp: _Text = None
    deletion_timestamp: _Text = None
    labels: dict[str, _Text] | None = None
    annotations: dict[str, _Text] | None = None
    owner_references: list[_Owner] | None = None
    finalizers: list[str] | None = None
    generation: int | None = None


class _Condition(_Shape):
    type: _Text = None
    status: _Text = None
    reason: _Text = None
    message: _Text = None
    last_transition_time: _Text = None
    last_update_time: _Text = None
    last_heartbeat_time: _Text = None


class _Status(_Shape):
    start_time: _Text = None
    completion_time: _Text = None
    conditions: list[_Condition] | None = None
    disrupted_pods: dict[str, _Text] | None = None


class _PodSpec(_Shape):
    containers: list[dict[str, Any]] | None = None
    init_containers: list[dict[str, Any]] | None = None
    volumes: list[dict[str, Any]] | None = None


class _Template(_Shape):
    metadata: _Meta | None = None
    spec: _PodSpec | None = None


class _Spec(_Shape):
    template: _Template | None = None


class _Data(_Shape):
    spec: _Spec | None = None


class _Document(_Shape):
    metadata: _Meta | None = None
    status: _Status | None = None


class _Workload(_Document):
    spec: _Spec | None = None


class _Revision(_Document):
    data: _Data | None = None


def find_shape_problems(document: Document, *, is_decoded: bool = False) -> Iterator[str]:
    """Yield what is wrong with a document, each with its path. Those of unknown kinds are for others to judge.

    `is_decoded`: a document of a kind that decides has been decoded into its struct before. Of pods and nodes, most of
    a snapshot, the times are then left to find_time_problems.
    """
    kind = KINDS.of_document(str(document["kind"]), str(document.get("apiVersion") or ""))
    if kind is None:
        return
    if is_decoded and kind.resource in _TYPED:
        return
    shape = {"Job": _Workload, "ControllerRevision": _Revision}.get(kind.resource.kind, _Document)
    try:
        msgspec.convert(document, shape)
        if not kind.decides:
            msgspec.convert(without_nulls(document), kind.struct)
    except msgspec.ValidationError as error:
        yield readable(error)
        return
    yield from _find_share_problems(kind.resource.kind, document)
    yield from find_time_problems(document)


def _find_share_problems(kind: str, document: Document) -> Iterator[str]:
    """Yield the numbers of pods that are neither whole nor percentages: an API server has always refused them."""
    for path in _SHARES.get(kind, ()):
        value: Any = document
        for name in path.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        is_number = isinstance(value, int) and not isinstance(value, bool)
        if value is not None and not is_number and not (isinstance(value, str) and _PERCENT.fullmatch(value)):
            yield f'$.{path}: expected a number of pods, or a share such as "25%", got {value!r:.60}. Mend it.'


def find_time_problems(document: Document) -> Iterator[str]:
    for path, text in _list_times(document):
        if text and not is_time(text):
            yield f'{path}: expected a time such as "2026-01-01T00:00:00Z", got {text!r:.60}. Mend it.'


def _list_times(document: Document) -> Iterator[tuple[str, str | None]]:
    meta, status = document.get("metadata") or {}, document.get("status") or {}
    yield "$.metadata.creationTimestamp", meta.get("creationTimestamp")
    yield "$.metadata.deletionTimestamp", meta.get("deletionTimestamp")
    yield "$.status.startTime", status.get("startTime")
    for condition in status.get("conditions") or ():
        for name in ("lastTransitionTime", "lastUpdateTime", "lastHeartbeatTime"):
            yield f"$.status.conditions.{name}", condition.get(name)
    for name, time in (status.get("disruptedPods") or {}).items():
        yield f"$.status.disruptedPods.{name}", time


@lru_cache(maxsize=4096)
def is_time(text: object) -> bool:
    """Tell whether a text is a time as the API writes them."""
    if not isinstance(text, str) or _TIME.fullmatch(text) is None or text[:4] > _LAST_YEAR:
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
