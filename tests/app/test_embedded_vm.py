"""The component vm in an embedded cluster: whatever happens in whatever order, every Wukong gets its machines.

Histories are drawn by a seed: Wukongs come, change, scale, become nonsense, go and come again; strangers edit and
delete VirtualMachines; processes crash, watches break, answers get lost.
"""

from __future__ import annotations

import json
from collections import Counter
from random import Random
from typing import Any

import pytest

from wukong.api.core import PriorityClass
from wukong.api.kinds import VIRTUAL_MACHINES, WUKONGS
from wukong.api.kubevirt import VirtualMachine, VirtualMachineInstance
from wukong.api.meta import controller_of
from wukong.api.resources import Key, key_of
from wukong.api.vm import Wukong, vm_names_of
from wukong.app.embedded import Settings, build_world, choose_components, faults_of
from wukong.controllers.vm.priority_classes import UNUSED
from wukong.controllers.vm.vm_writes import ANNOTATION, VmWriter
from wukong.embedded.faults import TYPES
from wukong.embedded.scenario import Story, play, read_scenario
from wukong.embedded.scenario.play.steps import Drains
from wukong.embedded.world.world import World
from wukong.placement.vm import VmSettings, priority_class_name_of
from wukong.placement.vm.changes import is_within
from wukong.ports import Document

NAMES = ("web", "db")
DISKS = [{"name": "root", "containerDisk": {"image": "fedora:42"}}]
NONSENSE = {"schedulingPolicy": {"rules": [{"name": "no-such-rule", "type": "score"}]}}
MOST_WRITES = {"Wukong": 100, "VirtualMachine": 40, "PriorityClass": 40}  # of ours to one object, in such a history


def a_wukong(name: str, spec: Document) -> Document:
    return {"apiVersion": WUKONGS.api_version, "kind": "Wukong", "metadata": {"name": name}, "spec": spec}


def draw_spec(draw: Random, *, is_numbered: bool) -> Document:
    spec: Document = {"disks": DISKS, "cpu": draw.choice([1, 2, 4])}
    if is_numbered:
        spec["replicas"] = draw.randrange(5)
    chance = draw.random()
    if chance < 0.3:
        spec["scheduling"] = {"schedulingPolicy": {"priority": draw.choice([5, 100])}}
    elif chance < 0.4:
        spec["scheduling"] = NONSENSE
    elif chance < 0.6:
        spec["scheduling"] = {"tolerations": [{"key": "spot", "operator": "Exists"}]}
    return spec


def draw_event(draw: Random) -> Document:
    name = draw.choice(NAMES)
    is_numbered = name == "web"
    machine = f"web-{draw.randrange(5)}" if is_numbered else name
    vm = {"kind": "VirtualMachine", "apiVersion": VIRTUAL_MACHINES.api_version, "name": machine}
    match draw.randrange(6):
        case 0:
            return {"delete": vm}
        case 1:
            return {"patch": {**vm, "type": "merge", "patch": {"spec": {"runStrategy": "Halted", "x": 1}}}}
        case 2:
            return {"delete": {"kind": "Wukong", "apiVersion": WUKONGS.api_version, "name": name}}
    return {"apply": a_wukong(name, draw_spec(draw, is_numbered=is_numbered))}


def draw_history(seed: int) -> str:
    """A scenario as text. Ends with both Wukongs there and sensible."""
    draw = Random(seed)
    timeline: list[Document] = [
        {"at": f"{draw.randrange(1, 60)}s", **draw_event(draw)} for _ in range(draw.randrange(5, 20))
    ]
    final = [a_wukong("web", {"disks": DISKS, "replicas": draw.randrange(1, 4)}), a_wukong("db", {"disks": DISKS})]
    timeline.sort(key=lambda entry: int(entry["at"][:-1]))
    timeline.append({"at": "70s", "apply": final})
    first = [a_wukong(name, draw_spec(draw, is_numbered=name == "web")) for name in NAMES]
    scenario = {
        "components": ["vm"],
        "nodes": [{"namePrefix": "n", "count": 3}],
        "manifests": first,
        "timeline": timeline,
        "until": "2h",
    }
    return json.dumps(scenario)


def played(text: str, seed: int, faults: list[str]) -> tuple[World, Story, list[Document]]:
    scenario, drains, lines = read_scenario(text), Drains(), list[str]()
    injected = faults_of(scenario, seed, faults)
    world = build_world(Settings(seed, choose_components(scenario)), drains, fault_injection=injected)
    story = play(world, scenario, drains, faults=injected, lines=lines.append)
    return world, story, [json.loads(line) for line in lines if line.strip()]


def check_machines(world: World) -> None:
    """Every Wukong has exactly its machines, each as it should be, and nobody else's are left behind."""
    writer = VmWriter(VmSettings())
    owners = {wukong.metadata.uid: wukong for wukong in world.state.all(Wukong)}
    by_owner: dict[str, list[str]] = {uid: [] for uid in owners}
    for vm in world.state.all(VirtualMachine):
        owner = controller_of(vm.metadata)
        assert owner is not None
        assert owner.uid in owners, f"{vm.key} is left behind"
        by_owner[owner.uid].append(vm.metadata.name)
        document, digest = writer._build(owners[owner.uid], vm.metadata.name)
        assert vm.metadata.annotations[ANNOTATION] == digest
        assert is_within(document["spec"], vm.spec)  # KubeVirt adds defaults of its own
        rules = ("tolerations", "priorityClassName")
        template, wanted = (spec["template"]["spec"] for spec in (vm.spec, document["spec"]))
        assert [template.get(rule) for rule in rules] == [wanted.get(rule) for rule in rules]
    assert {uid: sorted(names) for uid, names in by_owner.items()} == {
        uid: sorted(vm_names_of(wukong)) for uid, wukong in owners.items()
    }


def check_status(world: World) -> None:
    for wukong in world.state.all(Wukong):
        assert wukong.status.observed_generation == wukong.metadata.generation
        accepted = {condition.type: condition.status for condition in wukong.status.conditions}["Accepted"]
        assert accepted == "True"
        assert [vm.name for vm in wukong.status.vms] == vm_names_of(wukong)
        assert wukong.status.replicas == len(vm_names_of(wukong))


def check_classes(world: World) -> None:
    """After two hours those classes are there that somebody asks for, or that an instance was started with."""
    policies = [
        wukong.spec.scheduling.scheduling_policy
        for wukong in world.state.all(Wukong)
        if wukong.spec.scheduling is not None
    ]
    names = {priority_class_name_of(policy) for policy in policies}
    names |= {instance.spec.get("priorityClassName", "") for instance in world.state.all(VirtualMachineInstance)}
    names -= {""}
    classes = [entry for entry in world.state.all(PriorityClass) if entry.metadata.name.startswith("wukong-")]
    assert {entry.metadata.name for entry in classes} == names
    assert not any(UNUSED in entry.metadata.annotations for entry in classes)


def count_writes(trace: list[Document]) -> Counter[tuple[str, str]]:
    """How often our controllers wrote each object."""
    writes: Counter[tuple[str, str]] = Counter()
    for entry in trace:
        action: dict[str, Any] = entry["action"]
        resource = action.get("resource")
        if entry["by"] in ("vm", "vm-priority") and resource is not None:
            name = (action.get("key") or action.get("body", {}).get("metadata", {})).get("name", "")
            writes[resource["kind"], name] += 1
    return writes


def check(text: str, seed: int, faults: list[str]) -> None:
    world, story, trace = played(text, seed, faults)
    assert story.settled, story.stuck
    assert story.findings == []
    check_machines(world)
    check_status(world)
    check_classes(world)
    writes = count_writes(trace)
    assert writes
    for (kind, name), count in writes.items():
        assert count <= MOST_WRITES[kind], f"{count} writes of {kind} {name}"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_every_wukong_gets_its_machines_whatever_happens(seed: int) -> None:
    check(draw_history(seed), seed, ["duplicated"])  # a fault, so that events about what is not there pass


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 130))
def test_every_wukong_gets_its_machines_under_all_faults(seed: int) -> None:
    check(draw_history(seed), seed, list(TYPES))


@pytest.mark.slow
def test_the_same_seed_gives_the_same_trace() -> None:
    text = draw_history(7)
    first, second = (played(text, 7, list(TYPES))[1].digest for _ in range(2))
    assert first == second


def test_a_machine_of_somebody_else_stays_and_is_told_of() -> None:
    stranger = {
        "apiVersion": VIRTUAL_MACHINES.api_version,
        "kind": "VirtualMachine",
        "metadata": {"name": "db"},
        "spec": {"runStrategy": "Manual", "template": {"spec": {"domain": {"memory": {"guest": "1Gi"}}}}},
    }
    applied = {"at": "5s", "apply": a_wukong("db", {"disks": DISKS})}
    deleted = {"at": "60s", "delete": {"kind": "VirtualMachine", "apiVersion": "kubevirt.io/v1", "name": "db"}}
    scenario = {"components": ["vm"], "manifests": [stranger], "timeline": [applied]}
    world, story, _ = played(json.dumps(scenario), 1, [])
    assert story.settled
    vm = world.state.get(VirtualMachine, Key("default", "db"))
    assert vm is not None
    assert vm.metadata.owner_references == []
    (wukong,) = world.state.all(Wukong)
    assert wukong.status.reason == "NameTaken"
    world, _, _ = played(json.dumps({**scenario, "timeline": [applied, deleted]}), 1, [])
    check_machines(world)
    assert [key_of(vm) for vm in world.state.all(VirtualMachine)] == [Key("default", "db")]
