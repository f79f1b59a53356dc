"""The course of a scenario: what it asks its driver for, in which order, whatever the cluster."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from embedded.actors.actor_world import a_world
from wukong.embedded.scenario import Scenario, read_scenario
from wukong.embedded.scenario.play.course import (
    Drain,
    Milestone,
    Perform,
    Request,
    WaitForRest,
    WaitUntil,
    begin_drain,
    course_of,
)
from wukong.embedded.scenario.play.steps import Drains
from wukong.embedded.scenario.record.recorder import Recorder
from wukong.runtime.dispatch import Item

TIMELINE = """
manifests: [{apiVersion: v1, kind: Namespace, metadata: {name: shop}}]
timeline:
  - {at: 20s, uncordon: n1}
  - {at: 10s, drain: n1}
  - {at: 10s, scale: {kind: Deployment, name: web, replicas: 5}}
  - {at: 10s, drain: n2}
until: 1m
"""


class NotingDriver:
    """Notes what it is asked for; time passes, and nothing else happens."""

    def __init__(self, rest_after: int = 1) -> None:
        self.cluster = a_world(2)
        self.recorder, self.drains = Recorder(self.cluster), Drains()
        self.requests: list[Request] = []
        self.items: list[Item] = []
        self.rest_after = rest_after  # so many waits

    def namespaces(self) -> frozenset[str]:
        return frozenset({"default"})

    def is_at_rest(self) -> bool:
        return sum(isinstance(request, WaitForRest) for request in self.requests) >= self.rest_after

    def enqueue(self, items: Iterable[Item]) -> None:
        self.items.extend(items)

    def play(self, scenario: Scenario, *, faults_end: float | None = None) -> bool:
        course = course_of(scenario, self, faults_end=faults_end)
        try:
            while True:
                self.requests.append(next(course))
                if isinstance(self.requests[-1], WaitForRest):
                    self.cluster.clock.move_to(self.cluster.clock.now() + 30)
        except StopIteration as end:
            return bool(end.value)

    def shown_requests(self) -> list[object]:
        return [request.place if isinstance(request, Perform) else request for request in self.requests]


def test_entries_are_asked_for_second_by_second_as_they_are_written() -> None:
    driver = NotingDriver()
    limit = driver.recorder.started_at + 60
    assert driver.play(read_scenario(TIMELINE))
    assert driver.shown_requests() == [
        *(Milestone.PREPARE, "Namespace shop", Milestone.BEGIN),
        *(WaitUntil(10), "$.timeline[1].drain", Drain("n1"), "$.timeline[2].scale", "$.timeline[3].drain", Drain("n2")),
        *(WaitUntil(20), "$.timeline[0].uncordon"),
        WaitForRest(limit),
    ]
    assert driver.recorder.nodes.start == 2
    assert [event.text for event in driver.recorder.events] == ["scales Deployment default/web to 5"]


def test_rest_is_waited_for_until_time_is_up() -> None:
    driver = NotingDriver(rest_after=3)
    assert driver.play(read_scenario("until: 2m"))
    assert len(driver.requests) == 5
    never = NotingDriver(rest_after=1000)
    assert never.play(read_scenario("until: 1m"))  # nothing is awaited: it has come to rest, whatever the driver knows
    assert len(never.requests) == 4


def test_faults_end_before_rest_is_waited_for() -> None:
    driver = NotingDriver()
    driver.play(read_scenario("timeline: [{at: 5s, fault: {type: conflict}}]"), faults_end=125.0)
    assert driver.shown_requests()[2:4] == [WaitUntil(5), WaitUntil(125.0)]
    assert [event.text for event in driver.recorder.events] == ["conflict for 60s", "calm"]


def test_a_drain_that_begins_is_an_event_and_ends_with_the_uncordon() -> None:
    driver = NotingDriver()
    begin_drain("n1", driver)
    assert driver.drains.nodes == {"n1"}
    assert [(event.subject, event.text) for event in driver.recorder.events] == [("node n1", "drain begins")]
    driver.play(read_scenario("timeline: [{at: 5s, uncordon: n1}]"))
    assert driver.drains.nodes == set()


def test_times_count_from_the_beginning_that_the_driver_sets() -> None:
    """On a real cluster preparations take time: its driver sets the beginning when it is asked to."""
    driver = NotingDriver()
    driver.recorder.started_at = inf
    course = course_of(read_scenario("until: 1m"), driver)
    assert [next(course), next(course)] == [Milestone.PREPARE, Milestone.BEGIN]
    driver.recorder.started_at = 1000.0
    assert next(course) == WaitForRest(1060.0)
