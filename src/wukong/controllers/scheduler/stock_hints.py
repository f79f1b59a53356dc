"""kube-scheduler's own queueing hints, event by event: which pods that no node suited it tries again, and which not.

Called by queueing_hints.py for a scheduler that stands for the stock one: its pods wait as they would there, and their
messages are as old. From the 1.35 sources: EventsToRegister and the isSchedulableAfter… functions of each plugin in
pkg/scheduler/framework/plugins, NodeSchedulingPropertiesChange in framework/events.go, and eventhandlers.go.

One thing is in no plugin: buildQueueingHintMap (scheduler.go) registers changes of taints, with a hint that always says
yes, for every plugin that hears of new nodes and not of taints. So a cordon, which the node lifecycle controller turns
into a taint, gives another turn to pods that ports, resources, affinity or other pods kept out.

Pods that have ended count as deleted. A pod that is terminating is no event. Not modelled: what the waiting pod itself
may change, device classes, resizing in place. What changes of volumes is in volume_hints.py.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from enum import Flag, auto
from typing import NamedTuple

from wukong.api.core import Node, Pod, PodAffinityTerm, TopologySpreadConstraint
from wukong.api.meta import Object
from wukong.api.resources import Key
from wukong.api.versions import Version
from wukong.controllers.scheduler.volume_hints import deleted_pod_may_help
from wukong.engine.nodes import NodeRow
from wukong.engine.requests import read_requests
from wukong.semantics.host_ports import has_conflict, host_ports_of
from wukong.semantics.node_selectors import allows_node
from wukong.semantics.pod_affinity import compile_pod_term
from wukong.semantics.selectors import compile_selector, selects
from wukong.semantics.tolerations import tolerates_node
from wukong.state import State


class NodeEvent(Flag):
    ADD = auto()
    DELETE = auto()
    ALLOCATABLE = auto()
    LABELS = auto()
    TAINTS = auto()  # also a node that may be used again


NodeHint = Callable[[Pod, Node | None, Node | None], bool]


class NodeRegistration(NamedTuple):
    """The events of nodes that a plugin hears of, and which of them may help a pod it refused."""

    events: NodeEvent
    may_help: NodeHint


def node_may_help(pod: Pod, refused_by: Set[str], old: Node | None, new: Node | None) -> bool:
    """Tell whether a node that came, went or changed gives the pod another turn."""
    events = _events_of_node(old, new)
    return any(
        _registration_may_help(registration, events, pod, old, new)
        for plugin, registration in NODE_REGISTRATIONS.items()
        if plugin in refused_by
    )


def _registration_may_help(
    registration: NodeRegistration, events: NodeEvent, pod: Pod, old: Node | None, new: Node | None
) -> bool:
    if NodeEvent.TAINTS in events and NodeEvent.TAINTS not in registration.events:
        return True
    return bool(events & registration.events) and registration.may_help(pod, old, new)


def pod_may_help(
    pod: Pod, refused_by: Set[str], old: Pod | None, new: Pod | None, state: State, stock: Version
) -> bool:
    """Tell whether another pod that was bound, went or got other labels gives the pod another turn."""
    old, new = _as_unfinished(old), _as_unfinished(new)
    if not _is_bound(old) and not _is_bound(new):
        return _nomination_may_help(pod, refused_by, old, new)
    old, new = old if _is_bound(old) else None, new if _is_bound(new) else None
    if old is not None and new is None:
        if "NodeResourcesFit" in refused_by:
            return True
        if "NodePorts" in refused_by and has_conflict(host_ports_of(pod), host_ports_of(old)):
            return True
        if deleted_pod_may_help(pod, refused_by, old):
            return True
    if old is not None and new is not None and old.metadata.labels == new.metadata.labels:
        return False
    if "PodTopologySpread" in refused_by and _spread_changes(pod, old, new):
        return True
    return "InterPodAffinity" in refused_by and _affinity_changes(pod, old, new, state, stock)


def _nomination_may_help(pod: Pod, refused_by: Set[str], old: Pod | None, new: Pod | None) -> bool:
    """A pod that lost its nominated node is taken as one that left it, by pods of the same priority or lower."""
    nominated = old.status.nominated_node_name if old is not None else ""
    if old is None or not nominated or (new is not None and new.status.nominated_node_name == nominated):
        return False
    if (pod.spec.priority or 0) > (old.spec.priority or 0):
        return False
    has_common_port = has_conflict(host_ports_of(pod), host_ports_of(old))
    return "NodeResourcesFit" in refused_by or ("NodePorts" in refused_by and has_common_port)


# ---- nodes


def _events_of_node(old: Node | None, new: Node | None) -> NodeEvent:
    if old is None or new is None:
        return NodeEvent.ADD if new is not None else NodeEvent.DELETE
    before, after = NodeRow(old), NodeRow(new)
    events = NodeEvent(0)
    if (before.allocatable, before.allowed_pods) != (after.allocatable, after.allowed_pods):
        events |= NodeEvent.ALLOCATABLE
    if before.labels != after.labels:
        events |= NodeEvent.LABELS
    if before.taints != after.taints or (before.is_unschedulable and not after.is_unschedulable):
        events |= NodeEvent.TAINTS
    return events


def _always(_: Pod, __: Node | None, ___: Node | None) -> bool:
    return True


def _becomes_schedulable(_: Pod, old: Node | None, new: Node | None) -> bool:
    return new is not None and not new.spec.unschedulable and (old is None or old.spec.unschedulable)


def _becomes_tolerated(pod: Pod, old: Node | None, new: Node | None) -> bool:
    return new is not None and tolerates_node(pod, new) and (old is None or not tolerates_node(pod, old))


def _becomes_allowed(pod: Pod, old: Node | None, new: Node | None) -> bool:
    return new is not None and allows_node(pod, new) and (old is None or not allows_node(pod, old))


def has_more_room(pod: Pod, old: Node | None, new: Node | None) -> bool:
    """Tell whether the empty node would hold the pod, and has more of something the pod requests than before."""
    if new is None:
        return False
    row, needed = NodeRow(new), read_requests(pod).needed
    if row.allowed_pods < 1 or any(row.allocatable.get(name, 0) < amount for name, amount in needed.items()):
        return False
    if old is None:
        return True
    before = NodeRow(old)
    grown = (name for name in needed if row.allocatable.get(name, 0) > before.allocatable.get(name, 0))
    return row.allowed_pods > before.allowed_pods or any(grown)


def _changes_affinity_domains(pod: Pod, old: Node | None, new: Node | None) -> bool:
    """A node joined a domain that affinity may want, or left one that anti-affinity avoids, or is new to the latter."""
    if new is None:
        return False
    together, apart = required_terms(pod)
    new_labels, old_labels = new.metadata.labels, {} if old is None else old.metadata.labels
    joined = any(
        term.topology_key in new_labels and new_labels[term.topology_key] != old_labels.get(term.topology_key)
        for term in together
    )
    left = any(
        term.topology_key in old_labels and new_labels.get(term.topology_key) != old_labels[term.topology_key]
        for term in apart
    )
    return joined or left or (old is None and bool(apart))


def _changes_spread_domains(pod: Pod, old: Node | None, new: Node | None) -> bool:
    """Domains appear, go or change; or taints of a node that is counted."""
    keys = [constraint.topology_key for constraint in _hard_constraints(pod)]
    if not keys:  # the profile's constraints refused it
        return True
    old_domains, new_domains = domains_of(old, keys), domains_of(new, keys)
    if old_domains != new_domains:
        return True
    return old is not None and new is not None and new_domains is not None and old.spec.taints != new.spec.taints


def domains_of(node: Node | None, keys: list[str]) -> list[str] | None:
    """Return the node's domains; None if it lacks one of the labels: then it is not counted."""
    labels = {} if node is None else node.metadata.labels
    return [labels[key] for key in keys] if node is not None and all(key in labels for key in keys) else None


_ADD, _LABELS, _TAINTS = NodeEvent.ADD, NodeEvent.LABELS, NodeEvent.TAINTS
NODE_REGISTRATIONS: dict[str, NodeRegistration] = {
    "NodeUnschedulable": NodeRegistration(_ADD | _TAINTS, _becomes_schedulable),
    "TaintToleration": NodeRegistration(_ADD | _TAINTS, _becomes_tolerated),
    "NodeAffinity": NodeRegistration(_ADD | _LABELS, _becomes_allowed),
    "NodeName": NodeRegistration(_ADD, _always),
    "NodePorts": NodeRegistration(_ADD, _always),
    "NodeResourcesFit": NodeRegistration(_ADD | NodeEvent.ALLOCATABLE, has_more_room),
    "VolumeRestrictions": NodeRegistration(_ADD, _always),
    "VolumeBinding": NodeRegistration(_ADD | _LABELS, _always),
    "VolumeZone": NodeRegistration(_ADD | _LABELS, _always),
    "PodTopologySpread": NodeRegistration(_ADD | NodeEvent.DELETE | _LABELS | _TAINTS, _changes_spread_domains),
    "InterPodAffinity": NodeRegistration(_ADD | _LABELS, _changes_affinity_domains),
}


# ---- pods


def _as_unfinished(pod: Object | None) -> Pod | None:
    return pod if isinstance(pod, Pod) and not pod.is_finished else None


def _is_bound(pod: Pod | None) -> bool:
    return pod is not None and bool(pod.spec.node_name)


def _hard_constraints(pod: Pod) -> list[TopologySpreadConstraint]:
    constraints = pod.spec.topology_spread_constraints
    return [constraint for constraint in constraints if constraint.when_unsatisfiable == "DoNotSchedule"]


def _spread_changes(pod: Pod, old: Pod | None, new: Pod | None) -> bool:
    """A bound pod that one of the constraints selects has come or gone, or is selected by others than before."""
    selectors = [compile_selector(constraint.label_selector) for constraint in _hard_constraints(pod)]

    def find_selecting(bound_pod: Pod | None) -> list[bool]:
        if bound_pod is None or bound_pod.metadata.namespace != pod.metadata.namespace:
            return [False] * len(selectors)
        return [selects(selector, bound_pod.metadata.labels) for selector in selectors]

    return not selectors or find_selecting(old) != find_selecting(new)


def _affinity_changes(pod: Pod, old: Pod | None, new: Pod | None, state: State, stock: Version) -> bool:
    """As interpodaffinity's isSchedulableAfterPodChange: a pod without terms matches none of them."""
    together, apart = required_terms(pod)
    enough = any if stock.one_term_wakes else all

    def suits(bound_pod: Pod | None) -> bool:
        if bound_pod is None or not together:
            return False
        return all(term_selects(pod, term, bound_pod, state) for term in together)

    def keeps_away(owner: Pod, terms: list[PodAffinityTerm], selected: Pod | None) -> bool:
        if selected is None or not terms:
            return False
        return enough(term_selects(owner, term, selected, state) for term in terms)

    if new is not None:
        return (suits(new) and not suits(old)) or (keeps_away(pod, apart, old) and not keeps_away(pod, apart, new))
    if old is None:
        return False
    is_theirs = stock.leaving_pods_wake_by_their_terms and keeps_away(old, required_terms(old)[1], pod)
    return keeps_away(pod, apart, old) or is_theirs


def term_selects(owner: Pod, term: PodAffinityTerm, candidate: Pod, state: State) -> bool:
    """Asked without labels of the namespace too: so 1.35 reads the terms of a pod that is to be placed."""
    namespace = state.objects.get("Namespace", {}).get(Key("", candidate.metadata.namespace))
    compiled, meta = compile_pod_term(term, owner.metadata.namespace), candidate.metadata
    return compiled.selects(meta.namespace, meta.labels, {}) or (
        namespace is not None and compiled.selects(meta.namespace, meta.labels, namespace.metadata.labels)
    )


def required_terms(pod: Pod) -> tuple[list[PodAffinityTerm], list[PodAffinityTerm]]:
    """Return the terms of required affinity and of required anti-affinity."""
    affinity = pod.spec.affinity
    together = None if affinity is None else affinity.pod_affinity
    apart = None if affinity is None else affinity.pod_anti_affinity
    return ([] if together is None else together.required), ([] if apart is None else apart.required)
