"""Whose object is it: everything that a run makes carries the run's label, and so do the pods and claims made for it.

Used by real_cluster.py when it writes, by watch_source.py and cleanup.py when they tell own objects from others'. A
name proves nothing: controllers of others name pods alike, and others may make an object of the same name meanwhile.
"""

from __future__ import annotations

from typing import Any

import msgspec

from wukong.api.kinds import PERSISTENT_VOLUME_CLAIMS
from wukong.api.meta import Object
from wukong.api.resources import Key, Resource
from wukong.ports import Document

RUN_LABEL = "sim.novasphere.dev/run"
CREATOR = "wukong"  # the field manager of `Cluster.create`
# What controllers copy labels from: pods, ReplicaSets and revisions have a template's, Jobs a job template's. Claims of
# a StatefulSet outlive it.
_TEMPLATES = (("spec", "template"), ("spec", "jobTemplate"), ("spec", "jobTemplate", "spec", "template"))
_CLAIM_TEMPLATES = ("spec", "volumeClaimTemplates")
LEFT_BEHIND = (PERSISTENT_VOLUME_CLAIMS,)  # kinds of which nobody but the run removes what was made for it


class CreatedObject(msgspec.Struct, frozen=True):
    """What the run created, or tried to: the uid is "" while nobody knows whether it has happened."""

    resource: Resource
    key: Key
    uid: str = ""


def label_document(document: Document, run: str) -> Document:
    """Return a copy of the document that carries the run's label, as its templates do."""
    labelled: Document = msgspec.json.decode(msgspec.json.encode(document))
    _add_label(labelled, run)
    for path in _TEMPLATES:
        template = _value_at(labelled, path)
        if isinstance(template, dict):
            _add_label(template, run)
    for claim in _value_at(labelled, _CLAIM_TEMPLATES) or ():
        _add_label(claim, run)
    return labelled


def carries_label(document: Document, run: str) -> bool:
    return bool(((document.get("metadata") or {}).get("labels") or {}).get(RUN_LABEL) == run)


def is_labelled(subject: Object, run: str) -> bool:
    return subject.metadata.labels.get(RUN_LABEL) == run


def uid_of(document: Document) -> str:
    return str(document["metadata"]["uid"])


def fields_to_apply(document: Document, manager: str) -> list[Document] | None:
    """Return the managedFields with which `manager` has applied what was created; None where that is so already.

    Without it an apply could not remove a field again: who created the object would own it still.
    """
    entries: list[Document] = document["metadata"].get("managedFields") or []
    created = [entry for entry in entries if _is_by_creator(entry)]
    if not created:
        return None
    applied = [{**entry, "manager": manager, "operation": "Apply"} for entry in created]
    return [*applied, *(entry for entry in entries if not _is_by_creator(entry))]


def _is_by_creator(entry: Document) -> bool:
    return entry["manager"] == CREATOR and entry["operation"] == "Update" and not entry.get("subresource")


def _add_label(document: Document, run: str) -> None:
    meta = document["metadata"] = dict(document.get("metadata") or {})
    meta["labels"] = {**(meta.get("labels") or {}), RUN_LABEL: run}


def _value_at(document: Document, path: tuple[str, ...]) -> Any:
    value: Any = document
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value
