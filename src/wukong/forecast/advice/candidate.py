"""A change that may make another change safe: what it is in words, what it gives up, and how it is made. Only data.

Candidates are ordered by what they give up first, then by how much they write; docs/plan.md says so to users.
"""

from __future__ import annotations

from enum import IntEnum

import msgspec

from wukong.embedded.scenario.format.fields import PatchTarget, TimelineEntry
from wukong.forecast.advice.patches import count_fields, make_patch
from wukong.forecast.planned_change import PlannedChange
from wukong.ports import Document


class Loss(IntEnum):
    """What is given up, the least first."""

    NOTHING = 0  # that lasts longer than the change
    AVAILABILITY = 1  # fewer pods are available while it lasts
    SEPARATION = 2  # pods may share a domain that were to be apart
    DEDICATION = 3  # pods may run on nodes that were not meant for them
    MONEY = 4  # more nodes
    PROTECTION = 5  # a budget allows more
    CAPACITY = 6  # fewer or smaller pods
    SERVICE = 7  # all pods are gone for a while


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    code: str  # for programs: match-label-keys
    text: str  # one sentence: what to do
    loss: Loss
    gives_up: str  # one sentence: what that costs
    patches: tuple[Document, ...] = ()  # strategic merge patches, each with the head of its object
    nodes: tuple[Document, ...] = ()  # to add
    steps: tuple[TimelineEntry, ...] = ()  # such as an uncordon

    @property
    def order(self) -> tuple[int, int, str]:
        return self.loss, sum(map(count_fields, self.patches)) + len(self.nodes) + len(self.steps), self.text

    def apply_to(self, change: PlannedChange) -> PlannedChange:
        """The change with this made too: in the documents that it applies, or as patches before its own steps."""
        documents, steps = list(change.documents), list(self.steps)
        for patch in self.patches:
            index = next((index for index, document in enumerate(documents) if is_same(document, patch)), None)
            if index is not None:
                documents[index] = make_patch(documents[index], patch)
            else:
                steps.append(_patch_step(patch))
        return msgspec.structs.replace(
            change,
            documents=tuple(documents),
            nodes=(*change.nodes, *self.nodes),
            steps=(*steps, *change.steps),
        )


def is_same(document: Document, other: Document) -> bool:
    """Whether two documents are of the same object."""
    return identify(document) == identify(other)


def identify(document: Document) -> tuple[str, str, str, str]:
    """The apiVersion, kind, namespace and name of a document's object. Without a namespace it is in default."""
    meta = document.get("metadata") or {}
    return document.get("apiVersion") or "", document["kind"], meta.get("namespace") or "default", meta.get("name", "")


def _patch_step(patch: Document) -> TimelineEntry:
    api_version, kind, namespace, name = identify(patch)
    body = {part: value for part, value in patch.items() if part not in ("apiVersion", "kind", "metadata")}
    target = PatchTarget(kind=kind, name=name, namespace=namespace, api_version=api_version, patch=body)
    return TimelineEntry(at="0s", patch=target)
