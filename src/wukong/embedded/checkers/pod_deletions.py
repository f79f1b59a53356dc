"""Nobody deletes a pod without a reason, and who deletes it must be somebody whose business it is.

A reason holds if it holds now, or by the mirror of the process that acted: who has not heard yet that a reason is gone
may still act on it, in any cluster. What people do (the scenario, strangers) needs no reason.
"""

from __future__ import annotations

from collections.abc import Callable

from wukong.api.core import Node, Pod
from wukong.api.kinds import PODS
from wukong.api.meta import Object, controller_of
from wukong.api.resources import Key
from wukong.embedded.checkers.active_pods import active_siblings
from wukong.embedded.checkers.findings import Findings
from wukong.embedded.world.objects import template_of
from wukong.runtime.effect_check import contains
from wukong.state import Change, State

Reason = Callable[[Pod, State], bool]


class PodDeletions:
    def __init__(self, desk: Findings) -> None:
        self.desk, self.world = desk, desk.world

    def hear(self, change: Change) -> None:
        old, new = change.old, change.new
        if not isinstance(old, Pod) or old.is_terminating:
            return
        if new is not None and not (isinstance(new, Pod) and new.is_terminating):
            return
        process = self.world.acting
        if process is None or process.acting is None:
            return
        who = process.acting.controller
        reason = REASONS.get(who)
        if reason is None:
            self.desk.note(f"pod {change.key}", f"deleted by {who}, whose business it is not")
        elif not reason(old, self.world.state) and not reason(old, process.state):
            self.desk.note(f"pod {change.key}", f"deleted by {who} without a reason")


def _is_surplus(pod: Pod, state: State) -> bool:
    """More of them than its ReplicaSet wants. The pod itself may be shown as leaving already."""
    owner = owner_of(pod, state)
    if owner is None:
        return True
    wanted = owner.spec.replicas  # type: ignore[attr-defined]
    there = active_siblings(pod, state)
    others = len(there) - (pod.metadata.uid in there)
    return others + 1 > (1 if wanted is None else wanted)


def _is_out_of_order(pod: Pod, state: State) -> bool:
    """A StatefulSet's pod: beyond its size, over, or not as its template says."""
    owner = owner_of(pod, state)
    if owner is None or pod.is_finished or _is_outdated(pod, owner):
        return True
    wanted = owner.spec.replicas  # type: ignore[attr-defined]
    number = pod.metadata.name.rpartition("-")[2]
    start = ((getattr(owner, "document", {}).get("spec") or {}).get("ordinals") or {}).get("start", 0)
    return not number.isdigit() or int(number) >= start + (1 if wanted is None else wanted)


def _is_out_of_place(pod: Pod, state: State) -> bool:
    """A DaemonSet's pod: over, outdated, one of two, or on a node that is gone or takes it no more."""
    owner = owner_of(pod, state)
    if owner is None or pod.is_finished or _is_outdated(pod, owner):
        return True
    node = state.get(Node, Key("", target_of(pod)))
    if node is None or any(each.effect in ("NoSchedule", "NoExecute") for each in node.spec.taints):
        return True
    selector = ((template_of(owner).get("spec") or {}).get("nodeSelector")) or {}
    if not selector.items() <= node.metadata.labels.items():
        return True
    return any(target_of(it) == target_of(pod) and not it.is_terminating for it in siblings_of(pod, state))


def _is_driven_out(pod: Pod, state: State) -> bool:
    node = state.get(Node, Key("", pod.spec.node_name))
    return node is not None and any(each.effect == "NoExecute" for each in node.spec.taints)


def _is_homeless(pod: Pod, state: State) -> bool:
    return not pod.spec.node_name or state.get(Node, Key("", pod.spec.node_name)) is None


def _is_orphaned(pod: Pod, state: State) -> bool:
    """An owner is gone, or goes and takes its dependents along."""
    for reference in pod.metadata.owner_references:
        found = state.owner(pod.metadata.namespace, reference)
        if found is None or found.metadata.deletion_timestamp:
            return True
    return False


def _is_preempted(pod: Pod, state: State) -> bool:
    return any(
        each.type == "DisruptionTarget" and each.reason == "PreemptionByScheduler" for each in pod.status.conditions
    )


def _is_evicted(pod: Pod, state: State) -> bool:
    return any(
        each.type == "DisruptionTarget" and each.reason == "EvictionByEvictionAPI" for each in pod.status.conditions
    )


def _is_in_leaving_namespace(pod: Pod, state: State) -> bool:
    found = state.objects.get("Namespace", {}).get(Key("", pod.metadata.namespace))
    return found is None or bool(found.metadata.deletion_timestamp)


REASONS: dict[str, Reason] = {
    "replicaset": _is_surplus,
    "statefulset": _is_out_of_order,
    "daemonset": _is_out_of_place,
    "job": lambda pod, state: True,
    "tainteviction": _is_driven_out,
    "podgc": _is_homeless,
    "garbage": _is_orphaned,
    "namespace": _is_in_leaving_namespace,
    "scheduler": _is_preempted,
    "drain": _is_evicted,
}


def owner_of(pod: Pod, state: State) -> Object | None:
    reference = controller_of(pod.metadata)
    if reference is None:
        return None
    found = state.owner(pod.metadata.namespace, reference)
    return found if found is not None and not found.metadata.deletion_timestamp else None


def siblings_of(pod: Pod, state: State) -> list[Pod]:
    """The other pods of its controller."""
    reference = controller_of(pod.metadata)
    if reference is None:
        return []
    found = (state.get(Pod, key) for key in state.owners.owned_by(reference.uid, PODS))
    return [it for it in found if it is not None and it.metadata.uid != pod.metadata.uid]


def _is_outdated(pod: Pod, owner: Object) -> bool:
    """Whether the template asks for something that the pod has not."""
    template, document = template_of(owner), getattr(pod, "document", {})
    meta, spec = template.get("metadata") or {}, template.get("spec") or {}
    wanted = {name: spec[name] for name in spec if name not in ("affinity", "tolerations")}
    has, own = document.get("metadata") or {}, document.get("spec") or {}
    labels, notes = meta.get("labels") or {}, meta.get("annotations") or {}
    is_like = contains(own, wanted) and contains(has.get("labels") or {}, labels)
    return not is_like or not contains(has.get("annotations") or {}, notes)


def target_of(pod: Pod) -> str:
    """Where a DaemonSet's pod is, or shall be."""
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    terms = affinity.required.node_selector_terms if affinity and affinity.required else []
    named = [it.values[0] for term in terms for it in term.match_fields if it.key == "metadata.name" and it.values]
    return pod.spec.node_name or next(iter(named), "")
