"""Which event may help a pod that no node suited: kube-scheduler's queueing hints, by the plugins that refused it.

Called by the scheduler for every pod it has parked. A wrong yes costs one more attempt, a wrong no up to five minutes:
where kube-scheduler is exact and we are not, we say yes. So a pod's end may help whomever its own anti-affinity kept
away (1.36 does this, 1.35 waits), and whatever changes may help a pod that an extender refused. A scheduler that stands
for the stock one gives its `Version`, and what that version overlooks is overlooked: its pods wait as they would there.

A pod counts as gone when it is finished. Not modelled: storage classes, CSI and device classes, resizing in place.
"""

from __future__ import annotations

from collections.abc import Set

from wukong.api.core import Node, Pod, PodAffinityTerm
from wukong.api.meta import Object
from wukong.api.resources import Key
from wukong.api.versions import Version
from wukong.engine.nodes import NodeRow
from wukong.engine.requests import read_requests
from wukong.semantics.host_ports import has_conflict, host_ports_of
from wukong.semantics.node_selectors import allows_node
from wukong.semantics.pod_affinity import compile_pod_term
from wukong.semantics.selectors import compile_selector, selects
from wukong.semantics.tolerations import tolerates_node
from wukong.state import Change, State

EXTENDER = "Extender"  # the name under which an extender refuses


def may_help(pod: Pod, refused_by: Set[str], change: Change, state: State, stock: Version | None = None) -> bool:
    """Whether the pod should be tried again, after something that matters. Refused by nobody: there was no node."""
    if not refused_by or EXTENDER in refused_by:
        return True
    old, new = change.old, change.new
    if isinstance(old, Node) or isinstance(new, Node):
        return _node_helps(pod, refused_by, _as_node(old), _as_node(new))
    if isinstance(old, Pod) or isinstance(new, Pod):
        return _pod_helps(pod, refused_by, _placed(old), _placed(new), state, stock)
    return "VolumeBinding" in refused_by and new is not None


def matters(change: Change) -> bool:
    """Whether decisions read what changed. Most changes are news of health. Ask this first: it holds for all pods."""
    old, new = change.old, change.new
    if isinstance(old, Node) and isinstance(new, Node):
        return NodeRow(old) != NodeRow(new)
    if isinstance(old, Pod) or isinstance(new, Pod):
        return _reading(_placed(old)) != _reading(_placed(new))
    return True


def _reading(pod: Pod | None) -> tuple[object, ...] | None:
    if pod is None:
        return None
    return pod.metadata.uid, pod.spec.node_name, pod.status.nominated_node_name, pod.metadata.labels, pod.is_terminating


def _node_helps(pod: Pod, plugins: Set[str], old: Node | None, new: Node | None) -> bool:
    if "PodTopologySpread" in plugins and _moves_spread(pod, old, new):
        return True
    if new is None:
        return False
    if "NodeUnschedulable" in plugins and not new.spec.unschedulable and (old is None or old.spec.unschedulable):
        return True
    if "TaintToleration" in plugins and tolerates_node(pod, new) and (old is None or not tolerates_node(pod, old)):
        return True
    if "NodeAffinity" in plugins and allows_node(pod, new) and (old is None or not allows_node(pod, old)):
        return True
    if "NodeResourcesFit" in plugins and _has_more_room(pod, old, new):
        return True
    if "InterPodAffinity" in plugins and _moves_domains(pod, old, new):
        return True
    if "VolumeBinding" in plugins and (old is None or old.metadata.labels != new.metadata.labels):
        return True
    return old is None and bool(plugins & {"NodePorts", "NodeName"})


def _has_more_room(pod: Pod, old: Node | None, new: Node) -> bool:
    """The empty node would hold the pod, and it has more of something the pod asks for than it had before."""
    row, needed = NodeRow(new), read_requests(pod).needed
    if row.allowed_pods < 1 or any(row.allocatable.get(name, 0) < amount for name, amount in needed.items()):
        return False
    if old is None:
        return True
    before = NodeRow(old)
    grown = (name for name in needed if row.allocatable.get(name, 0) > before.allocatable.get(name, 0))
    return row.allowed_pods > before.allowed_pods or any(grown)


def _moves_spread(pod: Pod, old: Node | None, new: Node | None) -> bool:
    """Domains appear, go or change; or taints or labels do, which may take a node out of its domain."""
    keys = [each.topology_key for each in pod.spec.topology_spread_constraints]
    if not keys:  # the profile's constraints refused it
        return True
    had, has = _domains(old, keys), _domains(new, keys)
    if had != has or old is None or new is None:
        return had != has
    is_counted_anew = old.spec.taints != new.spec.taints or allows_node(pod, old) != allows_node(pod, new)
    return has is not None and is_counted_anew


def _domains(node: Node | None, keys: list[str]) -> list[str] | None:
    """The node's domains; None if it lacks one of the labels: then it takes no part."""
    labels = {} if node is None else node.metadata.labels
    return [labels[key] for key in keys] if node is not None and all(key in labels for key in keys) else None


def _moves_domains(pod: Pod, old: Node | None, new: Node) -> bool:
    """A node joined a domain that affinity may want, or left one that anti-affinity avoids.

    The anti-affinity of others is not looked up: a new node may help where the pod itself has no terms.
    """
    together, apart = _terms(pod)
    now, before = new.metadata.labels, {} if old is None else old.metadata.labels
    joined = any(
        each.topology_key in now and now[each.topology_key] != before.get(each.topology_key) for each in together
    )
    left = any(
        each.topology_key in before and now.get(each.topology_key) != before[each.topology_key] for each in apart
    )
    return joined or left or (old is None and not together)


def _pod_helps(
    pod: Pod, plugins: Set[str], old: Pod | None, new: Pod | None, state: State, stock: Version | None
) -> bool:
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
    if "PodTopologySpread" in plugins and _counts_differ(pod, old, new):
        return True
    if "InterPodAffinity" not in plugins:
        return False
    if stock is not None:
        return _stock_notices(pod, _bound(old), _bound(new), state, stock)
    return _company_differs(pod, old, new, state)


def _counts_differ(pod: Pod, old: Pod | None, new: Pod | None) -> bool:
    selectors = [compile_selector(each.label_selector) for each in pod.spec.topology_spread_constraints]

    def counted(other: Pod | None) -> list[bool]:
        if other is None or other.is_terminating or other.metadata.namespace != pod.metadata.namespace:
            return [False] * len(selectors)
        return [selects(selector, other.metadata.labels) for selector in selectors]

    return not selectors or counted(old) != counted(new)


def _company_differs(pod: Pod, old: Pod | None, new: Pod | None, state: State) -> bool:
    """One that affinity speaks of has come or gone; or one that stood in the way is gone, by its terms or the pod's.

    With nobody left whom its affinity speaks of, a pod that matches its own terms may be the first of its kind.
    """
    together, apart = _terms(pod)

    def suits(other: Pod | None) -> bool:
        return other is not None and bool(together) and all(_matches(pod, each, other, state) for each in together)

    def hinders(other: Pod | None) -> bool:
        if other is None:
            return False
        own = any(_matches(pod, each, other, state) for each in apart)
        return own or any(_matches(other, each, pod, state) for each in _terms(other)[1])

    return suits(new) != suits(old) or (hinders(old) and not hinders(new))


def _stock_notices(pod: Pod, old: Pod | None, new: Pod | None, state: State, stock: Version) -> bool:
    """As interpodaffinity's isSchedulableAfterPodChange: a pod without terms matches none of them."""
    together, apart = _terms(pod)
    enough = any if stock.one_term_wakes else all

    def suits(other: Pod | None) -> bool:
        return other is not None and bool(together) and all(_matches(pod, each, other, state) for each in together)

    def keeps_off(owner: Pod, terms: list[PodAffinityTerm], other: Pod | None) -> bool:
        return other is not None and bool(terms) and enough(_matches(owner, each, other, state) for each in terms)

    if new is not None:
        return (suits(new) and not suits(old)) or (keeps_off(pod, apart, old) and not keeps_off(pod, apart, new))
    if old is None:
        return False
    is_theirs = stock.leaving_pods_wake_by_their_terms and keeps_off(old, _terms(old)[1], pod)
    return keeps_off(pod, apart, old) or is_theirs


def _matches(owner: Pod, term: PodAffinityTerm, other: Pod, state: State) -> bool:
    """Asked without labels of the namespace too: so 1.35 reads the terms of a pod that is to be placed."""
    namespace = state.objects.get("Namespace", {}).get(Key("", other.metadata.namespace))
    compiled, meta = compile_pod_term(term, owner.metadata.namespace), other.metadata
    return compiled.selects(meta.namespace, meta.labels, {}) or (
        namespace is not None and compiled.selects(meta.namespace, meta.labels, namespace.metadata.labels)
    )


def _terms(pod: Pod) -> tuple[list[PodAffinityTerm], list[PodAffinityTerm]]:
    """Those of required affinity and of required anti-affinity."""
    affinity = pod.spec.affinity
    together = None if affinity is None else affinity.pod_affinity
    apart = None if affinity is None else affinity.pod_anti_affinity
    return ([] if together is None else together.required), ([] if apart is None else apart.required)


def _as_node(found: Object | None) -> Node | None:
    return found if isinstance(found, Node) else None


def _bound(pod: Pod | None) -> Pod | None:
    return pod if pod is not None and pod.spec.node_name else None


def _placed(found: Object | None) -> Pod | None:
    """The pod, if it takes up room: bound, or with a room reserved, and not finished."""
    if not isinstance(found, Pod) or found.is_finished:
        return None
    return found if found.spec.node_name or found.status.nominated_node_name else None
