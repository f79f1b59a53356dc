"""Replays recorded scheduling decisions (see tests/golden/README.md for the format) and compares everything recorded.

Pure: a scenario in, what was compared and what differed out. `wukong replay` reads the file and prints the report.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice, permutations

import msgspec

from wukong.api.apps import PodDisruptionBudget
from wukong.api.core import Namespace, Node, Pod
from wukong.api.decode import decode_objects
from wukong.api.meta import Base, ObjectMeta
from wukong.api.objects import Objects
from wukong.api.profile import Profile
from wukong.engine.decision import Decision
from wukong.engine.scheduler import Scheduler
from wukong.engine.snapshot import Snapshot

_MOST_ORDERS = 5040  # all of seven budgets: as many as any recording has
FILTER, MESSAGE, PREEMPTION, FINAL, OUTCOME = "Filter", "Message", "Preemption", "Final", "Outcome"


class RecordedNamespace(Base):
    name: str
    labels: dict[str, str] = {}


class RecordedPreemption(Base):
    node: str
    victims: list[str]
    candidates: dict[str, list[str]]


class RecordedAttempt(Base):
    outcome: str
    node: str = ""
    feasible: list[str] = []
    scored: bool = False
    scores: dict[str, list[int]] = {}
    final: list[int] = []
    nominated: object = None
    message: str = ""
    preemption: RecordedPreemption | None = None


class RecordedStep(Base):
    pod: Pod
    attempts: list[RecordedAttempt]
    start_time: str = ""


class Scenario(Base):
    version: str
    seed: int = 0
    family: str = ""
    namespaces: list[RecordedNamespace] = []
    nodes: list[Node] = []
    workloads: list[msgspec.Raw] = []
    pod_disruption_budgets: list[PodDisruptionBudget] = []
    existing: list[Pod] = []
    steps: list[RecordedStep] = []


@dataclass(frozen=True)
class Mismatch:
    """One difference: where, by which plugin, what was recorded and what we said."""

    scenario: int
    seed: int
    pod: str
    attempt: int
    plugin: str
    recorded: str
    decided: str


@dataclass
class Report:
    scenarios: int = 0
    pods: int = 0
    attempts: int = 0
    compared: Tally[str] = field(default_factory=Tally)
    mismatches: list[Mismatch] = field(default_factory=list)

    @property
    def by_plugin(self) -> dict[str, int]:
        return dict(sorted(Tally(entry.plugin for entry in self.mismatches).items()))


def objects_of(scenario: Scenario) -> Objects:
    """The cluster a scenario starts with."""
    objects = Objects(
        nodes=scenario.nodes, pods=scenario.existing, pod_disruption_budgets=scenario.pod_disruption_budgets
    )
    objects.namespaces = [
        Namespace(kind="Namespace", metadata=ObjectMeta(name=entry.name, labels=entry.labels))
        for entry in scenario.namespaces
    ]
    for raw in scenario.workloads:
        for subject in decode_objects(bytes(raw)):
            objects.add(subject)
    return objects


def replay_scenario(scenario: Scenario, number: int, profile: Profile, report: Report) -> None:
    """Decide every step of the scenario again and add what was compared, and what differed, to the report."""
    snapshot = Snapshot.of(objects_of(scenario))
    scheduler = Scheduler(snapshot, profile)
    report.scenarios += 1
    for step in scenario.steps:
        report.pods += 1
        for index, attempt in enumerate(step.attempts):
            report.attempts += 1
            for plugin, recorded, decided in _compare(scheduler, step.pod, attempt, report.compared):
                report.mismatches.append(
                    Mismatch(number, scenario.seed, step.pod.key, index, plugin, str(recorded), str(decided))
                )
            for victim in attempt.preemption.victims if attempt.preemption else []:
                if victim in snapshot.pods:
                    snapshot.forget(victim)
        last = step.attempts[-1]
        if last.outcome == "bound" and last.node in snapshot.row_of:
            snapshot.assume(step.pod.key, step.pod, last.node, step.start_time)


Difference = tuple[str, object, object]  # plugin, recorded, decided


def _compare(scheduler: Scheduler, pod: Pod, attempt: RecordedAttempt, compared: Tally[str]) -> Iterator[Difference]:
    decision = scheduler.decide(pod)
    if attempt.nominated:
        compared["nominated"] += 1
        if attempt.node not in decision.feasible:
            yield OUTCOME, f"bound to its nominated node {attempt.node}", f"feasible: {list(decision.feasible)}"
        return
    compared["feasibleSets"] += 1
    if list(decision.feasible) != sorted(attempt.feasible):
        yield FILTER, sorted(attempt.feasible), list(decision.feasible)
        return
    if attempt.outcome == "bound":
        yield from _compare_bound(decision, attempt, compared)
    else:
        compared["messages"] += 1
        compared["candidateLists"] += 1
        if attempt.preemption is not None and decision.preemption is not None:
            compared["candidates"] += len(attempt.preemption.candidates)
        differences = list(_compare_unschedulable(decision, attempt))
        if differences and not _is_like_another_order(scheduler, pod, attempt):
            yield from differences


def _is_like_another_order(scheduler: Scheduler, pod: Pod, attempt: RecordedAttempt) -> bool:
    """Whether the recording is what one of the other orders of the budgets leads to, in a version that draws the order.

    Where a victim is charged up to the first budget that it breaks, their order decides, and it is that of a Go map.
    """
    if not scheduler.profile.version.budgets_stop_at_first_broken:
        return False
    snapshot, facts = scheduler.snapshot, scheduler.snapshot.facts
    try:
        for budgets in islice(permutations(facts.budgets), _MOST_ORDERS):
            snapshot.facts = replace(facts, budgets=budgets)
            if not any(_compare_unschedulable(scheduler.decide(pod), attempt)):
                return True
    finally:
        snapshot.facts = facts
    return False


def _compare_bound(decision: Decision, attempt: RecordedAttempt, compared: Tally[str]) -> Iterator[Difference]:
    order = sorted(range(len(attempt.feasible)), key=lambda index: attempt.feasible[index])
    if attempt.scored:
        for plugin in sorted(attempt.scores.keys() | decision.scores.keys()):
            recorded = [attempt.scores[plugin][index] for index in order] if plugin in attempt.scores else None
            decided = decision.scores[plugin].tolist() if plugin in decision.scores else None
            compared["scoreCells"] += len(recorded or decided or ())
            if recorded != decided:
                yield plugin, recorded, decided
        compared["finals"] += len(attempt.final)
        recorded_final = [attempt.final[index] for index in order]
        if recorded_final != list(decision.final):
            yield FINAL, recorded_final, list(decision.final)
    compared["nodes"] += 1
    if attempt.node not in decision.best:
        yield OUTCOME, attempt.node, f"one of {list(decision.best)}"


def _compare_unschedulable(decision: Decision, attempt: RecordedAttempt) -> Iterator[Difference]:
    if decision.message != attempt.message:
        yield MESSAGE, attempt.message, decision.message
    recorded, decided = attempt.preemption, decision.preemption
    if recorded is None or decided is None:
        if (recorded is None) != (decided is None):
            yield PREEMPTION, recorded, decided
        return
    lists = {node: list(victims) for node, victims in decided.candidates.items()}
    if lists != recorded.candidates:
        yield PREEMPTION, recorded.candidates, lists
    if sorted(decided.victims) != sorted(recorded.victims):  # deleted in parallel: their order means nothing
        yield PREEMPTION, f"victims {recorded.victims}", f"victims {list(decided.victims)}"
    if decided.node != recorded.node:
        yield PREEMPTION, f"nominated {recorded.node}", f"nominated {decided.node}"
