"""A spot strategy by policies alone, from beginning to end: stock kube-scheduler, no extender, the real autoscaler.

examples/sim/spot-strategy.yaml, phase by phase, beside the embedded cluster: where pods are at the end of each phase is
the same, and one judge hears every change on both. Who scales web is the HorizontalPodAutoscaler here.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
import yaml

from live.accounts import DEADLINE_SECONDS, service_account
from live.admitting import Webhooks, patient
from live.pod_metrics import load_of
from live.strategy_on_bed import PODS, SHOP, create_group, looking_on, perform, remove
from live.test_policies import running
from spot_strategy.judge import Judge, Layout
from spot_strategy.phases import FOLDER, count_web, divide_timeline, find_fewest_ready, play_phases, read_strategy
from testbed.client import Client, as_json
from wukong.api.kinds import KINDS
from wukong.app.component import list_permissions
from wukong.app.components.policy import POLICY
from wukong.embedded.scenario.format.fields import TimelineEntry

AUTOSCALERS = f"/apis/autoscaling/v2/namespaces/{SHOP}/horizontalpodautoscalers"
AUTOSCALER = FOLDER / "spot-strategy" / "autoscaler.yaml"
MILLI_PER_POD = 500  # of web: half of what a pod asks for, as its autoscaler has it
PRIORITIES = {"payments": 1000, "web": 100, "cache": 50, "batch": 10}


@pytest.mark.slow(waits=150)
async def test_the_strategy_holds_on_a_real_cluster_as_in_an_embedded_one(webhooks: Webhooks, tmp_path: Path) -> None:
    scenario, judge = read_strategy(), Judge()
    expected = play_phases(scenario, Judge())
    async with webhooks.bed.client() as client:
        await client.create("/api/v1/namespaces", {"metadata": {"name": SHOP}})
        await client.wait_until(f"/api/v1/namespaces/{SHOP}/serviceaccounts/default", lambda account: True)
        rights = list_permissions([POLICY])
        kubeconfig = await service_account(client, webhooks.bed, SHOP, "policy", rights, tmp_path)
        for group in scenario.nodes:
            await create_group(client, group)
        with running(kubeconfig, SHOP, tmp_path / "policy.log", "--split-pause-seconds", "1"):
            for document in scenario.manifests:
                await client.create(KINDS.resource_named(document["kind"]).path(SHOP), document)
            await until_webhook_knows_classes(client)
            await client.create(AUTOSCALERS, yaml.safe_load(AUTOSCALER.read_text("utf-8")))
            async with patient(client):
                await play_on_cluster(client, divide_timeline(scenario), expected, judge)
            await assert_priorities(client)
            await assert_scaled_by_autoscaler(client)
        await remove(client)
    assert judge.violations == []
    assert judge.sizes.keys() >= {2, 10}


async def play_on_cluster(
    client: Client, phases: list[list[TimelineEntry]], expected: list[Layout], judge: Judge
) -> None:
    before: Layout = {}
    async with (
        looking_on(client, judge) as spectator,
        load_of(client, SHOP, "web", 2 * MILLI_PER_POD) as load,
    ):
        for phase, layout in zip(phases, expected, strict=True):
            judge.fewest_ready = find_fewest_ready(phase, count_web(before))
            load.cpu_milli = max([load.cpu_milli, *(MILLI_PER_POD * size for size in sizes_of_web(phase))])
            async with asyncio.TaskGroup() as reclaims:
                for entry in phase:
                    if entry.drain is not None:  # it takes its time, and goes on meanwhile
                        reclaims.create_task(perform(client, entry))
                    elif sizes := sizes_of_web([entry]):
                        await spectator.until_web_has(sizes[0])
                    else:
                        await perform(client, entry)
            await spectator.until(layout)
            before = layout


def sizes_of_web(phase: list[TimelineEntry]) -> list[int]:
    """To which it is to be scaled: by its autoscaler, in steps."""
    return [entry.scale.replicas for entry in phase if entry.scale is not None and entry.scale.name == "web"]


async def until_webhook_knows_classes(client: Client) -> None:
    """The component `policy` makes them; the webhook names only what it knows."""
    for app, priority in PRIORITIES.items():
        pod = {"metadata": {"name": app, "labels": {"app": app}}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
        async with asyncio.timeout(DEADLINE_SECONDS):
            while True:
                answer = as_json(await client.send("POST", PODS, pod, params={"dryRun": "All"}))
                if answer["spec"]["priority"] == priority:
                    break
                await asyncio.sleep(0.05)


async def assert_priorities(client: Client) -> None:
    pods = (await client.get(PODS))["items"]
    assert {(pod["metadata"]["labels"]["app"], pod["spec"]["priority"]) for pod in pods} == set(PRIORITIES.items())


async def assert_scaled_by_autoscaler(client: Client) -> None:
    status = (await client.get(f"{AUTOSCALERS}/web"))["status"]
    assert (status["desiredReplicas"], status["currentReplicas"]) == (10, 10)
    events = (await client.get(f"/api/v1/namespaces/{SHOP}/events", fieldSelector="reason=SuccessfulRescale"))["items"]
    sizes = {int(word) for event in events for word in re.findall(r"New size: (\d+)", event["message"])}
    assert sizes == {4, 6, 8, 10}
