"""`wukong sim soak`, and faults in `wukong sim run`: what they print, how they end, what they refuse."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli.conftest import Wukong

EXAMPLES = Path(__file__).parents[2] / "examples" / "sim"
ROOT = EXAMPLES.parents[1]
SOAK = EXAMPLES / "soak.yaml"
SMALL = """
nodes: [{namePrefix: n, count: 2}]
manifests:
  - apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web}
    spec:
      replicas: 2
      selector: {matchLabels: {app: web}}
      template:
        metadata: {labels: {app: web}}
        spec: {containers: [{name: web, image: "web:1", resources: {requests: {cpu: "1"}}}]}
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(SMALL)
    return path


def test_a_soak_tells_what_struck_and_that_nothing_failed(wukong: Wukong, small: Path) -> None:
    run = wukong("sim", "soak", small, "--seeds", "1-15", "--faults", "failed,duplicated", "--jobs", "1")
    assert run.code == 0
    lines = run.out.splitlines()
    assert lines[0].split()[:3] == ["FAULT", "INJECTED", "EFFECTIVE"]
    assert [line.split()[0] for line in lines[1:3]] == ["failed", "duplicated"]
    assert "15 seeds, " in run.out
    assert lines[-1] == "No seed failed."


def test_a_seed_that_fails_comes_with_the_command_that_replays_it(wukong: Wukong, small: Path) -> None:
    small.write_text(SMALL.replace("count: 2", "count: 1").replace('cpu: "1"', 'cpu: "3"'))
    run = wukong("sim", "soak", small, "--seeds", "7", "--faults", "stale,failed", "--jobs", "1")
    assert run.code == 1
    (line,) = [line for line in run.out.splitlines() if line.startswith("Seed 7 failed.")]
    assert "  it does not settle" in run.out.splitlines()
    replay = shlex.split(line.partition("Replay it: wukong ")[2])
    again = wukong(*replay)
    assert again.code == 1
    assert "Not settled:" in again.out
    document = wukong(
        "sim", "soak", small, "--seeds", "7", "--faults", "stale,failed", "--jobs", "1", "-o", "json"
    ).document
    (failure,) = document["failures"]
    assert failure["replay"] == line.partition("Replay it: ")[2]
    assert failure["digest"] == wukong(*replay, "-o", "json").document["digest"]


def test_a_fault_that_makes_no_difference_is_a_failure(wukong: Wukong, small: Path) -> None:
    run = wukong("sim", "soak", small, "--seeds", "1", "--faults", "extender", "--jobs", "1")
    assert run.code == 1
    assert "The fault extender never made a difference" in run.out


def test_a_soak_for_programs(wukong: Wukong, small: Path) -> None:
    run = wukong("sim", "soak", small, "--seeds", "1-2", "--faults", "none", "-o", "json", "--jobs", "1")
    assert (run.code, run.err) == (0, "")
    assert run.document["seeds"] == {"asked": 2, "played": 2, "failed": 0}
    assert (run.document["faults"], run.document["failures"], run.document["ineffective"]) == ({}, [], [])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--seeds", "9-1"], 'expected a seed such as 7, or a range such as 1-1000, got "9-1".'),
        (["--seeds", "many"], 'got "many"'),
        (["--faults", "conflicts"], 'got "conflicts". Did you mean "conflict"?'),
    ],
)
def test_what_cannot_be_played_is_refused(wukong: Wukong, small: Path, arguments: list[str], message: str) -> None:
    run = wukong("sim", "soak", small, *arguments)
    assert (run.code, run.out) == (2, "")
    assert message in run.err


def test_faults_are_not_for_real_clusters_nor_for_snapshots(wukong: Wukong, small: Path) -> None:
    run = wukong("sim", "run", small, "--faults", "all", "--live")
    assert run.code == 2
    assert "faults strike a scenario that begins empty" in run.err


@pytest.mark.slow
def test_the_same_seed_and_faults_give_the_same_digest_whatever_the_hash_seed() -> None:
    command = [sys.executable, "-m", "wukong", "sim", "run", str(SOAK), "--seed", "5", "--faults", "all", "-o", "json"]
    stories = [
        json.loads(
            subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True).stdout
        )
        for seed in ("1", "2")
    ]
    assert stories[0] == stories[1]
    assert stories[0]["findings"] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_an_interrupted_soak_ends_with_what_it_has(small: Path, name: str) -> None:
    script = (
        "import os, signal, sys; from wukong.app import soak; from wukong.cli.main import main\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"  # as shells start what they put into the background
        "real = soak.play_seed\n"
        "def one(scenario, seed, faults):\n"
        f"    if seed == 3: os.kill(os.getpid(), signal.{name})\n"
        "    return real(scenario, seed, faults)\n"
        "soak.play_seed = one; sys.exit(main())"
    )
    arguments = ["sim", "soak", str(small), "--seeds", "1-50", "--faults", "none", "--jobs", "1"]
    command = [sys.executable, "-c", script, *arguments]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 130
    assert "2 of 50 seeds" in run.stdout
    assert "Interrupted." in run.stdout
    assert run.stderr == ""


@pytest.mark.slow
def test_a_soak_that_is_interrupted_again_waits_for_nobody(small: Path) -> None:
    script = (
        "import multiprocessing, os, signal, sys; from concurrent.futures import ProcessPoolExecutor as Pool\n"
        "from wukong.app import soak; from wukong.cli.main import main\n"
        "is_ending, never, real = multiprocessing.Event(), multiprocessing.Event(), Pool.shutdown\n"
        "def interrupt_twice(scenario, seed, faults):\n"
        "    if seed == 1:\n"
        "        os.kill(os.getppid(), signal.SIGINT); is_ending.wait()\n"
        "        os.kill(os.getppid(), signal.SIGINT)\n"
        "    never.wait()\n"
        "def shut_down(*arguments, **options): is_ending.set(); real(*arguments, **options)\n"
        "soak.play_seed, Pool.shutdown = interrupt_twice, shut_down; sys.exit(main())"
    )
    arguments = ["sim", "soak", str(small), "--seeds", "1-50", "--faults", "none", "--jobs", "2"]
    command = [sys.executable, "-c", script, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as run:
        try:
            shown, _ = run.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
            raise
    assert run.returncode == 130
    assert "0 of 50 seeds" in shown
