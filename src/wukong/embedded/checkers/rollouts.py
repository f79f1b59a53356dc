"""Whoever replaces the versions of a Rollout keeps what it promises: traffic finds as many ready pods as before.

    a controller switches the active Service ─► as many pods are ready behind it as before, or as many as asked for
    a controller scales down the version behind the active Service ─► not below what is asked for
    a controller scales down a version of a canary ─► no fewer ready pods are left than maxUnavailable allows
    at rest ─► the active Service selects the stable version, and no other has pods but one in flight or in its delay

Each must hold now or by the mirror of who acted: he may not have heard yet. What people do is not judged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from wukong.api.apps import ReplicaSet
from wukong.api.core import Pod, Service
from wukong.api.kinds import REPLICA_SETS, SERVICES
from wukong.api.meta import controller_of
from wukong.api.resources import Key
from wukong.api.rollout import BlueGreen, Canary, Rollout
from wukong.embedded.checkers.acting_controller import acting_controller
from wukong.embedded.checkers.findings import Findings
from wukong.embedded.checkers.pods import is_active, is_ready, owned_pods
from wukong.embedded.checkers.touched_objects import TouchedObjects
from wukong.state import Change, State

_HASH = "placement.novasphere.dev/pod-template-hash"


class RolloutSteps:
    kinds: ClassVar[frozenset[str]] = frozenset({REPLICA_SETS.group_kind, SERVICES.group_kind})

    def __init__(self, findings: Findings) -> None:
        self.findings, self.world = findings, findings.world

    def fork(self, findings: Findings) -> RolloutSteps:
        return RolloutSteps(findings)

    def observe(self, change: Change) -> None:
        old, new = change.old, change.new
        if isinstance(old, Service) and isinstance(new, Service):
            if old.spec.selector != new.spec.selector:
                self._check_switch(change.key, old, new)
        elif isinstance(old, ReplicaSet) and isinstance(new, ReplicaSet) and _size_of(new) < _size_of(old):
            self._check_size(change.key, new, _size_of(old))

    def _check_switch(self, key: Key, old: Service, new: Service) -> None:
        def is_kept(state: State) -> bool:
            replicas = [
                rollout.spec.replicas
                for rollout in state.all(Rollout)
                if rollout.metadata.namespace == key.namespace and _active_service_of(rollout) == key.name
            ]
            if not replicas:
                return True
            before, after = (_count_ready(state, key.namespace, one.spec.selector or {}) for one in (old, new))
            return after >= min(max(replicas), before)

        if not self._holds(is_kept):
            self.findings.report(f"service {key}", "switched to a version with fewer ready pods than before")

    def _check_size(self, key: Key, replica_set: ReplicaSet, before: int) -> None:
        def is_kept(state: State) -> bool:
            owner = controller_of(replica_set.metadata)
            rollout = state.get(Rollout, Key(key.namespace, owner.name)) if owner is not None else None
            if rollout is None or owner is None or rollout.metadata.uid != owner.uid:
                return True
            if (canary := rollout.spec.strategy.canary) is not None:
                return _leaves_enough(rollout, canary, replica_set, before, state)
            service = state.get(Service, Key(key.namespace, _active_service_of(rollout)))
            selected = (service.spec.selector or {}).get(_HASH) if service is not None else None
            is_active_version = selected == replica_set.metadata.labels.get(_HASH)
            return not is_active_version or _size_of(replica_set) >= rollout.spec.replicas

        if not self._holds(is_kept):
            text = f"scaled from {before} to {_size_of(replica_set)}, which leaves too few pods for the traffic"
            self.findings.report(f"replicaset {key}", text)

    def _holds(self, rule: Callable[[State], bool]) -> bool:
        actor = acting_controller(self.world)
        return actor is None or rule(self.world.state) or rule(actor.mirror())


def check(findings: Findings, touched: TouchedObjects) -> None:
    """What must hold at rest, of the Rollouts that were touched since this was last asked and have a controller."""
    state = findings.world.state
    for rollout in touched.list_all(Rollout, state):
        status, namespace = rollout.status, rollout.metadata.namespace
        if status.phase in ("", "NotAccepted") or status.observed_generation != rollout.metadata.generation:
            continue
        service = state.get(Service, Key(namespace, _active_service_of(rollout)))
        selected = (service.spec.selector or {}).get(_HASH, status.stable) if service is not None else status.stable
        if selected != status.stable:
            findings.report(f"rollout {rollout.key}", f"at rest its Service selects {selected}, not {status.stable}")
        kept = {status.stable, status.current, status.previous}
        for replica_set in _list_versions(rollout, state):
            if _size_of(replica_set) and replica_set.metadata.labels.get(_HASH) not in kept:
                findings.report(f"replicaset {replica_set.key}", "at rest it has pods, and nobody needs its version")


def _leaves_enough(rollout: Rollout, canary: Canary, scaled: ReplicaSet, before: int, state: State) -> bool:
    """Whether enough ready pods stay, or none that is ready has to go."""
    ready = {one.metadata.uid: _count_ready_pods(one, state) for one in _list_versions(rollout, state)}
    own = ready.get(scaled.metadata.uid, 0)
    if _size_of(scaled) >= own:
        return True
    others = [one for one in _list_versions(rollout, state) if one.metadata.uid != scaled.metadata.uid]
    left = _size_of(scaled) + sum(min(ready[one.metadata.uid], _size_of(one)) for one in others)
    return left >= rollout.spec.replicas - _count_unavailable(canary, rollout.spec.replicas)


def _count_unavailable(canary: Canary, replicas: int) -> int:
    amounts = []
    for value in (canary.max_unavailable, canary.max_surge):
        amounts.append(int(value[:-1]) * replicas / 100 if isinstance(value, str) else float(value))
    unavailable, surge = amounts
    return int(unavailable) if int(unavailable) or surge else 1


def _list_versions(rollout: Rollout, state: State) -> list[ReplicaSet]:
    keys = state.owners.owned_by(rollout.metadata.uid, REPLICA_SETS)
    return [one for key in keys if (one := state.get(ReplicaSet, key)) is not None]


def _count_ready_pods(replica_set: ReplicaSet, state: State) -> int:
    return sum(is_ready(pod) and is_active(pod) for pod in owned_pods(state, replica_set.metadata.uid))


def _count_ready(state: State, namespace: str, selector: dict[str, str]) -> int:
    pods = [pod for pod in state.all(Pod) if pod.metadata.namespace == namespace]
    chosen = [pod for pod in pods if selector and selector.items() <= pod.metadata.labels.items()]
    return sum(is_ready(pod) and is_active(pod) for pod in chosen)


def _active_service_of(rollout: Rollout) -> str:
    part: BlueGreen | None = rollout.spec.strategy.blue_green or rollout.spec.strategy.bluegreen
    return part.active_service if part is not None else ""


def _size_of(replica_set: ReplicaSet) -> int:
    return 1 if replica_set.spec.replicas is None else replica_set.spec.replicas
