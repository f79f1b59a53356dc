"""The fields of a plan: what the modules beside this one fill in, and `wukong plan` shows. Only data; see docs/plan.md.

Names of workloads are those of stories: `namespace/name`, with the kind where two share that. Times are seconds from
when the change is applied.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from wukong.forecast.start_times import StartTime
from wukong.forecast.stop_times import StopTime

VERSION = 1
# From good to bad. The verdict of a plan is the worst of its plays.
VerdictKind = Literal["completes", "degrades", "needs-nodes", "never-ends"]
VERDICT_KINDS: tuple[VerdictKind, ...] = ("completes", "degrades", "needs-nodes", "never-ends")
Action = Literal["create", "change", "delete", "none", "drain", "remove", "lose", "add"]


# ---- what changes


class FieldChange(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """One field of an object; the side on which it is not there is left out."""

    path: str  # such as spec.template.spec.containers[web].image
    before: Any = msgspec.UNSET
    after: Any = msgspec.UNSET


class Rollout(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """Whether what is changed makes new pods in place of the old ones, and why or why not."""

    starts: bool
    causes: list[str]  # the fields of the template, of a rollout that starts
    text: str


class ObjectChange(msgspec.Struct, rename="camel", kw_only=True):
    """What becomes of one object; `rollout` is there for workloads."""

    action: Action
    kind: str
    name: str  # namespace/name
    fields: list[FieldChange] = []
    rollout: Rollout | None = None


# ---- what happens


class CoursePoint(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """Pods of a workload from then on: of the version before and of the new one, available, and without a node."""

    at: float
    old: int
    new: int
    available: int
    pending: int


class WorkloadForecast(msgspec.Struct, rename="camel", kw_only=True):
    """A workload that something happens to. `course` is there for those that the change itself is about."""

    kind: str
    key: str  # namespace/name, whatever the name that the plan knows it by
    replicas: int
    replicas_before: int | None  # None: it was not there
    available: int
    available_before: int | None
    up_to_date: int
    min_available: int
    unavailable_limit: int | None = None  # as many as its strategy lets be unavailable; None: it promises nothing
    unavailable_seconds: float = 0.0
    evicted: int = 0  # pods evicted, preempted, driven out by a taint or lost with their node
    completed_at: float | None = None  # None: it is not complete in the end
    availability: list[tuple[float, int, int]] = []  # when, how many available, how many wanted
    course: list[CoursePoint] = []


DisruptionCause = Literal["preempted", "evicted", "driven out by a taint", "lost with its node"]


class DisruptedPod(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """A pod that has to go though its controller did not ask for it."""

    workload: str  # "" for a pod without a controller
    pod: str
    node: str
    cause: DisruptionCause
    at: float


class BudgetUse(msgspec.Struct, rename="camel", kw_only=True):
    """What becomes of a PodDisruptionBudget: how many evictions it allows, and how many pods are healthy at least."""

    name: str  # namespace/name
    allowed_before: int
    min_allowed: int
    min_healthy: int
    desired_healthy: int
    is_broken: bool = False  # fewer were healthy than it asks for, which was not so before


class Touched(msgspec.Struct, rename="camel", kw_only=True):
    """Who else is touched, and how."""

    disrupted: list[DisruptedPod] = []
    starved: list[str] = []  # workloads that the change is not about, with fewer available in the end than before
    budgets: list[BudgetUse] = []  # used up or broken
    refused_evictions: list[str] = []


class NodeReason(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """Why a pod does not get onto some nodes."""

    plugin: str
    reason: str  # kube-scheduler's own words
    detail: str = ""  # which taint, whose pod, how much is missing
    nodes: int
    examples: list[str]


class BlockedPod(msgspec.Struct, rename="camel", kw_only=True):
    """A pod that has no node in the end; `others` more of its workload are blocked alike."""

    workload: str
    pod: str
    message: str  # kube-scheduler's own
    reasons: list[NodeReason] = []
    others: int = 0


class NeededNodes(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """So many more nodes like this one would have to be there."""

    like: str  # a node of the cluster
    type: str  # its instance type, or ""
    count: int


class NodeForecast(msgspec.Struct, rename="camel", kw_only=True):
    before: int = 0
    most: int = 0
    after: int = 0
    added: list[str] = []
    removed: list[str] = []
    added_labels: dict[str, dict[str, str]] = {}
    freed: list[str] = []  # left with nothing but DaemonSets' pods
    needed: list[NeededNodes] = []


class Problem(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """One reason why the change is not safe."""

    kind: VerdictKind
    subject: str  # a workload, a budget, a node
    text: str


class Play(msgspec.Struct, rename="camel", kw_only=True):
    """What happened with one seed."""

    seed: int
    kind: VerdictKind
    seconds: float  # until every workload was as it should be; of one that never is, until nothing more happens
    problems: list[Problem] = []
    workloads: dict[str, WorkloadForecast] = {}
    touched: Touched = msgspec.field(default_factory=Touched)
    nodes: NodeForecast = msgspec.field(default_factory=NodeForecast)
    blocked: list[BlockedPod] = []
    stuck: list[str] = []  # in the words of stories
    stuck_before: list[str] = []
    findings: list[str] = []  # of checkers: nothing, unless somebody made a mistake


# ---- what is said of it


class Outcome(msgspec.Struct, rename="camel", kw_only=True):
    """Seeds that go the same way: the same verdict, for the same reasons."""

    kind: VerdictKind
    seeds: list[int]
    problems: list[Problem] = []
    seconds: float = 0.0  # the median
    slowest_seconds: float = 0.0


class Verdict(msgspec.Struct, rename="camel", kw_only=True):
    kind: VerdictKind
    is_safe: bool
    text: str  # one line
    problems: list[Problem] = []


class Cost(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """Per month of 730 hours, of the nodes whose price is known."""

    before: float
    after: float  # with the nodes that would have to come
    unknown: int  # nodes without a known price
    is_list_price: bool  # some come from the built-in table


class PlanWarning(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """Something that is wrong, or will fail some day, though the change may complete."""

    code: str
    subject: str
    path: str
    text: str
    fix: str = ""


class Advice(msgspec.Struct, rename="camel", kw_only=True):
    """A change that makes it safe: it was played with every seed before it was shown."""

    code: str  # for programs: rollout-limits
    title: str  # what to do
    text: str  # what it gives up, in words ...
    gives_up: str  # ... and in one: nothing, availability, separation, dedication, money, protection, capacity, service
    patches: list[Any] = []  # strategic merge patches, each with the head of its object
    nodes: list[NeededNodes] = []  # to add
    commands: list[str] = []  # to give, such as kubectl uncordon
    kind: VerdictKind = "completes"
    seconds: float = 0.0


class Plan(msgspec.Struct, rename="camel", kw_only=True):
    version: int = VERSION
    verdict: Verdict
    changes: list[ObjectChange] = []
    outcomes: list[Outcome] = []  # the worst first
    shown: Play  # the play that the numbers are from: of the worst outcome that of its median seed
    cost: Cost | None = None
    start_times: dict[str, StartTime] = {}  # of the workloads that something happens to
    stop_times: dict[str, StopTime] = {}  # of the same
    warnings: list[PlanWarning] = []
    advice: list[Advice] = []
    replay: str = ""  # the command that shows the story of a seed, which is to be added

    @property
    def seeds(self) -> int:
        return sum(len(outcome.seeds) for outcome in self.outcomes)

    def document(self) -> dict[str, Any]:
        """For programs."""
        document: dict[str, Any] = msgspec.to_builtins(self)
        return document
