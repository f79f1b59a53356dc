"""Preemption by the scheduler controller: who is nominated where, who is deleted and told so, who waits for whom."""

from __future__ import annotations

import pytest

from builders import a_node, a_pod
from scheduler_world import OURS, World, replace
from wukong.actions import Delete, Note, Patch
from wukong.api.core import PodCondition
from wukong.api.resources import Key
from wukong.controllers.scheduler.controller import Scheduler
from wukong.controllers.scheduler.queueing_hints import may_help
from wukong.engine import FIRST_BY_NAME, RandomTies, Ties
from wukong.state import Change, State

WAITING = (
    "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
    "preemption: not eligible due to a terminating pod on the nominated node."
)


def full(*, lingers: bool, cpu: str = "1") -> World:
    world = World(lingers=lingers)
    world.put(a_node("node-a", cpu=cpu), a_pod("victim", cpu=cpu, node="node-a", priority=1))
    return world.settle()


def test_the_victim_is_marked_and_deleted_and_both_are_told() -> None:
    world = full(lingers=True)
    world.put(a_pod("boss", cpu="1", priority=9))
    world.settle()
    boss, victim = world.pod("boss"), world.pod("victim")
    assert [type(action) for action in world.done] == [Note, Patch, Patch, Delete, Note]
    assert boss.status.nominated_node_name == "node-a"
    assert not boss.spec.node_name
    (condition,) = victim.status.conditions
    assert (condition.type, condition.status, condition.reason) == ("DisruptionTarget", "True", "PreemptionByScheduler")
    assert condition.message == f"{OURS}: preempting to accommodate a higher priority pod"
    assert victim.is_terminating
    (note,) = world.notes("Preempted")
    assert (note.key.name, note.is_warning) == ("victim", False)
    assert note.text == f"Preempted by pod {boss.metadata.uid} on node node-a"


def test_the_preemptor_gets_its_node_when_the_victim_is_gone() -> None:
    world = full(lingers=True)
    world.put(a_pod("boss", cpu="1", priority=9))
    assert world.settle().binds() == []
    world.end("Pod", "victim", "default")
    assert world.settle().binds() == [("boss", "node-a")]


def test_while_its_victim_leaves_a_preemptor_drives_out_nobody_else() -> None:
    world = full(lingers=True)
    world.put(a_pod("boss", cpu="1", priority=9))
    world.settle(301)  # tried again
    assert world.message("boss") == WAITING
    assert world.pod("boss").status.nominated_node_name == "node-a"
    assert len([action for action in world.done if isinstance(action, Delete)]) == 1


@pytest.mark.parametrize(("leaving", "waits"), [(8, True), (9, False), (10, False)])
def test_a_nominated_pod_waits_only_for_victims_of_a_lower_priority(leaving: int, waits: bool) -> None:
    """kube-scheduler's PodEligibleToPreemptOthers: a pod as high as this one was not driven out for it."""
    world = World(lingers=True)
    world.put(a_node("node-a", cpu="2"), a_pod("victim", cpu="1", node="node-a", priority=1))
    preempted = a_pod("preempted", cpu="1", node="node-a", priority=leaving, terminating=True)
    disruption = PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")
    world.put(replace(preempted, status=replace(preempted.status, conditions=[disruption])))
    boss = a_pod("boss", cpu="1", priority=9)
    world.put(replace(boss, status=replace(boss.status, nominated_node_name="node-a")))
    world.settle()
    assert world.pod("victim").is_terminating is not waits
    assert world.pod("boss").status.nominated_node_name == "node-a"


def test_a_lower_pod_does_not_take_the_room_of_a_nominated_one() -> None:
    world = full(lingers=True)
    world.put(a_pod("boss", cpu="1", priority=9))
    world.settle()
    world.put(a_pod("sneaky", cpu="1", priority=8))
    world.settle()
    world.end("Pod", "victim", "default")
    assert world.settle().binds() == [("boss", "node-a")]
    assert not world.node_of("sneaky")


def test_room_is_kept_even_before_the_nomination_shows() -> None:
    world = full(lingers=False)
    world.put(a_node("node-a", cpu="1"), a_pod("boss", cpu="1", priority=9))
    (item,) = world.dispatch.queue.take_due(world.now)
    world.dispatch.reconcile(item, world.now)  # decided; nothing of it is written yet
    world.end("Pod", "victim", "default")
    world.put(a_pod("sneaky", cpu="1", priority=8))
    (second_item,) = world.dispatch.queue.take_due(world.now)
    note = world.dispatch.reconcile(second_item, world.now).actions[0]
    assert isinstance(note, Note)
    assert (note.key.name, note.reason) == ("sneaky", "FailedScheduling")
    world.dispatch.queue.finish(item)
    assert world.settle(1).binds() == [("boss", "node-a")]


def test_a_higher_pod_may_take_the_room_of_a_nominated_one_which_then_looks_elsewhere() -> None:
    world = full(lingers=True)
    world.put(a_pod("boss", cpu="1", priority=9))
    world.settle()
    world.put(a_pod("chief", cpu="1", priority=10))
    world.settle()
    assert world.pod("chief").status.nominated_node_name == "node-a"
    assert world.pod("boss").status.nominated_node_name == ""
    world.end("Pod", "victim", "default")
    assert world.settle().binds() == [("chief", "node-a")]


@pytest.mark.parametrize(("priority", "helps"), [(0, True), (10, True), (11, False), (100, False)])
def test_a_nomination_that_is_lost_helps_only_pods_of_the_same_priority_or_lower(priority: int, helps: bool) -> None:
    nominated = a_pod("nominated", priority=10)
    nominated = replace(nominated, status=replace(nominated.status, nominated_node_name="node-a"))
    change = Change("MODIFIED", "Pod", Key("default", "nominated"), nominated, a_pod("nominated", priority=10))
    waiting = a_pod("waiting", priority=priority)
    assert may_help(waiting, frozenset({"NodeResourcesFit"}), change, State()) is helps
    bound = change._replace(old=a_pod("nominated", priority=10, node="node-a"), new=None)
    assert may_help(waiting, frozenset({"NodeResourcesFit"}), bound, State())


def nominate(ties: Ties, *, later: str = "") -> str:
    """Preempt on one of three full nodes that are alike, but that the pod on `later` started later."""
    world = World(Scheduler([OURS], ties=ties), lingers=True)
    for name in ("node-a", "node-b", "node-c"):
        victim = a_pod(f"on-{name}", cpu="1", node=name, priority=1)
        started = "2026-01-01T00:00:09Z" if name == later else "2026-01-01T00:00:01Z"
        world.put(a_node(name, cpu="1"), replace(victim, status=replace(victim.status, start_time=started)))
    world.put(a_pod("boss", cpu="1", priority=9))
    return world.settle().pod("boss").status.nominated_node_name


def test_of_equal_nodes_to_preempt_on_chance_chooses_one() -> None:
    """kube-scheduler takes the first of a Go map."""
    assert nominate(FIRST_BY_NAME) == "node-a"
    drawn = [nominate(RandomTies(draw)) for draw in (lambda size: size // 2, lambda size: size - 1)]
    assert drawn == ["node-b", "node-c"]
    assert nominate(RandomTies(lambda size: 0), later="node-c") == "node-c"


def test_a_nomination_that_leads_nowhere_is_taken_back() -> None:
    world = full(lingers=True)
    world.put(a_pod("boss", cpu="1", priority=9))
    world.settle()
    world.put(a_node("node-a", cpu="1", taints=["k=v:NoSchedule"]))
    world.settle(301)
    assert world.pod("boss").status.nominated_node_name == ""
    assert world.message("boss").startswith("0/1 nodes are available: 1 node(s) had untolerated taint")


def test_one_that_never_preempts_waits() -> None:
    world = full(lingers=True)
    pod = a_pod("boss", cpu="1", priority=9)
    world.put(replace(pod, spec=replace(pod.spec, preemption_policy="Never")))
    world.settle()
    assert world.message("boss").endswith("preemption: not eligible due to preemptionPolicy=Never.")
    assert not world.pod("victim").is_terminating


def test_a_deletion_that_fails_is_tried_again() -> None:
    world = full(lingers=False)
    world.fails = [Delete]
    world.put(a_pod("boss", cpu="1", priority=9))
    assert world.settle().binds() == []
    assert world.settle(30).binds() == [("boss", "node-a")]
