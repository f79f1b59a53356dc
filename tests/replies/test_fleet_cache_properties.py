"""FleetCache kept event by event equal FleetCache made anew from the same state, whatever happened in between."""

from __future__ import annotations

import datetime

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from builders import a_node, a_pod, a_usage, measure
from policies import DISRUPTED
from wukong.api.core import NodeCondition, PodCondition, Quantities
from wukong.placement.capacity import OWN_LABEL
from wukong.placement.fleet import Fleet
from wukong.placement.prices import PRICE_LABEL, Prices
from wukong.replies.extender.fleet_cache import FleetCache
from wukong.replies.extender.usage import UsageSettings
from wukong.state import State

NAMES = ("a", "b", "c", "d")
RESOURCES = ("cpu", "memory", "ephemeral-storage", "example.com/fpga", "nvidia.com/gpu")
EXTRAS: list[Quantities] = [{}, {"example.com/fpga": "2"}]
REQUESTS: list[Quantities] = [{}, {"example.com/fpga": "1"}, {"nvidia.com/gpu": "1"}]
SETTINGS = UsageSettings(stale_seconds=30.1, damp_seconds=10.1)


class World:
    """A state, what keeps up with it, and a clock that only goes forward."""

    def __init__(self) -> None:
        self.state = State()
        self.fleets = self.fresh()
        self.now = 1_700_000_000.0
        self.versions = 0

    def fresh(self) -> FleetCache:
        return FleetCache(self.state, SETTINGS, Prices())

    def node(self, data: st.DataObject) -> None:
        """Comes, changes, beats or goes."""
        name = data.draw(st.sampled_from(NAMES))
        node = a_node(
            name,
            cpu=data.draw(st.sampled_from(["2", "4", "0"])),
            labels=data.draw(st.sampled_from([{}, {OWN_LABEL: "spot"}, {PRICE_LABEL: "0.5"}])),
            taints=data.draw(st.sampled_from([(), (), (DISRUPTED,)])),
            extra=data.draw(st.sampled_from(EXTRAS)),
        )
        node.status.conditions = [NodeCondition(type="Ready", status=data.draw(st.sampled_from(["True", "Unknown"])))]
        self.versions += 1
        node.metadata.resource_version = str(self.versions)
        self.state.apply(data.draw(st.sampled_from(["MODIFIED", "MODIFIED", "MODIFIED", "DELETED"])), node)

    def pod(self, data: st.DataObject) -> None:
        """Is created, bound, finished or deleted: in any order, as after a lost watch."""
        name = f"pod-{data.draw(st.integers(0, 4))}"
        pod = a_pod(
            name,
            node=data.draw(st.sampled_from(["", *NAMES])),
            cpu=data.draw(st.sampled_from([None, "500m"])),
            requests=data.draw(st.sampled_from(REQUESTS)),
        )
        at = datetime.datetime.fromtimestamp(self.now - data.draw(st.sampled_from([0, 0.5, 9, 40])), datetime.UTC)
        if pod.spec.node_name:
            pod.status.conditions = [
                PodCondition(type="PodScheduled", status="True", last_transition_time=at.isoformat())
            ]
        pod.status.phase = data.draw(st.sampled_from(["", "", "Running", "Succeeded"]))
        self.versions += 1
        pod.metadata.resource_version = str(self.versions)
        self.state.apply(data.draw(st.sampled_from(["MODIFIED", "MODIFIED", "MODIFIED", "DELETED"])), pod)

    def usage(self, data: st.DataObject) -> None:
        percents = st.none() | st.sampled_from([0.0, 33.3, 80.0])
        usages = [
            a_usage(
                name,
                data.draw(st.sampled_from([None, *(self.now - seconds for seconds in (0.0, 5.7, 29.0))])),
                cpu=data.draw(percents),
                memory=data.draw(percents),
                storage=data.draw(percents),
            )
            for name in NAMES
            if data.draw(st.booleans())
        ]
        measure(self.state, *usages)

    def time(self, data: st.DataObject) -> None:
        self.now += data.draw(st.sampled_from([0.1, 1.0, 4.6, 10.1, 30.1, 700.0]))
        self.state.expire(self.now)

    def look(self, data: st.DataObject) -> None:
        """A question in between, so that something is remembered from then."""
        self.fleets.fleet_at(self.now)


@given(st.data())
def test_kept_event_by_event_equals_made_anew(data: st.DataObject) -> None:
    world = World()
    for name in NAMES[:2]:
        world.state.apply("ADDED", a_node(name))
    steps = [World.node, World.pod, World.pod, World.usage, World.time, World.look, World.look]
    for step in data.draw(st.lists(st.sampled_from(steps), max_size=25)):
        step(world, data)
        if data.draw(st.booleans()):
            check_same(world.fleets.fleet_at(world.now), world.fresh().fleet_at(world.now))
    last = world.fleets.fleet_at(world.now)
    check_same(last, world.fresh().fleet_at(world.now))
    assert world.fleets.fleet_at(world.now) is last


def check_same(one: Fleet, other: Fleet) -> None:
    assert one.names == other.names
    assert one.leaving == other.leaving
    for mine, theirs in (
        (one.is_spot, other.is_spot),
        (one.price, other.price),
        (one.price_per_core, other.price_per_core),
        (one.usage, other.usage),
    ):
        np.testing.assert_array_equal(mine, theirs)
    assert [one.labels(row) for row in range(one.size)] == [other.labels(row) for row in range(other.size)]
    for resource in RESOURCES:
        assert free(one, resource) == free(other, resource)


def free(fleet: Fleet, resource: str) -> list[int] | None:
    amounts = fleet.free(resource)
    return None if amounts is None else amounts.tolist()
