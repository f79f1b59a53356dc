"""The course of a scenario: the same on an embedded cluster and on a real one. Without I/O.

    prepare ─► manifests ─► begin ─► timeline entries, each second together ─► faults end ─┬─► at rest
                                                                                           └─► `until`

`course_of` asks its driver for one request after the other and goes on when it is carried out; it reads the cluster's
mirror and adds events to its recorder meanwhile. Its drivers are play/player.py (a World, virtual time) and
app/sim_live/player.py (a real cluster, real time).
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from enum import Enum
from itertools import groupby
from math import inf
from typing import NamedTuple, Protocol

from wukong.actions import Action
from wukong.api.core import Node
from wukong.embedded.scenario.format.fields import Scenario, TimelineEntry, seconds_of
from wukong.embedded.scenario.play import steps
from wukong.embedded.scenario.play.node_selection import name_nodes
from wukong.embedded.scenario.play.quiescence import is_over
from wukong.embedded.scenario.record.observed_cluster import ObservedCluster
from wukong.embedded.scenario.record.recorder import Recorder
from wukong.errors import InputError
from wukong.runtime.dispatch import Item

SCENARIO = "scenario"  # the subject of events that the scenario itself causes


class Milestone(Enum):
    PREPARE = "prepare"  # make what the manifests need: nodes, and on a real cluster namespaces
    BEGIN = "begin"  # everything is applied: times count from now on, where they did not before


class Perform(NamedTuple):
    """Perform the actions in their order. `place` says where in the scenario they are written."""

    actions: list[Action]
    place: str


class Drain(NamedTuple):
    """Evict the pods of a node: `begin_drain`, once every entry of this second is performed."""

    node: str


class WaitUntil(NamedTuple):
    """Let time pass until so many seconds after the beginning."""

    seconds: float


class WaitForRest(NamedTuple):
    """Let time pass until the cluster may have come to rest, but no longer than to this time of its clock."""

    limit: float


Request = Milestone | Perform | Drain | WaitUntil | WaitForRest
Course = Generator[Request, None, bool]


class Driver(Protocol):
    """Who carries out the requests, and what the course reads of it meanwhile."""

    @property
    def cluster(self) -> ObservedCluster: ...

    @property
    def recorder(self) -> Recorder: ...

    @property
    def drains(self) -> steps.Drains: ...

    def namespaces(self) -> frozenset[str]:
        """The namespaces that are there."""
        ...

    def is_at_rest(self) -> bool:
        """Whether nothing will happen any more, as far as can be told before `until`."""
        ...

    def enqueue(self, items: Iterable[Item]) -> None:
        """Have controllers look at these now."""
        ...


def course_of(scenario: Scenario, driver: Driver, *, faults_end: float | None = None) -> Course:
    """Play the scenario. Gives whether the cluster came to rest before `until`.

    With faults the timeline is followed by a calm, which begins `faults_end` seconds after the beginning.
    """
    recorder = driver.recorder
    yield Milestone.PREPARE
    has_workloads = bool(recorder.workloads)  # those of a snapshot
    for document in scenario.manifests:
        actions, events = steps.apply_documents([document], driver.namespaces()), len(recorder.events)
        old = steps.find_object(document, driver.cluster.state)
        yield Perform(actions, f"{document['kind']} {document['metadata']['name']}")
        if has_workloads:
            text = steps.describe_apply(document, old, steps.find_object(document, driver.cluster.state))
            recorder.add_cause(SCENARIO, text, effects=len(recorder.events) - events)
    yield Milestone.BEGIN
    recorder.nodes.start = len(driver.cluster.state.of(Node))
    for seconds, entries in group_by_second(scenario.timeline):
        yield WaitUntil(seconds)
        for index, entry in entries:
            place = f"$.timeline[{index}].{''.join(entry.actions)}"
            try:
                named = name_nodes(entry, driver.cluster.state)
            except InputError as error:
                if faults_end is None:
                    raise error.at(place) from None
                continue  # faults may have taken them
            yield from _play_entry(named, driver, place)
    if faults_end is not None:
        yield WaitUntil(faults_end)
        recorder.add_event("faults", "calm")
    return (yield from _come_to_rest(driver, recorder.started_at + (seconds_of(scenario.until) or 0)))


def _play_entry(entries: list[TimelineEntry], driver: Driver, place: str) -> Generator[Request, None, None]:
    """Play one entry, given as one for each of its nodes if it selects some: all of them together."""
    (entry, *_) = entries
    if entry.fault is not None:  # known to the faults from the beginning
        driver.recorder.add_event("faults", f"{entry.fault.type} for {entry.fault.for_}")
        return
    driver.drains.nodes.difference_update(str(entry.uncordon) for entry in entries)
    events, namespaces = len(driver.recorder.events), driver.namespaces()
    yield Perform([action for entry in entries for action in steps.build_actions(entry, namespaces)], place)
    effects = len(driver.recorder.events) - events
    for text in steps.describe_entry(entry):
        driver.recorder.add_cause(SCENARIO, text, effects)
    for entry in entries:
        if isinstance(entry.drain, str):
            yield Drain(entry.drain)


def _come_to_rest(driver: Driver, limit: float) -> Course:
    while True:
        yield WaitForRest(limit)
        if driver.is_at_rest():
            return True
        if driver.cluster.clock.now() >= limit:
            return is_over(driver.cluster, inf)


def begin_drain(node: str, driver: Driver) -> None:
    """Called by drivers: at once where the cluster stands still meanwhile, else when all nodes are cordoned."""
    driver.drains.nodes.add(node)
    driver.recorder.add_event(f"node {node}", "drain begins")
    driver.enqueue(Item(driver.drains.name, key) for key in sorted(driver.cluster.state.pods.on_node(node)))


def group_by_second(timeline: list[TimelineEntry]) -> list[tuple[int, list[tuple[int, TimelineEntry]]]]:
    """What is written for the same second happens together, before anybody reacts, as in one call of kubectl."""
    ordered = sorted(enumerate(timeline), key=lambda numbered: (numbered[1].seconds, numbered[0]))
    return [(seconds, list(group)) for seconds, group in groupby(ordered, lambda numbered: numbered[1].seconds)]
