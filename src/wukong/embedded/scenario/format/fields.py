"""The fields of a scenario file as structs: reading.py fills them, playing.py goes by them. See docs/scenarios.md.

Times are texts such as 90s here; `seconds_of` reads them. Kubernetes documents stay documents: the server judges them.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from wukong.api.kinds import KINDS
from wukong.ports import Document

RESOURCE_OF = {kind.resource.kind: kind.resource for kind in KINDS.manifests()}  # the kinds that scenarios know
_BOUND = re.compile(r"(>=|<=|>|<)\s*(\d+(?:\.\d+)?)")
_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")


class _Fields(msgspec.Struct, rename="camel"):
    pass


class NodeGroup(_Fields):
    """One node with a `name`, or `count` of them with a prefix: `namePrefix: n` and `count: 3` are n1, n2, n3."""

    name: str = ""
    name_prefix: str = ""
    count: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    taints: list[Document] = []
    capacity: dict[str, str | int | float] = {}
    allocatable: dict[str, str | int | float] = {}
    spot: bool | None = None

    def names(self) -> list[str]:
        if self.name:
            return [self.name]
        return [f"{self.name_prefix}{number}" for number in range(1, (self.count or 0) + 1)]


class Target(_Fields):
    """An object that something is done to."""

    kind: str
    name: str
    namespace: str = "default"


class Patched(Target):
    type: str = "strategic"
    patch: Any = None


class Scaled(Target, kw_only=True):
    replicas: int


class Deleted(Target):
    """`gracePeriodSeconds: 0` removes it at once, whatever its kubelet says: `kubectl delete --force`."""

    grace_period_seconds: int | None = None


class Fault(_Fields):
    """Faults of one type for a while; those that are counted per minute come once if `rate` does not say."""

    type: str
    for_: str | int = msgspec.field(name="for", default="60s")
    rate: float | None = None


class TimelineEntry(_Fields):
    """One thing that happens, and when; exactly one field besides `at` is there."""

    at: str | int
    apply: Document | list[Document] | None = None
    patch: Patched | None = None
    delete: Deleted | None = None
    scale: Scaled | None = None
    cordon: str | None = None
    uncordon: str | None = None
    drain: str | None = None
    not_ready: str | None = None
    ready: str | None = None
    kill: str | None = None
    fault: Fault | None = None

    @property
    def seconds(self) -> int:
        return seconds_of(self.at) or 0

    @property
    def acts(self) -> list[str]:
        """The fields that are there, as they are written."""
        return [written for name, written in ACTS.items() if getattr(self, name) is not None]


ACTS = {field.name: field.encode_name for field in msgspec.structs.fields(TimelineEntry) if field.name != "at"}
Count = int | str  # a number, or a bound such as ">=2"


class WorkloadExpected(_Fields):
    kind: str | None = None
    replicas: Count | None = None
    available: Count | None = None
    min_available: Count | None = None
    max_pods: Count | None = None
    restarts: Count | None = None
    unavailable_seconds: Count | float | None = None
    per_node: dict[str, Count] | None = None
    max_per_node: Count | None = None
    mixed_nodes: Count | None = None


class EventExpected(_Fields):
    """Something that the story tells: once or more, between two times if they are given."""

    text: str
    subject: str = ""
    after: str | int | None = None
    before: str | int | None = None
    count: Count | None = None


class NodesExpected(_Fields):
    start: Count | None = None
    max: Count | None = None
    end: Count | None = None


class Expected(_Fields):
    settled: bool = True
    stuck: str | list[str] = []
    workloads: dict[str, WorkloadExpected] = {}
    nodes: NodesExpected = msgspec.field(default_factory=NodesExpected)
    virtual_seconds: Count | float | None = None
    events: list[EventExpected] = []


class Scenario(_Fields):
    nodes: list[NodeGroup] = []
    manifests: list[Document] = []
    files: list[str] = []
    timeline: list[TimelineEntry] = []
    until: str | int = "1h"
    extender: bool | None = None
    expect: Expected = msgspec.field(default_factory=Expected)

    @property
    def documents(self) -> list[Document]:
        """Every document it holds, those of the timeline too."""
        return [*self.manifests, *(each for moment in self.timeline for each in as_list(moment.apply))]


def bound_of(text: str) -> tuple[str, float] | None:
    """`>=2` as sign and number; None for anything else."""
    found = _BOUND.fullmatch(text)
    return (found[1], float(found[2])) if found else None


def as_list(given: Document | list[Document] | None) -> list[Document]:
    return given if isinstance(given, list) else [given] if given else []


def seconds_of(text: str | int) -> int | None:
    """`90s`, `10m`, `1h`, `1h30m` in seconds; None for anything else."""
    found = _DURATION.fullmatch(text) if isinstance(text, str) else None
    if not found or not text:
        return None
    return sum(int(part) * unit for part, unit in zip(found.groups(), (3600, 60, 1), strict=True) if part)
