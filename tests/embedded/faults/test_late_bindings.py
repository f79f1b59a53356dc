"""A scheduler whose watch is late with its own bindings: what it has bound counts until the watch says otherwise."""

from __future__ import annotations

from wukong.api.kinds import NODES, PODS
from wukong.api.resources import Key
from wukong.controllers.scheduler.controller import DEFAULT_NAME, Scheduler
from wukong.embedded.checkers import Checkers
from wukong.embedded.store import Server
from wukong.embedded.store.deletion import DeleteOptions
from wukong.embedded.world.clock import VirtualClock
from wukong.embedded.world.watch_stream import AT_ONCE, Arrival, StreamEvent, WatchStream
from wukong.embedded.world.world import Role, World
from wukong.ports import PatchBody

LATE_SECONDS = 600.0


class LateScheduler:
    """A node with 4 CPUs, and a scheduler that hears of everything at once but of what it has bound itself."""

    def __init__(self) -> None:
        clock = VirtualClock()
        self.server = Server(clock)
        role = Role("scheduler", lambda _: [Scheduler([DEFAULT_NAME])])
        self.world = World(server=self.server, clock=clock, roles=[role])
        self.checkers = Checkers(self.world)
        (process,) = self.world.processes
        for stream in self.world.streams_of(process):
            stream.route = self._route
        status = {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "10"}}
        self.server.create(NODES, {"metadata": {"name": "n0"}, "status": status})
        self.server.patch(NODES, Key("", "n0"), PatchBody("merge", {"spec": {"taints": None}}))

    def _route(self, stream: WatchStream, event: StreamEvent) -> Arrival:
        is_late = stream.kind == "Pod" and event.type == "MODIFIED"
        return Arrival(delay=LATE_SECONDS, may_be_overtaken=True) if is_late else AT_ONCE

    def create_pod(self, name: str) -> None:
        container = {"name": "main", "image": "web", "resources": {"requests": {"cpu": "3"}}}
        self.server.create(PODS, {"metadata": {"name": name}, "spec": {"containers": [container]}}, "default")

    def node_of(self, name: str) -> str:
        return str(self.server.get(PODS, Key("default", name))["spec"].get("nodeName", ""))


def test_a_pod_that_was_bound_counts_however_late_the_watch_is() -> None:
    """Nor does kube-scheduler 1.35 ever give up a pod it has bound: its durationToExpireAssumedPod is 0."""
    cluster = LateScheduler()
    cluster.create_pod("first")
    cluster.world.run(seconds=LATE_SECONDS / 2)
    cluster.create_pod("second")
    cluster.world.run(seconds=LATE_SECONDS / 4)
    assert (cluster.node_of("first"), cluster.node_of("second")) == ("n0", "")
    assert cluster.checkers.finish(is_at_rest=False) == []
    assert [step.error for step in cluster.world.trace if step.error] == []


def test_room_that_a_pod_leaves_before_its_binding_shows_is_used_again() -> None:
    cluster = LateScheduler()
    cluster.create_pod("first")
    cluster.world.run(seconds=LATE_SECONDS / 2)
    cluster.server.delete(PODS, Key("default", "first"), DeleteOptions(grace_seconds=0))
    cluster.create_pod("second")
    cluster.world.run(seconds=LATE_SECONDS)
    assert cluster.node_of("second") == "n0"
