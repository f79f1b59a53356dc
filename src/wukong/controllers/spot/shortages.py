"""How many pods workloads are short of while nodes leave, and for how long. Pure but for what it remembers.

Used by history.py. A pod counts for its workload if it is ready, is not on its way out, and its Node is there: the API
calls the pods of a dead machine ready for a minute.
"""

from __future__ import annotations

from typing import NamedTuple

from wukong.api.apps import Deployment, ReplicaSet, ScaledWorkload, StatefulSet
from wukong.api.core import Node, Pod
from wukong.api.kinds import PODS
from wukong.api.meta import controller_of
from wukong.api.resources import Key
from wukong.api.spot import Move
from wukong.controllers.spot.owners import find_scaled_owner, is_ready, list_pods, list_replica_sets, move_key_of
from wukong.state import State

_SCALED: dict[str, type[ScaledWorkload]] = {"Deployment": Deployment, "ReplicaSet": ReplicaSet}


class WorkloadName(NamedTuple):
    namespace: str
    text: str  # Deployment/web; "" for a pod that nobody makes again


def name_workload(pod: Pod, state: State) -> WorkloadName:
    """Who makes this pod again."""
    owner, namespace = find_scaled_owner(pod, state), pod.metadata.namespace
    if owner is not None:
        return WorkloadName(namespace, f"{type(owner).__name__}/{owner.metadata.name}")
    reference = controller_of(pod.metadata)
    return WorkloadName(namespace, f"{reference.kind}/{reference.name}" if reference is not None else "")


def count_missing(name: WorkloadName, state: State) -> int:
    """How many pods a workload has too few of, a surge of ours aside; 0 for what has no size."""
    kind, _, title = name.text.partition("/")
    key = Key(name.namespace, title)
    if kind == "StatefulSet":
        stateful_set = state.get(StatefulSet, key)
        if stateful_set is None:
            return 0
        keys = state.owners.owned_by(stateful_set.metadata.uid, PODS)
        pods = [pod for it in keys if (pod := state.get(Pod, it)) is not None and not pod.is_terminating]
        return _subtract(stateful_set.spec.replicas, pods, state)
    read = _SCALED.get(kind)
    owner = state.get(read, key) if read is not None else None
    if owner is None:
        return 0
    move = state.get(Move, move_key_of(owner))
    is_surged = move is not None and move.spec.owner.uid == owner.metadata.uid
    wanted = move.spec.original if move is not None and is_surged else owner.spec.replicas
    pods = [pod for replica_set in list_replica_sets(owner, state) for pod in list_pods(replica_set, state)]
    return _subtract(wanted, pods, state)


def _subtract(wanted: int | None, pods: list[Pod], state: State) -> int:
    ready = sum(is_ready(pod) and state.get(Node, Key("", pod.spec.node_name)) is not None for pod in pods)
    return max(0, (1 if wanted is None else wanted) - ready)


class ShortageClock:
    """Missing pods by seconds, of each notice and workload. What is not written yet may be lost with its leader."""

    def __init__(self) -> None:
        self._by_notice: dict[str, dict[WorkloadName, tuple[float, int, float]]] = {}  # seconds, missing, since when

    def copy(self) -> ShortageClock:
        copy = ShortageClock()
        copy._by_notice = {notice: dict(clocks) for notice, clocks in self._by_notice.items()}
        return copy

    def advance(self, notice: str, name: WorkloadName, missing: int, now: float, written: int) -> int:
        """Whole seconds until now; from now on so many are missing. `written` is what a leader before us knew."""
        clocks = self._by_notice.setdefault(notice, {})
        seconds, before, since = clocks.get(name, (float(written), 0, now))
        seconds = max(seconds + before * max(0.0, now - since), float(written))
        clocks[name] = (seconds, missing, now)
        return int(seconds)

    def forget(self, notice: str) -> None:
        self._by_notice.pop(notice, None)
