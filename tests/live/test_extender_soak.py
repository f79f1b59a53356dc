"""Engine and extender against the live kube-scheduler with our extender beside it: random pods under random policies.

As test_engine_against_kube_scheduler.py, which says why both see the same cluster. Nodes, policies and prices are there
before the extender starts. Of pods it hears a moment later than kube-scheduler assumes them, so before a pod is created
the extender is asked until it answers as predicted, which it must. Usage is unknown.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import msgspec
import pytest

from live.cluster import Cluster, as_pod, furnish_with, refusal, watched
from live.extending import ask, extender_running, free_port, install_policies, put_policy, scheduler_config
from live.random_cluster import GPU, Manifest, random_pod
from live.random_policies import mixed_nodes, random_policies
from live.seeds import choose_seed, replay_line
from live.test_engine_against_kube_scheduler import FLAGS, shown
from testbed.client import Client
from testbed.pytest_plugin import OwnBed
from wukong.api.core import Namespace, Node, Pod
from wukong.api.decode import decode_objects
from wukong.api.kinds import KINDS
from wukong.api.meta import Object
from wukong.engine import Decision, Scheduler
from wukong.replies.extender.plugin import DEFAULT_ENTRY, add_extender
from wukong.replies.extender.verbs import Extender, Settings
from wukong.state import State

pytestmark = pytest.mark.slow

PODS, NODES, POLICIES = 150, 24, 16
AGREE_SECONDS = 60.0
Record = Callable[[str, object], None]


class Tally(msgspec.Struct):
    pods: int = 0
    bound: int = 0
    unique: int = 0  # of several nodes one had the highest total
    refused_some: int = 0  # the extender refused some of the nodes offered
    moved: int = 0  # the engine alone would have put it elsewhere
    unschedulable: int = 0
    mismatches: list[str] = msgspec.field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"engine and extender against the live kube-scheduler: {self.pods} pods, {self.bound} bound to a node with "
            f"our top score ({self.unique} with a unique one among several, {self.refused_some} after refusals, "
            f"{self.moved} elsewhere than without policies), "
            f"{self.unschedulable} unschedulable with our message, {len(self.mismatches)} mismatches"
        )


async def test_pods_land_where_engine_and_extender_together_say(
    own_bed: OwnBed, tmp_path: Path, record_property: Record
) -> None:
    seed = choose_seed()
    rng, port = Random(seed), free_port()
    bed = own_bed(nodes=0, scheduler_config=scheduler_config(tmp_path, port), extra_flags=FLAGS)
    began = time.monotonic()
    async with bed.client() as client:
        policies = random_policies(rng, POLICIES)
        await install_policies(client)
        owners = await furnish_with(client, mixed_nodes(rng, NODES, time.time()))
        for policy in policies:
            meta = policy["metadata"]
            await put_policy(client, policy["kind"], meta["name"], policy["spec"], meta.get("namespace", ""))
        with extender_running(bed.kubeconfig, port, tmp_path / "extender.log", "--gpu-resources", GPU):
            tally = await compare(client, rng, policies, owners, port)
    record_property("figure", f"{tally}, in {time.monotonic() - began:.0f} s")
    again = replay_line(seed, __file__)
    assert tally.mismatches == [], "\n".join([again, *tally.mismatches])
    assert tally.bound >= 40, (again, tally)
    assert tally.refused_some >= 15, (again, tally)
    assert tally.moved >= 8, (again, tally)


async def compare(client: Client, rng: Random, policies: list[Manifest], owners: dict[str, str], port: int) -> Tally:
    tally = Tally()
    async with watched(client) as cluster:
        extender = Extender(mirror(cluster, policies), Settings(gpu_names=(GPU,)))
        for number in range(PODS):
            manifest = random_pod(rng, f"pod-{number}", owners)
            tally.mismatches += await decide_both(cluster, extender, manifest, port, tally)
    return tally


def mirror(cluster: Cluster, policies: list[Manifest]) -> State:
    state = State()
    found: dict[type[Object], list[Object]] = {
        Node: [*cluster.objects.of("Node")],
        Namespace: [*cluster.objects.of("Namespace")],
    }
    for policy in decode_objects(msgspec.json.encode({"kind": "List", "items": [with_version(it) for it in policies]})):
        found.setdefault(type(policy), []).append(policy)
    for kind, objects in found.items():
        state.replace(KINDS.group_kind_of(kind), objects)
    return state


def with_version(policy: Manifest) -> Manifest:
    return {"apiVersion": "placement.novasphere.dev/v1alpha1", **policy}


async def decide_both(cluster: Cluster, extender: Extender, manifest: Manifest, port: int, tally: Tally) -> list[str]:
    """Create one pod and see what becomes of it; gives what we would have done differently."""
    path = f"/api/v1/namespaces/{manifest['metadata']['namespace']}/pods"
    admitted = await cluster.client.send("POST", path, manifest, params={"dryRun": "All"})
    pod, now = as_pod(admitted), time.time()
    alone = Scheduler(cluster.snapshot())
    extender.state.replace("Pod", cluster.pods.values())
    scheduler, asked = add_extender(alone, extender, DEFAULT_ENTRY, now)
    decision, differences = scheduler.decide(pod), []
    answer = asked.answer_of(scheduler.view_of(pod))
    kept = [name for name, is_kept in zip(answer.names, answer.filtered.kept.tolist(), strict=True) if is_kept]
    if not await agrees(port, msgspec.json.decode(admitted), answer.names, kept):
        differences.append(f"{pod.key}: of {answer.names} the extender does not keep {kept}")
    created = await cluster.create(manifest)
    settled = await cluster.settled(created.key)
    tally.pods += 1
    tally.refused_some += 0 < len(kept) < len(answer.names)
    return differences + await outcome(cluster, settled, decision, alone.decide(pod), tally)


async def outcome(cluster: Cluster, settled: Pod, decision: Decision, alone: Decision, tally: Tally) -> list[str]:
    refused, node = refusal(settled), settled.spec.node_name
    if refused is None:
        tally.bound += 1
        tally.unique += len(decision.best) == 1 and len(decision.feasible) > 1
        tally.moved += node not in alone.best
        if node in decision.best:
            return []
        return [f"{settled.key}: bound to {node}, ours are {decision.best}: {shown(decision)}"]
    tally.unschedulable += 1
    await cluster.delete(settled.key)
    if refused.message == decision.message:
        return []
    return [f"{settled.key}: kube-scheduler says {refused.message!r}\n  we say {decision.message!r}: {shown(decision)}"]


async def agrees(port: int, pod: Manifest, names: list[str], kept: list[str]) -> bool:
    """Whether the extender keeps these nodes of those, as soon as it knows all pods."""
    if not names:  # then it is not asked
        return True
    deadline = time.monotonic() + AGREE_SECONDS
    while time.monotonic() < deadline:
        if (await ask(port, "filter", pod, names))["NodeNames"] == kept:
            return True
        await asyncio.sleep(0.02)
    return False
