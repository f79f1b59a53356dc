"""Our scheduler in an embedded cluster, beside kube-scheduler: each binds the pods that name it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wukong.app.embedded import play_scenario, play_with
from wukong.embedded.faults.catalogue import TYPES
from wukong.embedded.scenario import read_scenario
from wukong.errors import InputError

ROOT = Path(__file__).parents[2]
EXAMPLE = (ROOT / "examples" / "sim" / "own-schedulers.yaml").read_text("utf-8")
WAITING = """
components: [scheduler]
nodes: [{name: small, allocatable: {cpu: "1", memory: 4Gi, pods: "10"}}]
manifests:
  - apiVersion: v1
    kind: Pod
    metadata: {name: big}
    spec: {schedulerName: wukong-scheduler, containers: [{name: big, image: "a:1", resources: {requests: {cpu: "2"}}}]}
  - apiVersion: v1
    kind: Pod
    metadata: {name: stateful}
    spec:
      schedulerName: wukong-scheduler
      containers: [{name: a, image: "a:1"}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
timeline:
  - at: 30s
    apply:
      apiVersion: v1
      kind: Node
      metadata: {name: large}
      status:
        allocatable: {cpu: "4", memory: 16Gi, pods: "10"}
        conditions: [{type: Ready, status: "True"}]
until: 10m
"""


def list_bindings(trace: list[str]) -> set[tuple[str, str]]:
    """Who bound the pods of what: controller, and the beginning of the pod's name."""
    steps = (json.loads(line) for line in trace)
    return {
        (step["by"], step["action"]["key"]["name"].removeprefix("virt-launcher-").split("-")[0])
        for step in steps
        if step["action"].get("type") == "Bind" and not step.get("error")
    }


def test_each_scheduler_binds_the_pods_that_name_it() -> None:
    story = play_scenario(read_scenario(EXAMPLE))
    bindings = list_bindings([*story.trace])
    assert {"wukong-scheduler", "scheduler"} == {controller for controller, _ in bindings}
    assert {name for controller, name in bindings if controller == "scheduler"} == {"usual"}
    assert story.findings == []


@pytest.mark.parametrize("seed", range(1, 7))
def test_under_all_faults_both_end_where_they_should(seed: int) -> None:
    story, _ = play_with(read_scenario(EXAMPLE), seed, list(TYPES))
    assert story.findings == []
    assert {name: workload.available for name, workload in story.workloads.items()} == {
        "default/custom-scheduled-vm": 1,
        "default/gpu-vm": 1,
        "default/spread": 2,
        "default/usual": 1,
    }


def test_a_pod_waits_for_a_node_and_one_without_its_claim_for_that() -> None:
    story = play_scenario(read_scenario(WAITING))
    steps = [json.loads(line) for line in story.trace]
    reasons = [step["action"].get("reason") for step in steps if step["by"] == "wukong-scheduler"]
    assert {"FailedScheduling", "Scheduled"} <= set(reasons)
    assert any('persistentvolumeclaim "data" not found' in str(step["action"].get("text")) for step in steps)
    bound = [step["action"] for step in steps if step["action"].get("type") == "Bind"]
    assert [(action["key"]["name"], action["node"]) for action in bound] == [("big", "large")]


def test_it_does_not_take_the_place_of_kube_scheduler() -> None:
    scenario = "components: [scheduler]\noptions: {scheduler: {schedulerName: [default-scheduler]}}\n"
    with pytest.raises(InputError, match="kube-scheduler binds those pods"):
        play_scenario(read_scenario(scenario))
