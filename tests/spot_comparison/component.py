"""`wukong run --components spot` beside a control plane, with exactly its own rights."""

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
from wukong.app.components.spot import SPOT

ACCOUNT = "system:serviceaccount:default:spot"


async def furnish_component(bed: Bed, folder: Path) -> Path:
    """Install our kinds. Returns a kubeconfig with the rights of the component spot and no others."""
    await install(bed)
    async with bed.client() as client:
        await until_served(client, path_of("Move", ""))
        return await service_account(client, bed, "default", "spot", list_permissions([SPOT]), folder)


@contextlib.contextmanager
def component_running(kubeconfig: Path, log: Path) -> Iterator[None]:
    """Until the context ends; then it is ended with SIGTERM, which must succeed."""
    words = ["run", "--components", "spot", "--kubeconfig", str(kubeconfig), "--lease", "default/wukong"]
    with log.open("wb") as output:
        process = subprocess.Popen([sys.executable, "-m", "wukong", *words], stdout=output, stderr=output)
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(30)
    assert code == 0, log.read_text()
