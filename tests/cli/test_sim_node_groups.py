"""`wukong sim run --node-groups FILE`: groups beside a scenario or a snapshot, and files that are none."""

from __future__ import annotations

from pathlib import Path

from cli.conftest import Wukong

EXAMPLES = Path(__file__).parents[2] / "examples"
CLUSTER, WEB = EXAMPLES / "cluster.yaml", EXAMPLES / "web.yaml"
GROUPS = "nodeGroups: [{name: more, max: 4, bootSeconds: 30, template: {capacity: {cpu: 16, memory: 64Gi}}}]"


def write(path: str, text: str) -> str:
    Path(path).write_text(text, "utf-8")
    return path


BIG = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: big}
spec:
  replicas: 5
  selector: {matchLabels: {app: big}}
  template:
    metadata: {labels: {app: big}}
    spec: {containers: [{name: big, image: "big:1", resources: {requests: {cpu: 6}}}]}
"""


def test_nodes_come_for_pods_of_a_change_that_would_wait(wukong: Wukong) -> None:
    change, groups = write("big.yaml", BIG), write("groups.yaml", GROUPS)
    alone = wukong("sim", "run", "-s", CLUSTER, "-f", change, "-o", "json").document
    helped = wukong("sim", "run", "-s", CLUSTER, "-f", change, "--node-groups", groups, "-o", "json").document
    assert (alone["settled"], alone["nodes"]["max"]) == (False, 12)
    assert (helped["settled"], helped["nodes"]["max"]) == (True, 15)  # two fit on each
    assert helped["workloads"]["default/big"]["available"] == 5
    assert {"subject": "node group more", "text": "asks for node more-1"} in [
        {name: event[name] for name in ("subject", "text")} for event in helped["timeline"]
    ]


def test_a_wrong_file_is_refused_with_its_name_and_place(wukong: Wukong) -> None:
    groups = write("groups.yaml", "nodeGroups: [{name: more, max: -1}]")
    run = wukong("sim", "run", "-s", CLUSTER, "-f", WEB, "--node-groups", groups)
    assert run.code == 2
    assert "groups.yaml: $.nodeGroups[0].min: expected a number from 0 to max" in run.err
    run = wukong(
        "sim", "run", EXAMPLES / "sim" / "node-groups.yaml", "--node-groups", write("g.yaml", GROUPS), "--live"
    )
    assert run.code == 2
    assert "a real cluster has an autoscaler of its own" in run.err
