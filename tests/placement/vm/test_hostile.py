"""Whatever a vmTemplate or a probe holds, nobody raises: it is a problem, or it is built."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from wukong.api.vm import Wukong
from wukong.placement.rules import BUILT_IN
from wukong.placement.vm import (
    VmSettings,
    build_virtual_machine,
    find_change_effects,
    find_wukong_problems,
    is_bootable,
)
from wukong.placement.vm.lint import lint_wukongs

NAMES = (
    *("spec", "metadata", "template", "domain", "devices", "disks", "volumes", "networks", "interfaces", "gpus"),
    *("name", "labels", "annotations", "firmware", "kernelBoot", "bootOrder", "cpu", "cores", "affinity", "running"),
)
LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=4) | st.just("root")
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=12,
)
MAPS = st.dictionaries(st.sampled_from(NAMES), JSON, max_size=4)
DISKS = [{"name": "root", "containerDisk": {"image": "x"}}]


def within_template(value: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": value}}}


TEMPLATES = MAPS | MAPS.map(lambda value: {"spec": value}) | JSON.map(within_template) | MAPS.map(within_template)
TEMPLATES |= JSON.map(lambda value: within_template({"domain": value}))
TEMPLATES |= JSON.map(lambda value: within_template({"domain": {"devices": value, "firmware": value}}))
TEMPLATES |= JSON.map(lambda value: within_template({"domain": {"devices": {"interfaces": value}}, "volumes": value}))


@given(template=TEMPLATES, disks=st.sampled_from([[], DISKS]), probe=st.none() | MAPS)
def test_any_template_is_a_problem_or_is_built(template: dict[str, Any], disks: list[Any], probe: Any) -> None:
    spec = {"vmTemplate": template, "disks": disks, **({} if probe is None else {"readinessProbe": probe})}
    wukong = msgspec.convert({"metadata": {"name": "web", "namespace": "shop"}, "spec": spec}, Wukong)
    lint_wukongs([wukong], BUILT_IN)
    if find_wukong_problems(wukong, BUILT_IN):
        return
    machine = build_virtual_machine(wukong, "web", VmSettings())
    is_bootable(wukong)
    assert find_change_effects(machine["spec"], machine["spec"]) == []


@given(live=MAPS, desired=MAPS)
def test_any_two_specs_can_be_compared(live: dict[str, Any], desired: dict[str, Any]) -> None:
    find_change_effects(live, desired)
    find_change_effects(within_template(live)["spec"], within_template(desired)["spec"])
