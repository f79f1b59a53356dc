"""Our webhooks while hundreds of pods are made: their leader dies, their certificates are replaced. No pod is lost."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ssl
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from live.accounts import DEADLINE_SECONDS, service_account
from live.admitting import (
    CONFIGURATIONS,
    NAME,
    OPEN,
    POD,
    SECOND_POD,
    SECRET,
    Webhooks,
    a_pod,
    create_pod,
    is_marked,
    leads,
    list_failures,
    patient,
)
from live.pod_metrics import is_ready
from live.test_policies import running
from testbed import nodes
from testbed.client import ApiError, Client, Listed, as_json
from wukong.app.component import list_permissions
from wukong.app.components.admission.rotation import RotationTimes, encode_keys, take_step
from wukong.app.components.policy import POLICY
from wukong.app.install.installation import NAMESPACE
from wukong.placement.capacity import OWN_LABEL

Json = dict[str, Any]
BURST = "burst"
PODS = f"/api/v1/namespaces/{BURST}/pods"
SIZE, SPOT_PERCENT = 300, 50
OWN_NODES, SPOT_NODES = 14, 16  # with pods that nobody tells where to go it comes to 140 on demand, and not to 150
SECONDS = 400.0


class Crowd:
    """The pods of the burst, as a watch shows them: how many there are where, and how many are ready at least."""

    def __init__(self) -> None:
        self.pods: dict[str, Json] = {}  # by uid
        self.is_complete = False
        self.fewest_ready = SIZE  # since all were ready for the first time
        self.changed = asyncio.Event()

    async def look(self, client: Client) -> None:
        async for change in client.follow(PODS):
            for raw in change.items if isinstance(change, Listed) else [change.object]:
                pod = as_json(raw)
                self.pods[pod["metadata"]["uid"]] = pod
                if not isinstance(change, Listed) and change.type == "DELETED":
                    del self.pods[pod["metadata"]["uid"]]
            ready = sum(map(is_ready, self.pods.values()))
            self.is_complete = self.is_complete or ready == SIZE
            self.fewest_ready = min(self.fewest_ready, ready) if self.is_complete else SIZE
            self.changed.set()

    def count(self) -> Counter[str]:
        return Counter(pod["spec"].get("nodeName", "none").split("-")[0] for pod in self.pods.values())

    def count_unmarked(self) -> int:
        return sum(not is_marked(pod) for pod in self.pods.values())

    def is_exact(self) -> bool:
        is_whole = len(self.pods) == SIZE and all(map(is_ready, self.pods.values()))
        return is_whole and self.count() == {"own": SIZE // 2, "spot": SIZE // 2}

    async def until(self, is_so: Any, what: str) -> None:
        try:
            async with asyncio.timeout(SECONDS):
                while not is_so():
                    self.changed.clear()
                    await self.changed.wait()
        except TimeoutError:
            raise AssertionError(f"never {what}: {self.count()}, {len(self.pods)} pods") from None


@contextlib.asynccontextmanager
async def watching_crowd(client: Client) -> AsyncIterator[Crowd]:
    crowd = Crowd()
    task = asyncio.create_task(crowd.look(client))
    try:
        yield crowd
        assert not task.done(), task
    finally:
        task.cancel()


@pytest.mark.slow(waits=120)
async def test_a_burst_whose_leader_is_killed_is_put_right_one_pod_at_a_time(
    webhooks: Webhooks, tmp_path: Path, record_property: Any
) -> None:
    second = Webhooks(webhooks.bed, webhooks.folder, SECOND_POD)
    second.kubeconfig = webhooks.kubeconfig
    deployments = f"/apis/apps/v1/namespaces/{BURST}/deployments"
    async with webhooks.bed.client() as client:
        await prepare_burst(client)
        kubeconfig = await service_account(client, webhooks.bed, BURST, "policy", list_permissions([POLICY]), tmp_path)
        with running(kubeconfig, BURST, tmp_path / "policy.log", "--split-pause-seconds", "1"):
            async with watching_crowd(client) as crowd, patient(client), serving_leader(client, [webhooks, second]):
                try:
                    await client.create(deployments, a_deployment(SIZE // 2))
                    await crowd.until(lambda: len(crowd.pods) == SIZE // 2, "half of them")
                    await client.patch(f"{deployments}/{BURST}", {"spec": {"replicas": SIZE}})
                    webhooks.kill()
                    # Then as many are without a mark as make a difference: nobody tells them where to go.
                    await crowd.until(lambda: len(crowd.pods) == SIZE, "all of them")
                    second.launch()  # it leads when the lease has run out
                    await crowd.until(lambda: crowd.is_complete, "complete")
                    unmarked, wrong = crowd.count_unmarked(), abs(crowd.count()["own"] - SIZE // 2)
                    record_property("figure", f"leader killed in a burst: {unmarked} of {SIZE} unmarked, {wrong} wrong")
                    await crowd.until(crowd.is_exact, "exact")
                finally:
                    second.end()
                    if webhooks.process is None:
                        webhooks.launch()
        assert wrong > 0, "there was nothing to put right"
        assert crowd.fewest_ready >= SIZE - 1
        assert await list_refusals(client) == []
        await client.delete(f"/api/v1/namespaces/{BURST}")
        await client.send("DELETE", "/api/v1/nodes", params={"labelSelector": f"{nodes.FOR}={BURST}"})
    await webhooks.until_patched()


async def prepare_burst(client: Client) -> None:
    await client.create("/api/v1/namespaces", {"metadata": {"name": BURST}})
    await client.wait_until(f"/api/v1/namespaces/{BURST}/serviceaccounts/default", lambda account: True)
    reserved = nodes.reserved(BURST)
    for side, count in (("own", OWN_NODES), ("spot", SPOT_NODES)):
        labels = {**reserved["labels"], OWN_LABEL: "spot" if side == "spot" else "on-demand"}
        like = {"labels": labels, "taints": reserved["taints"], "capacity": {"cpu": "40"}}
        await nodes.create(client, [nodes.a_node(f"{side}-{BURST}-{n}", now=time.time(), **like) for n in range(count)])
    policy = {
        "selector": {"matchLabels": {"app": BURST}},
        "capacity": {"strategy": "spot-preferred", "spotPercent": SPOT_PERCENT},
        "disruption": {"maxUnavailable": 1},
    }
    path = f"/apis/placement.novasphere.dev/v1alpha1/namespaces/{BURST}/placementpolicies"
    head = {"apiVersion": "placement.novasphere.dev/v1alpha1", "kind": "PlacementPolicy", "metadata": {"name": BURST}}
    await client.create(path, {**head, "spec": policy})
    probe = a_pod()
    probe["metadata"]["labels"] = {"app": BURST}
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not is_marked(await create_pod(client, BURST, probe, is_dry_run=True)):
            await asyncio.sleep(0.05)


def a_deployment(replicas: int) -> Json:
    labels = {"app": BURST}
    container = {"name": "main", "image": "main:1", "resources": {"requests": {"cpu": "1"}}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container], **nodes.on_reserved(BURST)}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": BURST}, "spec": spec}


@contextlib.asynccontextmanager
async def serving_leader(client: Client, instances: list[Webhooks]) -> AsyncIterator[None]:
    """What a Service does that selects the leader by its label: the API server's calls go to that one."""
    ports = dict(zip((POD, SECOND_POD), (instance.port for instance in instances), strict=True))
    path = f"{CONFIGURATIONS}/mutatingwebhookconfigurations/{NAME}"

    async def follow() -> None:
        async for change in client.follow(f"/api/v1/namespaces/{NAMESPACE}/pods"):
            for raw in change.items if isinstance(change, Listed) else [change.object]:
                pod = as_json(raw)
                if leads(pod):
                    await set_port(client, path, ports[pod["metadata"]["name"]])

    task = asyncio.create_task(follow())
    try:
        yield
        assert not task.done(), task
    finally:
        task.cancel()
        await set_port(client, path, ports[POD])


async def set_port(client: Client, path: str, port: int) -> None:
    await client.patch(
        path, [{"op": "replace", "path": "/webhooks/0/clientConfig/service/port", "value": port}], "json"
    )


async def list_refusals(client: Client) -> list[str]:
    """What the ReplicaSet says of pods that it could not make."""
    events = (await client.get(f"/api/v1/namespaces/{BURST}/events", fieldSelector="reason=FailedCreate"))["items"]
    return [event["message"] for event in events]


# Certificates ------------------------------------------------------------------------------------------------------

RATE, LOAD_SECONDS = 100, 20.0
SPREAD_SECONDS = 8  # until the new authority signs: by then pods are being made
CALLERS = 32  # connections: at this rate each pod may take a third of a second before one is late


class PodLoad:
    """Pods made at a steady pace: each is due at its time, whether those before it are answered or not.

    When all callers are busy a pod is late; they catch up as soon as they can, so that only a machine that is too slow
    for the pace falls behind for good.
    """

    def __init__(self, client: Client, namespace: str) -> None:
        self._client, self._namespace = client, namespace
        self._body = a_pod(schedulerName="nobody")  # kube-scheduler shall not look at them
        self._body["metadata"]["labels"] = {"app": "web", "load": "rotation"}
        self._began = self._ended = time.monotonic()
        self.count = 0
        self.late_seconds = 0.0  # the most
        self.unmarked: list[str] = []
        self.refused: list[str] = []

    async def run(self, is_enough: Callable[[], bool]) -> None:
        """Until LOAD_SECONDS are over and it is enough."""
        self._began = time.monotonic()
        async with asyncio.TaskGroup() as callers:
            for _ in range(CALLERS):
                callers.create_task(self._call(is_enough))
        self._ended = time.monotonic()

    async def _call(self, is_enough: Callable[[], bool]) -> None:
        while True:
            due = self._began + self.count / RATE
            if due > self._began + LOAD_SECONDS and is_enough():
                return
            self.count += 1
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            self.late_seconds = max(self.late_seconds, time.monotonic() - due)
            try:
                pod = await create_pod(self._client, self._namespace, self._body)
            except ApiError as error:
                self.refused.append(str(error))
            else:
                self.unmarked += [] if is_marked(pod) else [pod["metadata"]["name"]]

    def describe(self) -> str:
        rate = self.count / (self._ended - self._began)
        pace = f"fell behind {RATE}, by {self.late_seconds:.1f} s" if self.late_seconds > 1 else "kept pace"
        return f"{rate:.0f} pods/s ({pace}): {self.count} pods, {len(self.unmarked)} unmarked"


@pytest.mark.slow(waits=15)
async def test_certificates_are_replaced_under_load_without_a_lost_pod(
    webhooks: Webhooks, record_property: Any
) -> None:
    """The authority is near its end when it starts: another is told to the API server, and then signs."""
    long_ago, hosts = datetime.now(UTC) - timedelta(days=300), (f"{NAME}.svc", f"{NAME}.svc.cluster.local")
    old = take_step("create", None, hosts, long_ago, RotationTimes())
    old = take_step("renew", old, hosts, datetime.now(UTC), RotationTimes())
    webhooks.end()
    async with webhooks.bed.client() as client:
        await client.patch(SECRET, {"data": encode_keys(old)})
        await webhooks.start("--spread-seconds", str(SPREAD_SECONDS))
        failures, load, counts = len(list_failures(webhooks)), PodLoad(client, OPEN), list[int]()
        replaced = asyncio.create_task(client.wait_until(SECRET, lambda secret: "old-ca.crt" in secret["data"], 120))
        replaced.add_done_callback(lambda _: counts.append(load.count))
        async with patient(client):
            await load.run(replaced.done)
        await replaced
        record_property("figure", f"certificates replaced under {load.describe()}")
        assert 0 < counts[0] < load.count, "it was replaced before, or after"
        assert load.refused == []
        assert list_failures(webhooks)[failures:] == []
        assert load.unmarked == []
        path, selector = f"/api/v1/namespaces/{OPEN}/pods", {"labelSelector": "load=rotation"}
        assert len((await client.get(path, **selector))["items"]) == load.count
        data = (await client.get(SECRET))["data"]
        assert base64.b64decode(data["old-ca.crt"]) == old.authority.certificate
        for kind in ("mutating", "validating"):
            configuration = await client.get(f"{CONFIGURATIONS}/{kind}webhookconfigurations/{NAME}")
            bundle = base64.b64decode(configuration["webhooks"][0]["clientConfig"]["caBundle"])
            assert bundle == base64.b64decode(data["ca.crt"]) + base64.b64decode(data["old-ca.crt"])
        await shake_hands(webhooks.port, base64.b64decode(data["ca.crt"]))
        await client.send("DELETE", path, {"gracePeriodSeconds": 0}, params=selector)


async def shake_hands(port: int, authority: bytes) -> None:
    """As who believes this authority alone: fails if it did not sign what is served."""
    context = ssl.create_default_context(cadata=authority.decode())
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=f"{NAME}.svc")
    writer.close()
    await writer.wait_closed()
