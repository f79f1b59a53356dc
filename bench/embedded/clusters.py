"""Worlds to be measured: a cluster as `wukong sim run` plays it, with its story recorded, and what is done to it.

Used by measure.py in processes of their own. Everything is drawn by a seed, so two runs measure the same story.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from random import Random

from wukong.actions import Action, Delete, Patch
from wukong.api.kinds import DEPLOYMENTS, PODS
from wukong.api.resources import Key
from wukong.app.embedded import Settings, build_world
from wukong.embedded.scenario.format.fields import NodeEntry, Scenario, TimelineEntry
from wukong.embedded.scenario.play import steps
from wukong.embedded.scenario.play.player import KEPT_STEPS, WorldPlayer, trace_line
from wukong.embedded.scenario.play.steps import Drains
from wukong.embedded.world.transport import perform
from wukong.embedded.world.world import Step
from wukong.ports import Document, PatchBody
from wukong.runtime.dispatch import Item

ANNOTATIONS: dict[str, dict[str, str]] = {  # how kubelets treat pods: by their usual table, or each a bit differently
    "alike": {},
    "spread": {
        f"sim.novasphere.dev/{name}": text
        for name, text in (
            *(("pull-seconds", "4"), ("start-seconds", "1"), ("ready-seconds", "5")),  # ready after 10 to 20 s
            *(("stop-seconds", "2"), ("spread", "1")),
        )
    },
}
PER_DEPLOYMENT = 50  # pods, in the cluster with churn
BETWEEN_ACTS = 60  # virtual seconds


class Cluster:
    """A world with its recorder, and how many seconds it has played."""

    def __init__(self, nodes: int, seed: int = 0) -> None:
        self.drains = Drains()
        self.world = build_world(Settings(seed), self.drains)
        self.player = WorldPlayer(self.world, Scenario(), self.drains)  # with all that looks on: recorder, checkers
        self.recorder, self.checkers = self.player.recorder, self.player.checkers
        self.begun, self.random, self.digest = self.world.clock.now(), Random(seed), sha256()
        self.world.trace.min_kept = KEPT_STEPS
        self._listening = self.world.trace.notify(self._note)  # kept, for it ends with its last reference
        self._listening.__enter__()
        sizes: dict[str, str | int | float] = {"cpu": "16", "memory": "64Gi", "pods": "110"}
        self.do(steps.create_nodes([NodeEntry(name_prefix="node-", count=nodes, capacity=sizes)]))
        self.world.run()

    def _note(self, step: Step) -> None:
        self.digest.update(trace_line(step, self.begun).encode())

    @property
    def writes(self) -> int:
        return self.world.server.database.version

    @property
    def virtual_seconds(self) -> float:
        return self.world.clock.now() - self.begun

    def do(self, actions: list[Action]) -> None:
        for action in actions:
            perform(self.world.server, action)

    def add(self, name: str, replicas: int, annotations: dict[str, str]) -> None:
        self.do(steps.apply_documents([a_deployment(name, replicas, annotations)], frozenset({"default"})))

    def roll(self, name: str, image: str) -> None:
        container = {"name": "main", "image": image}
        body = {"spec": {"template": {"spec": {"containers": [container]}}}}
        self.do([Patch(DEPLOYMENTS, Key("default", name), PatchBody("strategic", body))])

    def available(self) -> int:
        return sum(summary.available for summary in self.recorder.workloads.values())

    # ---- churn

    def churn(self, deployments: list[str], seconds: float) -> None:
        """Once a minute somebody rolls a Deployment, deletes pods, drains a node or lets one fall silent."""
        end, turns = self.world.clock.now() + seconds, self._turns(deployments)
        while self.world.clock.now() < end:
            next(turns)
            self.world.run(deadline=min(end, self.world.clock.now() + BETWEEN_ACTS))

    def _turns(self, deployments: list[str]) -> Iterator[None]:
        nodes, turn = sorted(key.name for key in self.world.state.objects["Node"]), 0
        while True:
            turn += 1
            node = self.random.choice(nodes)
            match self.random.choice(("roll", "delete", "drain", "flap")):
                case "roll":
                    self.roll(self.random.choice(deployments), f"registry.example.com/web:{turn}")
                    yield
                case "delete":
                    pods = sorted(self.world.state.objects["Pod"])
                    self.do([Delete(PODS, key) for key in self.random.sample(pods, min(10, len(pods)))])
                    yield
                case "drain":
                    self._drain(node)
                    yield
                    self.drains.nodes.discard(node)
                    self.do(steps.build_actions(TimelineEntry(at=0, uncordon=node), frozenset()))
                case "flap":  # long enough for its pods to be unready, not for them to go
                    self.do(steps.build_actions(TimelineEntry(at=0, not_ready=node), frozenset()))
                    yield
                    self.do(steps.build_actions(TimelineEntry(at=0, ready=node), frozenset()))

    def _drain(self, node: str) -> None:
        self.drains.nodes.add(node)
        self.do(steps.build_actions(TimelineEntry(at=0, drain=node), frozenset()))
        for key in self.world.state.pods.on_node(node):
            self.world.dispatch.queue.add(Item(self.drains.name, key), self.world.clock.now())


def a_deployment(name: str, replicas: int, annotations: dict[str, str]) -> Document:
    requests = {"cpu": "100m", "memory": "128Mi"}
    main = {
        "name": "main",
        "image": "registry.example.com/web:0",
        "env": [{"name": "GREETING", "value": "hello"}],
        "ports": [{"containerPort": 8080}],
        "resources": {"requests": requests},
    }
    template = {"metadata": {"labels": {"app": name}, "annotations": annotations}, "spec": {"containers": [main]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}
