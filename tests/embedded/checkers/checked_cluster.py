"""A world with controllers of the test's own in it, which do what they should not, and the checkers that observe it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wukong.actions import DONE, Outcome
from wukong.api.core import Pod
from wukong.api.kinds import NODES, PODS
from wukong.api.resources import Key
from wukong.embedded.actors import make_actors
from wukong.embedded.checkers import Checkers
from wukong.embedded.store import Server
from wukong.embedded.world.clock import VirtualClock
from wukong.embedded.world.timing import Timing
from wukong.embedded.world.world import World
from wukong.ports import Document
from wukong.state import State
from wukong.state.controller import Controller, PodRight, Watch

HOST = "kubernetes.io/hostname"


class PodController:
    """Has the name and the rights it is given, and calls `act` with each pod."""

    watches = (Watch(PODS),)

    def __init__(self, name: str, act: Callable[[Key, Pod, float], Outcome], *rights: PodRight) -> None:
        self.name, self.act, self.pod_rights = name, act, frozenset(rights)

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        pod = state.get(Pod, key)
        return self.act(key, pod, now) if pod is not None else DONE


class CheckedCluster:
    """The built-in controllers, less those whose name a controller of the test's own has taken."""

    def __init__(self, *controllers: Controller, timing: Timing | None = None, gated: tuple[str, ...] = ()) -> None:
        """Those named `gated` are ours."""
        clock = VirtualClock()
        self.server = Server(clock)
        names = {controller.name for controller in controllers}
        others = [controller for controller in make_actors(self.server) if controller.name not in names]
        self.world = World([*others, *controllers], server=self.server, clock=clock, timing=timing, gated=gated)
        self.checkers = Checkers(self.world)

    def node(self, name: str, *, cpu: str = "4", labels: dict[str, str] | None = None, **spec: Any) -> None:
        ready = {"type": "Ready", "status": "True"}
        status = {"capacity": {"cpu": cpu, "memory": "8Gi", "pods": "10"}, "conditions": [ready]}
        meta = {"name": name, "labels": {HOST: name, **(labels or {})}}
        self.server.create(NODES, {"metadata": meta, "status": status, "spec": spec})
        self.world.run()

    def pod(self, name: str, *, app: str = "web", cpu: str = "1", **spec: Any) -> Document:
        container = {"name": "main", "image": "a", "resources": {"requests": {"cpu": cpu}}}
        body = {"metadata": {"name": name, "labels": {"app": app}}, "spec": {"containers": [container], **spec}}
        return self.server.create(PODS, body, "default")

    def findings(self) -> list[str]:
        """Play until nothing is due; return what the checkers found."""
        self.world.run()
        return [str(finding) for finding in self.checkers.finish(is_at_rest=True)]
