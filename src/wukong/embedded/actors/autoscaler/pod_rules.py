"""Which pods wait for a node, which ones move when their node goes, and which ones keep it. Pure.

Read by scale_up.py, scale_down.py and node_removal.py. Follows the rules that cluster-autoscaler 1.35 has by default.
"""

from __future__ import annotations

from msgspec.structs import replace

from wukong.api.core import Pod as AnyPod
from wukong.api.meta import controller_of
from wukong.embedded.actors import pods
from wukong.embedded.actors.disruption.budget_index import BudgetIndex
from wukong.embedded.store.documents import parse_time, value_at
from wukong.embedded.world.objects import Pod
from wukong.state import State

SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
SAFE_VOLUMES = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
_MIRROR = "kubernetes.io/config.mirror"
_LOWEST_PRIORITY = -10  # expendable-pods-priority-cutoff: pods below it wait for room that others leave
NEW_SECONDS = 2.0  # while all pods that wait are newer, more may be about to come


def list_waiting(state: State) -> list[Pod]:
    """The pods that the scheduler could place nowhere, the most important first; daemons wait for their own node.

    One that it has a node for by now, though nobody has heard of the binding yet, is counted there.
    """
    placed = state.snapshot.pods
    waiting = [pod for pod in state.pods_on("") if isinstance(pod, Pod) and _is_waiting(pod) and pod.key not in placed]
    return sorted(waiting, key=lambda pod: (-(pod.spec.priority or 0), pod.key))


def _is_waiting(pod: Pod) -> bool:
    if not pods.is_active(pod) or (pod.spec.priority or 0) < _LOWEST_PRIORITY or is_daemon(pod):
        return False
    scheduled = pods.condition(pod, "PodScheduled")
    return scheduled is not None and scheduled.status == "False" and scheduled.reason == "Unschedulable"


def seconds_to_be_old(waiting: list[Pod], now: float) -> float:
    """Seconds until the oldest of these pods is no longer new; 0 if it is not."""
    created = [parse_time(pod.metadata.creation_timestamp) for pod in waiting if pod.metadata.creation_timestamp]
    return max(0.0, min(created) + NEW_SECONDS - now) if created else 0.0


def without_node(pod: Pod) -> Pod:
    """The pod as one that has no node yet."""
    return replace(pod, spec=replace(pod.spec, node_name=""))


def is_daemon(pod: AnyPod) -> bool:
    owner = controller_of(pod.metadata)
    return owner is not None and owner.kind == "DaemonSet"


def goes_with_node(pod: AnyPod) -> bool:
    """Whether a pod keeps no node and needs no other: a daemon, one of the node's own, or one that has ended."""
    return is_daemon(pod) or _MIRROR in pod.metadata.annotations or pod.is_finished


def list_moving(state: State, node: str) -> list[Pod]:
    """The pods that have to leave a node before it goes. Those that stop are on their way."""
    return [pod for pod in state.pods_on(node) if isinstance(pod, Pod) and not goes_with_node(pod)]


def find_blocker(pod: Pod, state: State) -> str:
    """Why this pod keeps its node; "" if it does not. Budgets are counted elsewhere."""
    safe = pod.metadata.annotations.get(SAFE_TO_EVICT)
    if safe == "true":
        return ""
    if safe == "false":
        return "is annotated as not safe to evict"
    if controller_of(pod.metadata) is None:
        return "has no controller that would replace it"
    if pod.metadata.namespace == "kube-system" and not state.index_of(BudgetIndex).of(pod):
        return "is of kube-system and has no PodDisruptionBudget"
    return "has local storage" if _has_local_storage(pod) else ""


def _has_local_storage(pod: Pod) -> bool:
    safe_volumes = {name.strip() for name in pod.metadata.annotations.get(SAFE_VOLUMES, "").split(",")}
    for volume in value_at(pod.document, "spec.volumes") or ():
        empty_dir = volume.get("emptyDir")
        is_on_disk = isinstance(empty_dir, dict) and empty_dir.get("medium") != "Memory"
        if (is_on_disk or volume.get("hostPath") is not None) and volume.get("name") not in safe_volumes:
            return True
    return False
