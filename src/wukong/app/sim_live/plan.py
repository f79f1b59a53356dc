"""What a scenario would do to a real cluster, and why it must not: read before anything is changed.

Called by player.py. Reads the cluster only. A run touches what it makes itself, and cordons nodes; whatever else the
scenario asks for is refused here, all of it at once.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterator

import msgspec

from wukong.api.core import Node
from wukong.api.kinds import KINDS, NAMESPACES, NODES
from wukong.api.resources import Key, Resource
from wukong.embedded.scenario.format.durations import FIELDS
from wukong.embedded.scenario.format.fields import Scenario, Target, TimelineEntry, document_resource
from wukong.embedded.scenario.play.node_selection import selection_of
from wukong.embedded.scenario.play.steps import key_of, target_key
from wukong.errors import InputError, NotFound
from wukong.ports import Cluster, Document

LONGEST_BASE = 58  # characters that a generated name keeps of what it begins with
ObjectName = tuple[str, Key]  # group and kind, and key


class Plan(msgspec.Struct, frozen=True):
    """What the run creates, and what it finds there."""

    documents: frozenset[ObjectName]  # it applies these
    namespaces: frozenset[str]  # it uses these
    new_namespaces: frozenset[str]
    nodes: frozenset[str]  # that the scenario names; none: whatever nodes there are
    makes_nodes: bool
    run: str  # the value of the label that everything it makes carries

    def covers(self, kind: str, key: str) -> bool:
        """Whether the story is about this workload."""
        return f"{kind} {key}" in map(describe_name, self.documents)

    def may_name_own_pod(self, key: Key) -> bool:
        """Whether a pod of the run may get this name: controllers begin it with their own, cut where it is long.

        So may pods of others: whose pod it is, its label tells when it is there.
        """
        if key.namespace in self.new_namespaces:
            return True
        owners = [owner for _, owner in self.documents if owner.namespace == key.namespace]
        return any(key.name == owner.name or key.name.startswith(_pod_prefix_of(owner.name)) for owner in owners)


async def make_plan(cluster: Cluster, scenario: Scenario, *, makes_nodes: bool) -> Plan:
    """Raises InputError with everything that speaks against it; nothing has been changed then."""
    documents = frozenset(
        (document_resource(document).group_kind, key_of(document))
        for document in scenario.documents
        if document["kind"] not in ("Node", "Namespace")
    )
    own_namespaces = _names_of(scenario, "Namespace")
    namespaces = own_namespaces | {key.namespace for _, key in documents if key.namespace}
    nodes = _names_of(scenario, "Node") | {name for group in scenario.nodes for name in group.names()}
    present_namespaces = {name: await find_object(cluster, NAMESPACES, Key("", name)) for name in sorted(namespaces)}
    present_nodes = {name: await find_object(cluster, NODES, Key("", name)) for name in sorted(nodes)}
    labels_by_node = await _read_labels(cluster) if any(selection_of(entry)[1] for entry in scenario.timeline) else {}
    plan = Plan(
        documents=documents,
        namespaces=frozenset(namespaces),
        new_namespaces=frozenset(name for name, document in present_namespaces.items() if document is None),
        nodes=frozenset(nodes),
        makes_nodes=makes_nodes,
        run=secrets.token_hex(4),
    )
    problems = [
        *(
            f"Namespace {name} exists already. Leave it out of the manifests."
            for name in sorted(own_namespaces)
            if present_namespaces[name]
        ),
        *[problem async for problem in _check_documents(cluster, plan)],
        *_check_nodes(plan, scenario, present_nodes),
        *_check_timeline(plan, scenario, labels_by_node),
    ]
    if problems:
        raise InputError(*problems)
    return plan


async def _read_labels(cluster: Cluster) -> dict[str, dict[str, str]]:
    """Of every node that is there."""
    page = await cluster.list(NODES, Node)
    return {node.metadata.name: node.metadata.labels for node in page.items}


def describe_name(name: ObjectName) -> str:
    """`Deployment shop/web`"""
    group_kind, key = name
    return f"{group_kind.partition('.')[0]} {key}"


def _pod_prefix_of(owner: str) -> str:
    """With its `-`, so that `web` is not the prefix of `webshop-0`."""
    return f"{owner}-"[:LONGEST_BASE]


def _names_of(scenario: Scenario, kind: str) -> set[str]:
    return {document["metadata"]["name"] for document in scenario.documents if document["kind"] == kind}


async def find_object(cluster: Cluster, resource: Resource, key: Key) -> Document | None:
    try:
        document: Document = await cluster.get(resource, key, dict)
    except NotFound:
        return None
    return document


async def _check_documents(cluster: Cluster, plan: Plan) -> AsyncIterator[str]:
    for name in sorted(plan.documents):
        group_kind, key = name
        if key.namespace not in plan.new_namespaces and await find_object(cluster, KINDS[group_kind].resource, key):
            yield f"{describe_name(name)} exists already. Rename it in the scenario, or remove it from the cluster."


def _check_nodes(plan: Plan, scenario: Scenario, present: dict[str, Document | None]) -> Iterator[str]:
    if plan.makes_nodes:
        for name, node in present.items():
            if node is not None:
                yield f"node {name} exists already. Rename it in the scenario, or leave out --create-nodes."
        return
    missing = [name for name, node in present.items() if node is None]
    if missing:
        hint = "Have them, or, on a cluster of hollow nodes (the test bed, KWOK), let them be made: --create-nodes."
        yield f"the cluster has no node {', '.join(missing)}. {hint}"
    for group in scenario.nodes:
        for name in group.names():
            node = present[name]
            labels = {} if node is None else node["metadata"].get("labels") or {}
            lacking = [f"{label}={value}" for label, value in group.labels.items() if labels.get(label) != value]
            if node is not None and lacking:
                yield f"node {name} lacks the label {', '.join(lacking)} that the scenario gives it. Label it so."


def _check_timeline(plan: Plan, scenario: Scenario, labels_by_node: dict[str, dict[str, str]]) -> Iterator[str]:
    """Only what can be taken back."""
    if scenario.components:
        yield "$.components: a scenario runs components only in embedded clusters. Leave it out, and use wukong run."
    if scenario.options:
        yield "$.options: components of a real cluster have options of their own. Leave it out, and tell wukong run."
    for field, attribute in FIELDS.items():
        if getattr(scenario, attribute):
            yield f"$.{field}: pods of a real cluster take the time they take. Leave it out."
    if scenario.node_groups:
        yield "$.nodeGroups: a real cluster has an autoscaler of its own, or none. Leave it out."
    for index, entry in enumerate(scenario.timeline):
        place = f"$.timeline[{index}]"
        if entry.fault is not None:
            yield f"{place}: faults strike embedded clusters only. Leave it out."
        if entry.usage is not None:
            yield f"{place}: a real cluster's usage is measured. Play it embedded, or leave it out."
        for target in (entry.patch, entry.delete, entry.scale):
            if target is not None and not _is_ours(plan, target):
                yield f"{place}: {target.kind} {target.name} is not of the scenario's making. Name one that is."
        yield from _check_node_action(plan, entry, place, labels_by_node)


def _check_node_action(
    plan: Plan, entry: TimelineEntry, place: str, labels_by_node: dict[str, dict[str, str]]
) -> Iterator[str]:
    """`labels_by_node` are those of the nodes that the cluster has."""
    _, selection = selection_of(entry)
    if selection is not None:
        others = [
            name for name, labels in labels_by_node.items() if name not in plan.nodes and selection.selects(labels)
        ]
        if others:
            yield f'{place}: selects node "{others[0]}", which is not among the scenario\'s nodes. List it there.'
        if not plan.makes_nodes and any((entry.kill, entry.not_ready, entry.ready, entry.lose)):
            hint = "Play it on hollow nodes: --create-nodes."
            yield f"{place}: nodes {selection.describe()} would be lost for real. {hint}"
        return
    for name in filter(None, (entry.cordon, entry.uncordon, entry.drain)):
        if name not in plan.nodes:
            yield f'{place}: node "{name}" is not among the scenario\'s nodes. List it there.'
    for name in filter(None, (entry.kill, entry.not_ready, entry.ready)):
        if not plan.makes_nodes or name not in plan.nodes:
            yield f'{place}: node "{name}" would be lost for real. Play it on hollow nodes: --create-nodes.'


def _is_ours(plan: Plan, target: Target) -> bool:
    if target.kind == "Node":
        return plan.makes_nodes and target.name in plan.nodes
    if target.kind == "Namespace":
        return target.name in plan.new_namespaces
    key = target_key(target)
    is_pod = target.kind == "Pod" and plan.may_name_own_pod(key)
    return is_pod or (target.resource.group_kind, key) in plan.documents
