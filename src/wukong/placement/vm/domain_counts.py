"""A Wukong against the nodes of a cluster: are there enough domains for its machines, and one to migrate to? Pure.

For lint.py. Counts the nodes that its machines may be on at all (labels, taints, cordons), not what is free there:
what fits today is what `wukong capacity` and `wukong explain` say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wukong.api.core import Affinity, Node, NodeAffinity, NodeSelector, Pod, PodAffinityTerm, PodSpec
from wukong.api.vm import VmScheduling, Wukong
from wukong.placement.vm.affinity import anti_affinity_of, template_labels_of
from wukong.placement.vm.finding import Finding
from wukong.semantics.node_selectors import allows_node
from wukong.semantics.pod_affinity import compile_pod_term
from wukong.semantics.tolerations import tolerates_node

_MIGRATING = ("LiveMigrate", "LiveMigrateIfPossible")
_SCHEDULABLE = "kubevirt.io/schedulable"


def find_domain_findings(wukong: Wukong, nodes: Sequence[Node] | None) -> Iterator[Finding]:
    """Without nodes (None), only what would be needed is said."""
    possible = None if nodes is None else possible_nodes(wukong, nodes)
    if possible == []:
        yield Finding(
            "error",
            wukong.key,
            "$.spec.scheduling",
            f"none of the {len(nodes or ()):,} nodes has the labels and the tolerated taints that its machines need.",
            "Compare nodeSelector, nodeAffinity and tolerations with the nodes.",
        )
        return
    yield from _find_anti_affinity_findings(wukong, possible)
    if possible is not None:
        yield from _find_key_findings(wukong, possible)
        yield from _find_spread_findings(wukong, possible)


def possible_nodes(wukong: Wukong, nodes: Sequence[Node]) -> list[Node]:
    """The nodes that the labels, taints and cordons of a cluster leave to its machines.

    Where KubeVirt runs, only nodes that it calls schedulable.
    """
    scheduling = wukong.spec.scheduling or VmScheduling()
    required = scheduling.node_affinity.required if scheduling.node_affinity is not None else []
    selector = NodeSelector(node_selector_terms=required) if required else None
    spec = PodSpec(
        node_selector=scheduling.node_selector,
        tolerations=scheduling.tolerations,
        affinity=Affinity(node_affinity=NodeAffinity(required=selector)),
    )
    pod = Pod(spec=spec)
    has_kubevirt = any(_SCHEDULABLE in node.metadata.labels for node in nodes)
    return [
        node
        for node in nodes
        if not node.spec.unschedulable
        and (not has_kubevirt or node.metadata.labels.get(_SCHEDULABLE) == "true")
        and allows_node(pod, node)
        and tolerates_node(pod, node)
    ]


def count_domains(nodes: Sequence[Node], key: str) -> int:
    """Domains by a node label. A node without it is in none of them."""
    return len({node.metadata.labels[key] for node in nodes if key in node.metadata.labels})


def _find_anti_affinity_findings(wukong: Wukong, nodes: Sequence[Node] | None) -> Iterator[Finding]:
    replicas = 1 if wukong.spec.replicas is None else wukong.spec.replicas
    for path, term in _terms_against_itself(wukong):
        yield from _judge_separation(wukong, replicas, path, term, nodes)


def _terms_against_itself(wukong: Wukong) -> Iterator[tuple[str, PodAffinityTerm]]:
    """Required anti-affinity that keeps its own machines apart, with its place."""
    scheduling = wukong.spec.scheduling
    is_explicit = scheduling is not None and scheduling.pod_anti_affinity is not None
    anti_affinity = anti_affinity_of(wukong)
    for index, term in enumerate(anti_affinity.required if anti_affinity is not None else ()):
        compiled = compile_pod_term(term, wukong.metadata.namespace)
        is_own = compiled.selects(wukong.metadata.namespace, template_labels_of(wukong), {})
        if is_own and not term.mismatch_label_keys:
            explicit_path = f"$.spec.scheduling.podAntiAffinity.required[{index}]"
            yield explicit_path if is_explicit else "$.spec.highAvailability.antiAffinity", term


def _judge_separation(
    wukong: Wukong, replicas: int, path: str, term: PodAffinityTerm, nodes: Sequence[Node] | None
) -> Iterator[Finding]:
    key, migrates = term.topology_key, wukong.spec.eviction_strategy in _MIGRATING
    needs = f"{replicas + 1 if migrates else replicas} domains of {key}"
    if nodes is None:
        if migrates and replicas > 1:
            text = f"{_count(replicas)} apart, and a migrating one repels its own source: {needs} are needed."
            yield Finding("note", wukong.key, path, text)
        return
    domains = count_domains(nodes, key)
    free_nodes = sum(key not in node.metadata.labels for node in nodes)
    if free_nodes or replicas == 0:
        return  # anti-affinity keeps nobody away from nodes without the label
    if domains < replicas:
        yield Finding(
            "error",
            wukong.key,
            path,
            f"{_count(replicas)} must be apart by {key}, and there are {_domains(domains)}: "
            f"{replicas - domains} cannot be placed.",
            f"Ask for at most {domains} replicas, add nodes, or make the rule preferred.",
        )
    elif domains == replicas and migrates:
        yield Finding(
            "warning",
            wukong.key,
            path,
            f"{_count(replicas)} apart by {key} in {_domains(domains)} cannot migrate: the target would share a domain "
            "with its source or with another machine; a drain waits for ever.",
            f"Have {replicas + 1} domains, ask for one replica less, or make the rule preferred.",
        )


def _find_key_findings(wukong: Wukong, nodes: Sequence[Node]) -> Iterator[Finding]:
    """Rules that only nodes with a label can satisfy, where no node has it."""
    scheduling = wukong.spec.scheduling or VmScheduling()
    near = scheduling.pod_affinity.required if scheduling.pod_affinity is not None else []
    rules = [(f"podAffinity.required[{index}]", term.topology_key) for index, term in enumerate(near)]
    rules += [
        (f"topologySpreadConstraints[{index}]", constraint.topology_key)
        for index, constraint in enumerate(scheduling.topology_spread_constraints)
        if constraint.when_unsatisfiable == "DoNotSchedule"
    ]
    for place, key in rules:
        if count_domains(nodes, key) == 0:
            yield Finding(
                "error",
                wukong.key,
                f"$.spec.scheduling.{place}.topologyKey",
                f"none of the nodes its machines may be on has the label {key}: none can be placed.",
                "Label the nodes, or name a label that they have.",
            )


def _find_spread_findings(wukong: Wukong, nodes: Sequence[Node]) -> Iterator[Finding]:
    """With fewer domains than minDomains, each may have maxSkew machines and no more."""
    scheduling, replicas = wukong.spec.scheduling or VmScheduling(), wukong.spec.replicas or 1
    for index, constraint in enumerate(scheduling.topology_spread_constraints):
        selector = PodAffinityTerm(topology_key=constraint.topology_key, label_selector=constraint.label_selector)
        compiled = compile_pod_term(selector, wukong.metadata.namespace)
        is_own = compiled.selects(wukong.metadata.namespace, template_labels_of(wukong), {})
        domains = count_domains(nodes, constraint.topology_key)
        if not is_own or not 0 < domains < (constraint.min_domains or 0) or replicas <= domains * constraint.max_skew:
            continue
        yield Finding(
            "error",
            wukong.key,
            f"$.spec.scheduling.topologySpreadConstraints[{index}].minDomains",
            f"{_domains(domains)} of {constraint.topology_key} where {constraint.min_domains} are asked for: "
            f"{constraint.max_skew} in each at most, so {domains * constraint.max_skew} of {replicas} can be placed.",
            "Lower minDomains, raise maxSkew, or add domains.",
        )


def _count(replicas: int) -> str:
    return f"{replicas} machines" if replicas != 1 else "1 machine"


def _domains(count: int) -> str:
    return f"{count} domains" if count != 1 else "1 domain"
