"""`wukong agent` as a process: how much it takes, how it ends, and what it refuses."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from app.test_agent import MOMENT, NodeServer
from cli.conftest import Wukong
from metadata_server import AwsServer

MOST_MEBIBYTES = 40
HEAVY = ("numpy", "aiohttp", "prometheus_client", "cryptography", "rich", "wukong.engine", "wukong.state")


def write_kubeconfig(path: Path, server: str) -> Path:
    config = {
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(yaml.safe_dump(config), "utf-8")
    return path


def read_peak_mebibytes(pid: int) -> float:
    (line,) = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


async def test_an_agent_at_work_takes_less_than_40_mb_and_ends_at_once_when_it_is_told_to(
    tmp_path: Path, record_property: object
) -> None:
    async with AwsServer().running() as cloud, NodeServer().running() as node:
        kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", node.url)
        words = ["agent", "--node", "n1", "--cloud", "aws", "--endpoint", cloud.url, "--kubeconfig", str(kubeconfig)]
        cloud.interrupt("terminate", MOMENT)
        process = subprocess.Popen([sys.executable, "-m", "wukong", *words], stderr=subprocess.PIPE, text=True)
        try:
            await node.until(lambda: node.text is not None)
            peak = read_peak_mebibytes(process.pid)
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == 0, said
    assert said.splitlines()[-1].endswith("stopped")
    assert peak < MOST_MEBIBYTES, f"{peak:.1f} MiB"
    assert callable(record_property)
    record_property("figure", f"wukong agent: {peak:.1f} MiB at its peak")


async def test_a_question_that_hangs_does_not_keep_it_from_ending(tmp_path: Path) -> None:
    async with AwsServer().running() as cloud, NodeServer().running() as node:
        kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", node.url)
        words = ["agent", "--node", "n1", "--cloud", "aws", "--endpoint", cloud.url, "--kubeconfig", str(kubeconfig)]
        cloud.faults = [cloud.HANG]
        process = subprocess.Popen([sys.executable, "-m", "wukong", *words], stderr=subprocess.PIPE, text=True)
        try:
            await cloud.was_asked.wait()
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == 0, said


def test_the_agent_imports_none_of_what_is_heavy() -> None:
    code = "import sys, wukong.cli.verbs.agent; print('\\n'.join(sys.modules))"
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    assert [name for name in HEAVY if name in shown.stdout.split()] == []


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--node", "a/b"), "--node: expected the name of a Node, got 'a/b'."),
        (("--node", ""), "--node: expected the name of a Node"),
        (("--node", "n1", "--endpoint", "ftp://x", "--cloud", "aws"), "--endpoint: expected an address such as"),
        (("--node", "n1", "--endpoint", "http://x"), "--endpoint: expected one cloud's own with --cloud"),
        (("--node", "n1", "--cloud", "aws", "--machine", "m"), "--machine: is about Azure, got --cloud aws."),
        (("--node", "n1", "--cloud", "gcp", "--acknowledge"), "--acknowledge: is about Azure, got --cloud gcp."),
        (("--node", "n1", "--kubeconfig", "/nowhere"), "/nowhere: there is no such file. Check --kubeconfig."),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_asked(
    wukong: Wukong, words: tuple[str, ...], problem: str
) -> None:
    run = wukong("agent", *words)
    assert run.code == 2
    assert problem in run.err


def test_every_problem_is_said_at_once(wukong: Wukong) -> None:
    run = wukong("agent", "--node", "a/b", "--endpoint", "nonsense", "--cloud", "gcp", "--acknowledge")
    assert run.err.count("error: ") == 3
