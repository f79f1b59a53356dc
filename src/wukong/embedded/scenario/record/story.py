"""The story of a scenario: what became of each workload, in numbers, and the events on the way. Only data.

Made by recording.py, compared by expectations.py, shown by the command line, whose -o json is `document()`.
"""

from __future__ import annotations

from typing import Any, Self

import msgspec

VERSION = 2  # 2: `evicted` was `restarts`


class Event(msgspec.Struct, frozen=True):
    """Something that happened, at a number of seconds from the beginning."""

    at: float
    subject: str
    text: str


class Move(msgspec.Struct, rename={"start": "from", "end": "to"}, kw_only=True):
    """A pod that had to leave its node, and the one that came up elsewhere in its place."""

    workload: str
    pod: str
    replacement: str
    start: str  # the node it left
    end: str  # the node of its replacement
    left: float  # when it began to stop, and when its replacement was ready; seconds from the beginning
    ready: float


class ReplicasBefore(msgspec.Struct, frozen=True):
    """Of a workload when the story began."""

    replicas: int
    available: int


class WorkloadSummary(msgspec.Struct, rename="camel", kw_only=True):
    """Of one workload. Minimum and unavailable seconds count from when it was first wholly available.

    One of a snapshot that is not so from the beginning is short while it has fewer than it had then.
    """

    kind: str
    replicas: int = 0
    available: int = 0
    up_to_date: int = 0  # of the latest version
    min_available: int = 0
    max_pods: int = 0  # at once; not those that end, nor those that a ReplicaSet is to delete
    # pods evicted, preempted, driven out by a taint or lost with their node; no restarts of containers are counted
    restarts: int = msgspec.field(name="evicted", default=0)
    unavailable_seconds: float = 0.0
    per_node: dict[str, int] = {}
    max_per_node: int = 0  # its pods on one node at once, terminating ones too
    mixed_nodes: int = 0  # nodes that had pods of two of its versions at once
    before: ReplicasBefore | msgspec.UnsetType = msgspec.UNSET  # of a workload of a snapshot

    @property
    def is_short_of_before(self) -> bool:
        """Whether it has fewer available than it should, and than it had before."""
        before = self.replicas if self.before is msgspec.UNSET else self.before.available
        return self.available < min(self.replicas, before)

    def fork(self) -> Self:
        """A copy. What it holds is never changed in place."""
        return msgspec.structs.replace(self)


class NodeCount(msgspec.Struct):
    start: int = 0
    max: int = 0
    end: int = 0


class RefusingNodes(msgspec.Struct, kw_only=True):
    """Nodes that a pod does not fit on for the same causes; as in what `wukong explain -o json` prints."""

    nodes: list[str]
    count: int
    reasons: list[str]  # in words
    refusals: dict[str, list[str]]  # plugin → kube-scheduler's reasons
    details: list[dict[str, Any]] = []


class StuckDetail(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What a reason of `stuck` is about: the nodes that refuse a waiting pod, or the budget that refuses a drain."""

    subject: str
    reason: str  # `stuck` has "subject: reason"
    pod: str
    nodes: list[RefusingNodes] = []
    budget: str = ""
    text: str = ""  # about the budget


class SettlingReport(msgspec.Struct, rename="camel", kw_only=True):
    """What a snapshot was in the middle of: all that happened until it was at rest."""

    changes: int  # writes of pods and of what is wanted; 0: it was at rest
    settled: bool
    at_rest: bool = True
    stuck: list[str]
    writes: int
    virtual_seconds: float
    timeline: list[Event]


class Story(msgspec.Struct, rename="camel", kw_only=True):
    version: int = VERSION
    settled: bool  # at rest, with nothing stuck that was not so before
    interrupted: bool = False  # by a person, before it was over
    at_rest: bool = True  # nothing will happen any more
    stuck: list[str]
    stuck_before: list[str] = []  # of a snapshot's story: what was stuck when it began, and is no worse
    stuck_details: list[StuckDetail] = []  # what the reasons of both are about
    workloads: dict[str, WorkloadSummary]
    nodes: NodeCount
    moves: list[Move] = []
    availability: dict[str, list[tuple[float, int, int]]] = {}  # workload → when, how many available, how many wanted
    writes: int
    virtual_seconds: float
    digest: str
    findings: list[str] = []  # what checkers found to be wrong: nothing, unless somebody made a mistake
    before: SettlingReport | None = None  # of a story that begins with a snapshot
    events: list[Event] = msgspec.field(name="timeline", default_factory=list)
    trace: list[str] = []

    def document(self) -> dict[str, Any]:
        """For programs: without the trace, which the digest stands for."""
        document: dict[str, Any] = msgspec.to_builtins(self)
        del document["trace"]
        if self.before is None:
            del document["before"], document["stuckBefore"]
        if not self.stuck_details:
            del document["stuckDetails"]
        return document
