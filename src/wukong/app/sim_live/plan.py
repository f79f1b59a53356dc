"""What a scenario would do to a real cluster, and why it must not: read before anything is changed.

Called by player.py. Reads the cluster only. A run touches what it makes itself, and cordons nodes; whatever else the
scenario asks for is refused here, all of it at once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import msgspec

from wukong.api.kinds import NAMESPACES, NODES
from wukong.api.resources import Key, Resource
from wukong.embedded.scenario.format.fields import RESOURCE_OF, Scenario, Target
from wukong.embedded.scenario.play.steps import namespace_of
from wukong.errors import InputError, NotFound
from wukong.ports import Cluster, Document

Name = tuple[str, Key]  # kind and key


class Plan(msgspec.Struct, frozen=True):
    """What the run makes and what it finds."""

    documents: frozenset[Name]  # it applies these
    namespaces: frozenset[str]  # it uses these
    new_namespaces: frozenset[str]
    nodes: frozenset[str]  # that the scenario names; none: whatever nodes there are
    makes_nodes: bool
    cordoned: frozenset[str] = frozenset()  # of the nodes found, before anything happened

    def is_told(self, kind: str, key: str) -> bool:
        """Whether the story is about this workload."""
        namespace, _, name = key.rpartition("/")
        return (kind, Key(namespace, name)) in self.documents

    def may_be_ours(self, namespace: str, name: str) -> bool:
        """Controllers call what they make after what they make it for, cut at 58 characters."""
        if namespace in self.new_namespaces:
            return True
        return any(
            key.namespace == namespace and (name == key.name or name.startswith(f"{key.name[:45]}"))
            for _, key in self.documents
        )


async def make_plan(cluster: Cluster, scenario: Scenario, *, makes_nodes: bool) -> Plan:
    """Raises InputError with everything that speaks against it; nothing has been changed then."""
    documents = frozenset(
        (each["kind"], key_of(each)) for each in scenario.documents if each["kind"] not in ("Node", "Namespace")
    )
    given = {each["metadata"]["name"] for each in scenario.documents if each["kind"] == "Namespace"}
    named = given | {key.namespace for _, key in documents if key.namespace}
    own = {each["metadata"]["name"] for each in scenario.documents if each["kind"] == "Node"}
    nodes = own | {name for group in scenario.nodes for name in group.names()}
    present = {name: await found(cluster, NAMESPACES, Key("", name)) for name in sorted(named)}
    there = {name: await found(cluster, NODES, Key("", name)) for name in sorted(nodes)}
    plan = Plan(
        documents=documents,
        namespaces=frozenset(named),
        new_namespaces=frozenset(name for name, document in present.items() if document is None),
        nodes=frozenset(nodes),
        makes_nodes=makes_nodes,
        cordoned=frozenset(name for name, node in there.items() if node and node["spec"].get("unschedulable")),
    )
    problems = [
        *(
            f"Namespace {name} exists already. Leave it out of the manifests."
            for name in sorted(given)
            if present[name]
        ),
        *[problem async for problem in _existing(cluster, plan)],
        *_nodes(plan, scenario, there),
        *_timeline(plan, scenario),
    ]
    if problems:
        raise InputError(*problems)
    return plan


async def found(cluster: Cluster, resource: Resource, key: Key) -> Document | None:
    try:
        document: Document = await cluster.get(resource, key, dict)
    except NotFound:
        return None
    return document


def key_of(document: Document) -> Key:
    is_namespaced = RESOURCE_OF[document["kind"]].namespaced
    return Key(namespace_of(document) if is_namespaced else "", document["metadata"]["name"])


async def _existing(cluster: Cluster, plan: Plan) -> AsyncIterator[str]:
    for kind, key in sorted(plan.documents):
        if key.namespace not in plan.new_namespaces and await found(cluster, RESOURCE_OF[kind], key):
            yield f"{kind} {key} exists already. Rename it in the scenario, or remove it from the cluster."


def _nodes(plan: Plan, scenario: Scenario, there: dict[str, Document | None]) -> Iterator[str]:
    if plan.makes_nodes:
        for name, node in there.items():
            if node is not None:
                yield f"node {name} exists already. Rename it in the scenario, or leave out --create-nodes."
        return
    missing = [name for name, node in there.items() if node is None]
    if missing:
        hint = "Have them, or, on a cluster of hollow nodes (the test bed, KWOK), let them be made: --create-nodes."
        yield f"the cluster has no node {', '.join(missing)}. {hint}"
    for group in scenario.nodes:
        for name in group.names():
            node = there[name]
            labels = {} if node is None else node["metadata"].get("labels") or {}
            lacking = [f"{label}={value}" for label, value in group.labels.items() if labels.get(label) != value]
            if node is not None and lacking:
                yield f"node {name} lacks the label {', '.join(lacking)} that the scenario gives it. Label it so."


def _timeline(plan: Plan, scenario: Scenario) -> Iterator[str]:
    """Only what can be taken back."""
    for index, moment in enumerate(scenario.timeline):
        place = f"$.timeline[{index}]"
        for target in (moment.patch, moment.delete, moment.scale):
            if target is not None and not _is_ours(plan, target):
                yield f"{place}: {target.kind} {target.name} is not of the scenario's making. Name one that is."
        for name in filter(None, (moment.cordon, moment.uncordon, moment.drain)):
            if name not in plan.nodes:
                yield f'{place}: node "{name}" is not among the scenario\'s nodes. List it there.'
        for name in filter(None, (moment.kill, moment.not_ready, moment.ready)):
            if not plan.makes_nodes or name not in plan.nodes:
                yield f'{place}: node "{name}" would be lost for real. Play it on hollow nodes: --create-nodes.'


def _is_ours(plan: Plan, target: Target) -> bool:
    if target.kind == "Node":
        return plan.makes_nodes and target.name in plan.nodes
    if target.kind == "Namespace":
        return target.name in plan.new_namespaces
    key = Key(target.namespace if RESOURCE_OF[target.kind].namespaced else "", target.name)
    is_pod = target.kind == "Pod" and plan.may_be_ours(key.namespace, key.name)
    return is_pod or (target.kind, key) in plan.documents
