"""Leaving nodes are taken out of external load balancers, once nobody on them serves any more.

Keys are nodes. Only of nodes whose machine goes, and only where a Service is of type LoadBalancer or NodePort: who
drains a node himself says so to load balancers himself.

    a ready pod of a Service with externalTrafficPolicy Local is on it ─► wait: its load balancer sends it traffic
    ... one that stays until the end (a DaemonSet's, a static one)     ─► wait only if no other node has a ready one
    no other node would be left                                        ─► wait
    else                                                               ─► the label, once for each notice
    the notice is withdrawn                                            ─► the label is removed, if it is ours

Kubernetes goes by the label's presence alone, so its value says that it is ours. A pod on its way out serves as long as
it is ready: kube-proxy sends it what comes.
"""

from __future__ import annotations

from collections.abc import Iterable

from wukong.actions import DONE, Note, Outcome, Patch
from wukong.api.core import Node, Pod, Service
from wukong.api.kinds import NODES, PODS, SERVICES
from wukong.api.resources import Key
from wukong.controllers.spot.evictions import must_leave, node_of_pod
from wukong.controllers.spot.notices import Course
from wukong.controllers.spot.owners import is_fixed, is_ready
from wukong.controllers.spot.records import LeavingNodes, read_record
from wukong.ports import PatchBody
from wukong.state import Change, State
from wukong.state.controller import Watch

EXCLUSION = "node.kubernetes.io/exclude-from-external-load-balancers"
OURS = "wukong"
LOOK_SECONDS = 10.0  # until it is looked again whether another node is left
_EXPOSED = ("LoadBalancer", "NodePort")


def leaving_nodes(_: Change, state: State) -> Iterable[Key]:
    """Whatever changes about a Service."""
    return [Key("", name) for name in sorted(state.index_of(LeavingNodes).records)]


class SpotLoadBalancers:
    name = "spot-load-balancer"
    watches = (
        Watch(NODES),
        Watch(PODS, node_of_pod, is_secondary=True),
        Watch(SERVICES, leaving_nodes, is_secondary=True),
    )

    def __init__(self) -> None:
        # By node: the moment of the notice for which it got the label. Who takes it away decides: it is not repeated.
        self._excluded: dict[str, str] = {}

    def copy_memory(self, source: SpotLoadBalancers, _: State) -> None:
        self._excluded = dict(source._excluded)

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        node = state.get(Node, key)
        record = read_record(node)
        if node is None or record is None or record.course != Course.RECLAIM:
            self._excluded.pop(key.name, None)
            is_ours = node is not None and node.metadata.labels.get(EXCLUSION) == OURS
            return Outcome((_set_label(node, None),)) if node is not None and is_ours else DONE
        if EXCLUSION in node.metadata.labels or self._excluded.get(key.name) == record.seen:
            return DONE
        services = [service for service in state.all(Service) if service.spec.type in _EXPOSED]
        if not services or find_server(node, services, state) is not None:
            return DONE
        if not _has_another(node, state):
            return Outcome(requeue_after=LOOK_SECONDS)
        self._excluded[key.name] = record.seen
        text = "Taken out of external load balancers: no pod on it serves any more."
        return Outcome((_set_label(node, OURS), Note(NODES, key, "LoadBalancerExcluded", text, uid=node.metadata.uid)))


def find_server(node: Node, services: Iterable[Service], state: State) -> Pod | None:
    """A pod on the node to which a load balancer sends what only this node may answer; None if there is none."""
    pods = [pod for pod in state.pods_on(node.metadata.name) if not pod.is_finished]
    for service in services:
        if service.spec.external_traffic_policy == "Local" and service.spec.selector:
            serving = [pod for pod in pods if _serves(pod, service)]
            if any(_moves(pod) for pod in serving) or (serving and not _is_served_elsewhere(service, state)):
                return serving[0]
    return None


def _serves(pod: Pod, service: Service) -> bool:
    labels, selector = pod.metadata.labels, service.spec.selector or {}
    is_selected = pod.metadata.namespace == service.metadata.namespace and selector.items() <= labels.items()
    return is_selected and (is_ready(pod) or service.spec.publish_not_ready_addresses)


def _moves(pod: Pod) -> bool:
    """Whether it goes before its machine does, so that it can be waited for."""
    return pod.is_terminating or (must_leave(pod) and not is_fixed(pod))


def _is_served_elsewhere(service: Service, state: State) -> bool:
    leaving = state.index_of(LeavingNodes).records
    pods = (pod for pod in state.all(Pod) if not pod.is_finished and not pod.is_terminating)
    return any(
        pod.spec.node_name and pod.spec.node_name not in leaving and is_ready(pod) and _serves(pod, service)
        for pod in pods
    )


def _has_another(node: Node, state: State) -> bool:
    """Whether load balancers have another node that stays: with none they would serve nobody."""
    return any(
        it.metadata.name != node.metadata.name
        and EXCLUSION not in it.metadata.labels
        and read_record(it) is None
        and not any(condition.type == "Ready" and condition.status != "True" for condition in it.status.conditions)
        for it in state.all(Node)
    )


def _set_label(node: Node, value: str | None) -> Patch:
    """At the version that was read: whose label it is may have changed since."""
    meta = {"resourceVersion": node.metadata.resource_version, "labels": {EXCLUSION: value}}
    return Patch(NODES, Key("", node.metadata.name), PatchBody("merge", {"metadata": meta}))
