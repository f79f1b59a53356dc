"""What the engine knows beside nodes and pods follows the mirror, change by change."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import a_node, selecting
from wukong.api.apps import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
    ReplicaSet,
    StatefulSet,
    WorkloadMeta,
    WorkloadSpec,
)
from wukong.api.core import Namespace, ReplicationController, ReplicationControllerSpec, Service, ServiceSpec
from wukong.api.meta import Object, ObjectMeta
from wukong.engine.facts import read_facts
from wukong.ports import EventType
from wukong.state import State
from wukong.state.live_snapshot import FACTS, in_order

SHOP = WorkloadMeta(name="web", namespace="shop")


def a_budget(allowed: int = 0, disrupted: str = "", app: str = "web") -> PodDisruptionBudget:
    status = PodDisruptionBudgetStatus(
        disruptions_allowed=allowed, disrupted_pods={disrupted: None} if disrupted else {}
    )
    return PodDisruptionBudget(metadata=SHOP, spec=PodDisruptionBudgetSpec(selector=selecting(app=app)), status=status)


def a_workload(struct: type[ReplicaSet] | type[StatefulSet], app: str) -> Object:
    return struct(kind=struct.__name__, metadata=SHOP, spec=WorkloadSpec(selector=selecting(app=app)))


CHANGES: dict[str, tuple[Object, Object]] = {
    "a namespace's labels": (
        Namespace(metadata=ObjectMeta(name="shop")),
        Namespace(metadata=ObjectMeta(name="shop", labels={"team": "a"})),
    ),
    "a service's selector": (
        Service(metadata=SHOP, spec=ServiceSpec(selector={"app": "web"})),
        Service(metadata=SHOP, spec=ServiceSpec(selector={"app": "db"})),
    ),
    "a ReplicaSet's selector": (a_workload(ReplicaSet, "web"), a_workload(ReplicaSet, "db")),
    "a StatefulSet's selector": (a_workload(StatefulSet, "web"), a_workload(StatefulSet, "db")),
    "a budget's selector": (a_budget(), a_budget(app="db")),
    "what a budget allows": (a_budget(0), a_budget(1)),
    "what a budget knows to be evicted": (a_budget(), a_budget(disrupted="web-1")),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_changes_what_is_known_is_known_at_once(name: str) -> None:
    before, after = CHANGES[name]
    state = State()
    state.replace("Node", [a_node("n0")])
    nothing = state.snapshot.facts
    state.apply("ADDED", before)
    first = state.snapshot.facts
    assert first == read_facts(in_order(state.objects, FACTS)) != nothing
    state.apply("MODIFIED", after)
    second = state.snapshot.facts
    assert second == read_facts(in_order(state.objects, FACTS)) != first
    state.apply("DELETED", after)
    assert state.snapshot.facts == nothing


def test_what_was_read_once_is_not_read_again() -> None:
    state = State()
    state.apply("ADDED", a_budget())
    facts = state.snapshot.facts
    state.apply("ADDED", a_node("n0"))
    state.apply("MODIFIED", PodDisruptionBudget(metadata=SHOP, spec=a_budget().spec, status=a_budget().status))
    assert state.snapshot.facts is facts


OWNERS = st.builds(
    lambda kind, name, app: (kind, name, app),
    st.sampled_from(["ReplicaSet", "StatefulSet", "ReplicationController", "Service"]),
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from(["web", "db"]),
)
EVENTS: dict[str, EventType] = {"put": "MODIFIED", "delete": "DELETED"}


def an_owner(kind: str, name: str, app: str) -> Object:
    meta = WorkloadMeta(name=name, namespace="shop", uid=f"{kind}-{name}")
    match kind:
        case "ReplicaSet":
            return ReplicaSet(kind=kind, metadata=meta, spec=WorkloadSpec(selector=selecting(app=app)))
        case "StatefulSet":
            return StatefulSet(kind=kind, metadata=meta, spec=WorkloadSpec(selector=selecting(app=app)))
        case "ReplicationController":
            return ReplicationController(
                kind=kind, metadata=meta, spec=ReplicationControllerSpec(selector={"app": app})
            )
    return Service(kind=kind, metadata=meta, spec=ServiceSpec(selector={"app": app}))


@given(st.lists(st.tuples(st.sampled_from(["put", "put", "delete", "look", "fork"]), OWNERS), max_size=30))
def test_what_is_known_of_owners_is_what_reading_all_of_them_gives(
    steps: list[tuple[str, tuple[str, str, str]]],
) -> None:
    state = State()
    for act, owner in steps:
        if act in EVENTS:
            state.apply(EVENTS[act], an_owner(*owner))
        elif act == "fork":
            state = state.fork()
        else:
            assert state.snapshot.facts == read_facts(in_order(state.objects, FACTS))
    assert state.snapshot.facts == read_facts(in_order(state.objects, FACTS))
