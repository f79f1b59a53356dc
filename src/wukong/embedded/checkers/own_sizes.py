"""At rest every workload has the size that people gave it, whatever controllers did to it meanwhile.

Workloads that have an autoscaler are its own: their size is not judged here, nor that of ReplicaSets of Deployments.
"""

from __future__ import annotations

from wukong.api.apps import Deployment, ReplicaSet, Workload
from wukong.api.autoscaling import HorizontalPodAutoscaler
from wukong.api.meta import controller_of
from wukong.api.resources import Key
from wukong.embedded.checkers.acting_controller import acting_controller
from wukong.embedded.checkers.findings import Findings
from wukong.state import Change, State

Place = tuple[str, Key]  # kind and key


class OwnSizes:
    """Remembers only workloads that a controller has scaled since they were last looked at."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self._sizes: dict[Place, int] = {}

    def fork(self, findings: Findings) -> OwnSizes:
        copy = OwnSizes(findings)
        copy._sizes = dict(self._sizes)
        return copy

    def observe(self, change: Change) -> None:
        old, new = change.old, change.new
        if not isinstance(old, Deployment | ReplicaSet):
            return
        place = (type(old).__name__, change.key)
        if not isinstance(new, Deployment | ReplicaSet) or new.metadata.uid != old.metadata.uid:
            self._sizes.pop(place, None)
        elif old.spec.replicas != new.spec.replicas and controller_of(new.metadata) is None:
            if acting_controller(self.findings.world) is None:
                self._sizes.pop(place, None)  # people want it so
            else:
                self._sizes.setdefault(place, _size_of(old))

    def check(self) -> None:
        state = self.findings.world.state
        for (kind, key), size in sorted(self._sizes.items()):
            workload = state.get(Deployment if kind == "Deployment" else ReplicaSet, key)
            if workload is None or _has_autoscaler(kind, key, state):
                continue
            if _size_of(workload) != size:
                text = f"at rest it has {_size_of(workload)} replicas, and nobody asked for more or less than {size}"
                self.findings.report(f"{kind.lower()} {key}", text)
        self._sizes.clear()


def _size_of(workload: Workload) -> int:
    return 1 if workload.spec.replicas is None else workload.spec.replicas


def _has_autoscaler(kind: str, key: Key, state: State) -> bool:
    return any(
        (one.spec.scale_target_ref.kind, one.spec.scale_target_ref.name) == (kind, key.name)
        for one in state.all(HorizontalPodAutoscaler)
        if one.metadata.namespace == key.namespace
    )
