"""The pods that checkers keep for a controller change by change are those that a walk over all pods finds."""

from __future__ import annotations

from hypothesis import given

from embedded.actors.random_pods import histories, take_in
from wukong.api.core import Pod
from wukong.api.meta import controller_of
from wukong.embedded.checkers.active_pods import ActivePods
from wukong.ports import Document
from wukong.state import State


@given(histories())
def test_a_checker_knows_the_pods_of_every_controller(steps: list[tuple[str, list[Document]]]) -> None:
    state = State()
    index = state.derived(ActivePods)
    for number, step in enumerate(steps):
        take_in(state, step, number)
        for uid in ("u1", "u2"):
            expected = {
                pod.metadata.uid: pod
                for pod in state.all(Pod)
                if not pod.is_terminating and not pod.is_finished
                if (owner := controller_of(pod.metadata)) is not None and owner.uid == uid
            }
            assert index.of(uid) == expected
            assert state.fork().derived(ActivePods).of(uid) == expected
