"""The engine against the live kube-scheduler: random pods one after the other, each decided by both.

Before a pod is created the cluster is at rest, and the engine decides on the very objects the API server stores. Why
kube-scheduler then sees the same cluster:

    nodes, namespaces, …   all made before the first pod. The last node is a sentinel, and a pod bound to it shows that
                           kube-scheduler has seen every node before it in its final state
    bound pods             counted from when they are assumed, before anybody can see them bound; none is deleted
    unschedulable pods     deleted, and gone, before the next one is created: both come by the same watch, in this order
    preemption             priorities are such that nobody is preempted

kube-scheduler breaks ties at random, so a seed makes the same pods but not quite the same cluster. Therefore a mismatch
also leaves a file behind, the cluster as it was and the pod, for `wukong explain` and for a test of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import msgspec
import pytest
import yaml

from live.cluster import Cluster, furnish, refusal, watched
from live.random_cluster import Manifest, random_pod
from live.seeds import choose_seed, replay_line
from testbed.client import Client
from testbed.pytest_plugin import OwnBed
from wukong.admission import admit
from wukong.api.core import Pod
from wukong.api.decode import decode_objects
from wukong.api.objects import Objects
from wukong.engine import Decision, Scheduler

PODS, NODES = 600, 25
FLAGS = {
    # It schedules look-alikes from a list kept of the pod before, whose order need not be that of now.
    "scheduler": ["--feature-gates=OpportunisticBatching=false"],
    # Pods owned by a ReplicaSet that asked for none would be deleted.
    "controller-manager": ["--controllers=*,-replicaset-controller"],
}

Record = Callable[[str, object], None]


class Tally(msgspec.Struct):
    pods: int = 0
    bound: int = 0
    unique: int = 0  # of several nodes one had the highest total
    unschedulable: int = 0
    messages: set[str] = msgspec.field(default_factory=set)
    mismatches: list[str] = msgspec.field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"engine against the live kube-scheduler: {self.pods} pods, {self.bound} bound to a node with our top "
            f"score ({self.unique} with a unique one among several), {self.unschedulable} unschedulable with our "
            f"message ({len(self.messages)} different ones), {len(self.mismatches)} mismatches"
        )


@pytest.mark.slow
async def test_the_engine_decides_like_the_live_kube_scheduler(
    own_bed: OwnBed, tmp_path: Path, record_property: Record
) -> None:
    seed = choose_seed()
    bed = own_bed(nodes=0, scheduler_config=scoring_every_node(tmp_path), extra_flags=FLAGS)
    began = time.monotonic()
    async with bed.client() as client:
        tally = await compare(client, Random(seed), tmp_path)
    record_property("figure", f"{tally}, in {time.monotonic() - began:.0f} s")
    again = replay_line(seed, __file__)
    assert tally.mismatches == [], "\n".join([again, *tally.mismatches])
    assert tally.pods >= 500, again
    assert tally.unique >= 200, again
    assert tally.unschedulable >= 50, again


def scoring_every_node(folder: Path) -> Path:
    file = folder / "scheduler.yaml"
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    file.write_text(yaml.safe_dump({**kind, "percentageOfNodesToScore": 100}))
    return file


async def compare(client: Client, rng: Random, folder: Path) -> Tally:
    tally = Tally()
    owners = await furnish(client, rng, NODES)
    async with watched(client) as cluster:
        for number in range(PODS):
            manifest = random_pod(rng, f"pod-{number}", owners)
            differences = await decide_both(cluster, manifest, tally)
            if differences:
                kept = keep(cluster.objects, manifest, folder / f"pod-{number}.json")
                tally.mismatches += [f"{kept}: {text}" for text in differences]
    return tally


async def decide_both(cluster: Cluster, manifest: Manifest, tally: Tally) -> list[str]:
    """Create one pod and see what becomes of it; gives what we would have done differently."""
    scheduler = Scheduler(cluster.snapshot())
    created = await cluster.create(manifest)
    decision = scheduler.decide(created)
    differences = differences_of_admission(scheduler, manifest, cluster.objects, decision)
    settled = await cluster.settled(created.key)
    tally.pods += 1
    refused = refusal(settled)
    if refused is None:
        node = settled.spec.node_name
        tally.bound += 1
        tally.unique += len(decision.best) == 1 and len(decision.feasible) > 1
        if node not in decision.best:
            differences.append(f"bound to {node}, ours are {decision.best}: {shown(decision)}")
        return differences
    tally.unschedulable += 1
    tally.messages.add(refused.message)
    if refused.message != decision.message:
        differences.append(f"kube-scheduler says {refused.message!r}\n  we say {decision.message!r}: {shown(decision)}")
    await cluster.delete(created.key)
    return differences


def differences_of_admission(scheduler: Scheduler, manifest: Manifest, objects: Objects, stored: Decision) -> list[str]:
    """The API server and `wukong.admission` make the same of a manifest, as far as decisions go."""
    (given,) = decode_objects(msgspec.json.encode(manifest))
    assert isinstance(given, Pod)
    ours = scheduler.decide(admit(given, objects))
    if (ours.feasible, ours.final, ours.message) == (stored.feasible, stored.final, stored.message):
        return []
    return [f"as admitted by us: {shown(ours)}\n  as stored: {shown(stored)}"]


def keep(objects: Objects, manifest: Manifest, file: Path) -> Path:
    """The cluster before the pod, and the pod."""
    items = objects.everything()
    file.write_bytes(msgspec.json.encode({"kind": "List", "items": [*items, manifest]}))
    return file


def shown(decision: Decision) -> str:
    points = {plugin: values.tolist() for plugin, values in decision.scores.items()}
    return f"feasible {decision.feasible}, totals {decision.final}, points {points}, message {decision.message!r}"
