"""A real kube-scheduler with our extender beside it: what policies say holds for the next pod."""

from __future__ import annotations

import pytest

from live.accounts import used_by, when
from live.extending import (
    ACCOUNT,
    CLUSTER_POLICY,
    PERMISSIONS,
    PODS,
    Extended,
    ExtendedCluster,
    Json,
    ask,
    counted,
    scene,
)
from live.test_policies import KNOWN_SCHEDULING

pytestmark = pytest.mark.slow

WEB = {"app": "web"}
GPU = "nvidia.com/gpu"
PRICE = "placement.novasphere.dev/price-per-hour"


def strategy(name: str, **more: object) -> Json:
    return {"selector": {"matchLabels": WEB}, "capacity": {"strategy": name}, **more}


async def one_of_each(here: ExtendedCluster) -> None:
    await here.nodes("spot", "spot")
    await here.nodes("on-demand", "od")


async def test_a_policy_holds_for_the_next_pod_as_it_is_made_changed_and_deleted(extended: Extended) -> None:
    async with scene(extended.bed, extended.port) as here:
        await one_of_each(here)
        for number, (name, node) in enumerate(
            (("on-demand-only", "od"), ("spot-only", "spot"), ("on-demand-first", "od"))
        ):
            await here.policy("web", strategy(name))
            assert await here.place(f"web-{number}", labels=WEB) == node
            assert await here.place(f"other-{number}") == "spot"  # no policy selects it
        await here.drop_policy("web")
        assert await here.place("web-last", labels=WEB) == "spot"


async def test_only_means_only(extended: Extended) -> None:
    async with scene(extended.bed, extended.port) as here:
        await here.nodes("on-demand", "od")
        await here.policy("web", strategy("spot-only"))
        await here.make("web", labels=WEB)
        assert "1 not spot: spot-only (PlacementPolicy default/web)" in await here.refused("web")
        await here.nodes("spot", "spot")
        assert await here.node_of("web") == "spot"


async def test_the_default_policy_holds_where_no_other_does(extended: Extended) -> None:
    async with scene(extended.bed, extended.port) as here:
        await one_of_each(here)
        await here.policy("default", {"capacity": {"strategy": "on-demand-first"}}, CLUSTER_POLICY)
        await here.policy("web", strategy("spot-first"))
        assert await here.place("other") == "od"
        assert await here.place("web", labels=WEB) == "spot"
        await here.drop_policy("default", CLUSTER_POLICY)
        assert await here.place("another") == "spot"


async def test_a_policy_that_observes_changes_nothing_but_reports(extended: Extended) -> None:
    async with scene(extended.bed, extended.port) as here:
        await one_of_each(here)
        await here.cordon("spot")
        labels = {"reason": "capacity", "mode": "observe"}
        before = await counted(extended.probes, "wukong_extender_nodes_refused_total", **labels)
        await here.policy("web", strategy("spot-only", mode="Observe"))
        assert await here.place("web", labels=WEB) == "od"
        event = await here.event("PlacementObserved", "web")
        assert event["note"] == (
            "PlacementPolicy default/web observes only: it would have kept 0 of 1 nodes: "
            "1 not spot: spot-only (PlacementPolicy default/web)."
        )
        assert await counted(extended.probes, "wukong_extender_nodes_refused_total", **labels) == before + 1


async def test_a_policy_that_never_preempts_keeps_its_pod_waiting(extended: Extended) -> None:
    never = {"schedulingPolicy": {"preemptionPolicy": "Never"}}
    async with scene(extended.bed, extended.port) as here:
        high = await here.priority("high", 500)
        await here.nodes("spot", "spot", capacity={"cpu": "1"})
        assert await here.place("victim", cpu="900m") == "spot"
        await here.policy("web", {"selector": {"matchLabels": WEB}, "scheduling": never})
        await here.make("patient", cpu="500m", labels=WEB, priorityClassName=high)
        await here.refused("patient")
        await here.settle()
        assert "deletionTimestamp" not in (await here.client.get(f"{PODS}/victim"))["metadata"]
        await here.make("impatient", cpu="500m", priorityClassName=high)
        assert await here.node_of("impatient") == "spot"


# What users were shown for virtual machines ------------------------------------------------------------------------


async def test_seed_001_requires_a_free_gpu(extended: Extended) -> None:
    async with scene(extended.bed, extended.port) as here:
        await here.nodes("spot", "plain")
        await here.nodes("on-demand", "gpu", capacity={GPU: "1"})
        await here.policy("web", {"selector": {"matchLabels": WEB}, "scheduling": KNOWN_SCHEDULING["resource-aware"]})
        assert await here.place("web", labels=WEB) == "gpu"
        assert await here.place("other") == "plain"
        container = {"name": "main", "image": "model", "resources": {"limits": {GPU: "1"}}}
        assert await here.place("user", containers=[container]) == "gpu"  # takes the only one
        await here.make("late", labels=WEB)
        assert "less than gpu 1 free (PlacementPolicy default/web)" in await here.refused("late")


async def test_seed_001_prefers_cheap_nodes(extended: Extended) -> None:
    async with scene(extended.bed, extended.port) as here:
        await here.nodes("spot", "dear", labels={PRICE: "2"})
        await here.nodes("spot", "cheap", labels={PRICE: "0.5"})
        scheduling = KNOWN_SCHEDULING["custom-scheduled"]
        await here.policy("web", {"selector": {"matchLabels": WEB}, "scheduling": scheduling})
        assert {await here.place(f"web-{number}", labels=WEB, cpu="200m") for number in range(3)} == {"cheap"}
        pod = await here.client.get(f"{PODS}/web-0")
        scores = await ask(extended.port, "prioritize", pod, [here.full("dear"), here.full("cheap")])
        # costFactor 0.3, usage unknown: 100 · (0.7 · 0.5 + 0.3 · cheapness)
        assert [entry["Score"] for entry in scores] == [4, 7]
        await here.cordon("cheap")
        assert await here.place("web-last", labels=WEB) == "dear"


# Its rights --------------------------------------------------------------------------------------------------------


async def test_the_component_uses_exactly_the_rights_it_asks_for(extended: Extended) -> None:
    account = f"system:serviceaccount:default:{ACCOUNT}"
    granted = {(it.group, it.resource, verb) for it in PERMISSIONS for verb in it.verbs}
    async with scene(extended.bed, extended.port) as here:
        await here.nodes("on-demand", "od")
        await here.place("web")  # a fallback, hence an Event; told twice, a series
        await ask(extended.port, "filter", await here.client.get(f"{PODS}/web"), [here.full("od")])
        await when(
            lambda: used_by(extended.bed, account) == granted,
            lambda: f"{used_by(extended.bed, account)} is not {granted}: {extended.log.read_text()[-2000:]}",
        )


async def test_what_it_does_is_counted(extended: Extended) -> None:
    verbs = ("filter", "prioritize")
    async with scene(extended.bed, extended.port) as here:
        await one_of_each(here)

        async def now() -> list[float]:
            names = [("wukong_extender_requests_total", {"verb": verb, "code": "200"}) for verb in verbs]
            names += [("wukong_extender_seconds_count", {"verb": verb}) for verb in verbs]
            names.append(("wukong_extender_nodes_refused_total", {"reason": "capacity", "mode": "enforce"}))
            return [await counted(extended.probes, name, **labels) for name, labels in names]

        before = await now()
        assert await here.place("web") == "spot"
        # Asked once each; with one node left the scheduler does not ask for points.
        assert [after - was for after, was in zip(await now(), before, strict=True)] == [1, 0, 1, 0, 1]
