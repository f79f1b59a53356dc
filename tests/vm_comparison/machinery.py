"""Our kinds and `wukong run --components vm` beside a control plane with KubeVirt, with exactly its own rights."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from live.accounts import service_account
from live.test_policies import install, path_of, until_served
from testbed.pytest_plugin import Bed
from wukong.app.component import list_permissions
from wukong.app.components.vm import VM

ACCOUNT = "vm"


async def furnish(bed: Bed, folder: Path) -> Path:
    """Install our kinds. Returns a kubeconfig with the rights of the component vm and no others."""
    await install(bed)
    async with bed.client() as client:
        await until_served(client, path_of("Wukong", ""))
        return await service_account(client, bed, "default", ACCOUNT, list_permissions([VM]), folder)


@contextlib.contextmanager
def component_running(kubeconfig: Path, log: Path, *options: str) -> Iterator[None]:
    """`wukong run --components vm` until the context ends; then it is ended with SIGTERM, which must succeed."""
    command = [sys.executable, "-m", "wukong", "run", "--components", "vm", "--kubeconfig", str(kubeconfig), *options]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(30)
    assert code == 0, log.read_text()
