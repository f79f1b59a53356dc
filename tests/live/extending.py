"""A cluster of its own whose kube-scheduler asks our extender: what the tests of test_extender.py have in common."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from testbed import nodes
from testbed.client import Client
from testbed.pytest_plugin import Bed
from wukong.api.crds import crds

DEADLINE_SECONDS = 60.0
CAPACITY = "node.kubernetes.io/capacity"
Json = dict[str, Any]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def scheduler_config(folder: Path, port: int, **more: Any) -> Path:
    """Ours, but for certificates. Tests on mutual TLS are elsewhere."""
    extender = {
        "urlPrefix": f"http://127.0.0.1:{port}",
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "preemptVerb": "preempt",
        "weight": 5,
        "nodeCacheCapable": True,
        "ignorable": True,
        **more,
    }
    return write_config(folder, {"percentageOfNodesToScore": 100, "extenders": [extender]})


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


@contextlib.contextmanager
def extender_running(bed: Bed, port: int, log: Path, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    """`wukong run --components extender`, ready to answer; ended with SIGTERM, which must succeed."""
    words = ["run", "--components", "extender", "--extender", f"127.0.0.1:{port}", "--extender-plain-http"]
    words += ["--kubeconfig", str(bed.kubeconfig), "--measure-seconds", "0.5", *more]
    with log.open("ab") as output:
        process = subprocess.Popen([sys.executable, "-m", "wukong", *words], stdout=output, stderr=output)
    try:
        await_answer(process, port, log)
        yield process
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=20) == 0, log.read_text()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def await_answer(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Until it answers a question, hence has seen the cluster."""
    import urllib.error
    import urllib.request

    question = b'{"Pod": {"metadata": {"name": "x"}}, "NodeNames": []}'
    deadline = time.monotonic() + DEADLINE_SECONDS
    while True:
        assert process.poll() is None, f"the extender ended: {log.read_text()}"
        assert time.monotonic() < deadline, f"the extender never answered: {log.read_text()}"
        request = urllib.request.Request(f"http://127.0.0.1:{port}/prioritize", question, method="POST")
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            urllib.request.urlopen(request, timeout=5).read()
            return
        time.sleep(0.05)


async def install_policies(client: Client) -> None:
    """The kinds, ready to be used."""
    base = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for crd in crds():
        await client.create(base, crd)
        await client.wait_until(f"{base}/{crd['metadata']['name']}", _is_established)


def _is_established(crd: Json) -> bool:
    conditions = crd.get("status", {}).get("conditions") or []
    return any(entry["type"] == "Established" and entry["status"] == "True" for entry in conditions)


async def make_nodes(client: Client, kind: str, *names: str, **like: Any) -> None:
    labels = {CAPACITY: kind, **like.pop("labels", {})}
    await nodes.create(client, [nodes.a_node(name, now=time.time(), labels=labels, **like) for name in names])
    for name in names:
        await client.wait_until(f"/api/v1/nodes/{name}", nodes.is_usable)


async def make_pod(client: Client, name: str, *, cpu: str = "100m", labels: Json | None = None, **spec: Any) -> None:
    resources = {"requests": {"cpu": cpu}}
    body = {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"containers": [{"name": "main", "image": "web", "resources": resources}], **spec},
    }
    await client.create("/api/v1/namespaces/default/pods", body)


async def node_of(client: Client, name: str) -> str:
    """Where the pod was bound, once it is."""
    path = f"/api/v1/namespaces/default/pods/{name}"
    pod = await client.wait_until(path, lambda found: bool(found["spec"].get("nodeName")))
    return str(pod["spec"]["nodeName"])


async def place(client: Client, name: str, **like: Any) -> str:
    await make_pod(client, name, **like)
    return await node_of(client, name)
