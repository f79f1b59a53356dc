"""The fields of a scenario file as structs: read.py fills them, play/ goes by them. See docs/scenarios.md.

Times are texts such as 90s here; `seconds_of` reads them. Kubernetes documents stay documents: the server judges them.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from wukong.api.kinds import KINDS
from wukong.api.meta import LabelSelector
from wukong.api.node_groups import NodeGroup
from wukong.api.resources import Resource
from wukong.ports import Document
from wukong.semantics.selectors import compile_selector, selects

ZONE_LABEL = "topology.kubernetes.io/zone"
_BOUND = re.compile(r"(>=|<=|>|<)\s*(\d+(?:\.\d+)?)")
_DURATION = re.compile(r"(?:(\d{1,7})h)?(?:(\d{1,7})m)?(?:(\d{1,7})s)?")  # a thousand years; the clock ends in 9999


class _Fields(msgspec.Struct, rename="camel"):
    pass


class NodeEntry(_Fields):
    """One node with a `name`, or `count` of them with a prefix: `namePrefix: n` and `count: 3` are n1, n2, n3.

    A node of a node group is as the group's template says, but for what is said here.
    """

    name: str = ""
    name_prefix: str = ""
    count: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    taints: list[Document] = []
    capacity: dict[str, str | int | float] = {}
    allocatable: dict[str, str | int | float] = {}
    spot: bool | None = None
    group: str = ""

    def names(self) -> list[str]:
        if self.name:
            return [self.name]
        return [f"{self.name_prefix}{number}" for number in range(1, (self.count or 0) + 1)]


class Target(_Fields):
    """An object that something is done to. `apiVersion` is needed only where two groups have a kind of that name."""

    kind: str
    name: str
    namespace: str = "default"
    api_version: str = ""

    @property
    def resource(self) -> Resource:
        return resource_of(self.kind, self.api_version)


class PatchTarget(Target):
    type: str = "strategic"
    patch: Any = None


class ScaleTarget(Target, kw_only=True):
    replicas: int


class DeleteTarget(Target):
    """`gracePeriodSeconds: 0` removes it at once, whatever its kubelet says: `kubectl delete --force`."""

    grace_period_seconds: int | None = None


class NodeSelection(_Fields):
    """The nodes that are there when it happens and have these labels, or are in this zone."""

    selector: LabelSelector | None = None
    zone: str = ""

    def selects(self, labels: dict[str, str]) -> bool:
        if self.selector is None:
            return labels.get(ZONE_LABEL) == self.zone
        return selects(compile_selector(self.selector), labels)

    def describe(self) -> str:
        return f"in zone {self.zone}" if self.selector is None else f"with {describe_selector(self.selector)}"


class UsageTarget(_Fields):
    """How much of a node, or by a workload, is in use from now on; what is left out is not known.

    Percents are of what a node can allocate, or of what each pod of the workload requests; `total` is what its ready
    pods use together, however many they are.
    """

    node: str = ""
    workload: str = ""
    kind: str = ""
    cpu: float | None = None
    memory: float | None = None
    storage: float | None = None
    total: dict[str, str | int | float] = {}


class Fault(_Fields):
    """Faults of one type for a while; those that are counted per minute come once if `rate` does not say."""

    type: str
    for_: str | int = msgspec.field(name="for", default="60s")
    rate: float | None = None


class TimelineEntry(_Fields):
    """One thing that happens, and when; exactly one field besides `at` is there."""

    at: str | int
    apply: Document | list[Document] | None = None
    patch: PatchTarget | None = None
    delete: DeleteTarget | None = None
    scale: ScaleTarget | None = None
    cordon: str | NodeSelection | None = None
    uncordon: str | NodeSelection | None = None
    drain: str | NodeSelection | None = None
    not_ready: str | NodeSelection | None = None
    ready: str | NodeSelection | None = None
    kill: str | NodeSelection | None = None
    lose: str | NodeSelection | None = None
    usage: UsageTarget | None = None
    fault: Fault | None = None

    @property
    def seconds(self) -> int:
        return seconds_of(self.at) or 0

    @property
    def actions(self) -> list[str]:
        """The fields that are there, as the file spells them."""
        return [spelling for name, spelling in ENTRY_ACTIONS.items() if getattr(self, name) is not None]


NODE_ACTIONS = ("cordon", "uncordon", "drain", "not_ready", "ready", "kill", "lose")  # they name nodes, or select some
ENTRY_ACTIONS = {field.name: field.encode_name for field in msgspec.structs.fields(TimelineEntry) if field.name != "at"}
Count = int | str  # a number, or a bound such as ">=2"


class ExpectedWorkload(_Fields):
    kind: str | None = None
    replicas: Count | None = None
    available: Count | None = None
    min_available: Count | None = None
    max_pods: Count | None = None
    evicted: Count | None = None
    restarts: Count | None = None  # what `evicted` was called before
    unavailable_seconds: Count | float | None = None
    per_node: dict[str, Count] | None = None
    max_per_node: Count | None = None
    mixed_nodes: Count | None = None


class ExpectedEvent(_Fields):
    """Something that the story tells: once or more, between two times if they are given."""

    text: str
    subject: str = ""
    after: str | int | None = None
    before: str | int | None = None
    count: Count | None = None


class ExpectedNodes(_Fields):
    start: Count | None = None
    max: Count | None = None
    end: Count | None = None


class ExpectedStory(_Fields):
    settled: bool | None = None  # not said: it is to settle
    stuck: str | list[str] = []
    workloads: dict[str, ExpectedWorkload] = {}
    nodes: ExpectedNodes = msgspec.field(default_factory=ExpectedNodes)
    virtual_seconds: Count | float | None = None
    events: list[ExpectedEvent] = []


class Scenario(_Fields):
    nodes: list[NodeEntry] = []
    node_groups: list[NodeGroup] = []
    manifests: list[Document] = []
    files: list[str] = []
    timeline: list[TimelineEntry] = []
    until: str | int = "1h"
    start_seconds: float | dict[str, float] = {}  # until a container runs: of all pods, or by workload (durations.py)
    stop_seconds: float | dict[str, float] = {}
    extender: bool | None = None
    components: list[str] = []
    options: dict[str, Any] = {}  # of components, by their names, as in the file of `wukong run`
    expect: ExpectedStory = msgspec.field(default_factory=ExpectedStory)

    @property
    def documents(self) -> list[Document]:
        """Every document it holds, those of the timeline too."""
        return [*self.manifests, *(document for entry in self.timeline for document in as_list(entry.apply))]


def find_resource(kind: str, api_version: str = "") -> Resource | None:
    """The kind that a scenario means, if scenarios know it."""
    known = [entry.resource for entry in KINDS.manifests() if entry.resource.kind == kind]
    return next((resource for resource in known if api_version in ("", resource.api_version)), None)


def resource_of(kind: str, api_version: str = "") -> Resource:
    """The kind that a scenario means; it has been checked that there is one."""
    resource = find_resource(kind, api_version)
    assert resource is not None, f"scenarios know no {api_version} {kind}"
    return resource


def document_resource(document: Document) -> Resource:
    return resource_of(document["kind"], document.get("apiVersion") or "")


def describe_selector(selector: LabelSelector) -> str:
    """As kubectl writes it: `app=web,tier in (a, b),!spot`."""
    parts = [f"{key}={value}" for key, value in selector.match_labels.items()]
    for requirement in selector.match_expressions:
        values = f"({', '.join(requirement.values)})"
        match requirement.operator:
            case "In" | "NotIn":
                parts.append(f"{requirement.key} {'in' if requirement.operator == 'In' else 'notin'} {values}")
            case _:
                parts.append(f"{'!' if requirement.operator == 'DoesNotExist' else ''}{requirement.key}")
    return ",".join(parts) or "any labels"


def bound_of(text: str) -> tuple[str, float] | None:
    """`>=2` as sign and number; None for anything else."""
    match = _BOUND.fullmatch(text)
    return (match[1], float(match[2])) if match else None


def as_list(documents: Document | list[Document] | None) -> list[Document]:
    """What `apply` of a timeline entry holds: one document, or a list of them."""
    return documents if isinstance(documents, list) else [documents] if documents else []


def seconds_of(text: str | int) -> int | None:
    """`90s`, `10m`, `1h`, `1h30m` in seconds; None for anything else."""
    match = _DURATION.fullmatch(text) if isinstance(text, str) else None
    if not match or not text:
        return None
    return sum(int(part) * unit for part, unit in zip(match.groups(), (3600, 60, 1), strict=True) if part)
