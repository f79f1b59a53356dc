"""The namespace controller: empties a namespace that is being deleted, then ends it.

What is to be deleted is decided by store/namespaces.py, which reads the database itself. Looks again every second while
the namespace is not empty.
"""

from __future__ import annotations

from typing import ClassVar

from wukong.actions import DONE, Outcome, Patch
from wukong.api.kinds import NAMESPACES
from wukong.api.resources import Key
from wukong.embedded.store import Server, namespaces
from wukong.embedded.world.transport import FINALIZE
from wukong.ports import PatchBody
from wukong.state import State
from wukong.state.controller import PodRight, Watch


class Namespaces:
    name = "namespace"
    pod_rights: ClassVar[frozenset[PodRight]] = frozenset({PodRight.DELETE_WITH_NAMESPACE})
    watches = (Watch(NAMESPACES),)

    def __init__(self, server: Server) -> None:
        self.database, self.kinds = server.database, server.kinds

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        if key.name not in namespaces.list_terminating(self.database):
            return DONE
        if namespaces.is_empty(self.database, self.kinds, key.name):
            return Outcome((Patch(NAMESPACES, key, PatchBody("merge", {}), FINALIZE),))
        return Outcome(tuple(namespaces.plan_deletions(self.database, self.kinds, key.name)), requeue_after=1.0)
