"""How far a rollout is: the states of `kubectl rollout status`, and what pods wait for."""

from __future__ import annotations

from typing import Any

import pytest

from wukong.api.times import format_time
from wukong.placement.workloads.progress import Progress, read_progress
from wukong.placement.workloads.revisions import choose_revision, list_revisions

Document = dict[str, Any]
NOW = 1_767_225_600.0


def a_deployment(status: Document | None = None, **spec: Any) -> Document:
    full = {"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2, **(status or {})}
    return {
        "kind": "Deployment",
        "metadata": {"name": "web", "generation": 2},
        "spec": {"replicas": 2, "template": a_template("web:2"), **spec},
        "status": full,
    }


def a_stateful_set(status: Document | None = None, **strategy: Any) -> Document:
    revisions = {"currentRevision": "b", "updateRevision": "b"}
    full = {"observedGeneration": 2, "readyReplicas": 2, "updatedReplicas": 2, **revisions, **(status or {})}
    document = {**a_deployment(updateStrategy={"type": "RollingUpdate", **strategy}), "kind": "StatefulSet"}
    return {**document, "status": full}


def a_template(image: str, **labels: str) -> Document:
    return {"metadata": {"labels": {"app": "web", **labels}}, "spec": {"containers": [{"name": "w", "image": image}]}}


def a_pod(name: str, version: str = "b", node: str = "node-1", **status: Any) -> Document:
    return {
        "metadata": {"name": name, "labels": {"pod-template-hash": version}, "creationTimestamp": format_time(NOW)},
        "spec": {"schedulerName": "default-scheduler", **({"nodeName": node} if node else {})},
        "status": status,
    }


def a_replica_set(version: str, image: str, revision: Any) -> Document:
    return {
        "kind": "ReplicaSet",
        "metadata": {
            "labels": {"app": "web", "pod-template-hash": version},
            "annotations": {"deployment.kubernetes.io/revision": revision},
        },
        "spec": {"template": a_template(image, **{"pod-template-hash": version})},
    }


VERSIONS = [a_replica_set("a", "web:1", "1"), a_replica_set("b", "web:2", "2")]


def progress_of(workload: Document, *pods: Document, now: float = NOW) -> Progress:
    return read_progress(workload, VERSIONS if workload["kind"] == "Deployment" else [], pods, now)


@pytest.mark.parametrize(
    ("workload", "state", "text"),
    [
        (a_deployment(), "complete", "2 pods of the new version available"),
        (a_deployment({"observedGeneration": 1}), "running", "until the Deployment controller has seen"),
        (a_deployment({"updatedReplicas": 1}), "running", "1 of 2 new pods are there"),
        (a_deployment({"updatedReplicas": 1}, paused=True), "running", "1 of 2 new pods are there; it is paused"),
        (a_deployment({"replicas": 3}), "running", "1 pod of older versions have yet to go"),
        (a_deployment({"availableReplicas": 1}), "running", "1 of 2 new pods are available"),
        (
            a_deployment({"conditions": [{"type": "Progressing", "reason": "ProgressDeadlineExceeded"}]}),
            "failed",
            "nothing moved for 600 s",
        ),
        (
            a_deployment(
                {
                    "updatedReplicas": 0,
                    "conditions": [{"type": "ReplicaFailure", "status": "True", "message": "exceeded quota"}],
                }
            ),
            "running",
            "pods cannot be created: exceeded quota",
        ),
        (a_deployment(dict.fromkeys(("replicas", "updatedReplicas")), replicas=0), "complete", "0 pods"),
        (a_stateful_set(), "complete", "2 pods of the new version ready"),
        (a_stateful_set({"observedGeneration": 1}), "running", "until the StatefulSet controller"),
        (a_stateful_set({"readyReplicas": 1}), "running", "1 of 2 pods are ready"),
        (a_stateful_set({"currentRevision": "a", "updatedReplicas": 1}), "running", "1 of 2 pods are of the new"),
        (
            a_stateful_set({"currentRevision": "a", "updatedReplicas": 1}, rollingUpdate={"partition": 1}),
            "complete",
            "ordinals from 1 on",
        ),
        (
            a_stateful_set({"currentRevision": "a", "updatedReplicas": 0}, rollingUpdate={"partition": 1}),
            "running",
            "0 of 1 new pods are there (partition 1)",
        ),
        (a_stateful_set(type="OnDelete"), "failed", "its update strategy is OnDelete"),
    ],
)
def test_it_is_over_when_kubectl_rollout_status_says_so(workload: Document, state: str, text: str) -> None:
    progress = progress_of(workload)
    assert progress.state == state
    assert text in progress.text


@pytest.mark.parametrize(
    ("pod", "now", "reason"),
    [
        (a_pod("p", phase="Pending"), NOW, "to start"),
        (a_pod("p", phase="Running"), NOW, "to be ready"),
        (a_pod("p", conditions=[{"type": "Ready", "status": "True"}]), NOW, ""),
        (a_pod("p", node=""), NOW + 30, "to be scheduled"),
        (a_pod("p", node=""), NOW + 31, "no scheduler has looked at it: does one named default-scheduler run?"),
        (
            a_pod("p", node="", conditions=[{"type": "PodScheduled", "message": "0/2 nodes are available"}]),
            NOW + 31,
            "0/2 nodes are available",
        ),
        (
            a_pod("p", containerStatuses=[{"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no web"}}}]),
            NOW,
            "ImagePullBackOff: no web",
        ),
        (
            a_pod("p", phase="Pending", containerStatuses=[{"state": {"waiting": {"reason": "ContainerCreating"}}}]),
            NOW,
            "to start",
        ),
    ],
)
def test_what_a_pod_waits_for_is_said_in_the_words_of_who_knows(pod: Document, now: float, reason: str) -> None:
    (place,) = progress_of(a_deployment(), pod, now=now).pods
    assert place.waits_for == reason


def test_pods_are_told_apart_by_the_version_of_the_template_that_the_workload_has() -> None:
    leaving = a_pod("q", "a")
    leaving["metadata"]["deletionTimestamp"] = format_time(NOW)
    progress = progress_of(a_deployment(), a_pod("o", "a"), a_pod("p", "b"), a_pod("r", "b"), leaving)
    assert (progress.old, progress.new) == (1, 2)
    assert [(pod.name, pod.is_new, pod.is_terminating) for pod in progress.pods] == [
        *(("o", False, False), ("p", True, False), ("q", False, True), ("r", True, False))
    ]


def test_without_a_version_of_its_own_yet_every_pod_is_old() -> None:
    workload = a_deployment(template=a_template("web:3"))
    assert (progress_of(workload, a_pod("p")).old, progress_of(workload, a_pod("p")).new) == (1, 0)


@pytest.mark.parametrize("value", [None, 7, "x", [], [7], {"a": "b"}])
def test_absurd_documents_are_read_without_a_crash(value: Any) -> None:
    for name in ("metadata", "spec", "status"):
        progress_of({**a_deployment(), name: value}, {"metadata": value, "spec": value, "status": value})
        progress_of({**a_stateful_set(), name: value})
    assert list_revisions([{"kind": "ReplicaSet", "spec": {"template": value}}, {"kind": "X", "data": value}]) == []


def test_the_revision_before_is_the_newest_with_another_template() -> None:
    revisions = list_revisions([*VERSIONS, a_replica_set("c", "web:0", "10"), a_replica_set("d", "web:9", "no")])
    assert [revision.number for revision in revisions] == [1, 2, 10]
    assert choose_revision(a_deployment(), revisions, None).number == 10
    assert choose_revision(a_deployment(template=a_template("web:0")), revisions, None).number == 2
    assert choose_revision(a_deployment(), revisions, 1).template == a_template("web:1")
