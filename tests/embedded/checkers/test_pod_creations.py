"""Pods that a controller creates without the right to, or beyond what its right allows, are found."""

from __future__ import annotations

from typing import Any

import pytest

from embedded.checkers.checked_cluster import CheckedCluster, PodController
from wukong.actions import DONE, Create, Outcome
from wukong.api.core import Pod
from wukong.api.kinds import KINDS, PODS
from wukong.api.resources import Key
from wukong.embedded.checkers import pod_creations, pod_deletions
from wukong.ports import Document
from wukong.state.controller import PodRight

CREATION_RIGHTS = list(pod_creations.RULES)
CONTAINER = {"name": "main", "image": "a"}


def a_creator(*rights: PodRight, name: str = "extra", owner: Document | None = None) -> PodController:
    """Creates one more pod for the pod `trigger`, owned as the owner says."""

    def act(key: Key, pod: Pod, now: float) -> Outcome:
        if key.name != "trigger" or "created" in done:
            return DONE
        done.add("created")
        meta: Document = {"name": name, "labels": {"app": "web"}}
        if owner is not None:
            reference = {name: owner[name] for name in ("apiVersion", "kind")}
            reference |= {name: owner["metadata"][name] for name in ("name", "uid")}
            meta["ownerReferences"] = [{**reference, "controller": True}]
        return Outcome((Create(PODS, {"metadata": meta, "spec": {"containers": [CONTAINER]}}, key.namespace),))

    done: set[str] = set()
    return PodController("mine", act, *rights)


class Trial:
    """A workload whose own controller does not act, so that only the test's creates pods of it."""

    def __init__(self, kind: str, right: PodRight, name: str, **spec: Any) -> None:
        own = PodController(kind.lower(), lambda key, pod, now: DONE)  # takes the built-in one's place
        self.owner: Document = {}
        self.cluster = CheckedCluster(own, a_creator(right, name=name, owner=self.owner))
        self.cluster.node("n0")
        restarts = "Never" if kind == "Job" else "Always"
        template_spec = {"containers": [CONTAINER], "restartPolicy": restarts}
        template = {"metadata": {"labels": {"app": "web"}}, "spec": template_spec}
        selector = {} if kind == "Job" else {"selector": {"matchLabels": {"app": "web"}}}
        document = {"metadata": {"name": "web"}, "spec": {**selector, "template": template, **spec}}
        resource = KINDS.resource_named(kind)
        created = self.cluster.server.create(resource, document, "default")
        self.owner |= {**created, "apiVersion": f"{resource.group}/v1", "kind": kind}

    def creation_findings(self) -> list[str]:
        self.cluster.pod("trigger")
        return [text for text in self.cluster.findings() if "made by" in text]


@pytest.mark.parametrize("rights", [(), tuple(pod_deletions.RULES)], ids=["none", "only to delete"])
def test_who_creates_a_pod_must_have_the_right_to(rights: tuple[PodRight, ...]) -> None:
    cluster = CheckedCluster(a_creator(*rights))
    cluster.node("n0")
    cluster.pod("trigger")
    (finding,) = cluster.findings()
    assert finding.startswith("pod default/extra: made by mine, whose business it is not")


@pytest.mark.parametrize("right", CREATION_RIGHTS, ids=lambda right: right.name)
def test_a_pod_that_no_workload_controls_is_nobodys_to_create(right: PodRight) -> None:
    cluster = CheckedCluster(a_creator(right))
    cluster.node("n0")
    cluster.pod("trigger")
    (finding,) = cluster.findings()
    assert finding.startswith("pod default/extra: made by mine although there were enough")


@pytest.mark.parametrize(
    ("kind", "right", "name", "spec"),
    [
        ("ReplicaSet", PodRight.CREATE_REPLICAS, "web-x", {"replicas": 0}),
        ("StatefulSet", PodRight.CREATE_ORDINALS, "web-2", {"replicas": 2, "serviceName": "web"}),
        ("StatefulSet", PodRight.CREATE_ORDINALS, "web-0", {"replicas": 2, "ordinals": {"start": 1}}),
        ("StatefulSet", PodRight.CREATE_ORDINALS, "other-0", {"replicas": 2, "serviceName": "web"}),
        ("StatefulSet", PodRight.CREATE_ORDINALS, "web-1", {"replicas": 2, "serviceName": "web"}),
        ("StatefulSet", PodRight.CREATE_ORDINALS, "web-2", {"replicas": 2, "podManagementPolicy": "Parallel"}),
        ("Job", PodRight.CREATE_JOB_PODS, "web-x", {"parallelism": 0}),
        ("Job", PodRight.CREATE_JOB_PODS, "web-x", {"parallelism": 1, "suspend": True}),
        ("ReplicaSet", PodRight.CREATE_ORDINALS, "web-0", {"replicas": 1}),
        ("ReplicaSet", PodRight.CREATE_ONE_PER_NODE, "web-0", {"replicas": 1}),
        ("ReplicaSet", PodRight.CREATE_JOB_PODS, "web-0", {"replicas": 1}),
        ("DaemonSet", PodRight.CREATE_REPLICAS, "web-0", {}),
    ],
)
def test_a_pod_that_its_workload_does_not_ask_for_is_found(
    kind: str, right: PodRight, name: str, spec: dict[str, Any]
) -> None:
    (finding,) = Trial(kind, right, name, **spec).creation_findings()
    assert finding.startswith(f"pod default/{name}: made by mine although there were enough")


@pytest.mark.parametrize(
    ("kind", "right", "name", "spec"),
    [
        ("ReplicaSet", PodRight.CREATE_REPLICAS, "web-x", {"replicas": 1}),
        ("StatefulSet", PodRight.CREATE_ORDINALS, "web-0", {"replicas": 2, "serviceName": "web"}),
        ("StatefulSet", PodRight.CREATE_ORDINALS, "web-1", {"replicas": 2, "ordinals": {"start": 1}}),
        ("StatefulSet", PodRight.CREATE_ORDINALS, "web-1", {"replicas": 2, "podManagementPolicy": "Parallel"}),
        ("Job", PodRight.CREATE_JOB_PODS, "web-x", {"parallelism": 1}),
        ("DaemonSet", PodRight.CREATE_ONE_PER_NODE, "web-x", {}),
    ],
)
def test_a_pod_that_its_workload_asks_for_is_no_finding(
    kind: str, right: PodRight, name: str, spec: dict[str, Any]
) -> None:
    assert Trial(kind, right, name, **spec).creation_findings() == []


def test_a_second_daemon_on_a_node_is_found() -> None:
    trial = Trial("DaemonSet", PodRight.CREATE_ONE_PER_NODE, "web-x")
    reference = {name: trial.owner[name] for name in ("apiVersion", "kind")}
    reference |= {"name": "web", "uid": trial.owner["metadata"]["uid"], "controller": True}
    meta = {"name": "web-first", "labels": {"app": "web"}, "ownerReferences": [reference]}
    trial.cluster.server.create(PODS, {"metadata": meta, "spec": {"containers": [CONTAINER]}}, "default")
    (finding,) = trial.creation_findings()
    assert finding.startswith("pod default/web-x: made by mine although there were enough")


def test_people_need_no_right() -> None:
    cluster = CheckedCluster()
    cluster.node("n0")
    cluster.pod("one", nodeName="n0")
    assert cluster.findings() == []
