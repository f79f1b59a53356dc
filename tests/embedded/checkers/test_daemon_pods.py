"""The pods that checkers know of a DaemonSet's node change by change are those that a walk over all pods finds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedded.actors.test_daemon_index import EVENTS, NODES, Step, a_daemon, a_daemon_set, daemon_pods, take_in
from wukong.api.apps import DaemonSet
from wukong.api.core import Pod
from wukong.api.meta import controller_of
from wukong.api.resources import Key
from wukong.embedded.checkers.daemon_pods import DaemonPods, may_update_daemon, siblings_on_node
from wukong.embedded.checkers.pods import is_ready, target_node_of
from wukong.ports import Document
from wukong.state import State


def uids_by_walking(state: State, node: str) -> set[str]:
    owned = [pod for pod in state.all(Pod) if controller_of(pod.metadata) is not None]
    return {pod.metadata.uid for pod in owned if target_node_of(pod) == node}


def unready_by_walking(state: State) -> set[str]:
    owned = [pod for pod in state.all(Pod) if controller_of(pod.metadata) is not None]
    present = [pod for pod in owned if not (pod.is_terminating and pod.is_finished)]
    serving = {target_node_of(pod) for pod in present if is_ready(pod) and not pod.is_terminating}
    return {target_node_of(pod) for pod in present} - serving


@given(st.lists(st.tuples(EVENTS, st.just("Pod"), daemon_pods()), max_size=20))
def test_a_checker_knows_the_daemons_of_every_node(steps: list[Step]) -> None:
    state = State()
    index = state.index_of(DaemonPods)
    for version, step in enumerate(steps):
        take_in(state, step, version)
        for node in NODES:
            expected = uids_by_walking(state, node)
            assert {pod.metadata.uid for pod in index.of("ds", node)} == expected
            assert {pod.metadata.uid for pod in state.fork().index_of(DaemonPods).of("ds", node)} == expected
        expected = unready_by_walking(state)
        assert index.unready_nodes("ds") == state.fork().index_of(DaemonPods).unready_nodes("ds") == expected
    for pod in state.all(Pod):
        siblings = {sibling.metadata.uid for sibling in siblings_on_node(pod, state)}
        expected = uids_by_walking(state, target_node_of(pod)) - {pod.metadata.uid}
        assert siblings == (expected if controller_of(pod.metadata) is not None else set())


def a_case(pods: dict[str, str], **rolling: int | str) -> tuple[State, DaemonSet]:
    """`pods`: name → its node, and ready, coming or leaving."""
    state = State()
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling} if rolling else {"type": "RollingUpdate"}
    take_in(state, ("ADDED", "DaemonSet.apps", a_daemon_set(updateStrategy=strategy)), 0)
    for number in range(1, 5):
        take_in(state, ("ADDED", "Node", {"metadata": {"name": f"n{number}"}}), number)
    for version, (name, words) in enumerate(pods.items(), 10):
        take_in(state, ("ADDED", "Pod", a_daemon_that_is(name, *words.split())), version)
    (daemon_set,) = state.all(DaemonSet)
    return state, daemon_set


def a_daemon_that_is(name: str, node: str, word: str) -> Document:
    pod = a_daemon(name, node)
    if word == "leaving":
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    pod["status"]["conditions"][0]["status"] = "False" if word == "coming" else "True"
    return pod


@pytest.mark.parametrize(
    ("pods", "rolling", "deleted", "may_go"),
    [
        ({"a": "n1 ready", "b": "n2 ready"}, {}, "", True),
        ({"a": "n1 ready", "b": "n2 coming"}, {}, "", False),
        ({"a": "n1 ready", "b": "n2 leaving"}, {}, "", False),
        ({"a": "n1 ready", "b": "n2 leaving", "c": "n2 ready"}, {}, "", True),
        ({"a": "n1 coming", "b": "n2 coming"}, {}, "", True),
        ({"a": "n1 ready", "b": "n2 ready"}, {}, "b", False),
        ({"a": "n1 ready", "b": "n2 coming"}, {"maxUnavailable": 2}, "", True),
        ({"a": "n1 ready", "b": "n2 coming", "c": "n3 leaving"}, {"maxUnavailable": 2}, "", False),
        ({"a": "n1 ready", "b": "n2 coming", "c": "n3 ready"}, {"maxUnavailable": 2}, "c", False),
        ({"a": "n1 ready", "b": "n2 coming"}, {"maxUnavailable": "50%"}, "", True),
        ({"a": "n1 ready", "b": "n2 coming", "c": "n3 coming"}, {"maxUnavailable": "50%"}, "", False),
        ({"a": "n1 ready", "b": "n2 coming"}, {"maxUnavailable": "26%"}, "", True),
        ({"a": "n1 ready", "b": "n2 coming"}, {"maxUnavailable": "25%"}, "", False),
        ({"a": "n1 ready"}, {"maxUnavailable": 0, "maxSurge": 1}, "", False),
        ({"a": "n1 ready", "b": "n1 coming"}, {"maxUnavailable": 0, "maxSurge": 1}, "", False),
        ({"a": "n1 ready", "b": "n1 ready"}, {"maxUnavailable": 0, "maxSurge": "50%"}, "", True),
        ({"a": "n1 ready", "b": "n1 leaving"}, {"maxUnavailable": 0, "maxSurge": 1}, "", False),
        ({"a": "n1 coming"}, {"maxUnavailable": 0, "maxSurge": 1}, "", True),
    ],
)
def test_an_update_takes_ready_daemons_within_its_limits(
    pods: dict[str, str], rolling: dict[str, int | str], deleted: str, may_go: bool
) -> None:
    state, daemon_set = a_case(pods, **rolling)
    pod = state.get(Pod, Key("shop", "a"))
    assert pod is not None
    assert may_update_daemon(pod, daemon_set, state, {deleted}) is may_go


def test_nothing_is_updated_where_the_strategy_is_on_delete() -> None:
    state, daemon_set = a_case({"a": "n1 coming"})
    assert daemon_set.spec.update_strategy is not None
    daemon_set.spec.update_strategy.type = "OnDelete"
    (pod,) = state.all(Pod)
    assert not may_update_daemon(pod, daemon_set, state, frozenset())
