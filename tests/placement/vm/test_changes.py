"""What a change means for machines that run, by KubeVirt 1.7's own table."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from wukong.placement.vm import ChangeEffect, find_change_effects
from wukongs import a_wukong, build

NEXT_POD, RESTART, AFTER = ChangeEffect.NEXT_POD, ChangeEffect.RESTART_REQUIRED, ChangeEffect.AFTER_RESTART
LIVE = ChangeEffect.LIVE
DISK = {"name": "root", "containerDisk": {"image": "x"}}
LAN = {"name": "lan", "multus": "lan"}
TEMPLATE = "spec.template.spec"
BASE: dict[str, Any] = {"cpu": 2, "memory": "2Gi", "labels": {"app": "web"}, "disks": [DISK]}
APART = {"podAntiAffinity": {"required": [{"topologyKey": "zone"}]}}


def spec_of(**changes: Any) -> dict[str, Any]:
    spec: dict[str, Any] = build(a_wukong(**{**BASE, **changes}))["spec"]
    return spec


def as_stored(spec: dict[str, Any]) -> dict[str, Any]:
    """What KubeVirt adds when a VirtualMachine is stored, and an amount written otherwise."""
    stored = deepcopy(spec)
    template = stored["template"]["spec"]
    template["architecture"] = "amd64"
    template["domain"] |= {"machine": {"type": "q35"}, "resources": {}, "firmware": {"uuid": "u"}}
    template["domain"]["memory"]["guest"] = "2048Mi"
    stored["template"]["metadata"]["creationTimestamp"] = None
    return stored


def test_what_kubevirt_adds_is_no_change() -> None:
    assert find_change_effects(as_stored(spec_of()), spec_of()) == []


@pytest.mark.parametrize(
    ("change", "path", "effect"),
    [
        ({"runStrategy": "Halted"}, "spec.runStrategy", LIVE),
        ({"scheduling": APART}, f"{TEMPLATE}.affinity", NEXT_POD),
        ({"scheduling": {"nodeSelector": {"pool": "x"}}}, f"{TEMPLATE}.nodeSelector", NEXT_POD),
        ({"scheduling": {"tolerations": [{"operator": "Exists"}]}}, f"{TEMPLATE}.tolerations", NEXT_POD),
        ({"scheduling": {"schedulingPolicy": {"priority": 5}}}, f"{TEMPLATE}.priorityClassName", RESTART),
        ({"scheduling": {"schedulingPolicy": {"schedulerName": "s"}}}, f"{TEMPLATE}.schedulerName", RESTART),
        (
            {"scheduling": {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone"}]}},
            f"{TEMPLATE}.topologySpreadConstraints",
            RESTART,
        ),
        ({"evictionStrategy": "None"}, f"{TEMPLATE}.evictionStrategy", RESTART),
        ({"terminationGracePeriodSeconds": 5}, f"{TEMPLATE}.terminationGracePeriodSeconds", RESTART),
        ({"readinessProbe": {"guestAgentPing": {}}}, f"{TEMPLATE}.readinessProbe", RESTART),
        ({"labels": {"app": "db"}}, "spec.template.metadata.labels.app", AFTER),
        ({"labels": {}}, "spec.template.metadata.labels.app", AFTER),
        ({"cpu": 4}, f"{TEMPLATE}.domain.cpu.cores", RESTART),
        ({"memory": "4Gi"}, f"{TEMPLATE}.domain.memory.guest", LIVE),
        ({"memory": "9Gi"}, f"{TEMPLATE}.domain.memory.guest", RESTART),
        ({"memory": "1Gi"}, f"{TEMPLATE}.domain.memory.guest", RESTART),
        ({"gpus": [{"name": "g", "deviceName": "a.b/c"}]}, f"{TEMPLATE}.domain.devices.gpus", RESTART),
    ],
)
def test_one_change_has_one_effect(change: dict[str, Any], path: str, effect: ChangeEffect) -> None:
    assert find_change_effects(as_stored(spec_of()), spec_of(**change)) == [(path, effect)]


@pytest.mark.parametrize(
    ("change", "path", "effect"),
    [
        ({"scheduling": APART}, f"{TEMPLATE}.affinity", NEXT_POD),
        ({"scheduling": {"schedulingPolicy": {"priority": 5}}}, f"{TEMPLATE}.priorityClassName", RESTART),
        ({"gpus": [{"name": "g", "deviceName": "a.b/c"}]}, f"{TEMPLATE}.domain.devices.gpus", RESTART),
    ],
)
def test_what_is_taken_back_has_the_same_effect(change: dict[str, Any], path: str, effect: ChangeEffect) -> None:
    assert find_change_effects(as_stored(spec_of(**change)), spec_of()) == [(path, effect)]


def test_a_network_more_is_plugged_in_and_one_less_needs_a_restart() -> None:
    both = spec_of(networks=[{"name": "default"}, LAN])
    paths = [f"{TEMPLATE}.domain.devices.interfaces", f"{TEMPLATE}.networks"]
    assert find_change_effects(as_stored(spec_of()), both) == [(path, LIVE) for path in paths]
    assert find_change_effects(as_stored(both), spec_of()) == [(path, RESTART) for path in paths]


def test_a_rule_less_within_the_affinity_is_a_change_too() -> None:
    more = {"podAffinity": {"preferred": [{"weight": 1, "podAffinityTerm": {"topologyKey": "zone"}}]}, **APART}
    live = as_stored(spec_of(scheduling=more))
    assert find_change_effects(live, spec_of(scheduling=APART)) == [(f"{TEMPLATE}.affinity", NEXT_POD)]


def test_another_disk_needs_a_restart() -> None:
    changed = spec_of(disks=[{"name": "root", "containerDisk": {"image": "y"}}])
    assert find_change_effects(as_stored(spec_of()), changed) == [(f"{TEMPLATE}.volumes", RESTART)]
