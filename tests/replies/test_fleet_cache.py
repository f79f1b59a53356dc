"""The fleet follows the mirror: the same object while nothing changed, another as soon as something did."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence

import numpy as np
import pytest
from msgspec.structs import replace

from builders import a_node, a_pod, a_usage, measure
from policies import DISRUPTED, spot
from wukong.api.core import Node, NodeCondition, Pod, PodCondition
from wukong.api.usage import NodeUsage
from wukong.placement.fleet import Fleet, NodeFacts, read_facts
from wukong.placement.prices import Prices
from wukong.placement.slices import finish
from wukong.replies.extender.fleet_cache import FleetCache
from wukong.replies.extender.usage import UsageSettings
from wukong.state import State

NOW = 10_000.0
STALE, DAMP = 180.0, 60.0


def a_state(*nodes: Node, usage: Sequence[NodeUsage] = ()) -> State:
    state = State()
    state.replace("Node", nodes or [a_node("a", cpu="4", memory="8Gi"), a_node("b", cpu="4", memory="8Gi")])
    measure(state, *usage)
    return state


def fleets(state: State) -> FleetCache:
    return FleetCache(state, UsageSettings(), Prices())


def bind(state: State, name: str, node: str, at: float, cpu: str = "400m", memory: str = "0") -> Pod:
    """A pod is seen unbound, then bound."""
    state.apply("ADDED", a_pod(name, cpu=cpu, memory=memory))
    pod = a_pod(name, node=node, cpu=cpu, memory=memory)
    when = datetime.datetime.fromtimestamp(at, datetime.UTC).isoformat()
    pod.status.conditions = [PodCondition(type="PodScheduled", status="True", last_transition_time=when)]
    state.apply("MODIFIED", pod)
    return pod


def cpu(fleet: Fleet) -> dict[str, float]:
    return {
        name: value
        for name, value in zip(fleet.names, fleet.used("cpu").tolist(), strict=True)
        if not math.isnan(value)
    }


def free(fleet: Fleet, resource: str = "cpu") -> dict[str, int] | None:
    amounts = fleet.free(resource)
    return None if amounts is None else dict(zip(fleet.names, amounts.tolist(), strict=True))


# ---- the same object


def test_the_fleet_is_the_same_object_while_nothing_changed() -> None:
    state = a_state(usage=[a_usage("a", NOW, cpu=50)])
    ours = fleets(state)
    first = ours.fleet_at(NOW)
    state.apply("ADDED", a_pod())
    state.apply("ADDED", a_pod("here", node="a"))  # seen bound, not binding
    assert ours.fleet_at(NOW + 1) is first
    assert ours.fleet_at(NOW + STALE - 0.001) is first


def test_nodes_that_change_while_they_are_read_cost_only_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def count(node: Node, prices: Prices) -> NodeFacts:
        read.append(node.metadata.name)
        return read_facts(node, prices)

    monkeypatch.setattr("wukong.replies.extender.fleet_cache.read_facts", count)
    state = a_state(*(a_node(f"n{number:04}") for number in range(1000)))
    slices = fleets(state).fleet_in_slices(NOW)
    for number in range(3):
        next(slices)
        state.apply("MODIFIED", a_node(f"n{number:04}", cpu="99"))
    fleet = finish(slices)
    assert fleet.size == 1000
    assert [fleet.nodes.facts[number].node.status.allocatable["cpu"] for number in range(3)] == ["99"] * 3
    assert len(read) == 1000 + 3


def test_heartbeats_leave_the_fleet_as_it_is() -> None:
    state = a_state()
    ours = fleets(state)
    first = ours.fleet_at(NOW)
    for status in ("True", "Unknown", "False"):
        beat = a_node("a", cpu="4", memory="8Gi", images={"web": 5})
        beat.metadata.resource_version = status
        beat.status.conditions = [NodeCondition(type="Ready", status=status)]
        state.apply("MODIFIED", beat)
        assert ours.fleet_at(NOW) is first


@pytest.mark.parametrize(
    "changed",
    [
        a_node("a", labels={"disk": "ssd"}),
        a_node("a", taints=["mine:NoSchedule"]),
        a_node("a", cpu="8"),
        a_node("a", unschedulable=True),
        spot("a"),
        a_node("a", taints=[DISRUPTED]),
    ],
)
def test_whatever_a_rule_may_read_makes_another_fleet(changed: Node) -> None:
    state = a_state(a_node("a"), a_node("b"))
    ours = fleets(state)
    first = ours.fleet_at(NOW)
    state.apply("MODIFIED", changed)
    second = ours.fleet_at(NOW)
    assert second is not first
    assert second.node(0) is changed
    state.apply("MODIFIED", a_node("a"))
    assert second is not ours.fleet_at(NOW)


def test_a_notice_withdrawn_lets_the_node_back_in() -> None:
    state = a_state(a_node("a"))
    ours = fleets(state)
    state.apply("MODIFIED", a_node("a", taints=[DISRUPTED]))
    assert ours.fleet_at(NOW).leaving == ["taint karpenter.sh/disrupted"]
    state.apply("MODIFIED", a_node("a"))
    assert ours.fleet_at(NOW).leaving == [""]


def test_nodes_come_and_go_sorted_by_name() -> None:
    state = a_state(a_node("b"))
    ours = fleets(state)
    assert ours.fleet_at(NOW).names == ["b"]
    state.apply("ADDED", a_node("a"))
    assert ours.fleet_at(NOW).row_of == {"a": 0, "b": 1}
    state.apply("DELETED", a_node("b"))
    assert ours.fleet_at(NOW).names == ["a"]
    assert fleets(State()).fleet_at(NOW).size == 0


# ---- usage


def test_usage_turns_neutral_exactly_when_it_is_stale() -> None:
    state = a_state(usage=[a_usage("a", NOW, cpu=50, memory=60, storage=70), a_usage("b", NOW + 10, cpu=20)])
    ours = fleets(state)
    assert ours.fleet_at(NOW).usage[:, 0].tolist() == [50, 60, 70]
    assert cpu(ours.fleet_at(NOW + STALE - 0.001)) == {"a": 50, "b": 20}
    assert ours.count_stale(NOW + STALE - 0.001) == 0
    assert cpu(ours.fleet_at(NOW + STALE)) == {"b": 20}
    assert ours.count_stale(NOW + STALE) == 1
    assert cpu(ours.fleet_at(NOW + STALE + 10)) == {}


def test_a_node_measured_again_counts_again() -> None:
    state = a_state(usage=[a_usage("a", NOW, cpu=50)])
    ours = fleets(state)
    assert cpu(ours.fleet_at(NOW + STALE)) == {}
    measure(state, a_usage("a", NOW + STALE, cpu=30))
    assert cpu(ours.fleet_at(NOW + STALE + 1)) == {"a": 30}
    measure(state)
    assert cpu(ours.fleet_at(NOW + STALE + 1)) == {}


def test_a_measurement_is_noticed_even_where_the_one_before_the_last_lay() -> None:
    """An id is unique only among the living: the third dictionary may lie where the first did."""
    state = a_state(usage=[a_usage("a", NOW, cpu=1)])
    ours = fleets(state)
    for percent in range(2, 200, 2):
        ours.fleet_at(NOW)
        measure(state, a_usage("a", NOW, cpu=percent))
        measure(state, a_usage("a", NOW, cpu=percent + 1))
        assert cpu(ours.fleet_at(NOW)) == {"a": percent + 1}


def test_what_was_not_measured_of_a_node_is_not_known() -> None:
    fleet = fleets(a_state(usage=[a_usage("a", NOW, memory=50), a_usage("gone", NOW, cpu=1)])).fleet_at(NOW)
    assert np.isnan(fleet.used("cpu")).all()
    assert fleet.used("memory")[0] == 50


# ---- pods bound since


def test_a_pod_bound_since_the_measurement_counts_by_its_requests_until_it_is_measured() -> None:
    state = a_state(usage=[a_usage("a", NOW, cpu=50, memory=50), a_usage("b", NOW, cpu=50)])
    ours = fleets(state)
    ours.fleet_at(NOW)
    bind(state, "new", "a", NOW + 5, cpu="400m", memory="2Gi")
    assert cpu(ours.fleet_at(NOW + 5)) == {"a": 60, "b": 50}
    assert ours.fleet_at(NOW + 5).used("memory")[0] == 75
    assert cpu(ours.fleet_at(NOW + 120)) == {"a": 60, "b": 50}  # nobody measured since
    measure(state, a_usage("a", NOW + 130, cpu=58), a_usage("b", NOW + 130, cpu=50))
    assert cpu(ours.fleet_at(NOW + 130)) == {"a": 58, "b": 50}


def test_a_pod_bound_within_the_last_minute_counts_although_it_was_measured() -> None:
    state = a_state(usage=[a_usage("a", NOW, cpu=50)])
    ours = fleets(state)
    bind(state, "new", "a", NOW + 5)
    measure(state, a_usage("a", NOW + 10, cpu=51))
    assert cpu(ours.fleet_at(NOW + 10)) == {"a": 61}
    assert cpu(ours.fleet_at(NOW + 5 + DAMP - 0.001)) == {"a": 61}
    assert cpu(ours.fleet_at(NOW + 5 + DAMP)) == {"a": 51}


def test_recent_pods_add_up_and_a_deleted_one_counts_no_more() -> None:
    state = a_state(usage=[a_usage("a", NOW, cpu=50)])
    ours = fleets(state)
    pods = [bind(state, f"new-{number}", "a", NOW + 1) for number in range(8)]
    assert cpu(ours.fleet_at(NOW + 2)) == pytest.approx({"a": 130})
    for pod in pods[2:]:
        state.apply("DELETED", pod)
    assert cpu(ours.fleet_at(NOW + 2)) == pytest.approx({"a": 70})


def test_a_pod_bound_where_nobody_measured_or_nobody_is_changes_nothing() -> None:
    state = a_state(a_node("a"), a_node("odd", cpu="0"), usage=[a_usage("odd", NOW, cpu=0)])
    ours = fleets(state)
    bind(state, "one", "a", NOW)
    bind(state, "two", "gone", NOW)
    bind(state, "three", "odd", NOW)
    assert cpu(ours.fleet_at(NOW)) == {"odd": 0}


# ---- free


def test_free_follows_pods_without_another_fleet() -> None:
    state = a_state()
    ours = fleets(state)
    fleet = ours.fleet_at(NOW)
    assert free(fleet) == {"a": 4000, "b": 4000}
    state.apply("ADDED", a_pod("x", node="a", cpu="1500m"))
    assert free(fleet) == {"a": 2500, "b": 4000}
    assert ours.fleet_at(NOW) is fleet
    state.apply("DELETED", a_pod("x", node="a", cpu="1500m"))
    assert free(fleet) == {"a": 4000, "b": 4000}
    assert free(fleet, "example.com/fpga") is None


def test_a_fleet_keeps_its_order_of_nodes_when_others_came_and_went() -> None:
    state = a_state(a_node("a", cpu="1"), a_node("c", cpu="3"))
    ours = fleets(state)
    fleet = ours.fleet_at(NOW)
    assert free(fleet) == {"a": 1000, "c": 3000}
    state.apply("DELETED", a_node("a"))
    state.apply("ADDED", a_node("d", cpu="4"))  # as many as before
    assert free(fleet) == {"a": 0, "c": 3000}
    later = ours.fleet_at(NOW)
    assert free(later) == {"c": 3000, "d": 4000}
    assert free(fleet) == {"a": 0, "c": 3000}


def test_a_resource_only_a_fork_has_heard_of_is_nobodys() -> None:
    state = a_state()
    assert free(fleets(state).fleet_at(NOW)) is not None
    fork = state.fork()
    fork.apply("ADDED", a_node("new", extra={"example.com/fpga": "2"}))
    assert free(fleets(fork).fleet_at(NOW), "example.com/fpga") == {"a": 0, "b": 0, "new": 2}
    assert free(fleets(state).fleet_at(NOW), "example.com/fpga") is None


# ---- nodes given in full


def test_nodes_given_in_full_are_taken_from_the_mirror_where_it_knows_them() -> None:
    state = a_state(a_node("a", cpu="4", labels={"disk": "ssd"}), usage=[a_usage("a", NOW, cpu=40)])
    state.apply("ADDED", a_pod("x", node="a", cpu="1", memory="0"))
    fleet = fleets(state).fleet_of([spot("new", cpu="2"), a_node("a", cpu="9")], NOW)
    assert fleet.names == ["new", "a"]
    assert fleet.is_spot.tolist() == [True, False]
    assert fleet.column("disk") == [None, "ssd"]
    assert free(fleet) == {"new": 2000, "a": 3000}
    assert free(fleet, "example.com/fpga") == {"new": 0, "a": 0}
    assert cpu(fleet) == {"a": 40}


def test_a_new_node_that_is_leaving_already_is_seen_to() -> None:
    fleet = fleets(a_state()).fleet_of([a_node("new", taints=[DISRUPTED])], NOW)
    assert fleet.leaving == ["taint karpenter.sh/disrupted"]


def test_what_rules_read_cannot_be_written() -> None:
    fleet = fleets(a_state(usage=[a_usage("a", NOW, cpu=40)])).fleet_at(NOW)
    for column in (fleet.usage, fleet.price, fleet.is_spot, fleet.price_per_core):
        with pytest.raises(ValueError, match="read-only"):
            column[...] = 0


def test_usage_settings_are_the_users() -> None:
    state = a_state(usage=[a_usage("a", NOW, cpu=50)])
    ours = FleetCache(state, replace(UsageSettings(), stale_seconds=10.0, damp_seconds=1.0), Prices())
    assert cpu(ours.fleet_at(NOW + 9.5)) == {"a": 50}
    assert cpu(ours.fleet_at(NOW + 10)) == {}
