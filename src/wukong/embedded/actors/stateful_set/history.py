"""The revisions of a StatefulSet as ControllerRevisions: created, renumbered when one comes back, deleted when old.

Called by sync.py and controller.py. Pods below a partition come back as they were, so templates are stored whole. Names
of new revisions end in our own hash of the template; see deployment/revisions.py.
"""

from __future__ import annotations

from wukong.actions import Action, Create, Delete, Patch
from wukong.api.kinds import CONTROLLER_REVISIONS, STATEFUL_SETS
from wukong.api.meta import controller_of
from wukong.api.resources import Key, key_of
from wukong.embedded.actors import pods
from wukong.embedded.actors.controller_revisions import find_revision_hash
from wukong.embedded.world import objects
from wukong.embedded.world.objects import ControllerRevision, StatefulSet
from wukong.ports import Document, PatchBody
from wukong.state import State

_HISTORY_LIMIT = 10  # where the StatefulSet names none


class History:
    """`current` and `update` are the names of the revisions that the StatefulSet has and wants."""

    def __init__(self, stateful_set: StatefulSet, state: State) -> None:
        self.set, meta = stateful_set, stateful_set.metadata
        owned = [state.get(ControllerRevision, key) for key in state.owners.owned_by(meta.uid, CONTROLLER_REVISIONS)]
        self.revisions = {revision.metadata.name: revision for revision in owned if revision is not None}
        self.update = f"{meta.name}-{find_revision_hash(stateful_set, state)}"
        namesake = state.get(ControllerRevision, Key(meta.namespace, self.update))
        self.orphan = namesake if namesake is not None and controller_of(namesake.metadata) is None else None
        current = stateful_set.status.current_revision
        self.current = current if current in self.revisions else self.update

    def template_of(self, name: str) -> Document:
        """The template of the revision of this name; the StatefulSet's own if there is no such revision."""
        revision = self.revisions.get(name)
        template: Document = objects.template_of(self.set) if revision is None else revision.data["spec"]["template"]
        return template

    def record_update(self) -> list[Action]:
        """Make the revision that is asked for the latest: create it, adopt it, or renumber it."""
        latest = max((revision.revision for revision in self.revisions.values()), default=0)
        key = Key(self.set.metadata.namespace, self.update)
        stored = self.revisions.get(self.update)
        if stored is not None and stored.revision == latest:
            return []
        if stored is not None:
            return [_patch(key, {"revision": latest + 1})]
        owners = [pods.reference_to(STATEFUL_SETS, self.set)]
        if self.orphan is not None:  # left behind by a StatefulSet of the same name
            return [_patch(key, {"metadata": {"uid": self.orphan.metadata.uid, "ownerReferences": owners}})]
        template = objects.template_of(self.set)
        meta: Document = {"name": key.name, "ownerReferences": owners}
        labels = (template.get("metadata") or {}).get("labels")
        meta |= {"labels": labels} if labels else {}
        body = {"metadata": meta, "data": {"spec": {"template": template}}, "revision": latest + 1}
        return [Create(CONTROLLER_REVISIONS, body, key.namespace)]

    def truncate(self, in_use: set[str]) -> list[Action]:
        """Delete the oldest revisions beyond the history's limit; never one that a pod has."""
        limit = self.set.document["spec"].get("revisionHistoryLimit")
        live = in_use | {self.update, self.current}
        old = [revision for name, revision in self.revisions.items() if name not in live]
        surplus = len(old) - (_HISTORY_LIMIT if limit is None else limit)
        oldest = sorted(old, key=lambda revision: (revision.revision, revision.metadata.name))[: max(0, surplus)]
        return [Delete(CONTROLLER_REVISIONS, key_of(revision), uid=revision.metadata.uid) for revision in oldest]


def _patch(key: Key, body: Document) -> Patch:
    return Patch(CONTROLLER_REVISIONS, key, PatchBody("merge", body, manager=pods.MANAGER))
