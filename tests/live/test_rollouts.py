"""Rollouts on a real control plane: what the CRD refuses, blue/green and canary with exactly the rights of the
component, and what people ask of them by `wukong rollout`.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from live.accounts import service_account, used_by
from live.test_policies import install, path_of, until_served
from rollouts import PREFERRED, REQUIRED, a_rollout, a_service, blue_green, canary
from testbed.client import ApiError, Client
from testbed.pytest_plugin import Bed, OwnBed
from wukong.api.rollout import HASH
from wukong.app.component import list_permissions
from wukong.app.components.rollout import ROLLOUT
from wukong.ports import Document

ACCOUNT = "system:serviceaccount:default:rollout"
ROLLOUTS = "/apis/placement.novasphere.dev/v1alpha1/namespaces/default/rollouts"
DEADLINE_SECONDS = 120.0
# No version is one too many here, and Events that come again may not.
UNUSED = {
    ("apps", "replicasets", "delete"),
    ("events.k8s.io", "events", "patch"),
    ("placement.novasphere.dev", "rollouts/finalizers", "update"),  # asked for by an admission plugin, never called
}
BAD = [
    ({}, "expected exactly one of blueGreen (or bluegreen) and canary"),
    ({"blueGreen": {}}, "expected the name of the Service that traffic goes through"),
    (blue_green(previewService="web"), "expected another Service than activeService"),
    (blue_green(antiAffinity={}), "expected exactly one of requiredDuring"),
    (blue_green(onDeadlock="Panic"), "expected Yield or Promote"),
    (
        blue_green(antiAffinity={"preferredDuringSchedulingIgnoredDuringExecution": {"weight": 0}}),
        "expected a weight from 1 to 100",
    ),
    (canary({}), "expected exactly one of setWeight, setReplicas and pause"),
    (canary({"setWeight": 101}), "expected a weight from 0 to 100"),
    (canary({"pause": {"duration": "soon"}}), "expected seconds, or a duration"),
    (canary(maxSurge="many"), "expected a number of pods, or a share"),
    (canary(stableService="a", canaryService="a"), "expected another Service than stableService"),
]


@contextlib.contextmanager
def component_running(kubeconfig: Path, log: Path) -> Iterator[None]:
    """Until the context ends; then it is ended with SIGTERM, which must succeed."""
    words = ["run", "--components", "rollout", "--kubeconfig", str(kubeconfig), "--lease", "default/wukong"]
    with log.open("wb") as output:
        process = subprocess.Popen([sys.executable, "-m", "wukong", *words], stdout=output, stderr=output)
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(30)
    assert code == 0, log.read_text()


async def until_phase(client: Client, phase: str, revision: int, log: Path) -> Document:
    rollout: Document = {}
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while True:
                rollout = await client.get(f"{ROLLOUTS}/web")
                status = rollout.get("status") or {}
                is_observed = status.get("observedGeneration") == rollout["metadata"]["generation"]
                if is_observed and (status.get("phase"), status.get("revision")) == (phase, revision):
                    return rollout
                await asyncio.sleep(0.2)
    except TimeoutError:
        pytest.fail(f"{rollout.get('status')}\n{log.read_text()}")


async def selected_hash(client: Client) -> str:
    service = await client.get("/api/v1/namespaces/default/services/web")
    return str(service["spec"]["selector"].get(HASH, ""))


async def ask(bed: Bed, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "wukong", "rollout", *words, "--kubeconfig", str(bed.kubeconfig), "-n", "default"]
    return await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=120)


def a_small_rollout(strategy: Document, image: str) -> Document:
    document = a_rollout(strategy, image, replicas=3)
    document["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m"}}
    return document


async def change_image(client: Client, image: str, **spec: Any) -> None:
    template = a_small_rollout({}, image)["spec"]["template"]
    await client.patch(f"{ROLLOUTS}/web", {"spec": {"template": template, **spec}})


@pytest.mark.slow(waits=30)
async def test_versions_replace_each_other_on_a_real_control_plane(own_bed: OwnBed, tmp_path: Path) -> None:
    bed, log = own_bed(nodes=3), tmp_path / "run.log"
    await install(bed)
    async with bed.client() as client:
        await until_served(client, path_of("Rollout", "default"))
        await assert_refusals(client)
        kubeconfig = await service_account(client, bed, "default", "rollout", list_permissions([ROLLOUT]), tmp_path)
        with component_running(kubeconfig, log):
            await play_blue_green(client, bed, log)
            await play_canary(client, log)
            await assert_scalable(client)
            await play_deadlock(client, log)
            await play_node_order(client, log)
    granted = {
        (permission.group, permission.resource, verb)
        for permission in list_permissions([ROLLOUT])
        for verb in permission.verbs
        if not permission.in_own_namespace
    }
    missing = granted - UNUSED - used_by(bed, ACCOUNT)
    assert missing == set(), sorted(missing)


async def assert_refusals(client: Client) -> None:
    for strategy, text in BAD:
        with pytest.raises(ApiError) as caught:
            await client.create(f"{ROLLOUTS}?dryRun=All", a_rollout(strategy))
        assert text in str(caught.value)
    seeds = ({"bluegreen": {"activeService": "web", "antiAffinity": REQUIRED}}, canary(antiAffinity=PREFERRED))
    for strategy in seeds:
        stored = await client.create(f"{ROLLOUTS}?dryRun=All", a_rollout(strategy))
        assert stored["spec"]["strategy"] == strategy


async def play_blue_green(client: Client, bed: Bed, log: Path) -> None:
    """The second version waits for a promotion, then gets the traffic; undo makes the first one current again."""
    await client.create("/api/v1/namespaces/default/services", a_service())
    strategy = blue_green(antiAffinity=PREFERRED, autoPromotionEnabled=False, scaleDownDelaySeconds=1)
    await client.create(ROLLOUTS, a_small_rollout(strategy, "web:1"))
    first = (await until_phase(client, "Healthy", 1, log))["status"]["stable"]
    assert await selected_hash(client) == first
    await change_image(client, "web:2")
    paused = await until_phase(client, "Paused", 2, log)
    assert await selected_hash(client) == first
    second = paused["status"]["current"]
    replica_set = await client.get(f"/apis/apps/v1/namespaces/default/replicasets/web-{second}")
    terms = replica_set["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"]
    assert len(terms["preferredDuringSchedulingIgnoredDuringExecution"]) == 1
    answer = await ask(bed, "promote", "web")
    assert answer.returncode == 0, answer.stderr
    assert (await ask(bed, "status", "web", "-w", "--timeout", "100")).returncode == 0
    await until_phase(client, "Healthy", 2, log)
    assert await selected_hash(client) == second
    replica_set = await client.get(f"/apis/apps/v1/namespaces/default/replicasets/web-{second}")
    assert "affinity" not in replica_set["spec"]["template"]["spec"]
    await until_no_previous(client)  # while it runs, going back to it needs no promotion
    answer = await ask(bed, "undo", "web")
    assert answer.returncode == 0, answer.stderr
    assert (await until_phase(client, "Paused", 3, log))["status"]["current"] == first
    assert (await ask(bed, "abort", "web")).returncode == 0
    await until_phase(client, "Aborted", 3, log)
    answer = await ask(bed, "promote", "wob")
    assert (answer.returncode, "Did you mean" in answer.stderr) == (2, True), answer.stderr


async def play_canary(client: Client, log: Path) -> None:
    steps = ({"setReplicas": 1}, {"pause": {"duration": 2}})
    strategy = {**canary(*steps, maxSurge=1, maxUnavailable=0), "blueGreen": None}
    await change_image(client, "web:3", strategy=strategy)
    rollout = await until_phase(client, "Healthy", 4, log)
    assert rollout["status"]["stable"] == rollout["status"]["current"]


async def play_deadlock(client: Client, log: Path) -> None:
    """The active version loses its node, and the preview sits on the only other one: it yields, and comes again."""
    nodes = sorted(node["metadata"]["name"] for node in (await client.get("/api/v1/nodes"))["items"])
    first, second, *others = nodes
    await client.delete(f"{ROLLOUTS}/web")
    await cordon(client, [second, *others], is_cordoned=True)
    await until_no_pods(client)
    strategy = blue_green(antiAffinity=REQUIRED, autoPromotionEnabled=False)
    await client.create(ROLLOUTS, a_small_rollout(strategy, "web:1"))
    active = (await until_phase(client, "Healthy", 1, log))["status"]["stable"]
    await cordon(client, [second], is_cordoned=False)
    await change_image(client, "web:2")
    await until_phase(client, "Paused", 2, log)
    await cordon(client, [first], is_cordoned=True)
    pods = (await client.get("/api/v1/namespaces/default/pods", labelSelector=f"{HASH}={active}"))["items"]
    for pod in pods:
        await client.delete(f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}", grace_seconds=0)
    async with asyncio.timeout(DEADLINE_SECONDS):
        while True:
            pods = (await client.get("/api/v1/namespaces/default/pods", labelSelector=f"{HASH}={active}"))["items"]
            if [pod["spec"].get("nodeName") for pod in pods] == [second] * 3:
                break
            await asyncio.sleep(0.2)
    events = (await client.get("/apis/events.k8s.io/v1/namespaces/default/events"))["items"]
    assert "Yielded" in {event["reason"] for event in events}
    assert await selected_hash(client) == active


async def play_node_order(client: Client, log: Path) -> None:
    """Old pods of a canary leave one node before the next, so that the new version has whole nodes."""
    first, second, third = sorted(node["metadata"]["name"] for node in (await client.get("/api/v1/nodes"))["items"])
    await client.delete(f"{ROLLOUTS}/web")
    await until_no_pods(client)
    await cordon(client, [first, second], is_cordoned=False)
    await cordon(client, [third], is_cordoned=True)
    strategy = canary({"setWeight": 50}, {"pause": {}}, antiAffinity=REQUIRED)
    document = a_small_rollout(strategy, "web:1")
    document["spec"]["replicas"] = 4
    await client.create(ROLLOUTS, document)
    stable = (await until_phase(client, "Healthy", 1, log))["status"]["stable"]
    await cordon(client, [third], is_cordoned=False)
    await change_image(client, "web:2")
    await until_phase(client, "Paused", 2, log)
    pods = (await client.get("/api/v1/namespaces/default/pods", labelSelector=f"{HASH}={stable}"))["items"]
    left = [pod["spec"]["nodeName"] for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    assert (len(left), len(set(left))) == (2, 1), left


async def cordon(client: Client, names: list[str], *, is_cordoned: bool) -> None:
    for name in names:
        await client.patch(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": is_cordoned}})


async def until_no_pods(client: Client) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while (await client.get("/api/v1/namespaces/default/pods"))["items"]:
            await asyncio.sleep(0.2)


async def until_no_previous(client: Client) -> None:
    """Until the version that was active before has gone, as its delay says."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while (await client.get(f"{ROLLOUTS}/web"))["status"]["previous"]:
            await asyncio.sleep(0.2)


async def assert_scalable(client: Client) -> None:
    """An autoscaler finds size and selector where it looks for them."""
    scale = await client.get(f"{ROLLOUTS}/web/scale")
    assert (scale["spec"]["replicas"], scale["status"]["selector"]) == (3, "app=web")
