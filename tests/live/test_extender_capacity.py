"""A real kube-scheduler with our extender beside it: spot first, on-demand for critical pods, and the fallback."""

from __future__ import annotations

from pathlib import Path

import pytest

from live.extending import (
    CAPACITY,
    PODS,
    Extended,
    ExtendedCluster,
    Json,
    ask,
    counted,
    extender_running,
    free_port,
    scene,
    scene_beside,
    seed_config,
)
from testbed.programs import Programs

pytestmark = pytest.mark.slow


async def test_pods_go_to_spot_and_to_on_demand_once_spot_is_cordoned_or_full(extended: Extended) -> None:
    async with scene(extended.bed, extended.port) as here:
        await spot_then_on_demand(here)


async def test_the_same_with_the_configuration_that_seed_004_has(
    extended: Extended, testbed_programs: Programs, tmp_path: Path
) -> None:
    """No node cache, so nodes travel in full; no preempt verb, not ignorable, weight 1."""
    port = free_port()
    with extender_running(extended.bed.kubeconfig, port, tmp_path / "extender.log"):
        async with scene_beside(extended, testbed_programs, seed_config(tmp_path, port), port) as here:
            await spot_then_on_demand(here)


async def spot_then_on_demand(here: ExtendedCluster) -> None:
    await here.nodes("spot", "spot-1", "spot-2", capacity={"cpu": "1"})
    await here.nodes("on-demand", "od-1", "od-2")
    assert {await here.place(f"first-{number}", cpu="200m") for number in range(4)} <= {"spot-1", "spot-2"}
    await here.cordon("spot-1")
    assert await here.place("second") == "spot-2"
    assert (await here.place("large", cpu="1")).startswith("od-")  # more than spot-2 has left
    await here.cordon("spot-2")
    assert (await here.place("third")).startswith("od-")
    await here.cordon("spot-2", False)
    assert await here.place("fourth") == "spot-2"


async def test_critical_pods_go_on_demand_and_to_spot_when_that_is_full(extended: Extended) -> None:
    """Critical is who has the priority of seed 004's class, 1000, or more."""
    async with scene(extended.bed, extended.port) as here:
        await here.nodes("spot", "spot")
        await here.nodes("on-demand", "od", capacity={"cpu": "1"})
        critical = await here.priority("high-priority", 1000)
        usual = await here.priority("usual", 999)
        assert await here.place("critical-1", cpu="600m", priorityClassName=critical) == "od"
        assert await here.place("usual", cpu="100m", priorityClassName=usual) == "spot"
        assert await here.place("critical-2", cpu="600m", priorityClassName=critical) == "spot"
        assert await here.place("critical-3", cpu="300m", priorityClassName=critical) == "od"


async def test_where_all_is_full_a_critical_pod_preempts_on_demand(extended: Extended) -> None:
    """The scheduler alone would choose the spot node, whose pod counts less."""
    async with scene(extended.bed, extended.port) as here:
        critical, low = await here.priority("high-priority", 1000), await here.priority("low", 10)
        await here.nodes("spot", "spot", capacity={"cpu": "1"})
        await here.nodes("on-demand", "od", capacity={"cpu": "1"})
        await here.put("spared", "spot", cpu="900m")
        await here.put("victim", "od", cpu="900m", priorityClassName=low)
        await here.settle()
        assert await here.place("critical", cpu="500m", priorityClassName=critical) == "od"
        assert [pod["metadata"]["name"] for pod in (await here.client.get(PODS))["items"]] == ["critical", "spared"]


async def test_hard_and_soft_node_affinity_hold_beside_the_extender(extended: Extended) -> None:
    async with scene(extended.bed, extended.port) as here:
        await here.nodes("spot", "spot-a", labels={"disk": "hdd"})
        await here.nodes("spot", "spot-b", labels={"disk": "ssd"})
        await here.nodes("on-demand", "od", labels={"disk": "ssd"})
        both = {**required(CAPACITY, "spot"), **preferred(CAPACITY, "on-demand")}  # seed 004's example
        assert (await here.place("both", affinity={"nodeAffinity": both})).startswith("spot-")
        assert await here.place("hard", affinity={"nodeAffinity": required(CAPACITY, "on-demand")}) == "od"
        assert await here.place("soft", affinity={"nodeAffinity": preferred("disk", "ssd")}) == "spot-b"
        assert (await here.place("spot", affinity={"nodeAffinity": preferred(CAPACITY, "spot")})).startswith("spot-")
        await here.cordon("spot-a")
        await here.cordon("spot-b")
        assert await here.place("fallen", affinity={"nodeAffinity": preferred(CAPACITY, "spot")}) == "od"
        await here.make("stuck", affinity={"nodeAffinity": both})
        assert "didn't match Pod's node affinity" in await here.refused("stuck")


def required(key: str, value: str) -> Json:
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term(key, value)]}}


def preferred(key: str, value: str) -> Json:
    return {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": term(key, value)}]}


def term(key: str, value: str) -> Json:
    return {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}


async def test_a_fallback_is_told_as_one_series_of_events_and_counted(extended: Extended) -> None:
    async with scene(extended.bed, extended.port) as here:
        await here.nodes("on-demand", "od")
        before = await counted(extended.probes, "wukong_extender_fallbacks_total")
        assert await here.place("web") == "od"
        event = await here.event("CapacityFallback", "web")
        assert event["note"] == "No spot node is left for spot-first; using on-demand (no policy)."
        assert "series" not in event
        # The scheduler asks again about a pod that could not be bound: it is the same story.
        pod = await here.client.get(f"{PODS}/web")
        await ask(extended.port, "filter", pod, [here.full("od")])
        path = f"/apis/events.k8s.io/v1/namespaces/default/events/{event['metadata']['name']}"
        again = await here.client.wait_until(path, lambda found: bool(found.get("series")))
        assert again["series"]["count"] == 2
        assert len(await here.events("CapacityFallback")) == 1
        assert await counted(extended.probes, "wukong_extender_fallbacks_total") == before + 2


async def test_pods_of_a_daemon_set_are_no_fallback(extended: Extended) -> None:
    async with scene(extended.bed, extended.port) as here:
        await here.nodes("spot", "spot")
        await here.nodes("on-demand", "od")
        await here.cordon("spot")
        before = await counted(extended.probes, "wukong_extender_fallbacks_total")
        container = {"name": "main", "image": "agent"}
        template = {"metadata": {"labels": {"app": "agent"}}, "spec": {"containers": [container]}}
        spec = {"selector": {"matchLabels": {"app": "agent"}}, "template": template}
        await here.client.create(
            "/apis/apps/v1/namespaces/default/daemonsets", {"metadata": {"name": "agent"}, "spec": spec}
        )
        is_everywhere = {"desiredNumberScheduled": 2, "numberReady": 2}.items()
        path = "/apis/apps/v1/namespaces/default/daemonsets/agent"
        await here.client.wait_until(path, lambda found: found["status"].items() >= is_everywhere)
        assert await here.place("web") == "od"  # Events are written in order: this one comes last
        await here.event("CapacityFallback", "web")
        assert len(await here.events("CapacityFallback")) == 1
        assert await counted(extended.probes, "wukong_extender_fallbacks_total") == before + 1
