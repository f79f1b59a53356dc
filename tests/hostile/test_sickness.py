"""A sample of the hours of sickness that `make sickness` plays by the hundred: nothing ends, nothing wrong is written.

`PYTHONPATH=src:tests python -m hostile.sickness --seeds 3` plays one seed again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from conftest import FIGURE
from hostile.grammar import SEED
from hostile.sickness import ACTS, DRAWN, a_scenario, play_seed
from hostile.write_judge import RIGHTS, judge_action, list_foreign_controllers
from wukong.actions import Action, Bind, Create, Delete, Evict, Note, Patch
from wukong.api.kinds import KINDS, NODES, PLACEMENT_POLICIES, PODS, PRIORITY_CLASSES, VIRTUAL_MACHINES, WUKONGS
from wukong.api.resources import Key
from wukong.app.components import COMPONENTS
from wukong.app.embedded import Settings, build_world, choose_components
from wukong.embedded.faults import TYPES
from wukong.embedded.scenario.play.steps import Drains
from wukong.ports import Document, PatchBody

TWICE = 2  # the seed that is played again
_one_worker = pytest.mark.xdist_group("an hour of sickness twice")
SEEDS = [1, pytest.param(TWICE, marks=_one_worker), 3, SEED]
play_once = cache(play_seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_an_hour_of_sickness_ends_nothing_and_writes_nothing_wrong(
    seed: int, record_property: Callable[[str, object], None]
) -> None:
    result = play_once(seed)
    assert (result.exits, result.wrong) == ([], [])
    assert len(result.faults) > len(TYPES) // 2
    assert result.accepted > ACTS // 10
    record_property(
        FIGURE,
        f"an hour of sickness, seed {seed}: {sum(result.faults.values())} faults of {len(result.faults)} types, "
        f"{result.accepted} hostile objects taken, {result.refused} refused",
    )


@pytest.mark.slow
@_one_worker
def test_the_same_seed_is_the_same_hour() -> None:
    assert play_seed(TWICE).digest == play_once(TWICE).digest


def test_every_component_is_there_and_every_kind_that_has_a_namespace_is_drawn() -> None:
    scenario = a_scenario()
    assert {component.name for component in choose_components(scenario)} == {
        component.name for component in COMPONENTS.values() if component.is_named or component.is_embedded_only
    }
    assert set(DRAWN) == {kind.group_kind for kind in KINDS if kind.resource.namespaced}


def test_every_controller_is_somebody_elses_or_has_a_list_of_what_it_may_write() -> None:
    scenario = a_scenario()
    world = build_world(Settings(1, choose_components(scenario)), Drains())
    names = {name for process in world.processes for name in process.dispatch.controllers}
    assert names == {*RIGHTS, *list_foreign_controllers()}


def a_patch(resource: Any, name: str, body: Document, *, namespace: str = "evil", subresource: str = "") -> Patch:
    return Patch(resource, Key(namespace, name), PatchBody("merge", body), subresource)


EVIL = Key("evil", "web")
A_MACHINE = {"metadata": {"ownerReferences": [{"kind": "Wukong", "name": "web"}]}, "spec": {}}
OF_ANOTHER = {"metadata": {"ownerReferences": [{"kind": "Wukong", "name": "db"}]}, "spec": {}}


USAGE = {"metadata": {"labels": {"usage.novasphere.dev/cpu": "10"}}}


@pytest.mark.parametrize(
    ("controller", "key", "action"),
    [
        ("vm", EVIL, a_patch(VIRTUAL_MACHINES, "web", A_MACHINE)),
        ("vm", EVIL, a_patch(WUKONGS, "web", {"status": {}}, subresource="status")),
        ("vm-priority", Key("", "wukong-100"), Delete(PRIORITY_CLASSES, Key("", "wukong-100"))),
        ("load", Key("", "s1"), a_patch(NODES, "s1", USAGE, namespace="")),
        ("policy-split", EVIL, Evict(EVIL)),
        ("wukong-scheduler", EVIL, Bind(Key("shop", "web"), "s1")),
        ("wukong-scheduler", EVIL, Note(PODS, EVIL, "Why", "x" * 1024)),
    ],
)
def test_the_judge_of_writes_lets_pass_what_is_ours_to_write(controller: str, key: Key, action: Action) -> None:
    judge_action(controller, key, action)


@pytest.mark.parametrize(
    ("controller", "key", "action"),
    [
        ("vm", EVIL, a_patch(VIRTUAL_MACHINES, "web", A_MACHINE, namespace="shop")),
        ("vm", EVIL, a_patch(VIRTUAL_MACHINES, "web", OF_ANOTHER)),
        ("vm", EVIL, a_patch(WUKONGS, "web", {"spec": {}})),
        ("vm", EVIL, Delete(PODS, EVIL)),
        ("vm-priority", Key("", "x"), Delete(PRIORITY_CLASSES, Key("", "system-node-critical"))),
        ("load", Key("", "s1"), a_patch(NODES, "s1", {"metadata": {"labels": {"app": "x"}}}, namespace="")),
        ("load", Key("", "s1"), a_patch(NODES, "s1", {"spec": {"unschedulable": True}}, namespace="")),
        ("policy", EVIL, a_patch(PLACEMENT_POLICIES, "web", {"spec": {}})),
        ("policy-split", EVIL, Evict(Key("shop", "web"))),
        ("wukong-scheduler", EVIL, Evict(EVIL)),
        ("wukong-scheduler", EVIL, Note(PODS, EVIL, "Why", "x" * 1025)),
        ("somebody", EVIL, Create(PODS, {"metadata": {"name": "web"}}, "evil")),
    ],
)
def test_the_judge_of_writes_refuses_what_is_not(controller: str, key: Key, action: Action) -> None:
    with pytest.raises(AssertionError):
        judge_action(controller, key, action)
