"""The version that a StatefulSet or a DaemonSet asks for: one that was kept with the same template, else a new one.

A cluster that was loaded from a snapshot keeps the names its own controllers gave; they are found by comparing
templates, as Kubernetes does. Called by stateful_history.py and daemon_set.py.
"""

from __future__ import annotations

from wukong.api.documents import without_nulls
from wukong.api.kinds import CONTROLLER_REVISIONS
from wukong.api.meta import Object
from wukong.embedded.actors.deployment.revisions import hash_of
from wukong.embedded.world.objects import ControllerRevision, template_of
from wukong.ports import Document
from wukong.state import State


def hash_for(owner: Object, state: State) -> str:
    """What the names of its revisions end in."""
    template, prefix = template_of(owner), f"{owner.metadata.name}-"
    wanted = None
    keys = state.owners.owned_by(owner.metadata.uid, CONTROLLER_REVISIONS)
    for kept in (state.get(ControllerRevision, key) for key in keys):
        wanted = _bare(template) if wanted is None else wanted
        if kept is not None and kept.metadata.name.startswith(prefix) and _kept(kept) == wanted:
            return kept.metadata.name.removeprefix(prefix)
    return hash_of(template)


def _kept(revision: ControllerRevision) -> Document:
    return _bare((revision.data.get("spec") or {}).get("template") or {})


def _bare(template: Document) -> Document:
    """Without the words that only patches need, and without what is null."""
    made: Document = without_nulls({name: value for name, value in template.items() if name != "$patch"})
    return made
