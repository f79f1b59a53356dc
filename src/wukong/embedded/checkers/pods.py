"""What checkers read from a pod, its owner and its siblings. Shared with no controller they judge."""

from __future__ import annotations

from wukong.api.apps import DaemonSet, StatefulSet
from wukong.api.core import Pod
from wukong.api.kinds import PODS
from wukong.api.meta import Object, controller_of
from wukong.state import State

EVICTED = "EvictionByEvictionAPI"
PREEMPTED = "PreemptionByScheduler"


def is_active(pod: Pod) -> bool:
    return not pod.is_terminating and not pod.is_finished


def is_ready(pod: Pod) -> bool:
    return any(condition.type == "Ready" and condition.status == "True" for condition in pod.status.conditions)


def is_disrupted(pod: Pod, reason: str) -> bool:
    """Whether the pod has a DisruptionTarget condition with this reason."""
    for condition in pod.status.conditions:
        if condition.type == "DisruptionTarget" and condition.reason == reason:
            return True
    return False


def owner_of(pod: Pod, state: State) -> Object | None:
    """The controller of a pod; None if it has none, or that is gone or being deleted."""
    reference = controller_of(pod.metadata)
    if reference is None:
        return None
    owner = state.owner(pod.metadata.namespace, reference)
    return owner if owner is not None and not owner.metadata.deletion_timestamp else None


def owned_pods(state: State, uid: str) -> list[Pod]:
    """The pods whose controller has this uid."""
    pods = (state.get(Pod, key) for key in state.owners.owned_by(uid, PODS))
    return [
        pod
        for pod in pods
        if pod is not None and (reference := controller_of(pod.metadata)) is not None and reference.uid == uid
    ]


def replicas_of(owner: Object) -> int | None:
    """How many pods its spec.replicas asks for, 1 unless it says; None for a kind without that field."""
    spec: object = getattr(owner, "spec", None)
    if isinstance(owner, DaemonSet) or not hasattr(spec, "replicas"):  # the struct of all workloads has the field
        return None
    replicas: int | None = spec.replicas
    return 1 if replicas is None else replicas


def ordinal_of(pod: Pod, owner: StatefulSet) -> int | None:
    """None for a pod whose name is not the set's with a number behind it."""
    name, _, number = pod.metadata.name.rpartition("-")
    return int(number) if name == owner.metadata.name and number.isdecimal() else None


def ordinals_of(owner: StatefulSet) -> range:
    """The ordinals that a StatefulSet asks for."""
    spec = getattr(owner, "document", {}).get("spec") or {}
    start: int = (spec.get("ordinals") or {}).get("start", 0)
    return range(start, start + (replicas_of(owner) or 0))


def revision_of(pod: Pod) -> str:
    """Of a StatefulSet's or DaemonSet's pod: the hash of the template that it was made of."""
    return pod.metadata.labels.get("controller-revision-hash", "")


def target_node_of(pod: Pod) -> str:
    """The node that a DaemonSet's pod is on, or is meant for."""
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    terms = affinity.required.node_selector_terms if affinity and affinity.required else []
    fields = [field for term in terms for field in term.match_fields]
    names = [field.values[0] for field in fields if field.key == "metadata.name" and field.values]
    return pod.spec.node_name or next(iter(names), "")
