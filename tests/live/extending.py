"""Clusters whose kube-scheduler asks our extender: what the tests of test_extender_*.py have in common.

    extended     (conftest.py) one such cluster per worker; the extender has exactly the rights it asks for
    Scene        one test's part of it: its nodes, pods and policies, all gone afterwards
    settle       scheduler and extender have heard of every node and policy so far
    scene_beside the same by another configuration: a kube-scheduler of the test's own beside that of the cluster, for
                 the pods of the test, and an extender of its own; a control plane would take ten times as long

Watches run apart: a pod may reach the scheduler before a change of a node made earlier. Hence `settle` after changes.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import yaml
from prometheus_client.parser import text_string_to_metric_families

from live.kube_scheduler_process import give_name, kube_scheduler_running
from testbed import nodes
from testbed.client import ApiError, Client
from testbed.ports import free_ports
from testbed.programs import Programs
from testbed.pytest_plugin import Bed
from wukong.api.crds import build_crds
from wukong.api.kinds import KINDS
from wukong.app.component import list_permissions
from wukong.app.components.extender import EXTENDER

DEADLINE_SECONDS = 120.0
CAPACITY = "node.kubernetes.io/capacity"
POLICY, CLUSTER_POLICY = "PlacementPolicy", "ClusterPlacementPolicy"
SENTINEL = "sentinel"
DEFAULT_SCHEDULER = "default-scheduler"
ACCOUNT = "extender"  # the service account it runs as in `extended`, and what that may do
PERMISSIONS = list_permissions([EXTENDER])
PODS, NODES = "/api/v1/namespaces/default/pods", "/api/v1/nodes"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
Json = dict[str, Any]


class Extended(NamedTuple):
    """A cluster with the extender beside its scheduler."""

    bed: Bed
    port: int  # the extender's
    probes: int
    log: Path


def free_port() -> int:
    return free_ports(1)[0]


# The scheduler's configuration -------------------------------------------------------------------------------------


def scheduler_config(folder: Path, port: int, **more: Any) -> Path:
    """Ours, but for certificates, and for the time to answer: one that comes late counts, too, on a busy machine.

    Tests on mutual TLS are elsewhere.
    """
    extender = {
        "urlPrefix": f"http://127.0.0.1:{port}",
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "preemptVerb": "preempt",
        "weight": WEIGHT,
        "nodeCacheCapable": True,
        "ignorable": True,
        "httpTimeout": f"{DEADLINE_SECONDS:.0f}s",
        **more,
    }
    return write_config(folder, {"percentageOfNodesToScore": 100, "extenders": [extender]})


WEIGHT = 5


def seed_config(folder: Path, port: int) -> Path:
    """Word for word what seed 004 has, but for the host and port."""
    extender = {
        "urlPrefix": f"http://127.0.0.1:{port}",
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "weight": 1,
    }
    return write_config(folder, {"extenders": [extender]})


def write_config(folder: Path, config: Json) -> Path:
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    path = folder / "scheduler.yaml"
    path.write_text(yaml.safe_dump({**head, **config}))
    return path


# The extender ------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def extender_running(kubeconfig: Path, port: int, log: Path, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    """`wukong run --components extender`, ready to answer; ended with SIGTERM, which must succeed."""
    words = ["run", "--components", "extender", "--extender", f"127.0.0.1:{port}", "--extender-plain-http"]
    words += ["--kubeconfig", str(kubeconfig), "--measure-seconds", "0.5", *more]
    with log.open("ab") as output:
        process = subprocess.Popen([sys.executable, "-m", "wukong", *words], stdout=output, stderr=output)
    try:
        await_answer(process, port, log)
        yield process
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=DEADLINE_SECONDS) == 0, log.read_text()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def await_answer(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Until it answers a question, hence has seen the cluster."""
    import urllib.request

    question = b'{"Pod": {"metadata": {"name": "x"}}, "NodeNames": []}'
    deadline = time.monotonic() + DEADLINE_SECONDS
    while True:
        assert process.poll() is None, f"the extender ended: {log.read_text()}"
        assert time.monotonic() < deadline, f"the extender never answered: {log.read_text()}"
        request = urllib.request.Request(f"http://127.0.0.1:{port}/prioritize", question, method="POST")
        with contextlib.suppress(OSError):  # nobody listens yet, or the answer takes its time
            urllib.request.urlopen(request, timeout=DEADLINE_SECONDS).read()
            return
        time.sleep(0.05)


async def ask(port: int, verb: str, pod: Json, names: list[str]) -> Any:
    """What the extender answers now, as kube-scheduler would ask."""
    body = {"Pod": pod, "NodeNames": names}
    async with aiohttp.ClientSession() as session, session.post(f"http://127.0.0.1:{port}/{verb}", json=body) as found:
        assert found.status == 200, await found.text()
        return await found.json()


async def counted(probes: int, name: str, **labels: str) -> float:
    """What the extender's /metrics say of one series; 0 for one that is not there yet."""
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{probes}/metrics") as found:
        text = await found.text()
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return sum(sample.value for sample in samples if sample.name == name and sample.labels == labels)


# The cluster -------------------------------------------------------------------------------------------------------


async def install_policies(client: Client) -> None:
    """The kinds, ready to be used."""
    base = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for crd in build_crds():
        await client.create(base, crd)
        await client.wait_until(f"{base}/{crd['metadata']['name']}", _is_established)


async def furnish(client: Client) -> None:
    """Our kinds, and what `settle` needs: a node and policies that concern nobody else."""
    await install_policies(client)
    taint = {"key": SENTINEL, "effect": "NoSchedule"}
    labels = {CAPACITY: "spot", SENTINEL: "0"}
    await nodes.create(client, [nodes.a_node(SENTINEL, now=time.time(), labels=labels, taints=[taint])])
    await client.wait_until(f"{NODES}/{SENTINEL}", nodes.is_usable)
    for kind in (POLICY, CLUSTER_POLICY):
        await put_policy(client, kind, SENTINEL, {"selector": {"matchLabels": {kind: "0"}}})
    await put_policy(client, POLICY, "settling", {"selector": {"matchLabels": {SENTINEL: ""}}})


def _is_established(crd: Json) -> bool:
    conditions = crd.get("status", {}).get("conditions") or []
    return any(entry["type"] == "Established" and entry["status"] == "True" for entry in conditions)


async def put_policy(client: Client, kind: str, name: str, spec: Json, namespace: str = "default") -> None:
    """Create it, or give it this spec instead of the one it has."""
    folder = KINDS.resource_named(kind).path(namespace if KINDS.resource_named(kind).namespaced else "")
    body = {
        "apiVersion": KINDS.resource_named(kind).api_version,
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }
    async with asyncio.timeout(DEADLINE_SECONDS):
        while True:
            try:
                await client.create(folder, body)
                return
            except ApiError as error:
                if error.status == 409:
                    await client.patch(f"{folder}/{name}", [{"op": "replace", "path": "/spec", "value": spec}], "json")
                    return
                if error.status not in (404, 429, 503):  # a new kind is served a moment after it was made
                    raise
                await asyncio.sleep(0.1)


_numbers = itertools.count(1)


async def settle(client: Client, port: int, scheduler: str = DEFAULT_SCHEDULER) -> None:
    """Each watch is in order: who has heard of the sentinel's newest label, or policy, has heard of all before it."""
    number = f"n{next(_numbers)}-{secrets.token_hex(2)}"
    await client.patch(f"{NODES}/{SENTINEL}", {"metadata": {"labels": {SENTINEL: number}}})
    for kind in (POLICY, CLUSTER_POLICY):
        elsewhere = {"matchExpressions": [{"key": SENTINEL, "operator": "NotIn", "values": [number]}]}
        rules = [{"name": "label-match", "type": "filter", "config": elsewhere}]
        spec = {"selector": {"matchLabels": {kind: number}}, "scheduling": {"schedulingPolicy": {"rules": rules}}}
        await put_policy(client, kind, SENTINEL, spec)
    for kind in (POLICY, CLUSTER_POLICY):
        pod = {"metadata": {"name": SENTINEL, "namespace": "default", "labels": {kind: number}}}
        async with asyncio.timeout(DEADLINE_SECONDS):
            while (await ask(port, "filter", pod, [SENTINEL]))["NodeNames"]:
                await asyncio.sleep(0.02)
    tolerations = [{"key": SENTINEL, "operator": "Exists"}]
    spec = {"nodeSelector": {SENTINEL: number}, "tolerations": tolerations, "terminationGracePeriodSeconds": 0}
    await make_pod(client, number, labels={SENTINEL: ""}, cpu="0", schedulerName=scheduler, **spec)
    await node_of(client, number)
    await client.delete(f"{PODS}/{number}", grace_seconds=0)


async def make_pod(client: Client, name: str, *, cpu: str = "100m", labels: Json | None = None, **spec: Any) -> Json:
    resources = {"requests": {"cpu": cpu}}
    body = {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"containers": [{"name": "main", "image": "web", "resources": resources}], **spec},
    }
    return await client.create(PODS, body)


async def node_of(client: Client, name: str) -> str:
    """Where the pod was bound, once it is."""
    pod = await client.wait_until(f"{PODS}/{name}", lambda found: bool(found["spec"].get("nodeName")))
    return str(pod["spec"]["nodeName"])


# A test's part of it -----------------------------------------------------------------------------------------------


class ExtendedCluster:
    """Nodes are called here without the ending that makes them this test's."""

    def __init__(self, client: Client, port: int, scheduler: str) -> None:
        self.client, self.port, self.scheduler = client, port, scheduler
        self.ending = f"-{secrets.token_hex(3)}"
        self.policies: set[tuple[str, str]] = set()

    def full(self, node: str) -> str:
        return f"{node}{self.ending}"

    async def settle(self) -> None:
        await settle(self.client, self.port, self.scheduler)

    async def nodes(self, kind: str, *names: str, **like: Any) -> None:
        """Usable, and known to scheduler and extender."""
        labels = {CAPACITY: kind, **like.pop("labels", {})}
        full = [self.full(name) for name in names]
        await nodes.create(self.client, [nodes.a_node(name, now=time.time(), labels=labels, **like) for name in full])
        for name in full:
            await self.client.wait_until(f"{NODES}/{name}", nodes.is_usable)
        await self.settle()

    async def change(self, node: str, body: Json, part: str = "", kind: str = "merge") -> None:
        """Patch a node (its `/status`), and wait until both know."""
        await self.client.patch(f"{NODES}/{self.full(node)}{part}", body, kind)
        await self.settle()

    async def cordon(self, node: str, is_cordoned: bool = True) -> None:
        await self.change(node, {"spec": {"unschedulable": is_cordoned}})

    async def policy(self, name: str, spec: Json, kind: str = POLICY) -> None:
        self.policies.add((kind, name))
        await put_policy(self.client, kind, name, spec)
        await self.settle()

    async def drop_policy(self, name: str, kind: str = POLICY) -> None:
        self.policies.discard((kind, name))
        await self.client.delete(KINDS.resource_named(kind).path("default" if kind == POLICY else "", name))
        await self.settle()

    async def make(self, name: str, **like: Any) -> Json:
        return await make_pod(self.client, name, **{"schedulerName": self.scheduler, **like})

    async def node_of(self, name: str) -> str:
        return (await node_of(self.client, name)).removesuffix(self.ending)

    async def place(self, name: str, **like: Any) -> str:
        """Create a pod; the node it is bound to."""
        await self.make(name, **like)
        return await self.node_of(name)

    async def put(self, name: str, node: str, **like: Any) -> str:
        """A pod that is there already, past the scheduler; its uid."""
        made = await self.make(name, nodeName=self.full(node), terminationGracePeriodSeconds=0, **like)
        await self.client.wait_until(f"{PODS}/{name}", lambda pod: pod["status"]["phase"] == "Running")
        return str(made["metadata"]["uid"])

    async def refused(self, name: str) -> str:
        """Why the pod stays pending, once the scheduler has said so; by then it has thought of preemption."""
        found = await self.client.wait_until(f"{PODS}/{name}", lambda pod: bool(_refusal(pod)))
        return _refusal(found)

    async def priority(self, name: str, value: int) -> str:
        body = {"metadata": {"name": f"{name}{self.ending}"}, "value": value}
        await self.client.create("/apis/scheduling.k8s.io/v1/priorityclasses", body)
        return f"{name}{self.ending}"

    async def events(self, reason: str) -> list[Json]:
        found = (await self.client.get(EVENTS))["items"]
        return [event for event in found if event["reason"] == reason]

    async def event(self, reason: str, pod: str) -> Json:
        """The Event about a pod, once it is there."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            while True:
                found = [event for event in await self.events(reason) if event["regarding"]["name"] == pod]
                if found:
                    assert len(found) == 1, found
                    return found[0]
                await asyncio.sleep(0.05)

    async def clear(self) -> None:
        client = self.client
        for kind, name in sorted(self.policies):
            await self.drop_policy(name, kind)
        for workload in ("deployments", "daemonsets", "replicasets"):
            await client.delete(f"/apis/apps/v1/namespaces/default/{workload}")
        await client.delete(PODS, grace_seconds=0)
        await client.delete(EVENTS)
        for node in (await client.get(NODES))["items"]:
            if node["metadata"]["name"].endswith(self.ending):
                await client.delete(f"{NODES}/{node['metadata']['name']}")


def _refusal(pod: Json) -> str:
    conditions = pod["status"].get("conditions") or []
    return next((it["message"] for it in conditions if it["type"] == "PodScheduled" and it["status"] == "False"), "")


@contextlib.asynccontextmanager
async def scene(bed: Bed, port: int, scheduler: str = DEFAULT_SCHEDULER) -> AsyncIterator[ExtendedCluster]:
    async with bed.client() as client:
        made = ExtendedCluster(client, port, scheduler)
        try:
            yield made
        finally:
            await made.clear()


@contextlib.asynccontextmanager
async def scene_beside(
    extended: Extended, programs: Programs, config: Path, port: int
) -> AsyncIterator[ExtendedCluster]:
    """Pods are placed by a kube-scheduler with this configuration, which asks the extender at this port."""
    name = f"beside-{secrets.token_hex(3)}"
    named = give_name(yaml.safe_load(config.read_text()), name)
    log = config.with_name(f"{name}.log")
    with kube_scheduler_running(programs, extended.bed.kubeconfig, named, log):
        async with scene(extended.bed, port, name) as here:
            yield here
