"""`wukong run --components ledger` on a real cluster: a rollout, scales, a removal; exactly its own rights; kill -9."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from live.accounts import service_account, used_by, when
from testbed import nodes
from testbed.client import Client
from testbed.pytest_plugin import Bed, HollowNodes
from wukong.api.kinds import DEPLOYMENTS
from wukong.api.ledger import ReplicaRecord, object_name_of
from wukong.app.component import list_permissions
from wukong.app.components.ledger import LEDGER
from wukong.cli.verbs.ledger_show import read_history
from wukong.errors import InputError

DEADLINE_SECONDS = 180.0


@contextlib.contextmanager
def running(kubeconfig: Path, namespace: str, path: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The command itself, as a process of its own; ended with SIGTERM unless it is gone already."""
    words = ["run", "--components", "ledger", "--kubeconfig", str(kubeconfig), "--lease", f"{namespace}/wukong"]
    with log.open("ab") as output:
        argv = [sys.executable, "-m", "wukong", *words, "--lease-seconds", "4", "--ledger", str(path)]
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


def a_deployment(namespace: str, replicas: int) -> dict[str, object]:
    pod = {**nodes.on_reserved(namespace), "terminationGracePeriodSeconds": 0}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {**pod, "containers": [{"name": "web", "image": "web:1"}]},
            },
        },
    }


async def until(
    path: Path, namespace: str, is_so: Callable[[list[ReplicaRecord]], bool], log: Path
) -> list[ReplicaRecord]:
    """The history of the Deployment once it is so."""
    name, history = object_name_of("Deployment", namespace, "web"), list[ReplicaRecord]()
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not is_so(history):
                await asyncio.sleep(0.2)
                with contextlib.suppress(InputError):  # no file yet
                    history = await read_history(str(path), "default", name)
    except TimeoutError:
        pytest.fail(f"the history stayed {history}; the log says:\n{log.read_text()[-2000:]}")
    return history


def counts(history: list[ReplicaRecord]) -> list[int]:
    return [record.replicas for record in history]


async def patch(client: Client, namespace: str, body: object) -> None:
    await client.patch(f"{DEPLOYMENTS.path(namespace)}/web", body, "strategic")


def verify(kubeconfig: Path, namespace: str, path: Path) -> list[tuple[str, str]]:
    """What `wukong ledger verify` says of this namespace; tests share the cluster, and others are at work in theirs."""
    words = ["ledger", "verify", "--ledger", str(path), "--kubeconfig", str(kubeconfig), "-o", "json"]
    run = subprocess.run([sys.executable, "-m", "wukong", *words], capture_output=True, check=False)
    assert run.returncode in (0, 1), run.stderr
    workloads = json.loads(run.stdout)["workloads"]
    return [(entry["verdict"], entry["text"]) for entry in workloads if entry["namespace"] == namespace]


@pytest.mark.slow(waits=60)
async def test_rollouts_never_show_and_nothing_is_lost_or_doubled_by_a_kill(
    bed: Bed, namespace: str, hollow_nodes: HollowNodes, tmp_path: Path
) -> None:
    await hollow_nodes(2)
    path, log, rules = tmp_path / "ledger.db", tmp_path / "run.log", list_permissions([LEDGER])
    async with bed.client() as client:
        kubeconfig = await service_account(client, bed, namespace, "ledger", rules, tmp_path)
        await client.create(DEPLOYMENTS.path(namespace), a_deployment(namespace, 3))
        with running(kubeconfig, namespace, path, log) as process:
            await until(path, namespace, lambda history: counts(history) == [3], log)
            image = {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "web:2"}]}}}}
            await patch(client, namespace, image)
            history = await until(path, namespace, lambda history: counts(history) == [3, 3], log)
            assert [record.revision for record in history] == ["1", "2"]
            process.kill()
            process.wait()
        await patch(client, namespace, {"spec": {"replicas": 5}})
        await client.wait_until(
            f"{DEPLOYMENTS.path(namespace)}/web", lambda web: web["status"].get("availableReplicas") == 5
        )
        ((verdict, text),) = await asyncio.to_thread(verify, kubeconfig, namespace, path)
        assert (verdict, "the ledger says 3 replicas at generation 2" in text) == ("Differs", True)
        with running(kubeconfig, namespace, path, log):
            await until(path, namespace, lambda history: counts(history) == [3, 3, 5], log)
            same = await asyncio.to_thread(verify, kubeconfig, namespace, path)
            assert same == [("Same", "5 replicas at generation 3")]
            await client.delete(f"{DEPLOYMENTS.path(namespace)}/web")
            history = await until(path, namespace, lambda history: bool(history and history[-1].closed_at), log)
    assert counts(history) == [3, 3, 5]
    assert {record.closed_at for record in history} == {history[-1].closed_at}
    account = f"system:serviceaccount:{namespace}:ledger"
    granted = {(rule.group, rule.resource, verb) for rule in rules for verb in rule.verbs}
    await when(lambda: used_by(bed, account) == granted, lambda: f"{used_by(bed, account)} is not {granted}")
