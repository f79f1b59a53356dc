"""The garbage collector: deletes objects whose owners are gone, and orphans or waits for dependents as deletions ask.

What is due is decided by store/garbage_collection.py, which reads the database itself; here it is asked near every
change, and the actions are handed to the world. The keys are uids: of the object that changed, and of its owners.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from wukong.actions import DONE, Outcome
from wukong.api.kinds import EVENTS, LEASES
from wukong.api.meta import Object
from wukong.api.resources import Key
from wukong.embedded.actors.watch_keys import has_same_owners
from wukong.embedded.store import Server, garbage_collection
from wukong.state import State
from wukong.state.controller import PodRight, Watch, each_side_unless


class GarbageCollector:
    name = "garbage"
    pod_rights: ClassVar[frozenset[PodRight]] = frozenset({PodRight.DELETE_DEPENDENTS})

    def __init__(self, server: Server) -> None:
        self.database, self.kinds = server.database, server.kinds
        self._candidates = server.garbage_candidates
        watched = [kind.resource for kind in server.kinds if kind.resource not in (EVENTS, LEASES)]
        find_keys = each_side_unless(has_same_owners)(self._find_keys)  # an object of another uid is another change
        self.watches = tuple(Watch(resource, find_keys) for resource in watched)

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        refs = self._candidates.list_near(key.name)
        return Outcome(tuple(garbage_collection.plan_actions(self.database, self.kinds, refs))) if refs else DONE

    def _find_keys(self, subject: Object, _: State) -> Iterable[Key]:
        """The uids, of the object and its owners, that have garbage candidates near. Most changes have none."""
        meta, has_near = subject.metadata, self._candidates.has_near
        keys = [Key("", meta.uid)] if has_near(meta.uid) else []
        for owner in meta.owner_references:
            if has_near(owner.uid):
                keys.append(Key("", owner.uid))
        return keys
