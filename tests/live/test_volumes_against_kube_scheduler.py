"""The engine against the live kube-scheduler: random pods with volumes, one after the other, each decided by both.

A pod is created with a scheduling gate, so that everything it needs (claims of its own, those of ephemeral volumes) is
there and at rest before kube-scheduler looks at it; then the engine decides on what the API server stores, and the gate
is opened. `make compare-volumes` plays 320 pods, `make test` a sample. Compared are the message, or that the node is
one of our best. Pods are deleted now and then: kube-scheduler hears of that by the watch that brings the next pod.

A refusal is compared once it is ours, or has stayed another for as long as a change may take to reach the scheduler:
claims and pods come to it by watches of their own, so its first word may be about a moment ago.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import msgspec
import pytest
import yaml

from live.cluster import refusal
from live.seeds import choose_seed, replay_line
from live.volume_cluster import NAMESPACES, Manifest, VolumeCluster, volume_cluster
from random_volumes import SIZES, UNBOUND, a_claim, a_local_volume, a_request, random_pod_volumes
from testbed.pytest_plugin import OwnBed
from wukong.api.core import Pod
from wukong.api.kinds import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from wukong.api.objects import Objects
from wukong.engine import Decision, Scheduler, Snapshot

WHOLE = 300  # pods of which both those bound and those refused must be many
PODS_TO_COMPARE = int(os.environ.get("WUKONG_VOLUME_PODS") or 40)
NODES = 9
GATE = {"schedulingGates": [{"name": "example.com/wait"}]}
PATIENCE_SECONDS = 60.0
FLAGS = {"scheduler": ["--feature-gates=OpportunisticBatching=false"]}
Record = Callable[[str, object], None]


class Tally(msgspec.Struct):
    pods: int = 0
    bound: int = 0
    messages: dict[str, int] = msgspec.field(default_factory=dict)
    mismatches: list[str] = msgspec.field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"engine against the live kube-scheduler: {self.pods} pods with volumes, {self.bound} bound to a node of "
            f"our top score, {self.pods - self.bound} refused with our message ({len(self.messages)} different ones), "
            f"{len(self.mismatches)} mismatches"
        )


@pytest.mark.slow
async def test_pods_with_volumes_are_decided_as_by_the_live_kube_scheduler(
    own_bed: OwnBed, tmp_path: Path, record_property: Record
) -> None:
    seed = choose_seed()
    bed = own_bed(nodes=0, scheduler_config=_write_config(tmp_path), extra_flags=FLAGS)
    began, tally, rng = time.monotonic(), Tally(), Random(seed)
    async with bed.client() as client, volume_cluster(client, rng, NODES) as cluster:
        for number in range(PODS_TO_COMPARE):
            differences = await decide_both(cluster, rng, f"pod-{number}", tally)
            tally.mismatches += [f"{keep(cluster, number, tmp_path)}: {text}" for text in differences]
            await clear_up(cluster, rng, number)
    record_property("figure", f"{tally}, in {time.monotonic() - began:.0f} s")
    again = replay_line(seed, __file__)
    assert tally.mismatches == [], "\n".join([again, *tally.mismatches])
    assert tally.pods == PODS_TO_COMPARE, again
    assert tally.bound > 0, again
    if tally.pods >= WHOLE:  # the first pods of all find an empty cluster: few of a sample are refused, now and then
        assert min(tally.bound, tally.pods - tally.bound) >= tally.pods // 5, again


def _write_config(folder: Path) -> Path:
    file = folder / "scheduler.yaml"
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    file.write_text(yaml.safe_dump({**kind, "percentageOfNodesToScore": 100, "podMaxBackoffSeconds": 1}))
    return file


async def decide_both(cluster: VolumeCluster, rng: Random, name: str, tally: Tally) -> list[str]:
    """Create one pod with the claims it needs and see what becomes of it; gives what we would have done differently."""
    manifest = draw_pod(rng, name)
    for claim in draw_claims(rng, manifest, cluster):
        await cluster.create(claim)
    await cluster.create(manifest)
    key = f"{manifest['metadata']['namespace']}/{name}"
    wanted = list_claim_keys(manifest)
    await cluster.until(lambda: key in cluster.pods and wanted <= cluster.claims.keys())
    await cluster.come_to_rest()
    pod = msgspec.structs.replace(
        cluster.pods[key], spec=msgspec.structs.replace(cluster.pods[key].spec, scheduling_gates=[])
    )
    decision = Scheduler(Snapshot.of(cluster.list_objects(but=key))).decide(pod)
    open_gate = {"spec": {"schedulingGates": None}}
    await cluster.client.patch(f"{PODS.path(pod.metadata.namespace)}/{name}", open_gate)
    await wait_for(cluster, key, decision)
    tally.pods += 1
    return compare(cluster.pods[key], decision, tally)


async def wait_for(cluster: VolumeCluster, key: str, decision: Decision) -> None:
    def is_bound() -> bool:
        return bool(cluster.pods[key].spec.node_name)

    def is_refused() -> bool:
        refused = refusal(cluster.pods[key])
        return refused is not None and refused.reason == "Unschedulable" and refused.message == decision.message

    try:
        await cluster.until(lambda: is_bound() or is_refused(), PATIENCE_SECONDS)
    except TimeoutError:
        return  # what it says now is compared


def compare(pod: Pod, decision: Decision, tally: Tally) -> list[str]:
    if pod.spec.node_name:
        tally.bound += 1
        if pod.spec.node_name in decision.best:
            return []
        return [f"{pod.key} bound to {pod.spec.node_name}, ours are {decision.best}: {decision.message!r}"]
    refused = refusal(pod)
    message = refused.message if refused is not None else ""
    tally.messages[message] = tally.messages.get(message, 0) + 1
    if message == decision.message:
        return []
    return [f"{pod.key}: kube-scheduler says {message!r}\n  we say {decision.message!r}, {decision.feasible}"]


def draw_pod(rng: Random, name: str) -> Manifest:
    """Claims that are not bound yet are the pod's own; now and then two pods share one."""
    volumes = random_pod_volumes(rng)
    owner = name if rng.random() < 0.85 else f"shared-{rng.randrange(3)}"
    for volume in volumes:
        source = volume.get("persistentVolumeClaim")
        if source is not None and source["claimName"] in UNBOUND:
            source["claimName"] = f"{source['claimName']}.{owner}"
    spec = {
        "containers": [{"name": "main", "image": "web", "resources": {"requests": {"cpu": rng.choice(["50m", "2"])}}}],
        "terminationGracePeriodSeconds": 0,
        "volumes": volumes,
        **GATE,
    }
    meta = {"name": name, "namespace": rng.choice(NAMESPACES), "labels": {"app": rng.choice(["web", "db"])}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def draw_claims(rng: Random, pod: Manifest, cluster: VolumeCluster) -> list[Manifest]:
    namespace = pod["metadata"]["namespace"]
    names = [volume["persistentVolumeClaim"]["claimName"] for volume in _claim_volumes(pod)]
    return [
        a_claim(namespace, name, {**UNBOUND[name.partition(".")[0]], "resources": a_request(rng.choice(SIZES))})
        for name in dict.fromkeys(names)
        if "." in name and f"{namespace}/{name}" not in cluster.claims
    ]


def list_claim_keys(pod: Manifest) -> set[str]:
    """The claims that have to be there before the pod is decided; one is missing on purpose."""
    meta = pod["metadata"]
    names = [volume["persistentVolumeClaim"]["claimName"] for volume in _claim_volumes(pod)]
    names += [f"{meta['name']}-{volume['name']}" for volume in pod["spec"]["volumes"] if "ephemeral" in volume]
    return {f"{meta['namespace']}/{name}" for name in names if name != "missing"}


def _claim_volumes(pod: Manifest) -> list[Manifest]:
    return [volume for volume in pod["spec"]["volumes"] if "persistentVolumeClaim" in volume]


async def clear_up(cluster: VolumeCluster, rng: Random, number: int) -> None:
    """Pods that found no node go, some of the others, so that nodes do not fill up, and what nobody uses any more."""
    for pod in [*cluster.pods.values()]:
        if pod.metadata.namespace in NAMESPACES and (not pod.spec.node_name or rng.random() < 0.12):
            await cluster.delete(PODS, pod)
    in_use = {key for pod in cluster.pods.values() for key in _used_claims(pod)}
    for claim in [*cluster.claims.values()]:
        is_own = "." in claim.metadata.name and ".shared-" not in claim.metadata.name
        if is_own and claim.key not in in_use:
            await cluster.delete(PERSISTENT_VOLUME_CLAIMS, claim)
    await cluster.until(lambda: not any(_is_orphan(cluster, claim.key) for claim in cluster.claims.values()))
    await cluster.come_to_rest()
    for volume in [*cluster.volumes.values()]:
        if volume.status.phase == "Released":
            await cluster.delete(PERSISTENT_VOLUMES, volume)
    free = [volume for volume in cluster.volumes.values() if volume.status.phase == "Available"]
    if len(free) < 5:
        names = sorted(node.metadata.name for node in cluster.others.nodes)
        await cluster.create(a_local_volume(rng, f"local-more-{number}", rng.choice(names)))
        await cluster.until(lambda: f"local-more-{number}" in cluster.volumes)
    await cluster.come_to_rest()


def _used_claims(pod: Pod) -> list[str]:
    names = [volume.persistent_volume_claim.claim_name for volume in pod.spec.volumes if volume.persistent_volume_claim]
    return [f"{pod.metadata.namespace}/{name}" for name in names]


def _is_orphan(cluster: VolumeCluster, key: str) -> bool:
    """The claim of an ephemeral volume whose pod is gone: the garbage collector takes it."""
    owners = cluster.claims[key].metadata.owner_references
    return any(owner.kind == "Pod" and f"{key.partition('/')[0]}/{owner.name}" not in cluster.pods for owner in owners)


def keep(cluster: VolumeCluster, number: int, folder: Path) -> Path:
    """The cluster and the pod, for `wukong explain`."""
    file = folder / f"pod-{number}.json"
    objects: Objects = cluster.list_objects(but="")
    file.write_bytes(msgspec.json.encode({"kind": "List", "items": objects.everything()}))
    return file
