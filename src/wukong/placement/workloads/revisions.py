"""The versions of a workload that it can go back to: ReplicaSets of a Deployment, revisions of a StatefulSet. Pure.

Called by `wukong undo`, and where a canary fails. Going back is a change of the template like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from wukong.errors import InputError
from wukong.placement.workloads.progress import is_same_template, without_version_label
from wukong.placement.workloads.rules import REVISION
from wukong.ports import Document


class Revision(msgspec.Struct, frozen=True):
    number: int
    template: Document


def list_revisions(owned: Sequence[Document]) -> list[Revision]:
    """Of ReplicaSets or ControllerRevisions, the oldest first. What cannot be read is left out."""
    revisions = [revision for document in owned if (revision := _read_revision(document)) is not None]
    return sorted(revisions, key=lambda revision: revision.number)


def choose_revision(workload: Document, revisions: Sequence[Revision], number: int | None) -> Revision:
    """The one asked for, or without a number the one before what the workload is now. Raises InputError for none."""
    template = workload["spec"]["template"]
    if number is not None:
        chosen = next((revision for revision in revisions if revision.number == number), None)
        if chosen is None:
            known = ", ".join(str(revision.number) for revision in revisions) or "none"
            raise InputError(f"--to: there is no revision {number}; there are {known}.")
        return chosen
    others = [revision for revision in revisions if not is_same_template(revision.template, template)]
    if not others:
        raise InputError("there is no other revision to go back to.")
    return others[-1]


def restore_template(workload: Document, template: Document) -> Document:
    """The workload with this template. One that is paused goes on: nothing would come of it otherwise."""
    spec = {**workload["spec"], "template": template}
    if spec.get("paused"):
        del spec["paused"]
    return {**workload, "spec": spec}


def _read_revision(document: Document) -> Revision | None:
    if document.get("kind") == "ReplicaSet":
        text = ((document.get("metadata") or {}).get("annotations") or {}).get(REVISION)
        template: Any = (document.get("spec") or {}).get("template")
        number = int(text) if isinstance(text, str) and text.isascii() and text.isdigit() and len(text) < 19 else None
        template = without_version_label(template)
    else:
        number = document.get("revision")
        data = document.get("data")
        spec = data.get("spec") if isinstance(data, dict) else None
        template = spec.get("template") if isinstance(spec, dict) else None
        if isinstance(template, dict):
            template = {name: value for name, value in template.items() if name != "$patch"}
    if not isinstance(number, int) or not isinstance(template, dict) or not template:
        return None
    return Revision(number, template)
