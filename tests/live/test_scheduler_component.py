"""`wukong run --components scheduler` on a real cluster, beside kube-scheduler: whose pods it binds, and how."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from live.accounts import audited, service_account, used_by, when
from live.scheduler_process import (
    DEADLINE_SECONDS,
    OwnPods,
    SchedulerProcess,
    condition_of,
    is_bound,
    keep_apart,
    scheduler_beside,
    scheduler_running,
    spread,
)
from live.second_leader import BindingGate
from testbed.client import ApiError, Client, Json
from testbed.provisioner import provisioner
from testbed.pytest_plugin import Bed, HollowNodes
from wukong.api.kinds import WUKONGS
from wukong.app.component import list_permissions
from wukong.app.components.extender.component import POLICIES
from wukong.app.components.scheduler import SCHEDULER, SchedulerOptions
from wukong.app.components.scheduler.options import name_lease

ACCOUNT = "own-scheduler"
USER = f"system:serviceaccount:default:{ACCOUNT}"
ADMIN = "wukong-testbed-admin"
NAME = "custom-scheduler"
LEASE = name_lease(SchedulerOptions((NAME,)))
CLASSES, VOLUMES = "/apis/storage.k8s.io/v1/storageclasses", "/api/v1/persistentvolumes"
PERMISSIONS = list_permissions([SCHEDULER], {}, LEASE)


@pytest.fixture(scope="module")
def account(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kubeconfig with exactly the rights that it asks for."""
    return asyncio.run(prepare(bed, tmp_path_factory.mktemp("own-scheduler")))


@pytest.fixture(scope="module")
def own_scheduler(account: Path) -> Iterator[SchedulerProcess]:
    with scheduler_running(account, NAME, account.with_name("scheduler.log")) as running:
        yield running


async def prepare(bed: Bed, folder: Path) -> Path:
    async with bed.client() as client:
        return await service_account(client, bed, "default", ACCOUNT, PERMISSIONS, folder)


async def test_it_binds_the_pods_that_name_it_by_every_rule_and_no_others(
    bed: Bed, own_scheduler: SchedulerProcess, namespace: str, hollow_nodes: HollowNodes
) -> None:
    plain = await hollow_nodes(3, capacity={"cpu": "2"})
    (tainted,) = await hollow_nodes(1, taints=[{"key": "dedicated", "value": "x", "effect": "NoSchedule"}])
    async with bed.client() as client:
        ours, theirs = OwnPods(client, namespace, NAME), OwnPods(client, namespace, "default-scheduler")
        nobodys = OwnPods(client, namespace, "somebody-else")
        await nobodys.create("stranger")
        for number in range(3):
            await ours.create(f"apart-{number}", labels={"app": "apart"}, **keep_apart("apart"))
            await ours.create(f"spread-{number}", labels={"app": "spread"}, **spread("spread"))
        await ours.create("dedicated", tolerations=[{"key": "dedicated", "operator": "Exists"}], cpu="4")
        await theirs.create("theirs")
        assert {await ours.node_of(f"apart-{number}") for number in range(3)} == set(plain)
        assert {await ours.node_of(f"spread-{number}") for number in range(3)} == set(plain)
        assert await ours.node_of("dedicated") == tainted
        assert await theirs.node_of("theirs") in plain
        assert (await theirs.event("theirs", "Scheduled"))["reportingController"] == "default-scheduler"
        event = await ours.event("dedicated", "Scheduled")
        assert event["reportingController"] == NAME
        assert event["note"] == f"Successfully assigned {namespace}/dedicated to {tainted}"
        assert not is_bound(await client.get(f"{nobodys.path}/stranger"))


async def test_a_pod_that_fits_nowhere_is_told_so_and_bound_when_a_node_comes(
    bed: Bed, own_scheduler: SchedulerProcess, namespace: str, hollow_nodes: HollowNodes
) -> None:
    await hollow_nodes(1, capacity={"cpu": "1"})
    async with bed.client() as client:
        ours = OwnPods(client, namespace, NAME)
        await ours.create("big", cpu="3")
        refused = await ours.until("big", lambda pod: condition_of(pod, "PodScheduled").get("status") == "False")
        message = condition_of(refused, "PodScheduled")["message"]
        assert condition_of(refused, "PodScheduled")["reason"] == "Unschedulable"
        assert "Insufficient cpu" in message
        assert (await ours.event("big", "FailedScheduling"))["note"] == message
        (node,) = await hollow_nodes(1, capacity={"cpu": "4"})
        assert await ours.node_of("big") == node


async def test_a_gated_pod_waits_for_its_gates(
    bed: Bed, own_scheduler: SchedulerProcess, namespace: str, hollow_nodes: HollowNodes
) -> None:
    (node,) = await hollow_nodes(1)
    async with bed.client() as client:
        ours = OwnPods(client, namespace, NAME)
        await ours.create("gated", schedulingGates=[{"name": "example.com/quota"}])
        await ours.create("next")
        assert await ours.node_of("next") == node
        assert not is_bound(await client.get(f"{ours.path}/gated"))
        await client.patch(f"{ours.path}/gated", {"spec": {"schedulingGates": None}})
        assert await ours.node_of("gated") == node


async def test_who_has_priority_preempts_as_with_kube_scheduler(
    bed: Bed, own_scheduler: SchedulerProcess, namespace: str, hollow_nodes: HollowNodes
) -> None:
    (node,) = await hollow_nodes(1, capacity={"cpu": "2"})
    async with bed.client() as client, priority_class(client, f"high-{namespace}") as high:
        ours = OwnPods(client, namespace, NAME)
        await ours.create("filling", cpu="1500m", metadata={"finalizers": ["example.com/hold"]})
        assert await ours.node_of("filling") == node
        await ours.create("boss", cpu="1500m", priorityClassName=high)
        victim = await ours.until("filling", lambda pod: "deletionTimestamp" in pod["metadata"])
        assert condition_of(victim, "DisruptionTarget")["reason"] == "PreemptionByScheduler"
        boss = await ours.until("boss", lambda pod: bool(pod["status"].get("nominatedNodeName")))
        assert boss["status"]["nominatedNodeName"] == node
        await ours.create("sneaking", cpu="400m")
        await ours.until("sneaking", lambda pod: condition_of(pod, "PodScheduled").get("status") == "False")
        await client.patch(f"{ours.path}/filling", {"metadata": {"finalizers": None}})
        assert await ours.node_of("boss") == node
        uid = boss["metadata"]["uid"]
        assert (await ours.event("filling", "Preempted"))["note"] == f"Preempted by pod {uid} on node {node}"
        assert await ours.node_of("sneaking") == node, "what the boss leaves is enough for it"


@contextlib.asynccontextmanager
async def priority_class(client: Client, name: str) -> AsyncIterator[str]:
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    await client.create(path, {"metadata": {"name": name}, "value": 1000})
    try:
        yield name
    finally:
        await client.delete(f"{path}/{name}")


async def test_what_it_does_not_model_it_leaves_alone_and_says_so(
    bed: Bed, own_scheduler: SchedulerProcess, namespace: str, hollow_nodes: HollowNodes
) -> None:
    await hollow_nodes(1)
    async with bed.client() as client:
        ours = OwnPods(client, namespace, NAME)
        await ours.create("device", resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}])
        event = await ours.event("device", "NotModelled")
        assert "resource claims" in event["note"]
        assert event["type"] == "Warning"
        pod = await client.get(f"{ours.path}/device")
        assert not is_bound(pod)
        assert condition_of(pod, "PodScheduled") == {}


async def test_a_pod_waits_for_its_claims_and_has_those_bound_that_wait_for_its_node(
    bed: Bed, own_scheduler: SchedulerProcess, namespace: str, hollow_nodes: HollowNodes
) -> None:
    """One claim is bound when a volume comes, one gets a volume that is there, one a volume that is made for it."""
    first, second = await hollow_nodes(2)
    async with bed.client() as client, provisioner(client), storage(client, namespace, second):
        ours = OwnPods(client, namespace, NAME)
        for name in ("now", "local", "made"):
            await client.create(f"/api/v1/namespaces/{namespace}/persistentvolumeclaims", a_claim(namespace, name))
            volume = {"name": "data", "persistentVolumeClaim": {"claimName": name}}
            await ours.create(f"with-{name}", volumes=[volume])
        refused = await ours.until("with-now", lambda pod: bool(condition_of(pod, "PodScheduled")))
        message = condition_of(refused, "PodScheduled")["message"]
        assert "pod has unbound immediate PersistentVolumeClaims" in message
        assert await ours.node_of("with-local") == second
        assert await ours.node_of("with-made") in (first, second)
        await client.create(VOLUMES, a_volume(f"{namespace}-now"))
        assert await ours.node_of("with-now") in (first, second)
        for name in ("now", "local", "made"):
            claim = await client.get(f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}")
            assert claim["status"]["phase"] == "Bound"
        assert claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == await ours.node_of("with-made")


@contextlib.asynccontextmanager
async def storage(client: Client, own: str, node: str) -> AsyncIterator[None]:
    """A class that waits and has a volume on one node, and one that waits and has volumes made."""
    waiting = {"volumeBindingMode": "WaitForFirstConsumer"}
    none, driver = {"provisioner": "kubernetes.io/no-provisioner"}, {"provisioner": "disks.example.com"}
    await client.create(CLASSES, {"metadata": {"name": f"{own}-local"}, **none, **waiting})
    await client.create(CLASSES, {"metadata": {"name": f"{own}-made"}, **driver, **waiting})
    await client.create(VOLUMES, a_volume(f"{own}-local", node))
    await client.wait_until(f"{VOLUMES}/{own}-local", lambda it: it["status"].get("phase") == "Available")
    try:
        yield
    finally:
        for name in (f"{own}-now", f"{own}-local"):
            with contextlib.suppress(ApiError):
                await client.delete(f"{VOLUMES}/{name}")
        for name in (f"{own}-local", f"{own}-made"):
            await client.delete(f"{CLASSES}/{name}")


def a_claim(own: str, name: str) -> Json:
    resources = {"requests": {"storage": "1Gi"}}
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": f"{own}-{name}", "resources": resources}
    return {"metadata": {"name": name}, "spec": spec}


def a_volume(name: str, node: str = "") -> Json:
    """One for claims of the class of its name, on a node or anywhere."""
    spec: Json = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "storageClassName": name,
        "hostPath": {"path": "/data"},
    }
    if node:
        term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    return {"metadata": {"name": name}, "spec": spec}


async def test_two_that_answer_to_one_name_bind_no_pod_twice(
    bed: Bed, account: Path, own_scheduler: SchedulerProcess, namespace: str, hollow_nodes: HollowNodes, tmp_path: Path
) -> None:
    """Who comes second is told of a conflict, looks the pod up, and leaves it where it is.

    The bindings of the one with our rights are held until the other has bound all pods; then more come, for both.
    """
    await hollow_nodes(2, capacity={"pods": "200", "cpu": "64"})
    gate, scheduler = BindingGate(account), f"twice-{namespace[-8:]}"
    held, raced = ([f"{word}-{number}" for number in range(60)] for word in ("held", "raced"))
    async with (
        bed.client() as client,
        gate.kubeconfig(tmp_path) as through_gate,
        scheduler_beside(through_gate, scheduler, tmp_path / "second.log", "--no-leader-election"),
    ):
        ours = OwnPods(client, namespace, scheduler)
        await asyncio.gather(*(ours.create(name, cpu="10m") for name in held))
        async with asyncio.timeout(DEADLINE_SECONDS):
            await gate.has_held.wait()
        async with scheduler_beside(bed.kubeconfig, scheduler, tmp_path / "first.log", "--no-leader-election"):
            for name in held:
                await ours.node_of(name)
            gate.open()
            await when(lambda: bool(count_bindings(bed, namespace, 409, USER)), lambda: "it was told of no conflict")
            await asyncio.gather(*(ours.create(name, cpu="10m") for name in raced))
            for name in raced:
                await ours.node_of(name)
    once = Counter([*held, *raced])
    await when(
        lambda: count_bindings(bed, namespace, 201, USER, ADMIN) == once,
        lambda: f"bound how often: {count_bindings(bed, namespace, 201, USER, ADMIN)}",
    )


def count_bindings(bed: Bed, namespace: str, code: int, *users: str) -> Counter[str]:
    """How often each pod of this namespace was to be bound by these users, and the API server answered so."""
    return Counter(
        entry["objectRef"]["name"]
        for user in users
        for entry in audited(bed, user)
        if entry["objectRef"].get("subresource") == "binding"
        and entry["objectRef"]["namespace"] == namespace
        and entry["stage"] == "ResponseComplete"
        and entry["responseStatus"]["code"] == code
    )


async def test_it_says_how_long_attempts_take_and_who_waits_and_uses_every_right_it_asks_for(
    bed: Bed, own_scheduler: SchedulerProcess, namespace: str, hollow_nodes: HollowNodes
) -> None:
    """The last of this file: by now all has been done that it ever does."""
    await hollow_nodes(1, capacity={"cpu": "1"})
    async with bed.client() as client:
        ours = OwnPods(client, namespace, NAME)
        await ours.create("waits", cpu="3")
        await ours.until("waits", lambda pod: bool(condition_of(pod, "PodScheduled")))
        figures = read_figures(own_scheduler.read_metrics())
        lease = await client.get(f"/apis/coordination.k8s.io/v1/namespaces/default/leases/{LEASE}")
    assert lease["spec"]["holderIdentity"]
    assert figures['wukong_scheduling_attempt_seconds_count{result="unschedulable"}'] >= 1
    assert figures['wukong_scheduler_pending_pods{queue="unschedulable"}'] >= 1
    assert figures["wukong_scheduler_oldest_pending_seconds"] > 0
    granted = {(it.group, it.resource, verb) for it in PERMISSIONS for verb in it.verbs}
    installed_later = {(kind.group, kind.plural, "watch") for kind in (*POLICIES, WUKONGS)}  # if somebody installs them
    await when(
        lambda: granted - used_by(bed, USER) <= installed_later, lambda: f"unused: {granted - used_by(bed, USER)}"
    )
    assert used_by(bed, USER) <= granted
    assert "forbidden" not in own_scheduler.log.read_text().lower()


def read_figures(text: str) -> dict[str, float]:
    samples = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in samples}
