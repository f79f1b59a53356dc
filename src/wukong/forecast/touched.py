"""Who else a change touches: pods that have to go, and budgets that are used up or broken on the way.

Listens to a world while a change is played on it (play.py), and never writes.
"""

from __future__ import annotations

from wukong.api.kinds import DAEMON_SETS, POD_DISRUPTION_BUDGETS, PODS
from wukong.api.meta import controller_of
from wukong.api.resources import refers_to
from wukong.embedded.actors import pods as podlike
from wukong.embedded.scenario.record.recorder import Recorder
from wukong.embedded.world.objects import Pod, PodDisruptionBudget
from wukong.embedded.world.world import World
from wukong.forecast.fields import BudgetUse, DisruptedPod, DisruptionCause
from wukong.ports import Document
from wukong.state import Change

_CAUSES: dict[str, DisruptionCause] = {
    "PreemptionByScheduler": "preempted",
    "EvictionByEvictionAPI": "evicted",
    "DeletionByTaintManager": "driven out by a taint",
    "DeletionByPodGC": "lost with its node",
}


class TouchedObjects:
    def __init__(self, world: World, recorder: Recorder) -> None:
        self._recorder = recorder
        self._disrupted: dict[str, DisruptedPod] = {}  # by uid
        self._budgets: dict[str, BudgetUse] = {}
        self._healthy_before: dict[str, int] = {}
        world.listen(self.hear)

    def hear(self, change: Change) -> None:
        if change.group_kind == PODS.group_kind:
            if isinstance(change.new, Pod):
                self._hear_pod(change.new)
        elif change.group_kind == POD_DISRUPTION_BUDGETS.group_kind and isinstance(change.new, PodDisruptionBudget):
            self._hear_budget(change.old, change.new)

    def _hear_pod(self, pod: Pod) -> None:
        disruption, uid = podlike.condition(pod, "DisruptionTarget"), pod.metadata.uid
        if disruption is None or disruption.status != "True" or uid in self._disrupted:
            return
        owner = controller_of(pod.metadata)
        if owner is not None and refers_to(owner, DAEMON_SETS):  # they come and go with their nodes
            return
        self._disrupted[uid] = DisruptedPod(
            workload=self._recorder.workload_of(uid) if owner is not None else "",
            pod=pod.key,
            node=pod.spec.node_name,
            cause=_CAUSES.get(disruption.reason, "evicted"),
            at=self._recorder.seconds_since_start(),
        )

    def _hear_budget(self, old: object, new: PodDisruptionBudget) -> None:
        """A status that does not know its spec yet says nothing."""
        status: Document = new.document.get("status") or {}
        if "desiredHealthy" not in status or status.get("observedGeneration", 0) < new.metadata.generation:
            return
        healthy, desired, allowed = (
            status.get(name, 0) for name in ("currentHealthy", "desiredHealthy", "disruptionsAllowed")
        )
        use = self._budgets.get(new.key)
        if use is None:
            before: Document = (old.document.get("status") or {}) if isinstance(old, PodDisruptionBudget) else {}
            use = self._budgets[new.key] = BudgetUse(
                name=new.key,
                allowed_before=before.get("disruptionsAllowed", allowed),
                min_allowed=before.get("disruptionsAllowed", allowed),
                min_healthy=before.get("currentHealthy", healthy),
                desired_healthy=before.get("desiredHealthy", desired),
            )
            self._healthy_before[new.key] = use.min_healthy
        use.min_allowed, use.min_healthy = min(use.min_allowed, allowed), min(use.min_healthy, healthy)
        use.desired_healthy = desired
        use.is_broken = use.is_broken or healthy < min(desired, self._healthy_before[new.key])

    def list_disrupted(self) -> list[DisruptedPod]:
        return sorted(self._disrupted.values(), key=lambda pod: (pod.at, pod.pod))

    def list_budgets(self) -> list[BudgetUse]:
        """Those that allowed evictions before and none at some time, and those that were broken."""
        return [
            use
            for _, use in sorted(self._budgets.items())
            if use.is_broken or (use.min_allowed == 0 and use.allowed_before > 0)
        ]
