"""Which workloads and nodes have changed lately: what a live view that has no room for all shows first.

Told of every change by spectator.py, read by live_state.py. Remembers no more than a screen could show many times over.
"""

from __future__ import annotations

from wukong.api.core import Node, Pod
from wukong.api.meta import Object

_MOST = 1000


class RecentChanges:
    def __init__(self) -> None:
        self._ranks: dict[str, dict[str, int]] = {"node": {}, "workload": {}}  # name → number of its last change
        self._changes = 0

    def note(self, old: Object | None, new: Object | None, workload: str) -> None:
        """A change of an object; `workload` is that of a pod."""
        changed = new or old
        if isinstance(changed, Pod):
            self._set("workload", workload)
            self._set("node", changed.spec.node_name)
        elif isinstance(changed, Node) and _is_visible(old, new):
            self._set("node", changed.metadata.name)

    def _set(self, kind: str, name: str) -> None:
        if not name:
            return
        ranks = self._ranks[kind]
        ranks.pop(name, None)
        self._changes += 1
        ranks[name] = self._changes  # the last of the dict is the latest
        if len(ranks) > _MOST:
            del ranks[next(iter(ranks))]

    def rank_node(self, name: str) -> int:
        """The later it changed the higher; 0 if it has not."""
        return self._ranks["node"].get(name, 0)

    def rank_workload(self, name: str) -> int:
        return self._ranks["workload"].get(name, 0)

    def list_nodes(self) -> list[str]:
        """Those that have changed, the latest first."""
        return [*reversed(self._ranks["node"])]


def _is_visible(old: Object | None, new: Object | None) -> bool:
    """Not what a kubelet writes to say that it is alive."""
    if not isinstance(old, Node) or not isinstance(new, Node):
        return True
    return old.spec != new.spec or _list_statuses(old) != _list_statuses(new)


def _list_statuses(node: Node) -> list[tuple[str, str]]:
    return [(condition.type, condition.status) for condition in node.status.conditions]
