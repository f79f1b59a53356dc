"""Installs Karpenter on a control plane and runs it. Called by tests/node_comparison."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from testbed import build
from testbed.client import Client, Json
from testbed.errors import TestbedError
from testbed.kubevirt.installation import is_established

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NODE_CLASSES = "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses"
NODE_POOLS, NODE_CLAIMS = "/apis/karpenter.sh/v1/nodepools", "/apis/karpenter.sh/v1/nodeclaims"
NODE_CLASS = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
FLAGS = ("--disable-leader-election=true", "--metrics-port=0", "--health-probe-port=0")
READY_SECONDS, END_SECONDS = 60.0, 10.0


@contextmanager
def running(kubeconfig: Path, folder: Path, say: build.Say, *flags: str) -> Iterator[Path]:
    """Gives its log. `flags` are Karpenter's own, beside those that let several run on one machine."""
    program = build.built(say, build.karpenter())
    asyncio.run(install(kubeconfig))
    log = folder / "karpenter.log"
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    with log.open("wb") as file:
        process = subprocess.Popen([program, *FLAGS, *flags], env=environment, stdout=file, stderr=file)
        try:
            yield log
            if process.poll() is not None:
                raise TestbedError(f"Karpenter ended by itself:\n{log.read_text(errors='replace')[-2000:]}")
        finally:
            process.terminate()
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


async def install(kubeconfig: Path) -> None:
    async with Client.of(kubeconfig) as client:
        crds = read_crds()
        for crd in crds:
            await client.create(CRDS, crd)
        for crd in crds:
            await client.wait_until(f"{CRDS}/{crd['metadata']['name']}", is_established, READY_SECONDS)
        kind = {"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": NODE_CLASS["kind"]}
        await client.create(NODE_CLASSES, {**kind, "metadata": {"name": NODE_CLASS["name"]}, "spec": {}})


def read_crds() -> list[Json]:
    """Those of the module that the program is built from."""
    command = ["go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/karpenter"]
    listed = subprocess.run(command, cwd=build.KARPENTER_SOURCE, capture_output=True, text=True, check=True)
    module = Path(listed.stdout.strip())
    files = [*(module / "pkg/apis/crds").glob("*.yaml"), *(module / "kwok/apis/crds").glob("*.yaml")]
    return [yaml.safe_load(file.read_text("utf-8")) for file in sorted(files)]
