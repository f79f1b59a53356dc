"""`wukong agent` beside a real API server, as its manifests install it: a notice closes the Node, its end opens it, and
nothing but that annotation of that Node can be changed by its account.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from live.accounts import used_by
from metadata_server import AwsServer
from spot_comparison.component import component_running, furnish_component
from testbed.client import Client
from testbed.pytest_plugin import Bed, OwnBed
from wukong.api.kinds import NODES
from wukong.api.resources import Key
from wukong.app.agent.install import NAME, NAMESPACE, AgentInstallation, build_manifests
from wukong.app.install.text import as_yaml
from wukong.cluster.credentials import load
from wukong.cluster.kube import Kube
from wukong.controllers.spot.records import RECORD, TAINT
from wukong.errors import Denied, Invalid
from wukong.placement.capacity import OWN_LABEL
from wukong.placement.leaving_nodes import NOTICE
from wukong.ports import PatchBody

ACCOUNT = f"system:serviceaccount:{NAMESPACE}:{NAME}"
MOMENT = "2126-11-18T10:02:00Z"
MOST_MEBIBYTES = 40
PATHS = {
    "Namespace": "/api/v1/namespaces",
    "ResourceQuota": "/api/v1/namespaces/{}/resourcequotas",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "ValidatingAdmissionPolicy": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
    "DaemonSet": "/apis/apps/v1/namespaces/{}/daemonsets",
}
FORBIDDEN: dict[str, dict[str, Any]] = {
    "another annotation": {"metadata": {"annotations": {"example.com/mine": "x"}}},
    "another annotation beside its own": {"metadata": {"annotations": {NOTICE: "2m", "example.com/mine": "x"}}},
    "another annotation taken away": {"metadata": {"annotations": {"example.com/kept": None}}},
    "all annotations taken away": {"metadata": {"annotations": None}},
    "a label": {"metadata": {"labels": {"example.com/mine": "x"}}},
    "a label taken away": {"metadata": {"labels": {OWN_LABEL: None}}},
    "a finalizer": {"metadata": {"finalizers": ["example.com/mine"]}},
    "an owner": {
        "metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "x", "uid": "x"}]},
    },
    "a cordon": {"spec": {"unschedulable": True}},
    "a taint": {"spec": {"taints": [{"key": "example.com/mine", "effect": "NoExecute"}]}},
}


@pytest.mark.slow(waits=15)
async def test_a_notice_closes_the_node_and_nothing_else_can_be_changed_by_the_agent(
    own_bed: OwnBed, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    bed = own_bed(nodes=2)
    spot_kubeconfig = await furnish_component(bed, tmp_path)
    async with bed.client() as client:
        mine, other = [node["metadata"]["name"] for node in (await client.get("/api/v1/nodes"))["items"]]
        await client.patch(
            f"/api/v1/nodes/{mine}",
            {"metadata": {"annotations": {"example.com/kept": "x"}, "labels": {OWN_LABEL: "spot"}}},
        )
        await install_agent(client)
        pod = await find_pod_on(client, mine)
        bound = await write_kubeconfig(client, bed, tmp_path / "bound", {"kind": "Pod", "apiVersion": "v1", **pod})
        unbound = await write_kubeconfig(client, bed, tmp_path / "unbound", None)
        await assert_bounds(bound, unbound, mine, other)
        log = tmp_path / "spot.log"
        with component_running(spot_kubeconfig, log):
            peak = await play_notices(client, bound, mine, tmp_path / "agent.log")
    record_property("figure", f"wukong agent beside a real API server: {peak:.1f} MiB at its peak")
    assert peak < MOST_MEBIBYTES
    assert used_by(bed, ACCOUNT) == {("", "nodes", "get"), ("", "nodes", "patch")}


async def install_agent(client: Client) -> None:
    """What is printed, applied strictly: a field that the API server does not know is an error."""
    text = as_yaml(build_manifests(AgentInstallation(image="wukong:test", components=())))
    for document in yaml.safe_load_all(text):
        folder = PATHS[document["kind"]].format(document["metadata"].get("namespace", ""))
        await client.send(
            "PATCH",
            f"{folder}/{document['metadata']['name']}",
            document,
            params={"fieldManager": "test", "fieldValidation": "Strict"},
            content_type="application/apply-patch+yaml",
        )
    place = f"{PATHS['DaemonSet'].format(NAMESPACE)}/{NAME}"
    await client.wait_until(place, lambda it: it.get("status", {}).get("numberReady") == 2, seconds=60)
    policy = await client.wait_until(
        f"{PATHS['ValidatingAdmissionPolicy']}/{NAME}.{NAMESPACE}",
        lambda it: it.get("status", {}).get("observedGeneration") == it["metadata"]["generation"],
        seconds=60,
    )
    assert policy["status"].get("typeChecking", {}).get("expressionWarnings", []) == []


async def find_pod_on(client: Client, node: str) -> dict[str, str]:
    pods = (await client.get(f"/api/v1/namespaces/{NAMESPACE}/pods"))["items"]
    (pod,) = [pod for pod in pods if pod["spec"]["nodeName"] == node]
    return {"name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}


async def write_kubeconfig(client: Client, bed: Bed, path: Path, bound: dict[str, str] | None) -> Path:
    """With a token of the agent's account: bound to a pod, as the kubelet mounts it, or to nothing."""
    spec = {"expirationSeconds": 3600} | ({"boundObjectRef": bound} if bound else {})
    place = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{NAME}/token"
    answer = await client.create(place, {"spec": spec})
    config = yaml.safe_load(bed.kubeconfig.read_text())
    for user in config["users"]:
        user["user"] = {"token": answer["status"]["token"]}
    path.write_text(yaml.safe_dump(config))
    return path


async def assert_bounds(bound: Path, unbound: Path, mine: str, other: str) -> None:
    notice = {"metadata": {"annotations": {NOTICE: "2m"}}}
    async with Kube(load(str(bound))) as agent, Kube(load(str(unbound))) as nobody:
        await until_refused(nobody, mine)  # a policy holds a moment after it was written
        for text in ("2m", "3m", None):
            await write(agent, mine, {"metadata": {"annotations": {NOTICE: text}}})
        allowed = []
        for what, patch in FORBIDDEN.items():
            if await is_allowed(agent, mine, patch):
                allowed.append(what)
        assert allowed == []
        assert not await is_allowed(agent, other, notice), "another Node"
        assert not await is_allowed(nobody, mine, notice), "a token that says no Node"


async def until_refused(kube: Kube, node: str) -> None:
    async with asyncio.timeout(60):
        while await is_allowed(kube, node, {"metadata": {"annotations": {"example.com/probe": None}}}):
            await asyncio.sleep(0.2)


async def is_allowed(kube: Kube, node: str, patch: dict[str, Any]) -> bool:
    try:
        await write(kube, node, patch)
    except (Denied, Invalid) as error:
        if "the agent may change" not in str(error):
            raise
        return False
    return True


async def write(kube: Kube, node: str, patch: dict[str, Any]) -> None:
    await kube.patch(NODES, Key("", node), PatchBody("merge", patch))


async def play_notices(client: Client, kubeconfig: Path, node: str, log: Path) -> float:
    """A recommendation, an interruption, and its withdrawal. Gives the agent's memory at its peak."""
    place = f"/api/v1/nodes/{node}"
    async with AwsServer().running() as cloud, agent_running(kubeconfig, node, cloud.url, log) as agent:
        cloud.rebalance = b'{"noticeTime": "2026-11-18T10:02:00Z"}'
        await client.wait_until(place, lambda it: effects_of(it) == ["PreferNoSchedule"])
        cloud.interrupt("terminate", MOMENT)
        closed = await client.wait_until(place, lambda it: effects_of(it) == ["NoSchedule"])
        assert closed["spec"]["unschedulable"] is True
        record = closed["metadata"]["annotations"][RECORD]
        assert '"source":"agent aws"' in record
        assert f'"deadline":"{MOMENT}"' in record
        peak = read_peak_mebibytes(agent.pid)
        cloud.rebalance, cloud.action = None, None
        opened = await client.wait_until(place, lambda it: effects_of(it) == [])
        assert "unschedulable" not in opened["spec"]
        assert opened["metadata"]["annotations"].keys() & {NOTICE, RECORD} == set()
    return peak


def effects_of(node: dict[str, Any]) -> list[str]:
    return [taint["effect"] for taint in node["spec"].get("taints", []) if taint["key"] == TAINT]


def read_peak_mebibytes(pid: int) -> float:
    (line,) = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


@contextlib.asynccontextmanager
async def agent_running(kubeconfig: Path, node: str, url: str, log: Path) -> AsyncIterator[subprocess.Popen[bytes]]:
    words = ["agent", "--node", node, "--cloud", "aws", "--endpoint", url, "--kubeconfig", str(kubeconfig)]
    with log.open("wb") as output:
        process = subprocess.Popen([sys.executable, "-m", "wukong", *words], stdout=output, stderr=output)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        code = await asyncio.to_thread(process.wait, 30)
    assert code == 0, log.read_text()
