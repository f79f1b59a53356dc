"""What a change does to objects: which fields, whether that starts a rollout and why, and what is refused."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from forecast.clusters import (
    Document,
    a_baseline,
    a_budget,
    a_deployment,
    changed,
    nodes,
    required,
    running_on,
    with_image,
)
from wukong.app.snapshots import Baseline
from wukong.embedded.scenario.format.fields import DeleteTarget, ScaleTarget, TimelineEntry
from wukong.errors import InputError
from wukong.forecast import PlannedChange
from wukong.forecast.changes import compare_documents, find_changes
from wukong.forecast.fields import ObjectChange

WEB = a_deployment()
TEMPLATE = "spec.template"
CHANGES: dict[str, tuple[Document, list[str], bool | None, str]] = {
    "nothing": (WEB, [], None, ""),
    "replicas": (changed(WEB, "spec.replicas", 5), ["spec.replicas"], False, "adds 2 pods, and the others stay"),
    "fewer replicas": (changed(WEB, "spec.replicas", 2), ["spec.replicas"], False, "removes 1 pod, and the others"),
    "no replicas": (changed(WEB, "spec.replicas", 0), ["spec.replicas"], False, "spec.replicas removes 3 pods"),
    "image": (with_image(WEB), [f"{TEMPLATE}.spec.containers[web].image"], True, "(spec.containers[web].image)"),
    "affinity": (
        changed(WEB, "spec.template.spec.affinity", required()),
        [f"{TEMPLATE}.spec.affinity"],
        True,
        "starts a rollout: spec.template changes (spec.affinity)",
    ),
    "labels of its own": (
        changed(WEB, "metadata.labels", {"team": "shop"}),
        ["metadata.labels"],
        False,
        "labels or annotations of the Deployment itself, not of its pods",
    ),
    "labels of its pods": (
        changed(WEB, "spec.template.metadata.labels", {"app": "web", "tier": "front"}),
        [f"{TEMPLATE}.metadata.labels.tier"],
        True,
        "(metadata.labels.tier)",
    ),
    "annotations of its pods": (
        changed(WEB, "spec.template.metadata.annotations", {"example.com/restarted": "now"}),
        [f"{TEMPLATE}.metadata.annotations"],
        True,
        "(metadata.annotations)",
    ),
    "strategy": (
        changed(WEB, "spec.strategy", {"type": "Recreate"}),
        ["spec.strategy.rollingUpdate", "spec.strategy.type"],
        False,
        "spec.template stays as it is",
    ),
    "image of a paused one": (
        changed(with_image(WEB), "spec.paused", True),
        ["spec.paused", f"{TEMPLATE}.spec.containers[web].image"],
        False,
        "but it is paused",
    ),
    "image, all at once": (
        changed(with_image(WEB), "spec.strategy", {"type": "Recreate"}),
        ["spec.strategy.rollingUpdate", "spec.strategy.type", f"{TEMPLATE}.spec.containers[web].image"],
        True,
        "all old pods go first",
    ),
}


@pytest.fixture(scope="module")
def baseline() -> Baseline:
    return a_baseline([*nodes(3), WEB, *running_on(WEB, "node-1", "node-2", "node-3"), a_budget(minAvailable=1)])


def changes_of(baseline: Baseline, *documents: Document, **change: Any) -> list[ObjectChange]:
    return find_changes(baseline, PlannedChange(documents=documents, **change))


@pytest.mark.parametrize("title", CHANGES)
def test_only_the_template_of_pods_starts_a_rollout(title: str, baseline: Baseline) -> None:
    document, paths, starts, text = CHANGES[title]
    (change,) = changes_of(baseline, document)
    assert [field.path for field in change.fields] == paths
    assert change.action == ("change" if paths else "none")
    assert (change.rollout.starts if change.rollout else None) is starts
    assert text in (change.rollout.text if change.rollout else "")


def test_what_a_change_creates_scales_deletes_adds_and_drains_is_listed(baseline: Baseline) -> None:
    at = "0s"
    changes = changes_of(
        baseline,
        a_deployment("api"),
        nodes=tuple(nodes(4)[3:]),
        steps=(
            TimelineEntry(at=at, scale=ScaleTarget(kind="Deployment", name="web", replicas=4)),
            TimelineEntry(at=at, delete=DeleteTarget(kind="PodDisruptionBudget", name="web")),
            TimelineEntry(at=at, drain="node-1"),
            TimelineEntry(at=at, drain="node-2"),
            TimelineEntry(at=at, kill="node-3"),
        ),
        removed_nodes=frozenset({"node-2"}),
    )
    assert [(change.action, change.kind, change.name) for change in changes] == [
        ("add", "Node", "node-4"),
        ("create", "Deployment", "default/api"),
        ("change", "Deployment", "default/web"),
        ("delete", "PodDisruptionBudget", "default/web"),
        ("drain", "Node", "node-1"),
        ("remove", "Node", "node-2"),
        ("lose", "Node", "node-3"),
    ]


def test_a_deleted_workload_takes_its_pods_with_it(baseline: Baseline) -> None:
    deletion = TimelineEntry(at="0s", delete=DeleteTarget(kind="Deployment", name="web"))
    (change,) = changes_of(baseline, steps=(deletion,))
    assert change.rollout is not None
    assert (change.action, change.rollout.text) == ("delete", "its 3 pods go with it")


def test_what_the_api_server_refuses_is_said_of_every_document_and_changes_nothing(baseline: Baseline) -> None:
    zero = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}
    documents = [changed(WEB, "spec.strategy", zero), changed(WEB, "spec.selector", {"matchLabels": {"app": "x"}})]
    missing = TimelineEntry(at="0s", delete=DeleteTarget(kind="Deployment", name="none"))
    with pytest.raises(InputError) as caught:
        changes_of(baseline, *documents, steps=(missing,))
    places = [problem.partition(": the API server refuses it: ")[0] for problem in caught.value.problems]
    assert places == ["Deployment default/web", "Deployment default/web", "Deployment default/none"]
    assert changes_of(baseline, WEB)[0].action == "none"


def test_going_back_to_an_earlier_template_names_its_revision() -> None:
    old = running_on(WEB, version="old")[0]
    old["metadata"]["annotations"] = {"deployment.kubernetes.io/revision": "7"}
    new = running_on(with_image(WEB), "node-1", "node-2", "node-3")
    new[0]["metadata"]["annotations"] = {"deployment.kubernetes.io/revision": "8"}
    baseline = a_baseline([*nodes(3), with_image(WEB), old, *new])
    (change,) = changes_of(baseline, WEB)
    assert change.rollout is not None
    assert "back to revision 7" in change.rollout.text


def test_lists_are_compared_by_names_and_what_the_server_writes_is_no_change() -> None:
    before = {"metadata": {"uid": "1", "generation": 1}, "spec": {"ports": [{"name": "a", "port": 1}, {"name": "b"}]}}
    after = copy.deepcopy(before)
    after["metadata"] = {"uid": "2", "generation": 2, "resourceVersion": "9"}
    after["spec"] = {"ports": [{"name": "b"}, {"name": "a", "port": 2}], "list": [1, 2]}
    assert [(field.path, field.before, field.after) for field in compare_documents(before, after)][1:] == [
        ("spec.ports[a].port", 1, 2),
        ("spec.ports", ["a", "b"], ["b", "a"]),
    ]
