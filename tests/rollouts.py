"""Builders of Rollouts and of scenarios with them: show only what matters, the rest gets a plain default."""

from __future__ import annotations

import json
from collections.abc import Sequence

from wukong.api.kinds import ROLLOUTS
from wukong.api.rollout import Rollout
from wukong.app.embedded import Settings, build_world, choose_components, faults_of
from wukong.embedded.scenario import Story, play, read_scenario
from wukong.embedded.scenario.play.steps import Drains
from wukong.embedded.world.world import World
from wukong.ports import Document

REQUIRED: Document = {"requiredDuringSchedulingIgnoredDuringExecution": {}}
PREFERRED: Document = {"preferredDuringSchedulingIgnoredDuringExecution": {"weight": 100}}


def a_template(image: str = "web:1", **spec: object) -> Document:
    container = {"name": "web", "image": image, "resources": {"requests": {"cpu": "1"}}}
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container], **spec}}


def a_rollout(strategy: Document, image: str = "web:1", name: str = "web", **spec: object) -> Document:
    return {
        "apiVersion": ROLLOUTS.api_version,
        "kind": "Rollout",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": 8,
            "selector": {"matchLabels": {"app": "web"}},
            "template": a_template(image),
            "strategy": strategy,
            **spec,
        },
    }


def blue_green(**fields: object) -> Document:
    return {"blueGreen": {"activeService": "web", **fields}}


def canary(*steps: Document, **fields: object) -> Document:
    return {"canary": {"steps": list(steps), **fields}}


def a_service(name: str = "web") -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
    }


def annotate(**annotations: str | None) -> Document:
    """A timeline's patch of the Rollout: promote="2", abort="2"."""
    named = {f"placement.novasphere.dev/{name}": text for name, text in annotations.items()}
    patch = {"metadata": {"annotations": named}}
    return {"patch": {"kind": "Rollout", "name": "web", "type": "merge", "patch": patch}}


def a_scenario(strategy: Document, timeline: Sequence[Document], **fields: object) -> Document:
    """Eight pods of a cpu on nodes of six, which an autoscaler buys and removes."""
    return {
        "components": ["rollout"],
        "nodes": [{"namePrefix": "workers-", "count": 2, "capacity": {"cpu": 6}, "group": "workers"}],
        "nodeGroups": [
            {"name": "workers", "min": 2, "max": 10, "bootSeconds": 2, "template": {"capacity": {"cpu": 6}}}
        ],
        "manifests": [a_service(), a_rollout(strategy)],
        "timeline": list(timeline),
        "until": "2h",
        **fields,
    }


def play_rollout(scenario: Document, seed: int = 1, faults: Sequence[str] = ()) -> tuple[World, Story]:
    read, drains = read_scenario(json.dumps(scenario)), Drains()
    injected = faults_of(read, seed, list(faults))
    settings = Settings(seed, choose_components(read), node_groups=tuple(read.node_groups))
    world = build_world(settings, drains, fault_injection=injected)
    return world, play(world, read, drains, faults=injected)


def the_rollout(world: World) -> Rollout:
    (rollout,) = world.state.all(Rollout)
    return rollout
