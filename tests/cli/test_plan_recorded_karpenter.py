"""`wukong plan` on a snapshot of a cluster whose nodes the real Karpenter made: tests/golden/README.md says how."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.conftest import Run, Wukong

SNAPSHOT = Path(__file__).parents[1] / "golden" / "snapshots" / "karpenter-1.14.json.gz"
POOL, TYPE = "karpenter.sh/nodepool", "node.kubernetes.io/instance-type"


def scale(wukong: Wukong, *options: str) -> Run:
    change = ("-n", "case-0", "--scale", "deploy/web=12", "--seeds", "1", "--no-advice")
    return wukong("plan", "-s", SNAPSHOT, *change, "-o", "json", *options)


@pytest.mark.slow
def test_a_deployment_that_grows_gets_as_many_nodes_as_it_really_got(wukong: Wukong) -> None:
    """Two before and four after. The third instance type of the pool nobody can know, for there was no such node."""
    run = scale(wukong)
    assert (run.code, run.document["verdict"]["kind"]) == (0, "completes")
    nodes = run.document["shown"]["nodes"]
    assert (nodes["before"], nodes["after"]) == (2, 4)
    assert {labels[POOL] for labels in nodes["addedLabels"].values()} == {"case-0"}
    assert {labels[TYPE] for labels in nodes["addedLabels"].values()} <= {"s-4x-amd64-linux", "s-8x-amd64-linux"}
    assert "instance type s-2x-amd64-linux is left out" in run.err
    assert "nodes of its groups may come and go (case-0-s-4x-amd64-linux-test-zone-a" in run.err
    assert "taken as nobody's" not in run.err  # its nodes are of NodeClaims


def test_without_its_pool_the_same_needs_nodes_in_both_zones(wukong: Wukong) -> None:
    run = scale(wukong, "--node-groups", "none")
    assert (run.code, run.document["verdict"]["kind"]) == (1, "needs-nodes")
    needed = {nodes["type"]: nodes["count"] for nodes in run.document["shown"]["nodes"]["needed"]}
    assert needed == {"s-4x-amd64-linux": 2, "s-8x-amd64-linux": 1}
