"""The revisions of a StatefulSet as ControllerRevisions: kept, renumbered when one comes back, forgotten when old.

Called by stateful_set.py. What is below a partition comes back as it was, so templates are kept whole. Names of
new ones are made of our own hash of the template; see revisions.py.
"""

from __future__ import annotations

from wukong.actions import Action, Create, Delete, Patch
from wukong.api.kinds import CONTROLLER_REVISIONS
from wukong.api.meta import controller_of
from wukong.api.resources import Key, key_of
from wukong.embedded.actors import pods
from wukong.embedded.actors.controller_revisions import hash_for
from wukong.embedded.world.objects import ControllerRevision, StatefulSet, template_of
from wukong.ports import Document, PatchBody
from wukong.state import State

_LIMIT = 10


class History:
    def __init__(self, stateful_set: StatefulSet, state: State) -> None:
        self.set, meta = stateful_set, stateful_set.metadata
        owned = state.owners.owned_by(meta.uid, CONTROLLER_REVISIONS)
        kept = [state.get(ControllerRevision, key) for key in owned]
        self.kept = {it.metadata.name: it for it in kept if it is not None}
        self.update = f"{meta.name}-{hash_for(stateful_set, state)}"
        found = state.get(ControllerRevision, Key(meta.namespace, self.update))
        self.orphan = found if found is not None and controller_of(found.metadata) is None else None
        held = stateful_set.status.current_revision
        self.current = held if held in self.kept else self.update

    def template(self, revision: str) -> Document:
        kept = self.kept.get(revision)
        template: Document = template_of(self.set) if kept is None else kept.data["spec"]["template"]
        return template

    def recorded(self) -> list[Action]:
        """The revision asked for becomes the latest, whether nobody kept it yet or it was there before."""
        latest = max((it.revision for it in self.kept.values()), default=0)
        key = Key(self.set.metadata.namespace, self.update)
        known = self.kept.get(self.update)
        if known is not None and known.revision == latest:
            return []
        if known is not None:
            return [
                Patch(CONTROLLER_REVISIONS, key, PatchBody("merge", {"revision": latest + 1}, manager=pods.MANAGER))
            ]
        owners = [pods.reference("StatefulSet", "apps/v1", self.set)]
        if self.orphan is not None:  # left behind by a set of the same name
            adopted = {"metadata": {"uid": self.orphan.metadata.uid, "ownerReferences": owners}}
            return [Patch(CONTROLLER_REVISIONS, key, PatchBody("merge", adopted, manager=pods.MANAGER))]
        template = template_of(self.set)
        meta: Document = {"name": key.name, "ownerReferences": owners}
        labels = (template.get("metadata") or {}).get("labels")
        meta |= {"labels": labels} if labels else {}
        body = {"metadata": meta, "data": {"spec": {"template": template}}, "revision": latest + 1}
        return [Create(CONTROLLER_REVISIONS, body, key.namespace)]

    def forgotten(self, in_use: set[str]) -> list[Action]:
        """The oldest revisions beyond the history's limit; never one that a pod has."""
        limit = self.set.document["spec"].get("revisionHistoryLimit")
        old = [it for name, it in self.kept.items() if name not in in_use | {self.update, self.current}]
        surplus = len(old) - (_LIMIT if limit is None else limit)
        leaving = sorted(old, key=lambda it: (it.revision, it.metadata.name))[: max(0, surplus)]
        return [Delete(CONTROLLER_REVISIONS, key_of(it), uid=it.metadata.uid) for it in leaving]
