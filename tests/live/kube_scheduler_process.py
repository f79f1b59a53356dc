"""A kube-scheduler of a test's own beside that of a cluster, as a process, for the pods that name it."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from testbed import processes
from testbed.ports import free_ports
from testbed.programs import Programs


@contextlib.contextmanager
def kube_scheduler_running(
    programs: Programs, kubeconfig: Path, config: dict[str, Any], log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """kube-scheduler with this configuration, as whom the kubeconfig names."""
    config["clientConnection"] = {"kubeconfig": str(kubeconfig)}
    file = log.with_suffix(".yaml")
    file.write_text(yaml.safe_dump(config))
    flags = [f"--{who}-kubeconfig={kubeconfig}" for who in ("authentication", "authorization")]
    flags += [f"--config={file}", f"--secure-port={free_ports(1)[0]}", "--bind-address=127.0.0.1"]
    process = processes.spawn([*programs.argv["scheduler"], *flags], log)
    try:
        yield process
        assert process.poll() is None, log.read_text()[-2000:]
    finally:
        process.terminate()
        process.wait()


def give_name(config: dict[str, Any], name: str) -> dict[str, Any]:
    """The configuration of a scheduler for pods that name it; it needs no lease, for it is the only one."""
    assert "profiles" not in config  # the only profile it has by default gets a name of its own
    return {**config, "profiles": [{"schedulerName": name}], "leaderElection": {"leaderElect": False}}
