"""A long story is the same in every process, byte for byte, whatever its hash seed; another seed tells another one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from wukong.ports import Document

ROOT = Path(__file__).parents[2]
KUBELET = {"ready-seconds": "3", "pull-seconds": "2", "spread": "1"}


def a_deployment(name: str, replicas: int, spec: Document | None = None) -> Document:
    labels = {"app": name}
    container = {"name": "main", "image": f"{name}:1", "resources": {"requests": {"cpu": "200m"}}}
    annotations = {f"sim.novasphere.dev/{key}": value for key, value in KUBELET.items()}
    template = {
        "metadata": {"labels": labels, "annotations": annotations},
        "spec": {"containers": [container], **(spec or {})},
    }
    body = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": body}


def roll_out(at: str, name: str) -> Document:
    change = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": f"{name}:2"}]}}}}
    return {"at": at, "patch": {"kind": "Deployment", "name": name, "patch": change}}


def a_busy_hour() -> Document:
    """Two rollouts, a drain under a budget, a node that falls silent, one that is killed."""
    zones = [{"namePrefix": f"{zone}-", "count": 6, "labels": {"zone": zone}} for zone in ("east", "west")]
    spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    spread["labelSelector"] = {"matchLabels": {"app": "shop"}}
    budget = {"maxUnavailable": "20%", "selector": {"matchLabels": {"app": "web"}}}
    return {
        "nodes": zones,
        "manifests": [
            a_deployment("web", 40),
            a_deployment("shop", 20, {"topologySpreadConstraints": [spread]}),
            {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"}, "spec": budget},
        ],
        "timeline": [
            roll_out("60s", "web"),
            roll_out("70s", "shop"),
            {"at": "5m", "drain": "east-1"},
            {"at": "6m", "notReady": "west-2"},
            {"at": "20m", "kill": "east-3"},
            {"at": "30m", "scale": {"kind": "Deployment", "name": "web", "replicas": 10}},
        ],
    }


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("scenario") / "busy.yaml"
    path.write_text(json.dumps(a_busy_hour()), encoding="utf-8")
    return path


def play(scenario: Path, *, hash_seed: str, seed: int, trace: Path) -> tuple[Any, bytes]:
    command = [sys.executable, "-m", "wukong", "sim", "run", str(scenario), "-o", "json", "--seed", str(seed)]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    result = subprocess.run(
        [*command, "--trace", str(trace)], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return json.loads(result.stdout), trace.read_bytes()


@pytest.mark.slow
def test_two_processes_tell_a_long_story_alike_and_another_seed_tells_another(scenario: Path, tmp_path: Path) -> None:
    first, steps = play(scenario, hash_seed="1", seed=7, trace=tmp_path / "first")
    again, steps_again = play(scenario, hash_seed="2", seed=7, trace=tmp_path / "again")
    other, _ = play(scenario, hash_seed="1", seed=8, trace=tmp_path / "other")
    assert first["writes"] >= 1000
    assert (first, steps) == (again, steps_again)
    assert other["digest"] != first["digest"]
    assert other["workloads"] != first["workloads"]
