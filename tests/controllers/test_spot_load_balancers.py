"""A leaving node is taken out of external load balancers once nobody on it serves, and put back if it stays."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from builders import a_node
from controllers.test_spot_evictions import KEY, NOW, leaving, pod
from wukong.actions import DONE, Note, Outcome, Patch
from wukong.api.core import NEVER_MOVE, Node, NodeCondition, Pod, Service
from wukong.api.meta import Object
from wukong.api.times import format_time
from wukong.controllers.spot.load_balancers import EXCLUSION, LOOK_SECONDS, OURS, SpotLoadBalancers, leaving_nodes
from wukong.controllers.spot.notices import Course
from wukong.state import State

OTHER = a_node("d1")


def a_service(policy: str = "Local", kind: str = "LoadBalancer", **spec: Any) -> Service:
    body = {"selector": {"app": "db"}, "type": kind, "externalTrafficPolicy": policy, **spec}
    return msgspec.convert({"metadata": {"name": "db", "namespace": "default"}, "spec": body}, Service)


def look(*objects: Object, controller: SpotLoadBalancers | None = None) -> Outcome:
    state = State()
    for subject in objects:
        state.apply("ADDED", subject)
    return (controller or SpotLoadBalancers()).reconcile(KEY, state, NOW)


def label_of(outcome: Outcome) -> str | None:
    """What is written; "-" for nothing."""
    patches = [action for action in outcome.actions if isinstance(action, Patch)]
    return patches[0].patch.body["metadata"]["labels"][EXCLUSION] if patches else "-"


def labelled(node: Node, value: str) -> Node:
    node.metadata.labels = {**node.metadata.labels, EXCLUSION: value}
    return node


def terminating(subject: Pod) -> Pod:
    subject.metadata.deletion_timestamp = format_time(NOW + 30)
    return subject


def fixed(subject: Pod) -> Pod:
    subject.metadata.annotations = {NEVER_MOVE: "true"}
    return subject


@pytest.mark.parametrize(
    ("objects", "label"),
    [
        ([a_service()], OURS),
        ([a_service(kind="NodePort")], OURS),
        ([a_service(), pod("db-0", "d1")], OURS),
        ([a_service("Cluster"), pod("db-0")], OURS),  # any node answers for it
        ([a_service(), pod("db-0")], "-"),
        ([a_service(), pod("db-0"), pod("db-1", "d1")], "-"),  # it will move: until then it serves
        ([a_service(), terminating(pod("db-0"))], "-"),  # still ready, so still served
        ([a_service(), pod("db-0", is_ready=False)], OURS),
        ([a_service(publishNotReadyAddresses=True), pod("db-0", is_ready=False)], "-"),
        ([a_service(), pod("x", owner="x")], OURS),  # not selected
        ([a_service(selector={}), pod("db-0")], OURS),  # whose endpoints nobody knows
        ([a_service(), pod("db-0", kind="DaemonSet")], "-"),  # nobody else serves
        ([a_service(), pod("db-0", kind="DaemonSet"), pod("db-1", "d1", kind="DaemonSet")], OURS),
        ([a_service(), pod("db-0", kind="DaemonSet"), pod("db-1", "d1", kind="DaemonSet", is_ready=False)], "-"),
        ([a_service(), fixed(pod("db-0")), pod("db-1", "d1")], OURS),
        ([a_service(kind="ClusterIP")], "-"),
        ([], "-"),
    ],
)
def test_the_label_comes_when_no_pod_that_will_leave_serves_there(objects: list[Object], label: str) -> None:
    assert label_of(look(leaving(), OTHER, *objects)) == label


def test_it_is_said_and_a_label_that_somebody_takes_away_is_not_written_again() -> None:
    controller = SpotLoadBalancers()
    outcome = look(leaving(), OTHER, a_service(), controller=controller)
    assert [note.reason for note in outcome.actions if isinstance(note, Note)] == ["LoadBalancerExcluded"]
    assert look(leaving(), OTHER, a_service(), controller=controller) == DONE
    assert look(labelled(leaving(), OURS), OTHER, a_service()) == DONE


@pytest.mark.parametrize("course", [Course.DRAIN, Course.RECOMMEND, Course.LOST])
def test_nodes_whose_machine_does_not_go_yet_are_left_alone(course: Course) -> None:
    assert look(leaving(course=course), OTHER, a_service()) == DONE


@pytest.mark.parametrize(
    "others", [[], [labelled(a_node("d1"), "")], [leaving("d1")]], ids=["none", "excluded", "leaving"]
)
def test_the_last_node_of_load_balancers_stays(others: list[Node]) -> None:
    assert look(leaving(), *others, a_service()) == Outcome(requeue_after=LOOK_SECONDS)


def test_a_node_that_is_not_ready_is_no_other_node() -> None:
    silent = a_node("d1")
    silent.status.conditions = [NodeCondition(type="Ready", status="Unknown")]
    assert look(leaving(), silent, a_service()) == Outcome(requeue_after=LOOK_SECONDS)


@pytest.mark.parametrize(("value", "written"), [(OURS, None), ("", "-"), ("true", "-")])
def test_after_a_withdrawn_notice_only_our_own_label_is_removed(value: str, written: str | None) -> None:
    assert label_of(look(labelled(a_node("s1"), value), OTHER, a_service())) == written


def test_a_service_concerns_the_nodes_that_leave() -> None:
    state = State()
    for node in (leaving("s2"), leaving("s1"), OTHER):
        state.apply("ADDED", node)
    (change,) = state.apply("ADDED", a_service())
    assert [key.name for key in leaving_nodes(change, state)] == ["s1", "s2"]
