"""A finished pod that is said to wait again is found, unless who says so could not know that it had finished."""

from __future__ import annotations

import pytest

from wukong.actions import DONE, Outcome, Patch
from wukong.api.core import Pod
from wukong.api.kinds import PODS
from wukong.api.resources import Key
from wukong.embedded.checkers import Checkers
from wukong.embedded.store import Server
from wukong.embedded.world.clock import VirtualClock
from wukong.embedded.world.watch_stream import Arrival
from wukong.embedded.world.world import Role, World
from wukong.ports import PatchBody
from wukong.state import State
from wukong.state.controller import Watch

KEY = Key("default", "web")


class Waker:
    """Says once of every pod with the label `wake` that it waits, whatever it was."""

    name = "waker"
    watches = (Watch(PODS),)

    def __init__(self) -> None:
        self.is_done = False

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        pod = state.get(Pod, key)
        if self.is_done or pod is None or "wake" not in pod.metadata.labels:
            return DONE
        self.is_done = True
        return Outcome((Patch(PODS, key, a_phase("Pending"), "status"),))


def a_phase(phase: str) -> PatchBody:
    return PatchBody("merge", {"status": {"phase": phase}})


def play(*, has_processes: bool, delay: float = 0.0) -> list[str]:
    """A pod fails, and is said to wait again by a process that hears of this so many seconds later."""
    clock = VirtualClock()
    server = Server(clock)
    roles = [Role("waker", lambda _: [Waker()])]
    world = World(server=server, clock=clock, **({"roles": roles} if has_processes else {"controllers": [Waker()]}))
    checkers = Checkers(world)
    meta = {"name": KEY.name, "labels": {"wake": "yes"} if delay else {}}
    server.create(PODS, {"metadata": meta, "spec": {"containers": [{"name": "a", "image": "b"}]}}, KEY.namespace)
    for stream in world.streams_of(world.processes[0]):
        stream.route = lambda *_: Arrival(delay=delay)
    server.patch(PODS, KEY, a_phase("Failed"), "status")
    if not delay:
        server.patch(PODS, KEY, PatchBody("merge", {"metadata": {"labels": {"wake": "yes"}}}))
    world.run()
    assert server.get(PODS, KEY)["status"]["phase"] == "Pending"
    return [finding.text for finding in checkers.finish(is_at_rest=False)]


@pytest.mark.parametrize("has_processes", [False, True])
def test_a_finished_pod_that_is_said_to_wait_again_by_who_knows_better_is_found(has_processes: bool) -> None:
    assert play(has_processes=has_processes) == ["was over (Failed) and is Pending again"]


def test_who_has_not_heard_that_a_pod_has_finished_may_say_that_it_waits() -> None:
    """A kubelet whose watch is late does so, and the API server takes it: tests/conformance/test_patching.py."""
    assert play(has_processes=True, delay=5.0) == []
