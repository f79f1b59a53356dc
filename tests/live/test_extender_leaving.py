"""A real kube-scheduler with our extender beside it: nodes about to go get no more pods, and nobody dies for them."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import msgspec
import pytest

from live.extending import PODS, Extended, ExtendedCluster, Json, counted, scene
from testbed.behaviour import SILENT
from testbed.client import ApiError, Listed, as_json
from wukong.placement.leaving_nodes import NOTICE, TAINTS

pytestmark = pytest.mark.slow

DEADLINE_SECONDS = 120.0
TAINT = "aws-node-termination-handler/spot-itn"
APPS, BUDGETS = "/apis/apps/v1/namespaces/default", "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


class Sign(NamedTuple):
    """How a node says that it leaves: the patch, and the one that takes it back. `part` is of the node's path."""

    given: Json
    withdrawn: Json
    part: str = ""


def tainted(key: str) -> Sign:
    return Sign({"spec": {"taints": [{"key": key, "effect": "NoSchedule"}]}}, {"spec": {"taints": []}})


def condition(type_: str, is_true: bool, message: str = "") -> Json:
    entry = {"type": type_, "status": str(is_true), "reason": "Test", "message": message}
    return {"status": {"conditions": [entry]}}


SIGNS = {
    **{key: tainted(key) for key in TAINTS},
    "VMEventScheduled": Sign(condition("VMEventScheduled", True), condition("VMEventScheduled", False), "/status"),
    "annotation": Sign(
        {"metadata": {"annotations": {NOTICE: "by hand"}}}, {"metadata": {"annotations": {NOTICE: None}}}
    ),
}


@pytest.mark.parametrize("name", SIGNS)
async def test_a_leaving_node_gets_nothing_until_it_stays_after_all(extended: Extended, name: str) -> None:
    """Even from pods that tolerate whatever taint says so."""
    sign, tolerations = SIGNS[name], [{"key": key, "operator": "Exists"} for key in TAINTS]
    async with scene(extended.bed, extended.port) as here:
        await here.nodes("spot", "spot")
        await here.nodes("on-demand", "od")
        assert await here.place("before", tolerations=tolerations) == "spot"
        await here.change("spot", sign.given, sign.part, "strategic")
        assert await here.place("meanwhile", tolerations=tolerations) == "od"
        await here.change("spot", sign.withdrawn, sign.part, "strategic")
        assert await here.place("after", tolerations=tolerations) == "spot"


async def test_a_node_that_shuts_down_gets_nothing(extended: Extended) -> None:
    """As kubelet says it; the pods tolerate the taints that Kubernetes itself has for such a node."""
    tolerations = [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]
    async with scene(extended.bed, extended.port) as here:
        await here.nodes("spot", "spot")
        await here.nodes("on-demand", "od")
        await here.change("spot", {"metadata": {"annotations": {SILENT: "true"}}})  # its hollow kubelet says no more
        await here.change("spot", condition("Ready", False, "some container runtime is down"), "/status", "strategic")
        assert await here.place("unready", tolerations=tolerations) == "spot"
        await here.change("spot", condition("Ready", False, "node is shutting down"), "/status", "strategic")
        assert await here.place("web", tolerations=tolerations) == "od"


async def test_a_pod_that_waits_gets_the_node_when_its_notice_is_withdrawn(extended: Extended) -> None:
    async with scene(extended.bed, extended.port) as here:
        await here.nodes("spot", "spot")
        await here.change("spot", SIGNS["annotation"].given)
        await here.make("web")
        assert f"1 node is leaving: annotation {NOTICE}" in await here.refused("web")
        await here.change("spot", SIGNS["annotation"].withdrawn)
        assert await here.node_of("web") == "spot"


# Preemption --------------------------------------------------------------------------------------------------------


async def test_nobody_is_preempted_for_a_leaving_node(extended: Extended) -> None:
    """One is full: the scheduler asks /preempt. One has room: the refusal by /filter says that victims do not help."""
    tolerations = [{"key": TAINT, "operator": "Exists"}]
    async with scene(extended.bed, extended.port) as here:
        high = await here.priority("high", 500)
        await here.nodes("spot", "full", "roomy", capacity={"cpu": "1"})
        victims = [await here.put("victim-1", "full", cpu="900m"), await here.put("victim-2", "roomy", cpu="200m")]
        for node in ("full", "roomy"):
            await here.change(node, tainted(TAINT).given)
        before = await counted(extended.probes, "wukong_extender_requests_total", verb="preempt", code="200")
        await here.make("high", cpu="500m", priorityClassName=high, tolerations=tolerations)
        await here.refused("high")
        assert await counted(extended.probes, "wukong_extender_requests_total", verb="preempt", code="200") > before
        await here.settle()  # whatever the scheduler would have deleted is on its way out by now
        assert await uids(here, "victim-1", "victim-2") == victims
        assert "nominatedNodeName" not in (await here.client.get(f"{PODS}/high"))["status"]

        await here.nodes("spot", "usual", capacity={"cpu": "1"})  # this one stays
        assert await here.node_of("high") == "usual"


async def test_preemption_happens_on_nodes_that_stay_and_only_there(extended: Extended) -> None:
    tolerations = [{"key": TAINT, "operator": "Exists"}]
    async with scene(extended.bed, extended.port) as here:
        high, low = await here.priority("high", 500), await here.priority("low", 10)
        await here.nodes("spot", "leaving", "staying", capacity={"cpu": "1"})
        spared = await here.put("spared", "leaving", cpu="900m")  # of the lowest priority: the first choice otherwise
        await here.put("victim", "staying", cpu="900m", priorityClassName=low)
        await here.change("leaving", tainted(TAINT).given)
        before = await counted(extended.probes, "wukong_extender_requests_total", verb="preempt", code="200")
        await here.make("high", cpu="500m", priorityClassName=high, tolerations=tolerations)
        await here.client.wait_until_gone(f"{PODS}/victim")
        assert await here.node_of("high") == "staying"
        assert await counted(extended.probes, "wukong_extender_requests_total", verb="preempt", code="200") > before
        assert await uids(here, "spared") == [spared]


async def uids(here: ExtendedCluster, *names: str) -> list[str]:
    """Of those that live and are to live."""
    found = [(await here.client.get(f"{PODS}/{name}"))["metadata"] for name in names]
    return [meta["uid"] for meta in found if "deletionTimestamp" not in meta]


# A spot instance's end ---------------------------------------------------------------------------------------------


async def test_a_drained_deployment_is_whole_again_without_the_leaving_node(extended: Extended) -> None:
    """Its pods are evicted as a drain does it: the API server keeps to the budget, the extender off the node."""
    async with scene(extended.bed, extended.port) as here:
        await here.nodes("spot", "spot-1", "spot-2", capacity={"cpu": "1"})
        await here.nodes("on-demand", "od")
        await here.client.create(f"{APPS}/deployments", deployment(replicas=4))
        await complete(here, 4)
        assert set((await whereabouts(here)).values()) == {"spot-1", "spot-2"}
        leaving = [pod for pod, node in (await whereabouts(here)).items() if node == "spot-1"]
        await budget(here, {"minAvailable": 4}, allows=0)
        await here.change("spot-1", SIGNS["annotation"].given)
        with pytest.raises(ApiError, match="429 TooManyRequests"):
            await evict(here, leaving[0])
        await here.client.delete(f"{BUDGETS}/web")
        await budget(here, {"maxUnavailable": 1}, allows=1)
        for pod in leaving:
            await here.client.wait_until(f"{BUDGETS}/web", lambda found: found["status"]["disruptionsAllowed"] == 1)
            await evict(here, pod)
            await here.client.wait_until_gone(f"{PODS}/{pod}")
        await all_placed(here, 4)  # the Deployment's status may still be that of before the last eviction
        await complete(here, 4)
        now = await whereabouts(here)
        assert set(now.values()) == {"spot-2", "od"}  # spot first, and the rest where there is room
        assert not set(leaving) & set(now)
        await here.client.delete(f"{BUDGETS}/web")


def deployment(replicas: int) -> Json:
    container = {"name": "main", "image": "web", "resources": {"requests": {"cpu": "300m"}}}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": spec}
    selector = {"matchLabels": {"app": "web"}}
    return {"metadata": {"name": "web"}, "spec": {"replicas": replicas, "selector": selector, "template": template}}


async def complete(here: ExtendedCluster, replicas: int) -> None:
    wanted = {"replicas": replicas, "availableReplicas": replicas}.items()
    await here.client.wait_until(f"{APPS}/deployments/web", lambda found: found.get("status", {}).items() >= wanted)


def placement(pod: msgspec.Raw) -> tuple[str, str]:
    """Its name and its node."""
    document = as_json(pod)
    return document["metadata"]["name"], document["spec"].get("nodeName", "")


async def all_placed(here: ExtendedCluster, replicas: int) -> None:
    """Wait until there are as many pods as that, every one on a node."""
    nodes: dict[str, str] = {}
    async with asyncio.timeout(DEADLINE_SECONDS):
        async for change in here.client.follow(PODS, labelSelector="app=web"):
            if isinstance(change, Listed):
                nodes = dict(map(placement, change.items))
            else:
                name, node = placement(change.object)
                nodes[name] = node
                if change.type == "DELETED":
                    del nodes[name]
            if len(nodes) == replicas and all(nodes.values()):
                return


async def budget(here: ExtendedCluster, spec: Json, allows: int) -> None:
    body = {"metadata": {"name": "web"}, "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec}}
    await here.client.create(BUDGETS, body)
    wanted = {"currentHealthy": 4, "disruptionsAllowed": allows}.items()
    await here.client.wait_until(f"{BUDGETS}/web", lambda found: found.get("status", {}).items() >= wanted)


async def evict(here: ExtendedCluster, pod: str) -> None:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}
    await here.client.create(f"{PODS}/{pod}/eviction", body)


async def whereabouts(here: ExtendedCluster) -> dict[str, str]:
    """Pod → node."""
    found = (await here.client.get(PODS, labelSelector="app=web"))["items"]
    return {pod["metadata"]["name"]: pod["spec"]["nodeName"].removesuffix(here.ending) for pod in found}
