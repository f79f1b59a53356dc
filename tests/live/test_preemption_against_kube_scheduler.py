"""Preemption by the live kube-scheduler: it nominates the node we name and deletes the pods we name.

Every case has three full nodes of its own. All priorities of a case differ, for among pods alike in priority and age
kube-scheduler's choice is arbitrary; a third of the pods is guarded by a budget that allows one disruption or none.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random

from live.cluster import Cluster, await_sentinel, create_nodes, refusal, watched
from live.random_cluster import AT_ONCE, Manifest
from live.seeds import choose_seed, replay_line
from testbed import nodes
from testbed.client import Client
from testbed.pytest_plugin import OwnBed
from wukong.engine import Scheduler

CASES, NODES_EACH, CPUS = 20, 3, 4
BOSS = "boss"
CASE, GUARDED = "case", "guarded"
NAMESPACE = "default"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
BUDGETS = f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets"

Record = Callable[[str, object], None]


async def test_the_live_kube_scheduler_preempts_whom_we_name(own_bed: OwnBed, record_property: Record) -> None:
    seed = choose_seed()
    rng = Random(seed)
    victims = 0
    differences: list[str] = []
    async with own_bed(nodes=0).client() as client:
        await fill(client, rng)
        await await_sentinel(client)
        async with watched(client) as cluster:
            for case in range(CASES):
                gone, found = await preempt_both(cluster, a_preemptor(case, cpus=rng.randint(1, CPUS)))
                victims += gone
                differences += found
    record_property(
        "figure", f"preemption by the live kube-scheduler: {CASES} nodes and {victims} victims as we name them"
    )
    again = replay_line(seed, __file__)
    assert differences == [], "\n".join([again, *differences])


async def preempt_both(cluster: Cluster, manifest: Manifest) -> tuple[int, list[str]]:
    """Create the pod and wait until it has its node; gives the number of victims and what we would have done else."""
    before = set(cluster.pods)
    scheduler = Scheduler(cluster.snapshot())
    created = await cluster.create(manifest)
    decision = scheduler.decide(created)
    assert decision.preemption is not None, decision.message
    refused = refusal(await cluster.settled(created.key))
    await cluster.until(lambda: bool(cluster.pods[created.key].spec.node_name))
    gone = before - set(cluster.pods)
    theirs = (refused and refused.message, cluster.pods[created.key].spec.node_name, sorted(gone))
    ours = (decision.message, decision.preemption.node, sorted(decision.preemption.victims))
    return len(gone), [] if theirs == ours else [f"{created.key}: kube-scheduler {theirs}\n  ours {ours}"]


# The cluster -------------------------------------------------------------------------------------------------------


async def fill(client: Client, rng: Random) -> None:
    """Nodes without room, with pods put there past the scheduler."""
    places = [(case, f"n{case}-{number}") for case in range(CASES) for number in range(NODES_EACH)]
    most = NODES_EACH * CPUS
    for value in [*range(1, most + 1), 10 * most]:
        name = BOSS if value > most else f"value-{value}"
        await client.create("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": value})
    await create_nodes(client, [a_node(name, case) for case, name in places])
    for case in range(CASES):
        values = rng.sample(range(1, most + 1), most)
        for name in (name for number, name in places if number == case):
            for cpus in rng.choice([(1, 1, 1, 1), (2, 1, 1), (2, 2), (1, 3), (4,)]):
                await client.create(PODS, a_filling(f"{name}-{values[-1]}", name, case, values.pop(), cpus, rng))
        await guard(client, case, rng)


async def guard(client: Client, case: int, rng: Random) -> None:
    """Make the budget of a case when all its pods are ready, and wait until it has counted them."""
    for pod in (await client.get(PODS, labelSelector=f"{CASE}={case}"))["items"]:
        await client.wait_until(f"{PODS}/{pod['metadata']['name']}", lambda it: it["status"]["phase"] == "Running")
    labels = {CASE: str(case), GUARDED: "true"}
    guarded = len((await client.get(PODS, labelSelector=",".join(f"{k}={v}" for k, v in labels.items())))["items"])
    allowed = min(rng.choice([0, 1]), guarded)
    spec = {"minAvailable": guarded - allowed, "selector": {"matchLabels": labels}}
    await client.create(BUDGETS, {"metadata": {"name": f"guard-{case}"}, "spec": spec})
    wanted = {"disruptionsAllowed": allowed, "currentHealthy": guarded, "observedGeneration": 1}
    await client.wait_until(f"{BUDGETS}/guard-{case}", lambda it: it.get("status", {}).items() >= wanted.items())


def a_node(name: str, case: int) -> Manifest:
    capacity = {"cpu": str(CPUS)}
    return nodes.a_node(name, now=time.time(), capacity=capacity, labels={CASE: str(case)}, annotations=AT_ONCE)


def a_filling(name: str, node: str, case: int, value: int, cpus: int, rng: Random) -> Manifest:
    labels = {CASE: str(case), **({GUARDED: "true"} if rng.random() < 0.3 else {})}
    spec = {**asking_for(cpus), "nodeName": node, "priorityClassName": f"value-{value}"}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


def a_preemptor(case: int, cpus: int) -> Manifest:
    spec = {**asking_for(cpus), "nodeSelector": {CASE: str(case)}, "priorityClassName": BOSS}
    return {"metadata": {"name": f"boss-{case}", "namespace": NAMESPACE}, "spec": spec}


def asking_for(cpus: int) -> Manifest:
    container = {"name": "main", "image": "web", "resources": {"requests": {"cpu": str(cpus)}}}
    return {"containers": [container], "terminationGracePeriodSeconds": 0}
