"""No controller deletes a pod without the right to, or where its right does not hold.

A right holds if it holds now, or by the mirror of the process that acted, as it was when that decided, less the pods
deleted in the same decision: who has not heard yet that a reason is gone may still act on it, in any cluster. What
people do (the scenario, disturbances) needs no right. Of a Job's pods it is only judged that they are a Job's.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from functools import cache
from typing import ClassVar

from wukong.api.apps import DaemonSet, StatefulSet
from wukong.api.core import Namespace, Node, Pod
from wukong.api.kinds import DAEMON_SETS, JOBS, PODS, STATEFUL_SETS, VIRTUAL_MACHINE_INSTANCES
from wukong.api.kubevirt import VirtualMachineInstanceMigration
from wukong.api.meta import Object, controller_of
from wukong.api.placement import ClusterPlacementPolicy, PlacementPolicy
from wukong.api.resources import Key, Resource, refers_to
from wukong.embedded.checkers.acting_controller import ActingController, Decision, acting_controller
from wukong.embedded.checkers.active_pods import active_siblings
from wukong.embedded.checkers.daemon_pods import may_update_daemon, siblings_on_node, surges
from wukong.embedded.checkers.findings import Findings
from wukong.embedded.checkers.ordinals import may_scale_down, may_update
from wukong.embedded.checkers.pods import (
    EVICTED,
    PREEMPTED,
    is_disrupted,
    is_ready,
    owner_of,
    replicas_of,
    revision_of,
    target_node_of,
)
from wukong.embedded.world import objects
from wukong.embedded.world.objects import template_of
from wukong.ports import Document
from wukong.rules.node_affinity import allows_node
from wukong.rules.selectors import requirements, selects
from wukong.runtime.effect_check import contains
from wukong.state import Change, State
from wukong.state.controller import PodRight

Deleted = Set[str]  # uids of the pods deleted in the same decision
Rule = Callable[[Pod, State, Deleted], bool]
_LEAVING = "placement.novasphere.dev/leaving"
MOST_DECISIONS = 256  # remembered: many more than delete pods at the same time


class PodDeletions:
    kinds: ClassVar[frozenset[str]] = frozenset({PODS.group_kind})

    def __init__(self, findings: Findings) -> None:
        self.findings, self.world = findings, findings.world
        self._deleted: dict[Decision, set[str]] = {}

    def fork(self, findings: Findings) -> PodDeletions:
        """For a copy of a world with one process."""
        copy = PodDeletions(findings)
        copies = dict(zip(self.world.processes, copy.world.processes, strict=True))
        copy._deleted = {(copies[process], turn): set(uids) for (process, turn), uids in self._deleted.items()}
        return copy

    def observe(self, change: Change) -> None:
        old, new = change.old, change.new
        if not isinstance(old, Pod) or old.is_terminating:
            return
        if new is not None and not (isinstance(new, Pod) and new.is_terminating):
            return
        actor = acting_controller(self.world)
        if actor is None:
            return
        deleted = self._deleted_in(actor.decision)
        rights = _list_rights(actor.pod_rights)
        if not rights:
            self.findings.report(f"pod {change.key}", f"deleted by {actor.name}, whose business it is not")
        elif not any(self._holds(right, change.key, old, actor, deleted) for right in rights):
            self.findings.report(f"pod {change.key}", f"deleted by {actor.name} without a reason")
        deleted.add(old.metadata.uid)

    def _deleted_in(self, decision: Decision) -> set[str]:
        deleted = self._deleted.setdefault(decision, set())
        if len(self._deleted) > MOST_DECISIONS:
            del self._deleted[next(iter(self._deleted))]
        return deleted

    def _holds(self, right: PodRight, key: Key, pod: Pod, actor: ActingController, deleted: Deleted) -> bool:
        rule = RULES[right]
        if right == PodRight.EVICT_FROM_WHOLE and not is_disrupted(pod, EVICTED):
            return False
        if rule(pod, self.world.state, deleted):
            return True
        mirror = actor.mirror()
        mirrored = mirror.get(Pod, key)
        if mirrored is None or mirrored.metadata.uid != pod.metadata.uid:
            mirrored = pod
        return rule(mirrored, mirror, deleted)


def _is_surplus(pod: Pod, state: State, deleted: Deleted) -> bool:
    """There are more of them than the owner's spec.replicas. The pod itself may be shown as terminating already."""
    owner = owner_of(pod, state)
    if owner is None:
        return controller_of(pod.metadata) is not None
    replicas = replicas_of(owner)
    siblings = active_siblings(pod, state)
    others = len(siblings) - (pod.metadata.uid in siblings) - sum(uid in siblings for uid in deleted)
    return replicas is not None and others + 1 > replicas


def _is_unplaced(pod: Pod, state: State, deleted: Deleted) -> bool:
    """It has no node, and the scheduler said that no node takes it."""
    conditions = [(entry.type, entry.status, entry.reason) for entry in pod.status.conditions]
    return not pod.spec.node_name and ("PodScheduled", "False", "Unschedulable") in conditions


def _is_out_of_order(pod: Pod, state: State, deleted: Deleted) -> bool:
    """A StatefulSet's pod: it has ended, is not as the template says, or its ordinal is not asked for; the latter two
    in their order."""
    if not _is_controlled_by(STATEFUL_SETS, pod):
        return False
    owner = owner_of(pod, state)
    if not isinstance(owner, StatefulSet) or pod.is_finished or may_scale_down(pod, owner, state):
        return True
    return _is_outdated(pod, owner) and may_update(pod, owner, state, deleted)


def _is_out_of_place(pod: Pod, state: State, deleted: Deleted) -> bool:
    """A DaemonSet's pod: it has ended, is outdated and an update may take it, one of two, or on a node that is gone or
    does not take it."""
    if not _is_controlled_by(DAEMON_SETS, pod):
        return False
    owner = owner_of(pod, state)
    if not isinstance(owner, DaemonSet) or pod.is_finished:
        return True
    if _is_outdated(pod, owner) and may_update_daemon(pod, owner, state, deleted):
        return True
    node = state.get(Node, Key("", target_node_of(pod)))
    if node is None or any(taint.effect in ("NoSchedule", "NoExecute") for taint in node.spec.taints):
        return True
    if not _may_run_on(template_of(owner).get("spec") or {}, node):
        return True
    siblings = siblings_on_node(pod, state)
    staying = [sibling for sibling in siblings if not sibling.is_terminating and sibling.metadata.uid not in deleted]
    return bool(staying) and not _is_surged(pod, staying, owner)


def _may_run_on(spec: Document, node: Node) -> bool:
    """Whether the node is one that the spec of a template names, selects and requires."""
    if spec.get("nodeName") not in (None, "", node.metadata.name):
        return False
    pod = objects.read("Pod", {"metadata": {"name": "of-template"}, "spec": spec})
    return not isinstance(pod, Pod) or allows_node(pod, node)


def _is_surged(pod: Pod, siblings: list[Pod], owner: DaemonSet) -> bool:
    """Whether an update with surge has put a new pod beside this ready old one, which stays until that is ready."""
    if len(siblings) != 1 or not surges(owner) or not is_ready(pod) or is_ready(siblings[0]):
        return False
    if revision_of(siblings[0]) == revision_of(pod):
        return False
    return _is_outdated(pod, owner) and not _is_outdated(siblings[0], owner)


def _is_job_pod(pod: Pod, _: State, __: Deleted) -> bool:
    return _is_controlled_by(JOBS, pod)


def _is_launcher_of_leaving(pod: Pod, state: State, _: Deleted) -> bool:
    """The pod of a VirtualMachineInstance that is gone or being deleted."""
    return _is_controlled_by(VIRTUAL_MACHINE_INSTANCES, pod) and owner_of(pod, state) is None


def _is_vain_target(pod: Pod, state: State, _: Deleted) -> bool:
    """The target of a migration that is over, gone or being deleted, or one that has never started."""
    uid = pod.metadata.labels.get("kubevirt.io/migrationJobUID")
    if uid is None:
        return False
    migrations = (one for one in state.all(VirtualMachineInstanceMigration) if one.metadata.uid == uid)
    migration = next(migrations, None)
    is_wanted = migration is not None and not migration.is_final and not migration.metadata.deletion_timestamp
    return not is_wanted or pod.status.phase == "Pending"


def _is_on_tainted_node(pod: Pod, state: State, _: Deleted) -> bool:
    node = state.get(Node, Key("", pod.spec.node_name))
    return node is not None and any(taint.effect == "NoExecute" for taint in node.spec.taints)


def _is_without_node(pod: Pod, state: State, _: Deleted) -> bool:
    return not pod.spec.node_name or state.get(Node, Key("", pod.spec.node_name)) is None


def _is_orphaned(pod: Pod, state: State, _: Deleted) -> bool:
    """An owner is gone, or is being deleted and takes its dependents along."""
    for reference in pod.metadata.owner_references:
        owner = state.owner(pod.metadata.namespace, reference)
        if owner is None or owner.metadata.deletion_timestamp:
            return True
    return False


def _is_in_leaving_namespace(pod: Pod, state: State, _: Deleted) -> bool:
    namespace = state.of(Namespace).get(Key("", pod.metadata.namespace))
    return namespace is None or bool(namespace.metadata.deletion_timestamp)


def _is_preempted(pod: Pod, _: State, __: Deleted) -> bool:
    return is_disrupted(pod, PREEMPTED)


def _is_evicted(pod: Pod, _: State, __: Deleted) -> bool:
    return is_disrupted(pod, EVICTED)


def _is_doomed(pod: Pod, state: State, _: Deleted) -> bool:
    """Its node's end is written down, and a policy that selects it says that it is not to go with the machine."""
    node = state.get(Node, Key("", pod.spec.node_name))
    if node is None or '"deadline":' not in node.metadata.annotations.get(_LEAVING, ""):
        return False
    here = [one for one in state.all(PlacementPolicy) if one.metadata.namespace == pod.metadata.namespace]
    specs = [*(one.spec for one in here), *(one.spec for one in state.all(ClusterPlacementPolicy))]
    return any(
        spec.on_deadline == "Delete"
        and (spec.selector is None or selects(requirements(spec.selector), pod.metadata.labels))
        for spec in specs
    )


def _is_of_whole(pod: Pod, state: State, deleted: Deleted) -> bool:
    """Its owner has as many pods as it asks for, and all others are ready."""
    owner = owner_of(pod, state)
    if owner is None or deleted:
        return False
    siblings = active_siblings(pod, state)
    others = [sibling for uid, sibling in siblings.items() if uid != pod.metadata.uid]
    return len(others) + 1 == replicas_of(owner) and all(map(is_ready, others))


RULES: dict[PodRight, Rule] = {
    PodRight.DELETE_SURPLUS_REPLICAS: _is_surplus,
    PodRight.DELETE_ORDINALS: _is_out_of_order,
    PodRight.DELETE_DAEMON_PODS: _is_out_of_place,
    PodRight.DELETE_JOB_PODS: _is_job_pod,
    PodRight.DELETE_LAUNCHERS: _is_launcher_of_leaving,
    PodRight.DELETE_MIGRATION_TARGETS: _is_vain_target,
    PodRight.DELETE_FROM_TAINTED_NODES: _is_on_tainted_node,
    PodRight.DELETE_FROM_MISSING_NODES: _is_without_node,
    PodRight.DELETE_DEPENDENTS: _is_orphaned,
    PodRight.DELETE_WITH_NAMESPACE: _is_in_leaving_namespace,
    PodRight.PREEMPT: _is_preempted,
    PodRight.DELETE_AT_DEADLINE: _is_doomed,
    PodRight.DELETE_UNPLACED: _is_unplaced,
    PodRight.EVICT: _is_evicted,
    PodRight.EVICT_FROM_WHOLE: _is_of_whole,
}


def _is_controlled_by(resource: Resource, pod: Pod) -> bool:
    reference = controller_of(pod.metadata)
    return reference is not None and refers_to(reference, resource)


def _is_outdated(pod: Pod, owner: Object) -> bool:
    """Whether the owner's template asks for something that the pod does not have."""
    template, document = template_of(owner), getattr(pod, "document", {})
    template_meta, template_spec = template.get("metadata") or {}, template.get("spec") or {}
    wanted_spec = {name: template_spec[name] for name in template_spec if name not in ("affinity", "tolerations")}
    meta, spec = document.get("metadata") or {}, document.get("spec") or {}
    return not (
        contains(spec, wanted_spec)
        and contains(meta.get("labels") or {}, template_meta.get("labels") or {})
        and contains(meta.get("annotations") or {}, template_meta.get("annotations") or {})
    )


@cache
def _list_rights(pod_rights: frozenset[PodRight]) -> tuple[PodRight, ...]:
    """Those that there are rules for. Many pods are deleted by few controllers."""
    return tuple(right for right in RULES if right in pod_rights)
