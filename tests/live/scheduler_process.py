"""`wukong run --components scheduler` as a process of its own, and the pods that tests give it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from testbed import nodes
from testbed.client import Client, Json
from testbed.ports import free_ports

DEADLINE_SECONDS = 120.0
HOST = "kubernetes.io/hostname"


class SchedulerProcess(NamedTuple):
    """One that runs: the schedulerName it answers to, where its probes are, and what it logs."""

    name: str
    probes: int
    log: Path
    process: subprocess.Popen[bytes]

    def read_metrics(self) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.probes}/metrics", timeout=DEADLINE_SECONDS) as answer:
            return str(answer.read().decode())


@contextlib.contextmanager
def scheduler_running(kubeconfig: Path, name: str, log: Path, *more: str) -> Iterator[SchedulerProcess]:
    """Ready to decide; ended with SIGTERM, which must succeed, unless the test has ended it."""
    started = start_scheduler(kubeconfig, name, log, *more)
    process = started.process
    try:
        await_ready(started)
        yield started
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=DEADLINE_SECONDS) == 0, log.read_text()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


@contextlib.asynccontextmanager
async def scheduler_beside(kubeconfig: Path, name: str, log: Path, *more: str) -> AsyncIterator[SchedulerProcess]:
    """The same, waited for in a thread: this one may serve whom it asks."""
    running = scheduler_running(kubeconfig, name, log, *more)
    started = await asyncio.to_thread(running.__enter__)
    try:
        yield started
    finally:
        await asyncio.to_thread(running.__exit__, *sys.exc_info())


def start_scheduler(kubeconfig: Path, name: str, log: Path, *more: str) -> SchedulerProcess:
    (probes,) = free_ports(1)
    words = ["run", "--components", "scheduler", "--scheduler-name", name, "--kubeconfig", str(kubeconfig)]
    words += ["--probes", f"127.0.0.1:{probes}", "--measure-seconds", "1", *more]
    with log.open("ab") as output:
        process = subprocess.Popen([sys.executable, "-m", "wukong", *words], stdout=output, stderr=output)
    return SchedulerProcess(name, probes, log, process)


def await_ready(started: SchedulerProcess) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while True:
        assert started.process.poll() is None, f"the scheduler ended: {started.log.read_text()}"
        assert time.monotonic() < deadline, f"the scheduler never got ready: {started.log.read_text()}"
        with contextlib.suppress(OSError):  # nobody listens yet, it is not ready, or the answer takes its time
            urllib.request.urlopen(f"http://127.0.0.1:{started.probes}/readyz", timeout=DEADLINE_SECONDS).read()
            return
        time.sleep(0.05)


class OwnPods:
    """Pods of one namespace for one scheduler, on the nodes that are reserved for the namespace."""

    def __init__(self, client: Client, namespace: str, scheduler: str) -> None:
        self.client, self.namespace, self.scheduler = client, namespace, scheduler

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"

    async def create(self, name: str, cpu: str = "100m", labels: Json | None = None, **spec: Any) -> None:
        body = self.build(name, cpu, labels, **spec)
        await self.client.create(self.path, body)

    def build(self, name: str, cpu: str = "100m", labels: Json | None = None, **spec: Any) -> Json:
        container = {"name": "main", "image": "web", "resources": {"requests": {"cpu": cpu}}}
        reserved = nodes.on_reserved(self.namespace)
        selector = {**reserved["nodeSelector"], **spec.pop("nodeSelector", {})}
        tolerations = [*reserved["tolerations"], *spec.pop("tolerations", [])]
        return {
            "metadata": {"name": name, "labels": labels or {"app": name}, **spec.pop("metadata", {})},
            "spec": {
                "containers": [container],
                "schedulerName": self.scheduler,
                "nodeSelector": selector,
                "tolerations": tolerations,
                "terminationGracePeriodSeconds": 0,
                **spec,
            },
        }

    async def until(self, name: str, is_so: Callable[[Json], bool]) -> Json:
        return await self.client.wait_until(f"{self.path}/{name}", is_so, DEADLINE_SECONDS)

    async def node_of(self, name: str) -> str:
        """Once it is bound."""
        pod = await self.until(name, is_bound)
        return str(pod["spec"]["nodeName"])

    async def list_all(self) -> list[Json]:
        items: list[Json] = (await self.client.get(self.path))["items"]
        return items

    async def event(self, name: str, reason: str) -> Json:
        """The Event of this reason about a pod, once it is there."""
        path = f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events"
        async with asyncio.timeout(DEADLINE_SECONDS):
            while True:
                for event in (await self.client.get(path))["items"]:
                    if (event["regarding"]["name"], event["reason"]) == (name, reason):
                        found: Json = event
                        return found
                await asyncio.sleep(0.1)


def is_bound(pod: Json) -> bool:
    return "nodeName" in pod["spec"]


def condition_of(pod: Json, kind: str) -> Json:
    conditions: list[Json] = pod["status"].get("conditions", [])
    return next((condition for condition in conditions if condition["type"] == kind), {})


def keep_apart(app: str) -> Json:
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": app}}}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def spread(app: str) -> Json:
    selector = {"matchLabels": {"app": app}}
    constraint = {"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    return {"topologySpreadConstraints": [constraint]}
