"""How many pods of a group are on spot and on on-demand nodes: kept by every change as if counted anew."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import a_pod
from policies import spot, steady
from wukong.api.core import Node, Pod
from wukong.api.meta import Object, OwnerReference
from wukong.api.resources import key_of
from wukong.placement.capacity import OWN_LABEL
from wukong.placement.pods import MARK, CapacityCounts
from wukong.replies.admission.capacity_index import CapacityIndex, group_of
from wukong.replies.admission.decisions import NONCE
from wukong.state import State

OWNERS = ("rs-1", "rs-2", "")
NODES = ("n1", "n2", "")
MARKS = ("", "spot.a", "on-demand.b", "nonsense")


def a_counted_pod(name: str, owner: str = "rs-1", node: str = "", mark: str = "", phase: str = "") -> Pod:
    pod = a_pod(name, node=node)
    if owner:
        pod.metadata.owner_references = [OwnerReference(name=owner, kind="ReplicaSet", uid=owner, controller=True)]
    if mark:
        capacity, _, nonce = mark.partition(".")
        pod.metadata.annotations = {
            MARK: f'{{"policy": "PlacementPolicy shop/web", "capacity": "{capacity}"}}',
            NONCE: nonce,
        }
    pod.status.phase = phase
    return pod


class Mirror:
    def __init__(self, *objects: Object) -> None:
        self.state, self.version = State(), 0
        self.index = self.state.index_of(CapacityIndex)
        for subject in objects:
            self.put(subject)

    def put(self, subject: Object) -> None:
        self.version += 1
        subject.metadata.resource_version = str(self.version)
        self.state.apply("MODIFIED", subject)


def test_a_bound_pod_counts_where_it_is_and_one_that_waits_where_it_was_told_to_go() -> None:
    mirror = Mirror(
        spot("n1"),
        steady("n2"),
        a_counted_pod("a", node="n1", mark="on-demand.x"),
        a_counted_pod("b", node="n2"),
        a_counted_pod("c", mark="on-demand.y"),
        a_counted_pod("d"),  # nobody knows
        a_counted_pod("e", node="unknown", mark="spot.z"),
        a_counted_pod("f", owner="rs-2", node="n1"),
    )
    assert mirror.index.of("rs-1") == CapacityCounts(on_demand=2, spot=2)
    assert mirror.index.of("rs-2") == CapacityCounts(spot=1)


def test_pods_that_end_count_no_more() -> None:
    pod = a_counted_pod("a", mark="spot.x")
    leaving = a_counted_pod("b", mark="spot.y")
    mirror = Mirror(pod, leaving)
    assert mirror.index.of("rs-1") == CapacityCounts(spot=2)
    mirror.put(a_counted_pod("a", mark="spot.x", phase="Succeeded"))
    gone = a_counted_pod("b", mark="spot.y")
    gone.metadata.deletion_timestamp = "2026-11-16T12:00:00Z"
    mirror.put(gone)
    assert mirror.index.of("rs-1") == CapacityCounts()


def test_pods_that_nobody_owns_are_a_group_with_those_like_them() -> None:
    mirror = Mirror(a_counted_pod("a", owner="", mark="spot.x"), a_counted_pod("b", owner="", mark="spot.y"))
    assert mirror.index.of(group_of("default", a_counted_pod("c", owner="").metadata)) == CapacityCounts(spot=2)
    assert mirror.index.of(group_of("other", a_counted_pod("c", owner="").metadata)) == CapacityCounts()


def test_a_nonce_that_came_is_remembered_when_its_pod_is_gone() -> None:
    pod = a_counted_pod("a", mark="spot.x")
    mirror = Mirror(pod)
    mirror.state.apply("DELETED", pod)
    assert mirror.index.arrivals_since(0) == ["x"]
    assert mirror.index.arrivals_since(mirror.index.arrival_count) == []


def test_of_very_many_arrivals_the_latest_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wukong.replies.admission.capacity_index._MOST_ARRIVALS", 10)
    mirror = Mirror(*(a_counted_pod(f"p{number}", mark=f"spot.{number}") for number in range(33)))
    assert mirror.index.arrival_count == 33
    assert mirror.index.arrivals_since(30) == ["30", "31", "32"]
    assert mirror.index.arrivals_since(0)[-1] == "32"
    assert len(mirror.index.arrivals_since(0)) <= 10


PODS = st.builds(
    a_counted_pod,
    st.sampled_from("abc"),
    st.sampled_from(OWNERS),
    st.sampled_from(NODES),
    st.sampled_from(MARKS),
    st.sampled_from(("", "Running", "Failed")),
)
NODE_CHANGES = st.builds(
    lambda name, capacity: steady(name, labels={OWN_LABEL: capacity}),
    st.sampled_from(("n1", "n2")),
    st.sampled_from(("spot", "on-demand")),
)


@given(st.lists(st.tuples(st.booleans(), PODS | NODE_CHANGES), max_size=25), st.integers(0, 25))
def test_at_any_time_it_is_what_it_would_be_made_anew(changes: list[tuple[bool, Pod | Node]], fork_at: int) -> None:
    mirror = Mirror()
    for number, (is_deleted, drawn) in enumerate(changes):
        subject = msgspec.convert(msgspec.to_builtins(drawn), type(drawn))  # hypothesis draws one object twice
        if number == fork_at:
            mirror.state = mirror.state.fork()
            mirror.index = mirror.state.index_of(CapacityIndex)
        if is_deleted:
            mirrored = mirror.state.of(type(subject)).get(key_of(subject))
            if mirrored is not None:
                mirror.state.apply("DELETED", mirrored)
        else:
            mirror.put(subject)
        anew = CapacityIndex()
        for kind in sorted(CapacityIndex.kinds):
            for key, mirrored in mirror.state.objects.get(kind, {}).items():
                anew.note(kind, key, None, mirrored)
        assert dict(mirror.index._counts) == dict(anew._counts)
