"""The gate in an embedded cluster: drains and preemption ask it, under faults too; Kubernetes' own actors do not."""

from __future__ import annotations

import json

import pytest

from wukong.api.core import NEVER_MOVE
from wukong.app.embedded import play_scenario, play_with
from wukong.embedded.faults import TYPES
from wukong.embedded.scenario import Scenario, read_scenario

DRAIN = f"""
nodes:
  - {{namePrefix: n, count: 3}}
manifests:
  - apiVersion: apps/v1
    kind: Deployment
    metadata: {{name: web}}
    spec:
      replicas: 3
      selector: {{matchLabels: {{app: web}}}}
      template:
        metadata: {{labels: {{app: web}}, annotations: {{{NEVER_MOVE}: "true"}}}}
        spec: {{containers: [{{name: web, image: "web:1", resources: {{requests: {{cpu: "1"}}}}}}]}}
timeline:
  - {{at: 60s, drain: n1}}
  - {{at: 90s, scale: {{kind: Deployment, name: web, replicas: 1}}}}
  - {{at: 120s, scale: {{kind: Deployment, name: web, replicas: 3}}}}
until: 2h
expect: {{settled: false}}
"""
PREEMPTION = f"""
nodes:
  - {{name: n1}}
manifests:
  - {{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {{name: high}}, value: 1000}}
  - apiVersion: v1
    kind: Pod
    metadata: {{name: old, annotations: {{{NEVER_MOVE}: "true"}}}}
    spec: {{containers: [{{name: old, image: "old:1", resources: {{requests: {{cpu: "3"}}}}}}]}}
timeline:
  - at: 30s
    apply:
      apiVersion: v1
      kind: Pod
      metadata: {{name: urgent}}
      spec:
        priorityClassName: high
        containers: [{{name: urgent, image: "urgent:1", resources: {{requests: {{cpu: "3"}}}}}}]
until: 30m
expect: {{settled: false}}
"""


def actions(scenario: Scenario, of: str) -> list[dict[str, object]]:
    steps = map(json.loads, play_scenario(scenario).trace)
    return [{**step["action"], "error": step.get("error", "")} for step in steps if step["by"] == of]


def test_a_drain_leaves_protected_pods_where_they_are_and_kubernetes_deletes_them_as_it_likes() -> None:
    done = actions(read_scenario(DRAIN), "drain")
    assert [step["type"] for step in done].count("Note") == 1
    evictions = [step for step in done if step["type"] == "Evict"]
    assert evictions
    assert all(str(step["error"]).startswith("GateRefusal") for step in evictions)
    story = play_scenario(read_scenario(DRAIN))
    assert story.findings == []
    assert story.workloads["default/web"].restarts == 0
    assert story.workloads["default/web"].available == 3  # the ReplicaSet's own scale-down asked nobody


def test_the_scheduler_preempts_no_protected_pod_and_tries_again_later() -> None:
    done = actions(read_scenario(PREEMPTION), "scheduler")
    assert [step for step in done if step["type"] == "Delete"] == []
    marks = [step for step in done if step["type"] == "Patch" and "DisruptionTarget" in str(step["patch"])]
    assert marks
    assert all(str(step["error"]).startswith("GateRefusal") for step in marks), "nobody is told that he goes, and stays"
    assert [step["reason"] for step in done if step["type"] == "Note" and "reason" in step].count("Preempted") == 0


@pytest.mark.parametrize("seed", range(1, 7))
def test_under_all_faults_no_protected_pod_is_evicted(seed: int) -> None:
    faults = [name for name in TYPES if name not in ("extender",)]
    story, _ = play_with(read_scenario(DRAIN), seed, faults)
    evicted = [
        step
        for step in map(json.loads, story.trace)
        if step["by"] == "drain" and step["action"]["type"] == "Evict" and not step.get("error")
    ]
    assert evicted == []
    assert story.findings == []
