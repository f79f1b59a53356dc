"""`wukong run --components load` on a real cluster: both meters, exactly its own rights, and a twin that takes over."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from live.accounts import audited, service_account, used_by, when
from live.extending import Extended, scene
from live.node_metrics import metrics_of
from testbed.client import Client
from testbed.exporter import Exporter
from testbed.pytest_plugin import Bed, HollowNodes, RunPrometheus
from wukong.api.kinds import LEASES
from wukong.api.resources import Key
from wukong.app.component import list_permissions
from wukong.app.components.load import LOAD
from wukong.app.live import WallClock
from wukong.app.permissions import Permission, list_lease_permissions
from wukong.cluster.credentials import load
from wukong.cluster.kube import Kube
from wukong.errors import Denied
from wukong.ports import PatchBody
from wukong.runtime import Leader

DEADLINE_SECONDS = 120.0


@contextlib.contextmanager
def running(kubeconfig: Path, namespace: str, log: Path, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    """The command itself, as a process of its own; ended with SIGTERM, which must succeed."""
    words = ["run", "--components", "load", "--kubeconfig", str(kubeconfig), "--lease", f"{namespace}/wukong"]
    words += ["--label-prefix", prefix(namespace)]  # tests share the cluster: each has labels of its own
    times = ["--measure-seconds", "0.5", "--quiet-seconds", "0.5", "--stale-seconds", "6", "--lease-seconds", "4"]
    with log.open("ab") as output:
        argv = [sys.executable, "-m", "wukong", *words, *times, *more]
        process = subprocess.Popen(argv, stdout=output, stderr=output)
    try:
        yield process
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=DEADLINE_SECONDS) == 0, log.read_text()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def prefix(namespace: str) -> str:
    return f"usage-{namespace[-8:]}.example.com"


async def labels_of(client: Client, namespace: str, node: str) -> dict[str, str]:
    """The usage labels of a node, by what they say: {"cpu": "35"}. Those that other tests keep on it are not ours."""
    labels = (await client.get(f"/api/v1/nodes/{node}"))["metadata"]["labels"]
    own = f"{prefix(namespace)}/"
    return {key.removeprefix(own): value for key, value in labels.items() if key.startswith(own)}


async def until(
    client: Client, namespace: str, node: str, is_so: Callable[[dict[str, str]], bool], log: Path
) -> dict[str, str]:
    """The node's usage labels once they are so."""
    found: dict[str, str] = {}
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not is_so(found := await labels_of(client, namespace, node)):
                await asyncio.sleep(0.1)
    except TimeoutError:
        pytest.fail(f"labels stayed {found}; the log says:\n{log.read_text()[-2000:]}")
    return found


async def test_labels_follow_prometheus_by_steps_and_go_when_it_falls_silent(
    bed: Bed, namespace: str, hollow_nodes: HollowNodes, prometheus: RunPrometheus, tmp_path: Path
) -> None:
    (node,) = await hollow_nodes(1)
    log = tmp_path / "run.log"
    async with Exporter() as exporter, bed.client() as client:
        exporter.usage = {node: {"memory": 41, "storage": 12}}
        with prometheus([exporter.address]) as url, running(bed.kubeconfig, namespace, log, "--prometheus", url):
            found = await until(client, namespace, node, lambda labels: len(labels) == 2, log)
            assert found == {"memory": "40", "storage": "10"}
            exporter.usage = {node: {"memory": 45.5, "storage": 12}}  # within the slack: nothing moves
            exporter.usage[node]["storage"] = 73
            found = await until(client, namespace, node, lambda labels: labels.get("storage") == "70", log)
            assert found["memory"] == "40"
            exporter.usage = {}  # Prometheus forgets the node, and so do we
            await until(client, namespace, node, lambda labels: not labels, log)


async def test_labels_follow_metrics_k8s_io(
    bed: Bed, namespace: str, hollow_nodes: HollowNodes, tmp_path: Path
) -> None:
    (node,) = await hollow_nodes(1, capacity={"cpu": "4", "memory": "8Gi", "pods": "10"})
    log = tmp_path / "run.log"
    async with bed.client() as client, metrics_of(client, node, cpu="3", memory="2Gi"):
        with running(bed.kubeconfig, namespace, log):
            found = await until(client, namespace, node, lambda labels: len(labels) == 2, log)
    assert found == {"cpu": "75", "memory": "25"}


async def test_numbers_that_make_no_sense_cost_that_node_alone_and_end_nothing(
    bed: Bed, namespace: str, hollow_nodes: HollowNodes, tmp_path: Path
) -> None:
    bad, good = await hollow_nodes(2, capacity={"cpu": "4", "memory": "8Gi", "pods": "10"})
    log = tmp_path / "run.log"
    async with (
        bed.client() as client,
        metrics_of(client, bad, cpu="abc", memory="-1") as change,
        metrics_of(client, good, cpu="3", memory="2Gi"),
    ):
        with running(bed.kubeconfig, namespace, log):
            found = await until(client, namespace, good, lambda labels: len(labels) == 2, log)
            assert found == {"cpu": "75", "memory": "25"}
            assert await labels_of(client, namespace, bad) == {}
            await change("2", "4Gi")
            found = await until(client, namespace, bad, lambda labels: len(labels) == 2, log)
            assert found == {"cpu": "50", "memory": "50"}
    assert log.read_text().count("makes no sense") == 1


async def test_the_component_uses_exactly_the_rights_it_asks_for(extended: Extended, tmp_path: Path) -> None:
    """In a cluster that has our kinds: it watches those who ask for what is free."""
    bed, rules, namespace = extended.bed, list_permissions([LOAD]), "default"
    log = tmp_path / "run.log"
    async with scene(bed, extended.port) as here, metrics_of(here.client, here.full("a"), cpu="1", memory="1Gi"):
        await here.nodes("spot", "a", capacity={"cpu": "4", "memory": "8Gi", "pods": "10"})
        kubeconfig = await service_account(here.client, bed, namespace, "load", rules, tmp_path)
        with running(kubeconfig, namespace, log):
            await until(here.client, namespace, here.full("a"), lambda labels: len(labels) == 2, log)
            account = f"system:serviceaccount:{namespace}:load"
            granted = {(rule.group, rule.resource, verb) for rule in rules for verb in rule.verbs}
            await when(lambda: used_by(bed, account) == granted, lambda: f"{used_by(bed, account)} is not {granted}")


async def test_an_account_may_touch_its_own_lease_and_no_other(bed: Bed, namespace: str, tmp_path: Path) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    async with bed.client() as client:
        await client.create(path, {"metadata": {"name": "theirs"}, "spec": {"holderIdentity": "somebody"}})
        kubeconfig = await service_account(client, bed, namespace, "leader", list_lease_permissions(), tmp_path)
        async with Kube(load(str(kubeconfig))) as kube:
            leading = asyncio.Event()
            own = Leader(kube, Key(namespace, "wukong"), "me", clock=WallClock(), on_change=lambda _: leading.set())
            task = asyncio.create_task(own.run())
            async with asyncio.timeout(DEADLINE_SECONDS):
                await leading.wait()
            assert own.is_leading
            task.cancel()
            await own.release()
            for lease in (Key(namespace, "theirs"), Key("kube-system", "kube-scheduler")):
                with pytest.raises(Denied):
                    await kube.get(LEASES, lease, dict)
                with pytest.raises(Denied):
                    await kube.patch(LEASES, lease, PatchBody("merge", {"spec": {"holderIdentity": "me"}}))
                with pytest.raises(Denied):
                    await kube.delete(LEASES, lease)
        released, theirs = await client.get(f"{path}/wukong"), await client.get(f"{path}/theirs")
    assert (released["spec"].get("holderIdentity", ""), theirs["spec"]["holderIdentity"]) == ("", "somebody")


async def test_a_dry_run_says_what_it_would_write_and_needs_no_right_to_write(
    bed: Bed, namespace: str, hollow_nodes: HollowNodes, tmp_path: Path
) -> None:
    (node,) = await hollow_nodes(1, capacity={"cpu": "4", "memory": "8Gi", "pods": "10"})
    reads = [(rule.group, rule.resource, {"list", "watch"} & {*rule.verbs}) for rule in list_permissions([LOAD])]
    reading = [Permission(group, resource, tuple(sorted(verbs))) for group, resource, verbs in reads if verbs]
    log, account = tmp_path / "run.log", f"system:serviceaccount:{namespace}:looker"

    def said() -> list[dict[str, Any]]:
        lines = map(json.loads, log.read_text().splitlines())
        return [line["details"] for line in lines if line.get("action") == f"Patch Node {node}"]

    async with bed.client() as client, metrics_of(client, node, cpu="3", memory="2Gi") as measure:
        kubeconfig = await service_account(client, bed, namespace, "looker", reading, tmp_path)
        with running(kubeconfig, namespace, log, "--dry-run", "--log-format", "json"):
            await when(lambda: len(said()) == 1, log.read_text)
            await measure("1", "2Gi")
            await when(lambda: len(said()) == 2, log.read_text)
        assert await labels_of(client, namespace, node) == {}
    cpu, memory = f"{prefix(namespace)}/cpu", f"{prefix(namespace)}/memory"
    assert [details["patch"]["body"]["metadata"]["labels"] for details in said()] == [
        {cpu: "75", memory: "25"},
        {cpu: "25", memory: "25"},
    ]
    assert {verb for _, _, verb in used_by(bed, account)} == {"list", "watch"}


async def test_when_the_leader_is_killed_the_other_takes_over_and_nothing_is_done_twice(
    bed: Bed, namespace: str, hollow_nodes: HollowNodes, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    (node,) = await hollow_nodes(1, capacity={"cpu": "4", "memory": "8Gi", "pods": "10"})
    logs = [tmp_path / "one.log", tmp_path / "two.log"]
    account = f"system:serviceaccount:{namespace}:load"
    async with bed.client() as client, metrics_of(client, node, cpu="1", memory="1Gi") as measure:
        rules = list_permissions([LOAD])
        kubeconfig = await service_account(client, bed, namespace, "load", rules, tmp_path)
        lease = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/wukong"
        patient = ("--stale-seconds", "60")  # a starved machine must not turn usage stale: that would be more writes
        with running(kubeconfig, namespace, logs[0], *patient) as one:
            await until(client, namespace, node, lambda labels: labels.get("cpu") == "25", logs[0])
            with running(kubeconfig, namespace, logs[1], *patient) as two:
                await when(lambda: "started" in logs[1].read_text(), logs[1].read_text)
                before = (await client.get(lease))["spec"]
                held = before["holderIdentity"]  # on a starved machine the lease may have changed hands by itself
                leader = next(process for process in (one, two) if f"_{process.pid}_" in held)
                leader.send_signal(signal.SIGKILL)
                killed = time.monotonic()
                await measure("3", "1Gi")
                await until(
                    client, namespace, node, lambda labels: labels.get("cpu") == "75", logs[1 if leader is one else 0]
                )
                seconds = time.monotonic() - killed
                spec = (await client.get(lease))["spec"]
                assert spec["holderIdentity"] != held
                assert spec["leaseTransitions"] == before.get("leaseTransitions", 0) + 1
    record_property("figure", f"leader killed, lease of 4 s: the other had done its work {seconds:.1f} s later")
    assert len(writes_to(bed, account, node)) == 2  # one change each, by whoever led


def writes_to(bed: Bed, account: str, node: str) -> list[str]:
    return [
        entry["auditID"]
        for entry in audited(bed, account)
        if entry["verb"] == "patch" and entry["objectRef"]["resource"] == "nodes" and entry["objectRef"]["name"] == node
    ]
