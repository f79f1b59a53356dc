"""Nobody makes more pods than are wanted: a ReplicaSet as many as it asks for, a DaemonSet one for each node.

With surge a DaemonSet may have one of each version on a node.

A pod is wanted if it is missing now, or by the mirror of the process that makes it, less those this process has made
in the same decision: who has not heard yet that somebody else made them may make them again, in any cluster.
"""

from __future__ import annotations

from wukong.api.apps import DaemonSet
from wukong.api.core import Pod
from wukong.api.meta import Object, controller_of
from wukong.api.resources import Key
from wukong.embedded.checkers.active_pods import active_siblings
from wukong.embedded.checkers.findings import Findings
from wukong.embedded.checkers.pod_deletions import owner_of, target_of
from wukong.embedded.world.process import Process
from wukong.state import Change, State

MAKERS = ("replicaset", "daemonset")


class PodCreations:
    def __init__(self, desk: Findings) -> None:
        self.desk, self.world = desk, desk.world
        self._turn: tuple[Process | None, int] = (None, 0)
        self._made: list[Pod] = []  # in this decision

    def hear(self, change: Change) -> None:
        process, pod = self.world.acting, change.new
        if change.old is not None or not isinstance(pod, Pod) or process is None or process.acting is None:
            return
        if process.acting.controller not in MAKERS:
            return
        if self._turn != (process, process.turns):
            self._turn, self._made = (process, process.turns), []
        if not self._is_wanted(change.key, pod, process):
            self.desk.note(f"pod {change.key}", f"made by {process.acting.controller} although there were enough")
        self._made.append(pod)

    def _is_wanted(self, key: Key, pod: Pod, process: Process) -> bool:
        if _is_missing(pod, self.world.state, []):
            return True
        return process.state is not self.world.state and _is_missing(pod, process.state, self._made)


def _is_missing(pod: Pod, state: State, made: list[Pod]) -> bool:
    reference, owner = controller_of(pod.metadata), owner_of(pod, state)
    if owner is None or reference is None:
        return True  # it goes with its owner
    there, own = active_siblings(pod, state), pod.metadata.uid
    more = [it for it in made if it.metadata.uid not in there]
    if reference.kind == "DaemonSet":
        others = [it for it in (*there.values(), *more) if it.metadata.uid != own]
        beside = [it for it in others if target_of(it) == target_of(pod)]
        return not beside or (_surges(owner) and all(_version(it) != _version(pod) for it in beside))
    wanted: int | None = owner.spec.replicas  # type: ignore[attr-defined]
    return len(there) + len(more) - (own in there) < (1 if wanted is None else wanted)


def _surges(owner: Object) -> bool:
    strategy = owner.spec.update_strategy if isinstance(owner, DaemonSet) else None
    rolling = strategy.rolling_update if strategy is not None else None
    return rolling is not None and rolling.max_surge not in (None, 0, "0%")


def _version(pod: Pod) -> str:
    return pod.metadata.labels.get("controller-revision-hash", "")
