"""A snapshot is loaded as it is: nothing happens merely because it was loaded, and a change goes on from there."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from wukong.api.core import Pod
from wukong.api.kinds import DAEMON_SETS, NODES, PODS
from wukong.api.kinds import KINDS as TABLE
from wukong.api.resources import Key, key_of
from wukong.app.embedded import Settings, build_world
from wukong.app.snapshots import load, play_on
from wukong.cluster.anonymize import anonymize_documents
from wukong.cluster.reduction import reduce_document
from wukong.embedded.scenario import Scenario, Story, play, read_scenario
from wukong.embedded.scenario.play.steps import Drains
from wukong.embedded.store.documents import copy_document
from wukong.embedded.world.world import World
from wukong.ports import Document, PatchBody

KINDS = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")


def workload(kind: str, name: str, replicas: int = 3, **template: Any) -> Document:
    meta = {"labels": {"app": name}}
    container = {"name": "main", "image": f"{name}:1", "resources": {"requests": {"cpu": "500m"}}}
    spec: Document = {
        "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": meta, "spec": {"containers": [container], **template}},
    }
    spec |= {} if kind == "DaemonSet" else {"replicas": replicas}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def with_image(document: Document, text: str) -> Document:
    changed: Document = msgspec.json.decode(msgspec.json.encode(document))
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = text
    return changed


@st.composite
def scenarios(draw: st.DrawFn) -> Document:
    """A few workloads on a few nodes, and what may happen to them; some end stuck."""
    nodes = draw(st.integers(1, 5))
    drawn = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3))
    apart = {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "w0"}}}
        ]
    }
    manifests = []
    for number, kind in enumerate(drawn):
        more = {"affinity": {"podAntiAffinity": apart}} if draw(st.booleans()) else {}
        manifests.append(workload(kind, f"w{number}", draw(st.integers(0, 5)), **more))
    budget = {"minAvailable": draw(st.integers(0, 3)), "selector": {"matchLabels": {"app": "w0"}}}
    manifests.append(
        {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": budget}
    )
    steps: list[Document] = [
        {"apply": with_image(manifests[0], "w0:2")},
        {"drain": "n1"},
        {"kill": "n1"},
        {"notReady": "n1"},
        {"cordon": "n1"},
    ]
    chosen = draw(st.lists(st.sampled_from(steps), max_size=2, unique_by=str))
    chosen.sort(key=lambda step: "kill" in step)  # nothing more can happen to a node that is gone
    timeline = [{"at": f"{60 * (index + 1)}s", **step} for index, step in enumerate(chosen)]
    return {"nodes": [{"namePrefix": "n", "count": nodes}], "manifests": manifests, "timeline": timeline}


def play_document(document: Document, seed: int) -> tuple[World, Story]:
    drains = Drains()
    world = build_world(Settings(seed), drains)
    return world, play(world, read_scenario(msgspec.json.encode(document)), drains)


def list_everything(world: World) -> list[Document]:
    """What a snapshot through the port has."""
    listed = (document for kind in TABLE if kind.loads for document in world.server.list(kind.resource).items)
    return [copy_document(document) for document in listed]


def a_node_that_is_tainted_late() -> Document:
    """By seed 1 the DaemonSet counts its pod that is no longer ready just before the taints of its silent node come."""
    apart = {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "w0"}}}
        ]
    }
    budget = {"minAvailable": 0, "selector": {"matchLabels": {"app": "w0"}}}
    manifests = [
        workload("ReplicaSet", "w0", 3),
        workload("DaemonSet", "w1"),
        workload("ReplicaSet", "w2", 3, affinity={"podAntiAffinity": apart}),
        {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": budget},
    ]
    timeline = [{"at": "60s", "notReady": "n1"}]
    return {"nodes": [{"namePrefix": "n", "count": 4}], "manifests": manifests, "timeline": timeline}


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(scenarios(), st.integers(0, 3))
@example(a_node_that_is_tainted_late(), 1)
def test_a_world_at_rest_stays_at_rest_when_it_is_loaded_elsewhere(document: Document, seed: int) -> None:
    world, _ = play_document(document, seed)
    documents = list_everything(world)
    story = play_on(load(documents, world.clock.now()), Scenario(), seed)
    assert story.before is not None
    assert (story.before.changes, story.before.writes, story.writes, story.findings) == (0, 0, 0, [])
    assert [event for event in story.events if event.text != "silent"] == []


def a_late_status(seed: int = 0) -> tuple[World, Document]:
    """A world at rest with a DaemonSet that counts a node as it was before a taint, as Kubernetes does; its status."""
    document: Document = {"nodes": [{"namePrefix": "n", "count": 3}], "manifests": [workload("DaemonSet", "web")]}
    world, _ = play_document(document, seed)
    taint = {"spec": {"taints": [{"key": "maintenance", "effect": "NoSchedule"}]}}
    world.server.patch(NODES, Key("", "n1"), PatchBody("merge", taint))
    world.run(seconds=600)
    status: Document = world.server.get(DAEMON_SETS, Key("default", "web"))["status"]
    assert (status["desiredNumberScheduled"], status["numberMisscheduled"]) == (3, 0)
    return world, status


def test_a_status_that_kubernetes_counts_late_is_not_counted_because_it_is_loaded() -> None:
    world, _ = a_late_status()
    documents = list_everything(world)
    for snapshot in (documents, [reduce_document(document) for document in documents]):
        story = play_on(load(snapshot, world.clock.now()), Scenario())
        assert story.before is not None
        assert (story.before.changes, story.before.writes, story.writes, story.findings) == (0, 0, 0, [])


def test_a_loaded_status_is_counted_when_something_happens_to_its_pods_or_had_happened_already() -> None:
    world, before = a_late_status()
    documents = list_everything(world)
    loaded = build_world(Settings(), Drains(), load(documents, world.clock.now()))
    loaded.run(seconds=60)
    assert loaded.server.get(DAEMON_SETS, Key("default", "web"))["status"] == before
    pod = next(pod for pod in loaded.state.all(Pod) if pod.spec.node_name == "n2")
    loaded.server.delete(PODS, key_of(pod))
    loaded.run(seconds=60)
    status = loaded.server.get(DAEMON_SETS, Key("default", "web"))["status"]
    assert (status["desiredNumberScheduled"], status["numberMisscheduled"]) == (2, 1)
    for document in documents:
        if document["kind"] == "DaemonSet":
            document["status"]["numberReady"] = 2  # it was about to be written
    other = build_world(Settings(), Drains(), load(documents, world.clock.now()))
    other.run(seconds=60)
    assert other.server.get(DAEMON_SETS, Key("default", "web"))["status"]["numberMisscheduled"] == 1


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(scenarios(), st.integers(0, 3))
def test_what_wukong_snapshot_keeps_is_enough_to_stay_at_rest(document: Document, seed: int) -> None:
    world, _ = play_document(document, seed)
    documents = [reduce_document(document) for document in list_everything(world)]
    story = play_on(load(documents, world.clock.now()), Scenario(), seed)
    assert story.before is not None
    assert (story.before.changes, story.findings) == (0, [])


@pytest.mark.parametrize("kind", KINDS)
def test_a_change_goes_on_from_what_is_there(kind: str) -> None:
    before = workload(kind, "web")
    nodes = [{"namePrefix": "n", "count": 4}]
    world, _ = play_document({"nodes": nodes, "manifests": [before]}, 0)
    change = Scenario(manifests=[with_image(before, "web:2")])
    story = play_on(load(list_everything(world), world.clock.now()), change)
    whole = [{"at": "60s", "apply": with_image(before, "web:2")}]
    _, replayed = play_document({"nodes": nodes, "manifests": [before], "timeline": whole}, 0)
    loaded, whole_run = story.workloads["default/web"], replayed.workloads["default/web"]
    assert story.settled
    assert (loaded.available, loaded.min_available, loaded.max_pods, loaded.restarts) == (
        whole_run.available,
        whole_run.min_available,
        whole_run.max_pods,
        whole_run.restarts,
    )


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet"])
def test_a_rollout_under_way_is_played_to_its_end_first(kind: str) -> None:
    slow = workload(kind, "web")
    slow["spec"]["template"]["metadata"]["annotations"] = {"sim.novasphere.dev/ready-seconds": "10"}
    update = {"at": "60s", "apply": with_image(slow, "web:2")}
    nodes = [{"namePrefix": "n", "count": 4}]
    world, half = play_document({"nodes": nodes, "manifests": [slow], "timeline": [update], "until": "75s"}, 0)
    assert not half.settled
    for documents in (list_everything(world), [reduce_document(document) for document in list_everything(world)]):
        story = play_on(load(documents, world.clock.now()), Scenario())
        assert story.before is not None
        assert (story.before.settled, story.settled, story.findings) == (True, True, [])
        assert story.before.changes > 0
        assert story.workloads["default/web"].available == (4 if kind == "DaemonSet" else 3)


def test_an_unchanged_manifest_changes_nothing() -> None:
    before = workload("Deployment", "web")
    world, _ = play_document({"nodes": [{"name": "a"}], "manifests": [before]}, 0)
    for documents in (list_everything(world), [reduce_document(document) for document in list_everything(world)]):
        story = play_on(load(documents, world.clock.now()), Scenario(manifests=[before]))
        assert [event.text for event in story.events] == ["applies Deployment default/web: unchanged"]


def test_what_a_manifest_no_longer_says_is_taken_away() -> None:
    before = workload("Deployment", "web", nodeSelector={"kubernetes.io/hostname": "a"})
    world, _ = play_document({"nodes": [{"name": "a"}, {"name": "b"}], "manifests": [before]}, 0)
    documents = list_everything(world)
    for document in documents:
        document["metadata"].pop("managedFields", None)
    after = workload("Deployment", "web", 4)
    story = play_on(load(documents, world.clock.now()), Scenario(manifests=[after, with_image(after, "web:1")]))
    assert set(story.workloads["default/web"].per_node) == {"a", "b"}


def test_an_autoscaler_keeps_its_replicas_where_the_manifest_names_none() -> None:
    before = workload("Deployment", "web", 5)
    world, _ = play_document({"nodes": [{"name": "a"}], "manifests": [before]}, 0)
    after = with_image(before, "web:2")
    del after["spec"]["replicas"]
    story = play_on(load(list_everything(world), world.clock.now()), Scenario(manifests=[after]))
    assert (story.workloads["default/web"].replicas, story.workloads["default/web"].min_available) == (5, 4)


def test_new_objects_get_neither_uids_nor_names_of_what_was_loaded() -> None:
    world, _ = play_document(
        {"nodes": [{"name": "a", "capacity": {"cpu": 40}}], "manifests": [workload("ReplicaSet", "web", 40)]}, 0
    )
    documents = list_everything(world)
    story = play_on(load(documents, world.clock.now()), Scenario(manifests=[workload("ReplicaSet", "web", 60)]))
    assert story.workloads["default/web"].available == 60


@pytest.mark.parametrize("kind", KINDS)
def test_an_anonymous_snapshot_still_knows_who_owns_whom(kind: str) -> None:
    world, _ = play_document({"nodes": [{"namePrefix": "n", "count": 2}], "manifests": [workload(kind, "web")]}, 0)
    documents = anonymize_documents([reduce_document(document) for document in list_everything(world)])
    assert not [document for document in documents if "web" in str(document)]
    snapshot = load(documents, world.clock.now())
    assert snapshot.notes == []
    story = play_on(snapshot, Scenario())
    assert story.before is not None
    assert (story.before.changes, story.settled, len(story.workloads)) == (0, True, 1)


@pytest.mark.parametrize("name", ["x-0{}", "web-²{}", "web{}", "0{}"])
def test_pods_of_a_stateful_set_that_are_not_numbered_stay_and_that_is_said(name: str) -> None:
    """Anonymous snapshots were so once."""
    nodes = [{"namePrefix": "n", "count": 2}]
    world, _ = play_document({"nodes": nodes, "manifests": [workload("StatefulSet", "web")]}, 0)
    documents = [reduce_document(document) for document in list_everything(world)]
    for number, document in enumerate(document for document in documents if document["kind"] == "Pod"):
        document["metadata"]["name"] = name.format(number)
    snapshot = load(documents, world.clock.now())
    assert "their pods are not numbered, as in old anonymous snapshots" in snapshot.notes[0]
    story = play_on(snapshot, Scenario())
    assert story.before is not None
    assert (story.before.changes, story.settled) == (0, True)


def test_pods_of_another_groups_stateful_set_need_no_number() -> None:
    """OpenKruise has a StatefulSet, too: its pods say nothing about Kubernetes' own of that name."""
    other = pod("web-abc")
    reference = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "name": "web", "uid": "k"}
    other["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
    own = pod("web-0")
    own["metadata"]["ownerReferences"] = [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "s"}]
    snapshot = load([NODE, workload("StatefulSet", "web", 1), own, other])
    assert [note for note in snapshot.notes if "not numbered" in note] == []


# ---- what a snapshot lacks


def pod(name: str, node: str = "a", **status: Any) -> Document:
    spec = {"nodeName": node, "containers": [{"name": "main", "image": "web:1"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec, "status": status}


NODE: Document = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "a"},
    "status": {"capacity": {"cpu": "4", "pods": "9"}},
}


def test_pods_written_by_hand_run_and_stay() -> None:
    story = play_on(load([NODE, pod("web")]), Scenario())
    assert story.before is not None
    assert (story.settled, story.before.changes) == (True, 0)


def test_a_pod_of_an_owner_that_is_not_there_is_nobodys_and_that_is_said() -> None:
    owned = pod("web")
    owned["metadata"]["ownerReferences"] = [{"kind": "Rollout", "name": "web", "uid": "u", "controller": True}]
    snapshot = load([NODE, owned])
    assert snapshot.notes == [
        "1 object of Rollout default/web, which the snapshot does not hold: taken as nobody's; nobody replaces them."
    ]
    story = play_on(snapshot, Scenario())
    assert story.before is not None
    assert story.before.changes == 0


def test_a_workload_without_anything_it_owns_is_said_to_begin_anew() -> None:
    snapshot = load([NODE, workload("Deployment", "web")])
    assert snapshot.notes[0].startswith("Deployment default/web: the snapshot holds nothing that they own")
    story = play_on(snapshot, Scenario())
    assert story.before is not None
    assert story.before.changes > 0


def test_a_pod_that_cannot_start_stays_so_and_one_that_is_starting_comes_up() -> None:
    waiting = [{"name": "main", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]
    sick = [{"type": "Ready", "status": "False", "lastTransitionTime": "2026-03-01T00:00:00Z"}]
    broken = pod(
        "broken", phase="Running", startTime="2026-03-01T00:00:00Z", conditions=sick, containerStatuses=waiting
    )
    young = pod("young", phase="Pending", startTime="2026-03-01T00:00:00Z", conditions=sick)
    snapshot = load([NODE, broken, young])
    (note,) = snapshot.notes
    assert note.startswith("default/broken: not ready in the snapshot")
    assert [(event.subject, event.text) for event in play_on(snapshot, Scenario()).before.timeline] == [  # type: ignore[union-attr]
        ("pod default/young", "ready")
    ]


def test_a_node_that_was_not_ready_stays_so() -> None:
    silent = {**NODE, "status": {**NODE["status"], "conditions": [{"type": "Ready", "status": "Unknown"}]}}
    story = play_on(load([silent]), Scenario())
    assert [event.text for event in story.events] == []


def test_workloads_without_a_template_are_left_out_and_named() -> None:
    bare = [workload(kind, name) for kind, name in (("Deployment", "a"), ("StatefulSet", "b"), ("DaemonSet", "c"))]
    for document in bare:
        del document["spec"]["template"]
    whole = workload("Deployment", "web")
    snapshot = load([NODE, *bare, whole, pod("lone")])
    (note,) = [note for note in snapshot.notes if "without a pod template" in note]
    assert note.startswith("Deployment default/a, StatefulSet default/b, DaemonSet default/c: without a pod template")
    story = play_on(snapshot, Scenario())
    assert set(story.workloads) == {"default/web"}
    assert [note for note in load([NODE, whole]).notes if "without a pod template" in note] == []
