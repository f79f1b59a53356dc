"""Deletions by a controller without the right to, or without a reason, are found; so are histories that go back."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from embedded.checkers.checked_cluster import CheckedCluster, PodController
from wukong.actions import DONE, Delete, Evict, Outcome
from wukong.api.core import Pod
from wukong.api.kinds import JOBS, KINDS, PODS, REPLICA_SETS
from wukong.api.resources import Key, key_of
from wukong.embedded.checkers import pod_creations, pod_deletions
from wukong.embedded.world.timing import Timing
from wukong.state import State
from wukong.state.controller import PodRight, Watch

DELETION_RIGHTS = list(pod_deletions.RULES)


def delete(key: Key, pod: Pod, now: float) -> Outcome:
    return DONE if pod.is_terminating else Outcome((Delete(PODS, key, uid=pod.metadata.uid),))


def evict(key: Key, pod: Pod, now: float) -> Outcome:
    return DONE if pod.is_terminating else Outcome((Evict(key, pod.metadata.uid),))


def delete_once() -> PodController:
    """Deletes the first pod that it sees, by any right of a workload's controller."""
    deleted: list[Key] = []

    def act(key: Key, pod: Pod, now: float) -> Outcome:
        if deleted:
            return DONE
        deleted.append(key)
        return delete(key, pod, now)

    rights = (PodRight.DELETE_SURPLUS_REPLICAS, PodRight.DELETE_ORDINALS, PodRight.DELETE_DAEMON_PODS)
    return PodController("mine", act, *rights)


def test_every_right_has_one_rule() -> None:
    assert not pod_creations.RULES.keys() & pod_deletions.RULES.keys()
    assert pod_creations.RULES.keys() | pod_deletions.RULES.keys() == set(PodRight)


@pytest.mark.parametrize("right", DELETION_RIGHTS, ids=lambda right: right.name)
def test_who_deletes_a_pod_must_have_a_reason(right: PodRight) -> None:
    cluster = CheckedCluster(PodController("mine", delete, right))
    cluster.node("n0")
    cluster.pod("one", nodeName="n0")
    (finding,) = cluster.findings()
    assert finding.startswith("pod default/one: deleted by mine without a reason")


@pytest.mark.parametrize("rights", [(), tuple(pod_creations.RULES)], ids=["none", "only to create"])
def test_who_deletes_a_pod_must_have_the_right_to(rights: tuple[PodRight, ...]) -> None:
    cluster = CheckedCluster(PodController("mine", delete, *rights))
    cluster.node("n0")
    cluster.pod("one", nodeName="n0")
    (finding,) = cluster.findings()
    assert finding.startswith("pod default/one: deleted by mine, whose business it is not")


@pytest.mark.parametrize("name", ["deployment", "replicaset", "podgc", "garbage", "drain", "scheduler"])
def test_the_name_of_a_controller_is_no_right(name: str) -> None:
    cluster = CheckedCluster(PodController(name, delete))
    cluster.node("n0")
    cluster.pod("one", nodeName="n0")
    (finding,) = cluster.findings()
    assert finding.startswith(f"pod default/one: deleted by {name}, whose business it is not")


def test_who_has_a_right_may_use_it_whatever_its_name() -> None:
    cluster = CheckedCluster(PodController("mine", evict, PodRight.EVICT))
    cluster.node("n0")
    cluster.pod("one", nodeName="n0")
    assert cluster.findings() == []


@pytest.mark.parametrize(("replicas", "is_found"), [(1, False), (2, True), (0, True)])
def test_who_evicts_one_at_a_time_finds_its_owner_whole(replicas: int, is_found: bool) -> None:
    cluster = CheckedCluster(PodController("replicaset", evict, PodRight.EVICT_FROM_WHOLE))
    cluster.node("n0")
    pod_spec = {"containers": [{"name": "main", "image": "a"}]}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod_spec}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    body = {"metadata": {"name": "web"}, "spec": spec}
    owner = cluster.server.create(REPLICA_SETS, body, "default")
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": owner["metadata"]["uid"]}
    meta = {"name": "web-1", "labels": {"app": "web"}, "ownerReferences": [{**reference, "controller": True}]}
    cluster.server.create(PODS, {"metadata": meta, "spec": {**pod_spec, "nodeName": "n0"}}, "default")
    found = [text for text in cluster.findings() if text.startswith("pod default/web-1: deleted by replicaset without")]
    assert bool(found) == is_found


def test_one_right_of_several_is_enough() -> None:
    cluster = CheckedCluster(PodController("mine", evict, *DELETION_RIGHTS))
    cluster.node("n0")
    cluster.pod("one", nodeName="n0")
    assert cluster.findings() == []


@pytest.mark.parametrize(
    ("kind", "spec"),
    [("ReplicaSet", {"replicas": 2}), ("StatefulSet", {"replicas": 1, "serviceName": "web"}), ("DaemonSet", {})],
    ids=["ReplicaSet", "StatefulSet", "DaemonSet"],
)
def test_a_pod_that_its_workload_wants_is_no_workload_controllers_to_delete(kind: str, spec: dict[str, Any]) -> None:
    cluster = CheckedCluster(delete_once())
    cluster.node("n0")
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "a"}]}}
    body = {"selector": {"matchLabels": {"app": "web"}}, "template": template, **spec}
    cluster.server.create(KINDS.resource_named(kind), {"metadata": {"name": "web"}, "spec": body}, "default")
    cluster.world.run()
    texts = cluster.findings()
    assert [text for text in texts if "deleted by mine without a reason" in text], texts


class DeletesAll:
    """Deletes all pods of a ReplicaSet in one decision, once there are three."""

    name = "replicaset"
    watches = (Watch(PODS), Watch(REPLICA_SETS))
    pod_rights: ClassVar[frozenset[PodRight]] = frozenset({PodRight.DELETE_SURPLUS_REPLICAS})

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        pods = list(state.all(Pod))
        if len(pods) < 3 or any(pod.is_terminating for pod in pods):
            return DONE
        return Outcome(tuple(Delete(PODS, key_of(pod), uid=pod.metadata.uid) for pod in pods))


@pytest.mark.parametrize("timing", [None, Timing(1)], ids=["in no time", "taking time"])
def test_a_decision_that_deletes_more_pods_than_are_too_many_is_found(timing: Timing | None) -> None:
    cluster = CheckedCluster(DeletesAll(), timing=timing)
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "a"}]}}
    body = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    replica_set = cluster.server.create(REPLICA_SETS, {"metadata": {"name": "web"}, "spec": body}, "default")
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": replica_set["metadata"]["uid"]}
    for number in range(3):
        meta = {"name": f"web-{number}", "labels": {"app": "web"}, "ownerReferences": [{**owner, "controller": True}]}
        cluster.server.create(PODS, {"metadata": meta, "spec": template["spec"]}, "default")
    cluster.world.run(seconds=10)
    findings = [str(finding) for finding in cluster.checkers.finish(is_at_rest=False)]
    assert [finding.partition(" (")[0] for finding in findings] == [
        "pod default/web-1: deleted by replicaset without a reason",
        "pod default/web-2: deleted by replicaset without a reason",
    ]


def test_a_jobs_pod_is_the_job_controllers_to_delete_and_nobody_elses() -> None:
    cluster = CheckedCluster(PodController("mine", delete, PodRight.DELETE_SURPLUS_REPLICAS))
    cluster.node("n0")
    template = {"spec": {"containers": [{"name": "main", "image": "a"}], "restartPolicy": "Never"}}
    job = {"metadata": {"name": "sums"}, "spec": {"template": template, "backoffLimit": 0}}
    cluster.server.create(JOBS, job, "default")
    texts = cluster.findings()
    assert "deleted by mine without a reason" in texts[0], texts


def test_people_need_no_reason() -> None:
    cluster = CheckedCluster()
    cluster.node("n0")
    cluster.pod("one", nodeName="n0")
    cluster.world.run()
    cluster.server.delete(PODS, Key("default", "one"))
    assert cluster.findings() == []


def test_a_pod_that_is_over_stays_over_and_one_that_goes_goes() -> None:
    cluster = CheckedCluster()
    cluster.node("n0")
    pod = cluster.pod("one", nodeName="n0", restartPolicy="Never")
    database = cluster.server.database
    failed = database.put("pods", {**pod, "status": {"phase": "Failed"}})
    database.put("pods", {**failed, "status": {"phase": "Running"}})
    terminating = {**failed["metadata"], "deletionTimestamp": "2026-01-01T00:00:09Z", "generation": 5}
    database.put("pods", {**failed, "metadata": terminating})
    database.put("pods", failed)
    texts = " ".join(cluster.findings())
    assert "was over (Failed) and is Running again" in texts
    assert "was being deleted and is no more" in texts
    assert "went from generation 5 back to 1" in texts
