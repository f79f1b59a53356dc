"""kube-scheduler's queueing hints: whether an event may help a pod that no node suited, by the plugins that refused it.

Called by the scheduler for every pod it has parked. A wrong yes costs one more attempt, a wrong no up to five minutes:
where kube-scheduler is exact and we are not, we say yes. So a pod's end may help whomever its own anti-affinity kept
away (1.36 does this, 1.35 waits), and whatever changes may help a pod that an extender refused. A scheduler that stands
for the stock one gives its `Version`, and is answered by stock_hints.py: its pods wait as they would there.

A pod counts as gone when it is finished. Not modelled: device classes, resizing in place.
"""

from __future__ import annotations

from collections.abc import Set

from wukong.api.core import Node, Pod
from wukong.api.meta import Object
from wukong.api.versions import Version
from wukong.controllers.scheduler.stock_hints import (
    domains_of,
    has_more_room,
    node_may_help,
    pod_may_help,
    required_terms,
    term_selects,
)
from wukong.controllers.scheduler.volume_hints import (
    VOLUME_PLUGINS,
    deleted_pod_may_help,
    volume_change_may_help,
)
from wukong.engine.nodes import NodeRow
from wukong.semantics.host_ports import has_conflict, host_ports_of
from wukong.semantics.node_selectors import allows_node
from wukong.semantics.selectors import compile_selector, selects
from wukong.semantics.tolerations import tolerates_node
from wukong.state import Change, State

EXTENDER = "Extender"  # the name under which an extender refuses


def may_help(pod: Pod, refused_by: Set[str], change: Change, state: State, stock: Version | None = None) -> bool:
    """Tell whether the pod should be tried again after a change that matters. Refused by nobody: there was no node."""
    if not refused_by or EXTENDER in refused_by:
        return True
    old, new = change.old, change.new
    if isinstance(old, Node) or isinstance(new, Node):
        return (_node_helps if stock is None else node_may_help)(pod, refused_by, _as_node(old), _as_node(new))
    if isinstance(old, Pod) or isinstance(new, Pod):
        if stock is not None:
            return pod_may_help(pod, refused_by, _as_pod(old), _as_pod(new), state, stock)
        if _is_nomination_below(old, new, pod.spec.priority or 0):
            return False
        return _pod_helps(pod, refused_by, _as_placed_pod(old), _as_placed_pod(new), state)
    return not refused_by.isdisjoint(VOLUME_PLUGINS) and volume_change_may_help(pod, refused_by, old, new)


def matters(change: Change) -> bool:
    """Tell whether decisions read what changed. Most changes are of health. Ask this first: it holds for all pods."""
    old, new = change.old, change.new
    if isinstance(old, Node) and isinstance(new, Node):
        return NodeRow(old) != NodeRow(new)
    if isinstance(old, Pod) or isinstance(new, Pod):
        return _placement_facts(_as_placed_pod(old)) != _placement_facts(_as_placed_pod(new))
    return True


def _placement_facts(pod: Pod | None) -> tuple[object, ...] | None:
    if pod is None:
        return None
    return pod.metadata.uid, pod.spec.node_name, pod.status.nominated_node_name, pod.metadata.labels, pod.is_terminating


def _node_helps(pod: Pod, plugins: Set[str], old: Node | None, new: Node | None) -> bool:
    if "PodTopologySpread" in plugins and _changes_spread(pod, old, new):
        return True
    if new is None:
        return False
    if "NodeUnschedulable" in plugins and not new.spec.unschedulable and (old is None or old.spec.unschedulable):
        return True
    if "TaintToleration" in plugins and tolerates_node(pod, new) and (old is None or not tolerates_node(pod, old)):
        return True
    if "NodeAffinity" in plugins and allows_node(pod, new) and (old is None or not allows_node(pod, old)):
        return True
    if "NodeResourcesFit" in plugins and has_more_room(pod, old, new):
        return True
    if "InterPodAffinity" in plugins and _changes_domains(pod, old, new):
        return True
    has_new_labels = old is None or old.metadata.labels != new.metadata.labels
    if has_new_labels and plugins & {"VolumeBinding", "VolumeZone"}:
        return True
    return old is None and bool(plugins & {"NodePorts", "NodeName", *VOLUME_PLUGINS})


def _changes_spread(pod: Pod, old: Node | None, new: Node | None) -> bool:
    """Tell whether domains appear, go or change; or taints or labels, which may take a node out of its domain."""
    keys = [constraint.topology_key for constraint in pod.spec.topology_spread_constraints]
    if not keys:  # the profile's constraints refused it
        return True
    old_domains, new_domains = domains_of(old, keys), domains_of(new, keys)
    if old_domains != new_domains or old is None or new is None:
        return old_domains != new_domains
    is_counted_anew = old.spec.taints != new.spec.taints or allows_node(pod, old) != allows_node(pod, new)
    return new_domains is not None and is_counted_anew


def _changes_domains(pod: Pod, old: Node | None, new: Node) -> bool:
    """Tell whether a node joined a domain that affinity may want, or left one that anti-affinity avoids.

    The anti-affinity of other pods is not looked up: a new node may help where the pod itself has no terms.
    """
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
    return joined or left or (old is None and not together)


def _pod_helps(pod: Pod, plugins: Set[str], old: Pod | None, new: Pod | None, state: State) -> bool:
    if old is None and new is None:
        return False
    if new is None and "NodeResourcesFit" in plugins:
        return True
    if (
        old is not None
        and new is None
        and "NodePorts" in plugins
        and has_conflict(host_ports_of(pod), host_ports_of(old))
    ):
        return True
    if old is not None and new is None and deleted_pod_may_help(pod, plugins, old):
        return True
    if "PodTopologySpread" in plugins and _counts_differ(pod, old, new):
        return True
    return "InterPodAffinity" in plugins and _affinity_changes(pod, old, new, state)


def _counts_differ(pod: Pod, old: Pod | None, new: Pod | None) -> bool:
    selectors = [compile_selector(constraint.label_selector) for constraint in pod.spec.topology_spread_constraints]

    def count_by_selector(placed_pod: Pod | None) -> list[bool]:
        if placed_pod is None or placed_pod.is_terminating or placed_pod.metadata.namespace != pod.metadata.namespace:
            return [False] * len(selectors)
        return [selects(selector, placed_pod.metadata.labels) for selector in selectors]

    return not selectors or count_by_selector(old) != count_by_selector(new)


def _affinity_changes(pod: Pod, old: Pod | None, new: Pod | None, state: State) -> bool:
    """Tell whether a pod that affinity selects has come or gone, or one is gone that anti-affinity kept apart.

    When no pod is left that its affinity selects, a pod that matches its own terms may be the first of its kind.
    """
    together, apart = required_terms(pod)

    def suits(placed_pod: Pod | None) -> bool:
        if placed_pod is None or not together:
            return False
        return all(term_selects(pod, term, placed_pod, state) for term in together)

    def hinders(placed_pod: Pod | None) -> bool:
        if placed_pod is None:
            return False
        own = any(term_selects(pod, term, placed_pod, state) for term in apart)
        return own or any(term_selects(placed_pod, term, pod, state) for term in required_terms(placed_pod)[1])

    return suits(new) != suits(old) or (hinders(old) and not hinders(new))


def _as_node(subject: Object | None) -> Node | None:
    return subject if isinstance(subject, Node) else None


def _as_pod(subject: Object | None) -> Pod | None:
    return subject if isinstance(subject, Pod) else None


def _is_nomination_below(old: Object | None, new: Object | None, priority: int) -> bool:
    """Tell whether a pod of lower priority came to a nominated node or lost it: its room was never in the way.

    As in kube-scheduler. Without it two pods of different priority may wake each other for ever.
    """
    sides = [side for side in (old, new) if isinstance(side, Pod)]
    return all(not side.spec.node_name and (side.spec.priority or 0) < priority for side in sides)


def _as_placed_pod(subject: Object | None) -> Pod | None:
    """Return the pod if it takes up room: bound or nominated, and not finished."""
    if not isinstance(subject, Pod) or subject.is_finished:
        return None
    return subject if subject.spec.node_name or subject.status.nominated_node_name else None
