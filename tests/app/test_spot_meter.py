"""What the spot component says about itself to Prometheus, by what it sees happen."""

from __future__ import annotations

from typing import Any

from controllers.test_spot_evictions import DB, KEY, NOW, ROOM, a_budget, leaving, pod
from controllers.test_spot_moves import a_deployment, a_move, a_set
from controllers.test_spot_moves import pod as replica
from wukong.api.core import Node, PodCondition
from wukong.api.kinds import MOVES, NODES, PODS
from wukong.api.meta import Object
from wukong.api.times import format_time
from wukong.app.components.spot.meter import SpotMeter
from wukong.controllers.spot.evictions import SpotEvictions
from wukong.controllers.spot.marks import COST, LOWEST_COST, MOVING
from wukong.placement.leaving_nodes import NOTICE
from wukong.placement.rules import BUILT_IN
from wukong.runtime import Metrics
from wukong.state import State


class Clock:
    def __init__(self) -> None:
        self.at = NOW

    def now(self) -> float:
        return self.at


class Cluster:
    """A mirror whose changes the meter hears."""

    def __init__(self, *objects: Object) -> None:
        self.state, self.metrics, self.clock = State(), Metrics(), Clock()
        self.evictions = SpotEvictions(BUILT_IN)
        self.meter = SpotMeter(self.metrics, self.clock, self.evictions)
        for subject in objects:
            self.state.apply("ADDED", subject)

    def see(self, subject: Object, event: Any = "MODIFIED", after: float = 0.0) -> None:
        self.clock.at += after
        kinds = {resource.group_kind: index for index, resource in enumerate((NODES, PODS, MOVES))}
        for change in self.state.apply(event, subject):
            if change.group_kind in kinds:
                assert list(self.meter.watches[kinds[change.group_kind]].keys(change, self.state)) == []

    def value(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(name, labels)


def noticed() -> Node:
    node = leaving()
    node.metadata.annotations = {NOTICE: "2m"}
    return node


def plain() -> Node:
    node = leaving()
    node.metadata.annotations = {}
    return node


def test_notices_are_counted_and_how_long_it_took_to_close_the_node() -> None:
    cluster = Cluster(plain())
    cluster.see(noticed())
    cluster.see(leaving(), after=0.04)
    cluster.see(leaving(), after=1.0)
    assert cluster.value("wukong_spot_notices_total", course="Reclaim") == 1
    assert cluster.value("wukong_spot_cordon_seconds_count") == 1
    assert cluster.value("wukong_spot_cordon_seconds_bucket", le="0.05") == 1


def test_pods_are_counted_by_the_way_they_left_and_those_that_did_not() -> None:
    cluster = Cluster(leaving(), *(pod(f"db-{number}") for number in range(4)))
    for number, cost in enumerate((LOWEST_COST, "", "")):
        going = pod(f"db-{number}")
        going.metadata.annotations = {MOVING: "s1", **({COST: cost} if cost else {})}
        going.metadata.deletion_timestamp = format_time(NOW + 30)
        if number == 1:
            going.status.conditions = [PodCondition("DisruptionTarget", "True", "EvictionByEvictionAPI")]
        cluster.see(going)
    assert [cluster.value("wukong_spot_moves_total", way=way) for way in ("replaced", "evicted", "deleted")] == [
        1,
        1,
        1,
    ]
    cluster.see(leaving(), "DELETED")
    assert cluster.value("wukong_spot_lost_pods_total") == 1


def test_the_seconds_for_which_a_workload_with_a_move_is_short_are_counted() -> None:
    cluster = Cluster(leaving(), a_deployment(), a_set(), replica("a", "s1"), replica("b", "d1"))
    cluster.see(a_move(), "ADDED")
    cluster.see(replica("b", "d1", is_ready=False), after=5.0)
    cluster.see(replica("b", "d1"), after=7.0)
    cluster.see(a_move(), "DELETED", after=3.0)
    assert cluster.value("wukong_spot_unavailable_seconds_total") == 7.0


def test_it_is_shown_what_pods_wait_for() -> None:
    cluster = Cluster(leaving(), ROOM, DB, pod("db-0"), pod("db-1"), pod("db-2", "d1"), a_budget(0))
    cluster.evictions.reconcile(KEY, cluster.state, NOW)
    assert cluster.value("wukong_spot_blocked_pods", by="budget") == 1
    assert cluster.value("wukong_spot_blocked_pods", by="turn") == 1
    assert cluster.value("wukong_spot_blocked_pods", by="room") == 0
