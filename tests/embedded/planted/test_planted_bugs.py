"""Bugs planted on purpose: each is found by checkers, or because the cluster does not come to rest, in a few seeds.

Every test names the seed that shows its bug, and shows that the product itself passes all seeds up to that one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import pytest

from embedded.planted.hunting import MACHINES, SCENARIO, SETS, find_failing_seeds, hunt, plant
from wukong.actions import DONE, Action, Create
from wukong.api.kinds import VIRTUAL_MACHINES
from wukong.api.meta import Object
from wukong.api.resources import Resource
from wukong.api.vm import Wukong, WukongStatus
from wukong.controllers.vm import controller as vm_controller
from wukong.controllers.vm import status as vm_status
from wukong.controllers.vm.vm_writes import VmWriter
from wukong.embedded.actors.controller_revisions import revision_of
from wukong.embedded.actors.daemon_set.node_review import NodeReview
from wukong.embedded.actors.daemon_set.rolling_update import RollingUpdate
from wukong.embedded.actors.daemon_set.sync import DaemonSetSync
from wukong.embedded.actors.kubevirt import instances
from wukong.embedded.actors.pod_garbage_collector.controller import PodGarbageCollector
from wukong.embedded.actors.replica_set import controller as replica_set
from wukong.embedded.actors.stateful_set.ordinal_index import OrdinalMark
from wukong.embedded.actors.stateful_set.sync import StatefulSetSync
from wukong.embedded.faults.writes import FaultyTransport
from wukong.embedded.store import binding_and_scale, eviction, garbage_collection
from wukong.embedded.world.objects import Pod
from wukong.embedded.world.transport import RetryingTransport
from wukong.errors import Conflict, OutcomeUnknown
from wukong.ports import Document
from wukong.runtime import delivery
from wukong.runtime.dispatch import Dispatch, Item
from wukong.runtime.effect_check import has_happened
from wukong.state import Change, State


class Bug(NamedTuple):
    where: object
    name: str
    replacement: Callable[..., Any]
    faults: dict[str, float]  # at these rates
    expected: str  # part of a reason
    scenario: str = SCENARIO


def ignore_budget(*_: object) -> None:
    """Evictions are not charged, so none is refused."""


def ignore_own_writes(self: Dispatch, item: Item, written: object, now: float) -> None:
    self.queue.finish(item)


def assume_nothing(self: Dispatch, action: object, now: float) -> None:
    """What was bound a moment ago is not counted until the watch shows it."""


def forget_binding(self: Dispatch, performed: object) -> None:
    """A pod that was bound counts for a minute only, however late the watch is."""


_perform = FaultyTransport.perform


def take_conflict_for_success(self: FaultyTransport, action: Action) -> object:
    try:
        return _perform(self, action)
    except Conflict:
        return None


_perform_once = RetryingTransport.perform


def repeat_create_blindly(self: RetryingTransport, action: Action) -> object:
    if not isinstance(action, Create):
        return _perform_once(self, action)
    while True:
        try:
            return self._do(action)
        except OutcomeUnknown:
            continue


_manage = replica_set._manage


def keep_surplus(*arguments: Any) -> list[Action]:
    return [action for action in _manage(*arguments) if isinstance(action, Create)]


_plan_foreground_deletion = garbage_collection._plan_foreground_deletion


def keep_finalizer(*arguments: Any) -> Iterator[Action]:
    return (action for action in _plan_foreground_deletion(*arguments) if type(action).__name__ != "Patch")


def relist_without_deletions(self: State, kind: str, items: Any) -> list[Change]:
    listed: list[Object] = list(items)
    return [change for item in listed for change in self.apply("MODIFIED", item, kind)]


def take_any_deletion_for_the_last(action: Any, document: Any) -> bool:
    """A pod that is terminating is taken to have been deleted without grace."""
    is_terminating = document is not None and bool(document.get("metadata", {}).get("deletionTimestamp"))
    return is_terminating if type(action).__name__ == "Delete" and is_terminating else has_happened(action, document)


_start_sync = StatefulSetSync.__init__


def forget_order(self: StatefulSetSync, *arguments: Any) -> None:
    """Pods are created and scaled away all at once, whatever the podManagementPolicy."""
    _start_sync(self, *arguments)
    self.is_ordered = False


def update_from_the_bottom(self: StatefulSetSync) -> list[Action]:
    pods = (self.ordered.get(ordinal) for ordinal in self.marks.names(OrdinalMark.HOLDING))
    outdated = (pod for pod in pods if pod is not None and revision_of(pod) != self.history.update)
    return next((self._delete_pod(pod) for pod in outdated if not pod.is_terminating), [])


def scale_down_from_the_bottom(self: StatefulSetSync, pod: Pod) -> list[Action]:
    lowest = self.ordered.get(self.marks.names(OrdinalMark.CONDEMNED)[0])
    return [] if lowest is None or lowest.is_terminating else self._delete_pod(lowest)


_build_set_status = StatefulSetSync.build_status


def never_lower_ready_replicas(self: StatefulSetSync) -> Document:
    status = _build_set_status(self)
    return {**status, "readyReplicas": max(status.get("readyReplicas", 0), self.set.status.ready_replicas)}


def overlook_unbound_daemons(self: NodeReview) -> bool:
    """A pod that is not bound yet does not count as its node's daemon."""
    return self.should_run and not any(pod.spec.node_name for pod in self.on_node)


def update_all_nodes(self: RollingUpdate, nodes: Sequence[str], count: int) -> Sequence[str]:
    return nodes


def drop_old_daemon_at_once(self: NodeReview) -> list[Pod]:
    """With surge, the old pod goes as soon as there is a new one, which is not ready yet."""
    new = [pod for pod in self.running if revision_of(pod) == self.revision]
    old = [pod for pod in self.running if revision_of(pod) != self.revision]
    return [*new[1:], *(old if new else old[1:])]


_build_daemon_status = DaemonSetSync.build_status


def never_lower_number_ready(self: DaemonSetSync) -> Document:
    status, before = _build_daemon_status(self), self.set.document.get("status") or {}
    return {**status, "numberReady": max(status["numberReady"], before.get("numberReady", 0))}


_release_instance = instances._release


def release_instance_with_pods(*arguments: Any, has_pods: bool) -> Document:
    """An instance that has ended goes though its pod is still there."""
    return _release_instance(*arguments, has_pods=False)


def keep_surplus_machines(*_: object) -> None:
    """Machines that a Wukong does not ask for any more stay."""


_create_machine = VmWriter._create


def create_machines_once(self: VmWriter, wukong: Wukong, name: str) -> list[Action]:
    """A machine that was there before is not made again."""
    return [] if any(machine.name == name for machine in wukong.status.vms) else _create_machine(self, wukong, name)


_build_wukong_status = vm_status.build_status


def tell_the_time(wukong: Wukong, reports: Any, findings: Any, now: float) -> WukongStatus:
    """A status that is another one at every look."""
    status = _build_wukong_status(wukong, reports, findings, now)
    return msgspec.structs.replace(status, reason=f"LookedAt{now}")


_plan_dependent = garbage_collection._plan_dependent


def keep_machines_of_the_gone(database: Any, resource: Resource, *arguments: Any) -> Iterator[Action]:
    return iter(()) if resource == VIRTUAL_MACHINES else _plan_dependent(database, resource, *arguments)


BUGS = {
    "a budget ignored by evictions": Bug(eviction, "_charge", ignore_budget, {}, "evicted although budget"),
    "a pod bound twice": Bug(
        binding_and_scale, "_binding_refusal_of", lambda pod: "", {"two-leaders": 4, "stale": 0.1}, "moved from node"
    ),
    "a stale read trusted": Bug(
        Dispatch, "_rest", ignore_own_writes, {"stale": 0.05}, "decided again before its own write"
    ),
    "a lost conflict": Bug(FaultyTransport, "perform", take_conflict_for_success, {"conflict": 0.1}, ""),
    "a pod leaked on a dead node": Bug(PodGarbageCollector, "reconcile", lambda *_: DONE, {}, "which is gone"),
    "a finalizer never removed": Bug(
        garbage_collection, "_plan_foreground_deletion", keep_finalizer, {}, "waits for its finalizer"
    ),
    "two leaders who both create": Bug(
        replica_set, "_manage", keep_surplus, {"two-leaders": 1, "stale": 0.03}, "pods and should have"
    ),
    "anti-affinity of an assumed pod ignored": Bug(
        Dispatch, "_assume", assume_nothing, {"stale": 0.05}, "InterPodAffinity says"
    ),
    "a binding forgotten before it shows": Bug(
        Dispatch,
        "confirm",
        forget_binding,
        {"clock-jump": 12, "stale": 0.1, "reordered": 0.3},
        "InterPodAffinity says",
    ),
    "a landed create repeated": Bug(
        RetryingTransport, "perform", repeat_create_blindly, {"lost-answer": 0.1}, "there were enough"
    ),
    "a list that shows no deletions": Bug(
        State, "replace", relist_without_deletions, {"missed": 0.02, "gone": 0.02}, "at rest"
    ),
    "a forced deletion taken for done": Bug(
        delivery, "has_happened", take_any_deletion_for_the_last, {"lost-request": 0.2}, "still leaving node"
    ),
    "an ordinal that does not wait for those below": Bug(
        StatefulSetSync, "__init__", forget_order, {}, "it was not its turn", SETS
    ),
    "a StatefulSet updated from the bottom": Bug(
        StatefulSetSync, "_roll", update_from_the_bottom, {}, "deleted by statefulset without a reason", SETS
    ),
    "a StatefulSet scaled down from the bottom": Bug(
        StatefulSetSync, "_scale_down", scale_down_from_the_bottom, {}, "deleted by statefulset without a reason", SETS
    ),
    "ready replicas that only grow": Bug(
        StatefulSetSync, "build_status", never_lower_ready_replicas, {}, "its status.readyReplicas is", SETS
    ),
    "a second daemon where the first is not bound yet": Bug(
        NodeReview, "lacks_pod", overlook_unbound_daemons, {"stale": 0.05}, "although there were enough", SETS
    ),
    "an update beyond maxUnavailable": Bug(
        RollingUpdate, "_take_first", update_all_nodes, {}, "deleted by daemonset without a reason", SETS
    ),
    "an old daemon that goes before the new one is ready": Bug(
        NodeReview,
        "_find_surplus_of_surge",
        drop_old_daemon_at_once,
        {},
        "deleted by daemonset without a reason",
        SETS,
    ),
    "ready daemons whose number only grows": Bug(
        DaemonSetSync, "build_status", never_lower_number_ready, {}, "its status.numberReady is", SETS
    ),
    "an instance that goes before its pod": Bug(
        instances, "_release", release_instance_with_pods, {}, "its guest is there twice", MACHINES
    ),
    "a machine that nobody asks for": Bug(
        VmWriter, "_delete_surplus", keep_surplus_machines, {}, "is left behind: nobody asks for it", MACHINES
    ),
    "a machine that is not made again": Bug(VmWriter, "_create", create_machines_once, {}, "is lost", MACHINES),
    "a status that is never the same": Bug(
        vm_controller,
        "build_status",
        tell_the_time,
        {},
        "by vm, which is never content",
        MACHINES.replace("until: 2h", "until: 20m"),  # it never comes to rest: all of that is played
    ),
    "a machine that outlives its Wukong": Bug(
        garbage_collection, "_plan_dependent", keep_machines_of_the_gone, {}, "its Wukong is gone", MACHINES
    ),
}
SLOW = {"a binding forgotten before it shows"}  # many seeds pass before one finds it
QUICK = next(name for name in BUGS if name not in SLOW)  # one that every quick run hunts
CASES = [name if name == QUICK else pytest.param(name, marks=pytest.mark.slow) for name in BUGS]


@pytest.mark.parametrize("name", CASES)
def test_a_planted_bug_is_found_and_the_product_passes_the_same_seeds(
    name: str, record_property: Callable[[str, object], None]
) -> None:
    bug = BUGS[name]
    with plant(bug.where, bug.name, bug.replacement):
        seed, reasons = hunt(bug.faults, bug.scenario)
    record_property("figure", f"{name}: found with seed {seed}: {reasons[0]}")
    assert any(bug.expected in reason for reason in reasons), reasons
    assert find_failing_seeds(bug.faults, seed, bug.scenario) == {}
