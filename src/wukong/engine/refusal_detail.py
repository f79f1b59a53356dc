"""What exactly keeps a pod off a node: the taint, the amount missing, the pod and the term, the claim.

kube-scheduler's reasons stay as they are; these are told beside them. Filters give them node by node
(`FilterPart.describe`), explain.py groups nodes by their causes and merges them. Never asked where pods are placed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from wukong.api.core import NodeSelectorRequirement, PodAffinityTerm
from wukong.api.meta import LabelSelector
from wukong.api.quantity import format_amount

if TYPE_CHECKING:
    from wukong.engine.nodes import Column
    from wukong.engine.snapshot import Snapshot
    from wukong.engine.template import Template

_MOST_VALUES = 2  # named, of those that differ between nodes


class BarringPod(NamedTuple):
    """The first pod, by name, of those that bar; how many there are."""

    pod: str
    node: str
    total: int = 1

    @property
    def name(self) -> str:
        """No pod of a cluster has a # in its name: those are the copies that capacity.py places."""
        return "another like it" if "#" in self.pod else self.pod


class RefusalDetail(NamedTuple):
    """One thing that keeps a pod off one node. `type` and `cause` are equal on all nodes that it keeps it off."""

    type: str  # see docs/explain.md
    cause: str
    fields: tuple[tuple[str, object], ...] = ()  # what the cause is made of, for programs
    missing: int = 0  # of a resource, in the unit the scheduler counts in
    value: str = ""  # what is so on this node, in words: it has no such label, …
    actual: object = None  # and for programs: the label's value, …
    pod: BarringPod | None = None


class GroupDetail(NamedTuple):
    """The same cause on several nodes."""

    plugin: str
    type: str
    cause: str
    fields: Mapping[str, object]
    missing: Mapping[str, int]  # node → amount
    values: Mapping[str, str]  # node → what is so there
    actual: Mapping[str, object]  # the same for programs
    pods: Mapping[str, BarringPod]  # node → who bars it there

    def describe(self) -> str:
        """The cause in words, with what differs between the nodes summed up."""
        if self.missing:
            resource = str(self.fields["resource"])
            least, most = (format_amount(resource, pick(self.missing.values())) for pick in (min, max))
            return f"lacks {least if least == most else f'{least} to {most}'} {resource}"
        if self.pods:
            return f"{self.cause}: {self._describe_pods()}"
        values = list(dict.fromkeys(self.values.values()))
        more = " or another" if len(values) > _MOST_VALUES else ""
        return f"{self.cause}: {' or '.join(values[:_MOST_VALUES])}{more}" if any(values) else self.cause

    def build_document(self) -> dict[str, object]:
        """For programs: what it is about, and by node what differs."""
        document: dict[str, object] = {"plugin": self.plugin, "type": self.type, "text": self.describe(), **self.fields}
        if self.missing:
            resource = str(self.fields["resource"])
            document["missing"] = {node: format_amount(resource, amount) for node, amount in self.missing.items()}
        if self.values:
            document["actual"] = dict(self.actual)
        if self.pods:
            document["pods"] = {
                node: {"pod": entry.name, "node": entry.node, "count": entry.total} for node, entry in self.pods.items()
            }
        return document

    def select_node(self, node: str) -> GroupDetail:
        """The same of one of the nodes."""
        return self._replace(
            missing={node: self.missing[node]} if node in self.missing else {},
            values={node: self.values[node]} if node in self.values else {},
            actual={node: self.actual[node]} if node in self.actual else {},
            pods={node: self.pods[node]} if node in self.pods else {},
        )

    def _describe_pods(self) -> str:
        pods = {entry.pod: entry for entry in self.pods.values()}
        first = next(iter(pods.values()))
        is_elsewhere = any(entry.node != node for node, entry in self.pods.items())
        place = f" on {first.node}" if is_elsewhere else ""
        total = sum(entry.total for entry in pods.values())
        return f"{first.name}{place}" + (f" and {total - 1:,} more" if total > 1 else "")


def merge_details(plugin: str, by_node: Mapping[str, Sequence[RefusalDetail]]) -> list[GroupDetail]:
    """The details of nodes that have the same causes, in the order of the first node's."""
    merged = []
    for number, first in enumerate(next(iter(by_node.values()), ())):
        entries = {node: details[number] for node, details in by_node.items()}
        merged.append(
            GroupDetail(
                plugin=plugin,
                type=first.type,
                cause=first.cause,
                fields=dict(first.fields),
                missing={node: entry.missing for node, entry in entries.items() if entry.missing},
                values={node: entry.value for node, entry in entries.items() if entry.value},
                actual={node: entry.actual for node, entry in entries.items() if entry.value},
                pods={node: entry.pod for node, entry in entries.items() if entry.pod is not None},
            )
        )
    return merged


def find_barring_pods(snapshot: Snapshot, column: Column, templates: Iterable[Template]) -> dict[int, BarringPod]:
    """Domain of a topology → the pods of these templates in it."""
    numbers = {template.number for template in templates}
    rows = sorted({row for number in numbers for row in snapshot.placed.get(number, {})})
    pods_by_domain: dict[int, list[tuple[str, str]]] = {}
    for row in rows:
        if (domain := column.numbers[row]) >= 0:
            names = (key for key in snapshot.on_row.get(row, ()) if snapshot.pods[key].template.number in numbers)
            pods_by_domain.setdefault(domain, []).extend((key, snapshot.rows[row].name) for key in names)
    return {domain: BarringPod(*min(pods), len(pods)) for domain, pods in pods_by_domain.items() if pods}


def find_pod_on(snapshot: Snapshot, row: int, bars: Callable[[Template], bool]) -> BarringPod | None:
    """The pods on a node of which this is true."""
    keys = sorted(key for key in snapshot.on_row.get(row, ()) if bars(snapshot.pods[key].template))
    return BarringPod(keys[0], snapshot.rows[row].name, len(keys)) if keys else None


def describe_selector(selector: LabelSelector | None) -> str:
    if selector is None:
        return "no pods"
    parts = [f"{key}={value}" for key, value in sorted(selector.match_labels.items())]
    parts += [describe_requirement(entry.key, entry.operator, entry.values) for entry in selector.match_expressions]
    return ", ".join(parts) or "all pods"


def describe_requirement(key: str, operator: str, values: Sequence[str]) -> str:
    return f"{key} {operator}" + (f" ({', '.join(values)})" if values else "")


def describe_pod_term(term: PodAffinityTerm) -> str:
    return f"{describe_selector(term.label_selector)} per {term.topology_key}"


def describe_value(labels: Mapping[str, str], requirement: NodeSelectorRequirement) -> str:
    """What a node has where something else is wanted."""
    value = labels.get(requirement.key)
    return "it has no such label" if value is None else f"it has {value or 'an empty one'}"


def describe_taint(key: str, value: str, effect: str) -> str:
    """As kubectl writes it."""
    return f"{key}={value}:{effect}" if value else f"{key}:{effect}"
