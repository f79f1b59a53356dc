"""Every command that the documents show for a cluster works as written, one after the other, on a real one.

It has a control plane of its own: what is installed here (kinds, the extender, the scheduler) is nobody else's.
"""

from __future__ import annotations

import asyncio
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from documented_commands import NOT_RUN, ON_A_CLUSTER, Command, list_commands, write_files
from testbed import supervisor
from testbed.programs import Programs
from testbed.pytest_plugin import RUN, Bed
from testbed.supervisor import Order

LIVE_SCENARIO = """
manifests:
  - {apiVersion: v1, kind: Namespace, metadata: {name: played}}
  - apiVersion: v1
    kind: Pod
    metadata: {name: lone, namespace: played}
    spec: {containers: [{name: c, image: c, resources: {requests: {cpu: 100m}}}]}
until: 1m
"""
WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1", resources: {requests: {cpu: 100m}}}]}
"""
PODS = ("web-7d9f", "web-7d9f-x2x")  # that the documents ask about
NEEDED_BEFORE = ("wukong manifests extender",)  # commands without a cluster that write what others apply


@pytest.fixture
def own_bed(request: pytest.FixtureRequest, testbed_programs: Programs, tmp_path: Path) -> Iterator[Bed]:
    folder = tmp_path / "bed"
    state = supervisor.up(folder, Order(nodes=3, owner=request.config.stash[RUN].owner), lambda line: None)
    yield Bed(state.kubeconfig, state.seconds)
    supervisor.down(folder, keep_logs=True)


async def create_workloads(bed: Bed) -> None:
    container = {"name": "web", "image": "web:1", "resources": {"requests": {"cpu": "100m"}}}
    async with bed.client() as client:
        await client.create("/api/v1/namespaces", {"metadata": {"name": "shop"}})
        await client.wait_until("/api/v1/namespaces/shop/serviceaccounts/default", lambda account: True)
        await client.create("/apis/apps/v1/namespaces/shop/deployments", yaml.safe_load(WEB))
        for name in PODS:
            pod = {"metadata": {"name": name}, "spec": {"containers": [container]}}
            await client.create("/api/v1/namespaces/shop/pods", pod)


def furnish(folder: Path, bed: Bed, kubectl: Path) -> dict[str, str]:
    """The files, and the environment of somebody who has kubectl, wukong and a kubeconfig with a context `test`."""
    write_files(folder)
    (folder / "scenario.yaml").write_text(LIVE_SCENARIO, "utf-8")
    for name in ("web.yaml", "deployment.yaml"):
        (folder / name).write_text(WEB, "utf-8")
    config = yaml.safe_load(bed.kubeconfig.read_text("utf-8"))
    (context,) = config["contexts"]
    config["contexts"] = [context, {**context, "name": "test"}]
    (folder / "kubeconfig").write_text(yaml.safe_dump(config), "utf-8")
    path = os.pathsep.join([str(kubectl.parent), str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "KUBECONFIG": str(folder / "kubeconfig"), "HOME": str(folder)}


def run(command: Command, folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """At a terminal, where somebody says yes to whatever is asked."""
    leader, follower = pty.openpty()
    try:
        os.write(leader, b"y\n")
        return subprocess.run(
            ["bash", "-o", "pipefail", "-c", command.text],
            cwd=folder,
            env=environment,
            stdin=follower,
            capture_output=True,
            text=True,
            check=False,
            timeout=180,
        )
    finally:
        os.close(leader)
        os.close(follower)


@pytest.mark.slow(waits=15)
def test_every_command_for_a_cluster_runs_as_written(own_bed: Bed, kubectl_program: Path, tmp_path: Path) -> None:
    asyncio.run(create_workloads(own_bed))
    folder = tmp_path / "home"
    folder.mkdir()
    environment = furnish(folder, own_bed, kubectl_program)
    commands = [
        command
        for command in list_commands()
        if command.text in ON_A_CLUSTER or (command.text.startswith(NEEDED_BEFORE) and command.text not in NOT_RUN)
    ]
    assert {command.text for command in commands} >= ON_A_CLUSTER
    problems = []
    for command in commands:
        done = run(command, folder, environment)
        if done.returncode != 0:
            said = f"{done.stdout[-300:]}{done.stderr[-700:]}"
            problems.append(f"{command.place}: {command.text}\nended with {done.returncode}\n{said}")
    assert not problems, "\n\n".join(problems)
