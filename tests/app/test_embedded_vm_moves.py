"""Virtual machines of a Wukong on the move: restarted one by one, migrated where that is enough, told when stuck."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.test_embedded_vm import DISKS, a_wukong, played
from wukong.api.policy_status import Condition
from wukong.api.vm import Wukong
from wukong.embedded.faults import TYPES
from wukong.embedded.scenario import Story
from wukong.embedded.world.world import World
from wukong.ports import Document

CHANGED_AT = 200  # seconds: by then a machine may be restarted
SPEC: Document = {
    "disks": DISKS,
    "replicas": 3,
    "restartPolicy": "WhenSafe",
    "highAvailability": {"antiAffinity": True},
}
NEEDS_RESTART: dict[str, Document] = {"grace": {"terminationGracePeriodSeconds": 7}, "labels": {"labels": {"a": "b"}}}


def not_on(*nodes: str) -> Document:
    expression = {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": list(nodes)}
    return {"scheduling": {"nodeAffinity": {"required": [{"matchExpressions": [expression]}]}}}


def change(to: Document, seed: int = 3, faults: list[str] | None = None, **more: Any) -> tuple[World, Story]:
    """A Wukong of three on five nodes that changes once."""
    scenario = {
        "components": ["vm"],
        "nodes": [{"namePrefix": "n", "count": 5}],
        "manifests": [a_wukong("web", SPEC), *more.get("manifests", ())],
        "timeline": [{"at": f"{CHANGED_AT}s", "apply": a_wukong("web", {**SPEC, **to})}],
        "until": "1h",
    }
    world, story, _ = played(json.dumps(scenario), seed, faults or [])
    assert story.findings == []
    return world, story


def events_of(story: Story, *texts: str) -> list[tuple[str, str]]:
    return [
        (event.subject.removeprefix("default/"), event.text)
        for event in story.events
        if event.at >= CHANGED_AT and event.text in texts
    ]


def condition(world: World, kind: str) -> Condition:
    (wukong,) = world.state.all(Wukong)
    (entry,) = [entry for entry in wukong.status.conditions if entry.type == kind]
    return entry


@pytest.mark.parametrize("name", NEEDS_RESTART)
def test_machines_are_restarted_one_by_one(name: str) -> None:
    world, story = change(NEEDS_RESTART[name])
    events = events_of(story, "stopping", "ready")
    order = [name for name, text in events if text == "stopping"]
    assert sorted(order) == ["web-0", "web-1", "web-2"]  # who is first is drawn
    assert events == [(name, text) for name in order for text in ("stopping", "ready")]
    assert condition(world, "RestartRequired").reason == "UpToDate"


def test_without_leave_nothing_is_restarted() -> None:
    world, story = change({**NEEDS_RESTART["grace"], "restartPolicy": "Never"})
    assert events_of(story, "stopping") == []
    assert condition(world, "RestartRequired").status == "True"


def test_a_budget_that_allows_nothing_holds_everything_up() -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"wukong.novasphere.dev/name": "web"}}},
    }
    world, story = change(NEEDS_RESTART["grace"], manifests=[budget])
    assert events_of(story, "stopping") == []
    assert "once PodDisruptionBudget web allows" in condition(world, "RestartRequired").message


@pytest.mark.slow
def test_only_the_machine_on_the_wrong_node_moves_and_it_is_migrated() -> None:
    world, _ = change({})
    (wukong,) = world.state.all(Wukong)
    first, *others = wukong.status.vms
    world, story = change(not_on(first.node))
    (wukong,) = world.state.all(Wukong)
    assert wukong.status.ready_replicas == 3
    assert wukong.status.vms[0].node != first.node
    assert [vm.node for vm in wukong.status.vms[1:]] == [vm.node for vm in others]
    assert events_of(story, "stopping") == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_under_all_faults_every_change_is_taken_up_in_the_end(seed: int) -> None:
    to = (*NEEDS_RESTART.values(), not_on("n1"))[seed % 3]
    world, story = change(to, seed, list(TYPES))
    assert story.settled, story.stuck
    assert condition(world, "RestartRequired").status == "False"
    assert condition(world, "Ready").status == "True"
    (wukong,) = world.state.all(Wukong)
    assert "n1" not in [vm.node for vm in wukong.status.vms] or seed % 3 != 2


def test_a_rule_that_no_node_satisfies_is_told_within_two_seconds_and_recovers_when_a_node_appears() -> None:
    selector = {"nodeSelector": {"disk": "ssd"}}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "ssd-1", "labels": {"disk": "ssd", "kubernetes.io/hostname": "ssd-1"}},
        "status": {"capacity": {"cpu": "4", "memory": "16Gi", "pods": "110"}},
    }
    scenario: Document = {
        "components": ["vm"],
        "nodes": [{"namePrefix": "n", "count": 2}],
        "timeline": [{"at": "10s", "apply": a_wukong("web", {"disks": DISKS, "scheduling": selector})}],
        "until": "12s",
    }
    world, _, _ = played(json.dumps(scenario), 1, [])
    placed = condition(world, "Placed")
    assert (placed.status, placed.reason) == ("False", "Unschedulable")
    assert "Smallest fix: drop disk=ssd from nodeSelector" in placed.message
    scenario["timeline"].append({"at": "20s", "apply": node})
    world, _, _ = played(json.dumps({**scenario, "until": "1h"}), 1, [])
    assert condition(world, "Placed").status == "True"
    (wukong,) = world.state.all(Wukong)
    assert wukong.status.node == "ssd-1"
