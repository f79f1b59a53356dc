"""The pods that checkers know of a DaemonSet's node change by change are those that a walk over all pods finds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from embedded.actors.test_daemon_index import EVENTS, NODES, Step, daemon_pods, take_in
from wukong.api.core import Pod
from wukong.api.meta import controller_of
from wukong.embedded.checkers.daemon_pods import DaemonPods, siblings_on_node
from wukong.embedded.checkers.pods import target_node_of
from wukong.state import State


def uids_by_walking(state: State, node: str) -> set[str]:
    owned = [pod for pod in state.all(Pod) if controller_of(pod.metadata) is not None]
    return {pod.metadata.uid for pod in owned if target_node_of(pod) == node}


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
    for pod in state.all(Pod):
        siblings = {sibling.metadata.uid for sibling in siblings_on_node(pod, state)}
        expected = uids_by_walking(state, target_node_of(pod)) - {pod.metadata.uid}
        assert siblings == (expected if controller_of(pod.metadata) is not None else set())
