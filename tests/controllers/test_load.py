"""The load controller turns what a meter said into label patches, and nothing else."""

from __future__ import annotations

from builders import a_node, a_usage, measure
from wukong.actions import DONE, Patch
from wukong.api.kinds import NODE_USAGES, NODES
from wukong.api.resources import Key
from wukong.api.usage import NodeUsage
from wukong.app.components import COMPONENTS
from wukong.controllers.load.controller import Load
from wukong.state import State

KEY = Key("", "n1")
CPU = "usage.novasphere.dev/cpu"


def state_with(usage: NodeUsage | None, **labels: str) -> State:
    state = State()
    state.apply("ADDED", a_node("n1", labels=labels))
    if usage is not None:
        measure(state, usage)
    return state


def test_a_measured_node_gets_its_labels_in_one_patch() -> None:
    outcome = Load().reconcile(KEY, state_with(a_usage("n1", 100.0, cpu=42.0, memory=7.0)), now=100.0)
    (action,) = outcome.actions
    assert isinstance(action, Patch)
    assert action.patch.type == "merge"
    assert action.patch.body == {"metadata": {"labels": {CPU: "40", "usage.novasphere.dev/memory": "5"}}}
    assert outcome.requeue_after == 180.0


def test_a_node_that_is_gone_or_never_measured_is_left_alone() -> None:
    assert Load().reconcile(Key("", "n9"), state_with(None), now=0.0) == DONE
    assert Load().reconcile(KEY, state_with(None), now=0.0).actions == ()


def test_the_second_change_waits_and_comes_back_by_itself() -> None:
    load = Load()
    load.reconcile(KEY, state_with(a_usage("n1", 100.0, cpu=10.0)), now=100.0)
    soon = load.reconcile(KEY, state_with(a_usage("n1", 110.0, cpu=90.0), **{CPU: "10"}), now=110.0)
    assert soon.actions == ()
    assert soon.requeue_after == 20.0
    later = load.reconcile(KEY, state_with(a_usage("n1", 110.0, cpu=90.0), **{CPU: "10"}), now=130.0)
    assert len(later.actions) == 1


def test_stale_labels_go() -> None:
    outcome = Load().reconcile(KEY, state_with(a_usage("n1", 0.0, cpu=10.0), **{CPU: "10"}), now=500.0)
    (action,) = outcome.actions
    assert isinstance(action, Patch)
    assert action.patch.body == {"metadata": {"labels": {CPU: None}}}


def test_a_node_that_came_back_under_its_name_may_change_at_once() -> None:
    load = Load()
    load.reconcile(KEY, state_with(a_usage("n1", 100.0, cpu=10.0)), now=100.0)
    load.reconcile(KEY, State(), now=105.0)
    again = load.reconcile(KEY, state_with(a_usage("n1", 110.0, cpu=90.0), **{CPU: "10"}), now=110.0)
    assert len(again.actions) == 1


def test_a_fork_remembers_when_labels_changed_and_shares_nothing() -> None:
    load, fork = Load(), Load()
    load.reconcile(KEY, state_with(a_usage("n1", 100.0, cpu=10.0)), now=100.0)
    fork.copy_memory(load, State())
    fork.reconcile(KEY, State(), now=101.0)
    changed = state_with(a_usage("n1", 110.0, cpu=90.0), **{CPU: "10"})
    assert load.reconcile(KEY, changed, now=110.0).requeue_after == 20.0
    fork.copy_memory(load, State())
    assert fork.reconcile(KEY, changed, now=110.0).requeue_after == 20.0


def test_it_is_named_as_its_component_and_hears_of_nodes_and_of_their_usage() -> None:
    assert Load.name == COMPONENTS["load"].name == "load"
    assert [watch.resource for watch in Load().watches] == [NODES, NODE_USAGES]
