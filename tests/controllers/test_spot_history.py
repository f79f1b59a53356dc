"""What became of notices is written down in objects that outlive their nodes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from builders import a_node
from controllers.test_spot_evictions import DB, NOW, leaving, pod
from controllers.test_spot_moves import a_deployment, a_move, a_set
from controllers.test_spot_moves import pod as replica
from wukong.actions import Action, Create, Delete, Patch
from wukong.api.core import Node, Pod, PodCondition
from wukong.api.kinds import NODE_NOTICES, NODES, PODS
from wukong.api.meta import Object
from wukong.api.node_notices import NodeNotice
from wukong.api.resources import Key
from wukong.api.times import format_time
from wukong.controllers.spot.history import (
    FINISHED,
    GONE,
    LEAVING,
    PRUNING,
    RECOVERING,
    RECOVERY_SECONDS,
    SUPERSEDED,
    WITHDRAWN,
    WRITE_SECONDS,
    OpenNotices,
    SpotHistory,
    node_of_notice,
    node_with_record,
    nodes_of_pod,
)
from wukong.controllers.spot.marks import COST, LOWEST_COST, MOVING
from wukong.controllers.spot.notices import Course
from wukong.controllers.spot.shortages import WorkloadName, count_missing
from wukong.controllers.spot.ways import way_of
from wukong.embedded.store.patch.merge_patch import apply_merge_patch
from wukong.state import State

KEY = Key("", "s1")
TITLE = f"s1.{NOW:.0f}"


class Cluster:
    """A mirror, on which what the controller wants is done at once."""

    def __init__(self, *objects: Object, kept: int = 100) -> None:
        self.state, self.history, self.at = State(), SpotHistory(kept), NOW
        self.see(*objects)

    def see(self, *objects: Object) -> None:
        for subject in objects:
            self.state.apply("MODIFIED", subject)

    def remove(self, *objects: Object) -> None:
        for subject in objects:
            self.state.apply("DELETED", subject)

    def look(self, after: float = 0.0, key: Key = KEY, most: int = 5) -> list[Action]:
        """All that it wants until it is content."""
        self.at += after
        actions: list[Action] = []
        for _ in range(most):
            outcome = self.history.reconcile(key, self.state, self.at)
            for action in outcome.actions:
                self._perform(action)
            actions += outcome.actions
            if not outcome.actions:
                break
        return actions

    def _perform(self, action: Action) -> None:
        if isinstance(action, Create):
            self.see(msgspec.convert(action.body, NodeNotice))
        elif isinstance(action, Patch):
            before = msgspec.to_builtins(self.notice(action.key.name))
            self.see(msgspec.convert(apply_merge_patch(before, action.patch.body), NodeNotice))

    def notice(self, title: str = TITLE) -> NodeNotice:
        notice = self.state.get(NodeNotice, Key("", title))
        assert notice is not None
        return notice

    def ways(self, title: str = TITLE) -> dict[str, str]:
        return {entry.name: entry.way for entry in self.notice(title).status.pods}


def going(subject: Pod, **annotations: str) -> Pod:
    copy = msgspec.convert(msgspec.to_builtins(subject), Pod)
    copy.metadata.deletion_timestamp = format_time(NOW + 30)
    copy.metadata.annotations = {MOVING: "s1", **annotations}
    return copy


def evicted(subject: Pod) -> Pod:
    copy = going(subject)
    copy.status.conditions = [PodCondition("DisruptionTarget", "True", "EvictionByEvictionAPI")]
    return copy


def withdrawn() -> Node:
    node = leaving()
    node.metadata.annotations = {}
    return node


def test_a_notice_is_written_down_with_the_pods_that_have_to_leave() -> None:
    cluster = Cluster(leaving(), DB, pod("db-0"), pod("db-1"), pod("agent", kind="DaemonSet"))
    cluster.look()
    spec, status = cluster.notice().spec, cluster.notice().status
    assert (spec.node, spec.course, spec.deadline) == ("s1", "Reclaim", format_time(NOW + 120))
    assert (status.phase, status.total) == (LEAVING, 2)
    assert [(entry.name, entry.workload, entry.way) for entry in status.pods] == [
        ("db-0", "StatefulSet/db", ""),
        ("db-1", "StatefulSet/db", ""),
    ]


def test_a_pod_that_goes_before_anything_is_written_is_listed_all_the_same() -> None:
    cluster = Cluster(leaving(), DB, pod("db-0"))
    cluster.look(most=1)
    cluster.remove(pod("db-0"))
    cluster.look()
    assert cluster.ways() == {"db-0": "left"}


def test_the_way_of_each_pod_is_that_of_the_moment_when_it_went() -> None:
    cluster = Cluster(leaving(), DB, *(pod(f"db-{number}") for number in range(4)))
    cluster.look()
    cluster.see(evicted(pod("db-0")), going(pod("db-1"), **{COST: LOWEST_COST}), going(pod("db-2")))
    cluster.look(after=2)
    cluster.look(after=WRITE_SECONDS)
    assert cluster.ways() == {"db-0": "evicted", "db-1": "replaced", "db-2": "deleted", "db-3": ""}
    assert cluster.notice().status.pods[0].at == format_time(NOW + 2)
    assert cluster.notice().status.emptied == ""


def test_who_goes_with_the_machine_is_lost_and_stays_so() -> None:
    cluster = Cluster(leaving(), a_node("d1"), DB, pod("db-0"), pod("db-1"), pod("db-2", "d1"))
    cluster.look()
    cluster.see(evicted(pod("db-0")))
    cluster.look(after=WRITE_SECONDS)
    cluster.remove(leaving())
    cluster.look(after=60)
    status = cluster.notice().status
    assert (status.phase, status.outcome, status.lost, status.emptied) == (RECOVERING, GONE, 1, "")
    assert cluster.ways() == {"db-0": "evicted", "db-1": "lost"}


def test_a_withdrawn_notice_is_finished_and_its_pods_stayed() -> None:
    cluster = Cluster(leaving(), a_node("d1"), DB, pod("db-0"), pod("db-1", "d1"), pod("db-2", "d1"))
    cluster.look()
    cluster.see(withdrawn())
    cluster.look(after=20)
    assert (cluster.notice().status.phase, cluster.notice().status.outcome) == (FINISHED, WITHDRAWN)
    assert cluster.ways() == {"db-0": "stayed"}
    assert cluster.look() == []


def test_another_notice_of_the_node_takes_over_the_pods_that_are_still_there() -> None:
    cluster = Cluster(leaving(course=Course.RECOMMEND), DB, pod("db-0"), pod("db-1"))
    cluster.look()
    cluster.see(evicted(pod("db-0")))
    graver = leaving()
    graver.metadata.annotations = {
        name: text.replace(format_time(NOW), format_time(NOW + 60))
        for name, text in graver.metadata.annotations.items()
    }
    cluster.see(graver)
    cluster.look(after=60)
    cluster.look(after=WRITE_SECONDS)
    assert (cluster.notice().status.phase, cluster.notice().status.outcome) == (FINISHED, SUPERSEDED)
    assert cluster.ways() == {"db-0": "evicted"}
    assert cluster.ways(f"s1.{NOW + 60:.0f}") == {"db-1": ""}


def test_a_new_deadline_is_written() -> None:
    cluster = Cluster(leaving())
    cluster.look()
    cluster.see(leaving(seconds=30))
    cluster.look()
    assert cluster.notice().spec.deadline == format_time(NOW + 30)


def test_the_seconds_are_counted_for_which_a_workload_has_too_few_pods() -> None:
    cluster = Cluster(leaving(), a_node("d1"), DB, pod("db-0"), pod("db-1", "d1"), pod("db-2", "d1"))
    cluster.look()
    cluster.see(evicted(pod("db-0")))
    cluster.look(after=1)
    cluster.remove(pod("db-0"))
    back = pod("db-0", "d1")
    back.metadata.uid = "another"
    cluster.see(back)
    cluster.look(after=20)
    status = cluster.notice().status
    assert [(it.workload, it.seconds) for it in status.shortages] == [("StatefulSet/db", 20)]
    assert (status.short_seconds, status.emptied) == (20, format_time(NOW + 1))
    cluster.remove(leaving())
    cluster.look(after=60)
    assert (cluster.notice().status.phase, cluster.notice().status.short_seconds) == (FINISHED, 20)


def test_a_new_leader_goes_on_from_what_is_written() -> None:
    cluster = Cluster(leaving(), a_node("d1"), DB, pod("db-0"), pod("db-1", "d1"), pod("db-2", "d1"))
    cluster.look()
    cluster.see(evicted(pod("db-0")))
    cluster.look(after=WRITE_SECONDS)
    cluster.look(after=10)
    assert cluster.notice().status.short_seconds == 10
    cluster.history = SpotHistory(100)
    cluster.look(after=3)  # these are lost with the leader before
    cluster.look(after=7)
    assert cluster.notice().status.short_seconds == 17
    assert cluster.ways() == {"db-0": "evicted"}


def test_of_two_notices_only_one_has_a_missing_pod() -> None:
    second = leaving("s2")
    cluster = Cluster(leaving(), second, a_node("d1"), DB, pod("db-0"), pod("db-1", "s2"), pod("db-2", "d1"))
    other = Key("", "s2")
    for key in (KEY, other):
        cluster.look(key=key)
    cluster.see(evicted(pod("db-1", "s2")))
    for seconds in (WRITE_SECONDS, 30):
        for index, key in enumerate((KEY, other)):
            cluster.look(after=seconds if not index else 0, key=key)
    assert cluster.notice().status.short_seconds == 0
    assert cluster.notice(f"s2.{NOW:.0f}").status.short_seconds == 30


def test_who_is_short_for_too_long_is_not_waited_for() -> None:
    cluster = Cluster(leaving(), DB, pod("db-0"))
    cluster.look()
    cluster.remove(leaving(), pod("db-0"))
    cluster.look(after=1)
    outcome = cluster.history.reconcile(KEY, cluster.state, cluster.at)
    assert (cluster.notice().status.phase, outcome.requeue_after) == (RECOVERING, RECOVERY_SECONDS)
    cluster.look(after=RECOVERY_SECONDS)
    assert cluster.notice().status.phase == FINISHED


def test_the_oldest_that_are_finished_are_removed() -> None:
    def finished(number: int, phase: str = FINISHED) -> NodeNotice:
        meta = {"name": f"n.{number}", "uid": f"n.{number}"}
        return msgspec.convert(
            {"metadata": meta, "spec": {"node": "n", "seen": format_time(NOW + number)}, "status": {"phase": phase}},
            NodeNotice,
        )

    cluster = Cluster(*map(finished, range(4)), finished(-1, LEAVING), kept=2)
    deleted = [action.key.name for action in cluster.look(key=PRUNING, most=1) if isinstance(action, Delete)]
    assert deleted == ["n.0", "n.1"]


@pytest.mark.parametrize(
    ("ready", "move", "missing"), [(2, True, 0), (2, False, 1), (3, False, 0)], ids=["surged", "scaled", "whole"]
)
def test_a_surge_of_ours_is_no_shortage(ready: int, move: bool, missing: int) -> None:
    pods = [replica(f"p{number}", "d1", is_ready=number < ready) for number in range(3)]
    objects = [a_node("d1"), a_deployment(3), a_set(3), *pods, *([a_move()] if move else [])]
    assert count_missing(WorkloadName("default", "Deployment/web"), Cluster(*objects).state) == missing


def test_a_pod_on_a_machine_that_is_gone_does_not_count() -> None:
    state = Cluster(a_node("d1"), DB, pod("db-0", "d1"), pod("db-1", "gone"), pod("db-2", "d1")).state
    assert count_missing(WorkloadName("default", "StatefulSet/db"), state) == 1
    assert count_missing(WorkloadName("default", "Job/x"), state) == 0
    assert count_missing(WorkloadName("default", "Deployment/gone"), state) == 0


@pytest.mark.parametrize(("reason", "way"), [("DeletionByPodGC", "lost"), ("DeletionByTaintManager", "lost")])
def test_a_pod_that_kubernetes_gave_up_is_lost(reason: str, way: str) -> None:
    given_up = going(pod("db-0"))
    given_up.status.conditions = [PodCondition("DisruptionTarget", "True", reason)]
    assert way_of(given_up) == way


def test_changes_are_about_the_nodes_that_have_notices_and_no_others() -> None:
    cluster = Cluster(leaving(), a_node("d1"), DB, pod("db-0"), pod("db-1", "d1"))
    cluster.look()

    def keys_of(read: Any, kind: Any, subject: Object) -> list[str]:
        (change,) = cluster.state.apply("MODIFIED", subject)
        assert change.group_kind == kind.group_kind
        return [key.name for key in read(change, cluster.state)]

    assert keys_of(nodes_of_pod, PODS, pod("db-0", is_ready=False)) == ["s1"]
    assert keys_of(nodes_of_pod, PODS, pod("db-1", "d1", is_ready=False)) == ["s1"]  # of the same workload
    assert keys_of(nodes_of_pod, PODS, pod("x", "d1", owner="x")) == []
    assert keys_of(node_with_record, NODES, a_node("d1", cpu="3")) == []
    assert keys_of(node_with_record, NODES, withdrawn()) == ["s1"]
    assert keys_of(node_of_notice, NODE_NOTICES, cluster.notice()) == ["s1"]
    cluster.look()
    assert keys_of(node_of_notice, NODE_NOTICES, cluster.notice()) == ["s1", ""]  # and the key that prunes
    assert cluster.state.index_of(OpenNotices).by_node == {}
    assert cluster.state.index_of(OpenNotices).by_workload == {}


def test_a_record_that_somebody_wrote_badly_is_written_down_without_times() -> None:
    node = leaving()
    node.metadata.annotations = {
        name: text.replace(format_time(NOW), "?" * 99).replace(format_time(NOW + 120), "!" * 99)
        for name, text in node.metadata.annotations.items()
    }
    cluster = Cluster(node)
    cluster.look()
    assert (cluster.notice("s1.0").spec.seen, cluster.notice("s1.0").spec.deadline) == ("", "")
