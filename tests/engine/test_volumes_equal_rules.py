"""Pods with volumes: engine and rules agree on random storage, on what pods were promised before, on preemption."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import a_node
from engine.test_engine_equals_rules import assert_equal
from random_volumes import DISKS, list_storage, list_volumes, random_pod_volumes, settle
from wukong.api.core import Pod
from wukong.api.decode import decode_objects
from wukong.api.objects import Objects
from wukong.api.profile import default_profile
from wukong.api.versions import VERSIONS
from wukong.engine import Decision, Scheduler, Snapshot
from wukong.rules.cluster import Cluster
from wukong.rules.decide import decide

NAMESPACES = ["default", "team-a"]
REGION = "topology.kubernetes.io/region"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
PROFILES = [default_profile(version) for version in VERSIONS.values()]
PODS = 12
CONTESTED = [
    *({"name": "one", "persistentVolumeClaim": {"claimName": name}} for name in ("one", "one", "wait-one", "free")),
    *({"name": "disk", **disk} for disk in DISKS[::4]),
]
PLUGINS = ("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone")


@pytest.mark.slow
def test_engine_and_rules_agree_on_eighty_clusters_with_volumes(record_property: Callable[[str, object], None]) -> None:
    refused: Counter[str] = Counter()
    outcomes: Counter[str] = Counter()
    for seed in range(80):
        for decision in place_pods(seed):
            outcomes["preempts" if decision.preemption else "fits" if decision.feasible else "waits"] += 1
            refused.update({entry.plugin for entry in decision.refusals.values()})
            refused.update({reason for entry in decision.refusals.values() for reason in entry.reasons})
    figures = ", ".join(f"{count} {name}" for name, count in sorted(outcomes.items()))
    record_property("figure", f"pods with volumes, engine = rules: {figures}")
    assert all(refused[plugin] >= 20 for plugin in PLUGINS), refused
    assert min(outcomes["fits"], outcomes["waits"], outcomes["preempts"]) >= 20, outcomes


@pytest.mark.parametrize(
    "seed",
    [
        48044,  # a pod names a claim twice, for which a volume is kept
        102314,  # what such a pod was promised
        300994,  # what a victim was promised stays its own while preemption is tried
    ],
)
def test_engine_and_rules_agree_where_they_did_not(seed: int) -> None:
    place_pods(seed)


@settings(max_examples=25)
@given(st.integers(1000, 2**32))
def test_engine_and_rules_agree_on_storage_never_seen_before(seed: int) -> None:
    place_pods(seed)


def place_pods(seed: int) -> list[Decision]:
    """Decide and place one pod after the other, in both; some go again."""
    rng = Random(seed)
    objects, profile = draw_cluster(rng), rng.choice(PROFILES)
    scheduler, cluster = Scheduler(Snapshot.of(objects), profile), Cluster(objects)
    decisions: list[Decision] = []
    placed: list[str] = []
    for number in range(PODS):
        pod = draw_pod(rng, f"pod-{number}", objects)
        fast = scheduler.decide(pod)
        assert_equal(fast, decide(cluster, pod, profile))
        decisions.append(fast)
        node = rng.choice([*fast.best, ""]) if fast.best else ""
        if node:
            scheduler.snapshot.assume(pod.key, pod, node)
            cluster.add(pod, node)
            placed.append(pod.key)
        if placed and rng.random() < 0.2:
            gone = placed.pop(rng.randrange(len(placed)))
            scheduler.snapshot.forget(gone)
            cluster.remove(gone)
        if rng.random() < 0.1:
            scheduler = Scheduler(scheduler.snapshot.fork(), profile)
    return decisions


def draw_cluster(rng: Random) -> Objects:
    names = [f"n{number}" for number in range(rng.randint(1, 5))]
    objects = Objects(nodes=[])
    for name in names:
        labels: dict[str, str] = {}
        if rng.random() < 0.3:
            labels[REGION] = rng.choice(["north", "south"])
        if rng.random() < 0.2:
            labels[BETA_ZONE] = rng.choice("ab")
        objects.nodes.append(a_node(name, zone=rng.choice(["a", "a", "b", "c", None]), labels=labels, cpu="4"))
    for manifest in (*list_storage(rng, names), *list_volumes(rng, names, NAMESPACES)):
        objects.add(read(_vary(rng, settle(manifest))))
    for number, volume in enumerate(objects.persistent_volumes):
        if volume.spec.csi and rng.random() < 0.1:
            source = {"persistentVolumeName": volume.metadata.name}
            spec = {"attacher": volume.spec.csi.driver, "nodeName": rng.choice(names), "source": source}
            head = {"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": f"a{number}"}}
            objects.add(read({**head, "spec": spec}))
    return objects


def _vary(rng: Random, manifest: dict[str, Any]) -> dict[str, Any]:
    """What comes with time: claims that are lost or go, volumes that go, a node selected, a driver that is needed."""
    kind, chance = manifest["kind"], rng.random()
    meta = manifest["metadata"]
    if kind == "PersistentVolumeClaim" and chance < 0.03:
        return {**manifest, "status": {"phase": "Lost"}}
    if kind in ("PersistentVolumeClaim", "PersistentVolume") and chance < 0.06:
        return {**manifest, "metadata": {**meta, "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    if kind == "PersistentVolumeClaim" and meta["name"] in ("wait", "capped") and chance < 0.2:
        annotations = {"volume.kubernetes.io/selected-node": rng.choice(["n0", "n1", "gone"])}
        return {**manifest, "metadata": {**meta, "annotations": annotations}}
    if kind == "CSIDriver" and chance < 0.3:
        return {**manifest, "spec": {**manifest["spec"], "preventPodSchedulingIfMissing": True}}
    if kind == "PersistentVolume" and meta["name"].startswith("local") and chance < 0.15:
        reference = {"namespace": "default", "name": rng.choice(["local", "local-2", "nobody"])}
        return {**manifest, "spec": {**manifest["spec"], "claimRef": reference}}
    return manifest


def draw_pod(rng: Random, name: str, objects: Objects) -> Pod:
    namespace, uid = rng.choice(["default", *NAMESPACES]), f"uid-{name}"
    spec: dict[str, Any] = {
        "containers": [{"name": "main", "resources": {"requests": {"cpu": "100m"}}}],
        "priority": rng.choice([0, 10 * int(name.rpartition("-")[2])]),  # later ones may preempt
        "volumes": random_pod_volumes(rng) if rng.random() < 0.4 else [rng.choice(CONTESTED)],
    }
    meta = {"name": name, "namespace": namespace, "uid": uid, "labels": {"app": "web"}}
    pod = read({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
    assert isinstance(pod, Pod)
    return pod


def read(manifest: dict[str, Any]) -> Any:
    (subject,) = decode_objects(msgspec.json.encode(manifest))
    return subject
