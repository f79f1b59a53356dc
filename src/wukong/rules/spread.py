"""PodTopologySpread as filter: no domain may run ahead of the emptiest one by more than maxSkew.

Reads the pod's constraints, or the profile's default ones, for the score too (spread_score.py). SpreadFilter counts
once per decision; preemption then removes and adds pods while it tries out victims.
"""

from __future__ import annotations

from typing import NamedTuple

from wukong.api.core import Node, Pod, TopologySpreadConstraint
from wukong.api.meta import LabelSelector, controller_of
from wukong.api.profile import Profile
from wukong.rules.cluster import Cluster, NodeInfo
from wukong.rules.labels import Labels
from wukong.rules.node_affinity import allows_node
from wukong.rules.selectors import Requirements, require_equal, requirements, selects
from wukong.rules.taints import tolerates_node
from wukong.rules.verdict import Rejection, build_rejection, build_unresolvable

SKEWED = "node(s) didn't match pod topology spread constraints"
NO_LABEL = "node(s) didn't match pod topology spread constraints (missing required label)"


class Constraint(NamedTuple):
    """A spread constraint with its selector read."""

    topology_key: str
    max_skew: int
    min_domains: int
    honors_affinity: bool
    honors_taints: bool
    selector: Requirements

    def includes(self, pod: Pod, node: Node) -> bool:
        """Whether the node's pods and domain count, by the constraint's inclusion policies."""
        if self.honors_affinity and not allows_node(pod, node):
            return False
        return not self.honors_taints or tolerates_node(pod, node)


class SpreadFilter:
    """The hard constraints of one pod and how many pods each domain has."""

    def __init__(self, cluster: Cluster, pod: Pod, profile: Profile) -> None:
        self.pod = pod
        self.constraints = read_constraints(cluster, pod, profile, "DoNotSchedule")
        self.counts: list[dict[str, int]] = [{} for _ in self.constraints]  # constraint → domain → pods
        for info in cluster.nodes.values():
            for domains, constraint, domain in self._domains_of(info.node):
                domains[domain] = domains.get(domain, 0) + count_pods(info, constraint.selector, pod)

    def reject(self, node: Node) -> Rejection | None:
        for constraint, domains in zip(self.constraints, self.counts, strict=True):
            domain = node.metadata.labels.get(constraint.topology_key)
            if domain is None:
                return build_unresolvable(NO_LABEL)
            is_own = selects(constraint.selector, self.pod.metadata.labels)
            skew = domains.get(domain, 0) + is_own - _count_fewest(domains, constraint.min_domains)
            if skew > constraint.max_skew:
                return build_rejection(SKEWED)
        return None

    def remove_pod(self, placed_pod: Pod, node: Node) -> None:
        self._update(placed_pod, node, -1)

    def add_pod(self, placed_pod: Pod, node: Node) -> None:
        self._update(placed_pod, node, +1)

    def copy(self) -> SpreadFilter:
        copy = SpreadFilter.__new__(SpreadFilter)
        copy.pod, copy.constraints = self.pod, self.constraints
        copy.counts = [dict(domains) for domains in self.counts]
        return copy

    def _update(self, placed_pod: Pod, node: Node, change: int) -> None:
        """Looser than `count_pods`, as in kube-scheduler: terminating pods and empty selectors take part here."""
        if placed_pod.metadata.namespace != self.pod.metadata.namespace:
            return
        for domains, constraint, domain in self._domains_of(node):
            if selects(constraint.selector, placed_pod.metadata.labels):
                domains[domain] = domains.get(domain, 0) + change

    def _domains_of(self, node: Node) -> list[tuple[dict[str, int], Constraint, str]]:
        """Where this node counts: nowhere, unless it has the labels of all hard constraints."""
        if not has_all_keys(node.metadata.labels, self.constraints):
            return []
        return [
            (domains, constraint, node.metadata.labels[constraint.topology_key])
            for constraint, domains in zip(self.constraints, self.counts, strict=True)
            if constraint.includes(self.pod, node)
        ]


def read_constraints(cluster: Cluster, pod: Pod, profile: Profile, when_unsatisfiable: str) -> list[Constraint]:
    """The pod's own constraints of this kind; if it has none of either kind, the profile's with a deduced selector."""
    own = pod.spec.topology_spread_constraints
    if own:
        return [_read_constraint(entry, pod) for entry in own if entry.when_unsatisfiable == when_unsatisfiable]
    selector = find_default_selector(cluster, pod)
    if not selector:
        return []
    chosen = [entry for entry in profile.default_constraints if entry.when_unsatisfiable == when_unsatisfiable]
    return [_read_constraint(entry, pod)._replace(selector=selector) for entry in chosen]


def find_default_selector(cluster: Cluster, pod: Pod) -> Requirements:
    """What the services that select the pod and the workload that owns it select. Empty: nothing is known."""
    near = [service for service in cluster.services if service.metadata.namespace == pod.metadata.namespace]
    wanted = [service.spec.selector for service in near if service.spec.selector is not None]
    labels: dict[str, str] = {}
    for selector in wanted:
        if selects(require_equal(selector), pod.metadata.labels):
            labels |= selector
    return _add_owner(cluster, pod, labels)


def count_pods(info: NodeInfo, selector: Requirements, pod: Pod) -> int:
    """The selected pods of the same namespace. Terminating ones are ignored; an empty selector counts nobody."""
    if not selector:
        return 0
    return sum(
        placed_pod.metadata.namespace == pod.metadata.namespace
        and not placed_pod.is_terminating
        and selects(selector, placed_pod.metadata.labels)
        for placed_pod in info.pods
    )


def has_all_keys(labels: Labels, among: list[Constraint]) -> bool:
    return all(constraint.topology_key in labels for constraint in among)


def _count_fewest(domains: dict[str, int], min_domains: int) -> int:
    """The pods in the emptiest domain. With fewer domains than wanted, one that is still to come counts as empty."""
    return min(domains.values(), default=0) if len(domains) >= min_domains else 0


def _read_constraint(constraint: TopologySpreadConstraint, pod: Pod) -> Constraint:
    return Constraint(
        topology_key=constraint.topology_key,
        max_skew=constraint.max_skew,
        min_domains=constraint.min_domains if constraint.min_domains is not None else 1,
        honors_affinity=constraint.node_affinity_policy == "Honor",
        honors_taints=constraint.node_taints_policy == "Honor",
        selector=_add_label_keys(requirements(constraint.label_selector), constraint.match_label_keys, pod),
    )


def _add_label_keys(selector: Requirements, keys: list[str], pod: Pod) -> Requirements:
    """matchLabelKeys ask for the pod's own values. The API server has merged them already; asking twice is no harm."""
    own = {key: pod.metadata.labels[key] for key in keys if key in pod.metadata.labels}
    return None if selector is None else (*require_equal(own), *selector)


def _add_owner(cluster: Cluster, pod: Pod, labels: dict[str, str]) -> Requirements:
    owner = controller_of(pod.metadata)
    if owner is None:
        return require_equal(labels)
    key = f"{pod.metadata.namespace}/{owner.name}"
    kind = (owner.api_version, owner.kind)
    if kind == ("v1", "ReplicationController"):
        plain = [workload.spec.selector for workload in cluster.replication_controllers if workload.key == key]
        return require_equal(labels | (plain[0] if plain else {}))
    selectors: list[LabelSelector | None] = []
    if kind == ("apps/v1", "ReplicaSet"):
        selectors = [workload.spec.selector for workload in cluster.replica_sets if workload.key == key]
    elif kind == ("apps/v1", "StatefulSet"):
        selectors = [workload.spec.selector for workload in cluster.stateful_sets if workload.key == key]
    return require_equal(labels) + ((requirements(selectors[0]) or ()) if selectors else ())
