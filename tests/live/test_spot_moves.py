"""Two spot nodes are reclaimed on a real control plane: with Wukong nobody falls short, with a plain drain many do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from live.accounts import used_by
from spot_comparison.component import ACCOUNT, component_running, furnish_component
from spot_comparison.reclaim import Result, drain, play
from spot_comparison.workloads import NAMESPACE, REPLICAS
from testbed.pytest_plugin import Bed, OwnBed
from wukong.app.component import list_permissions
from wukong.app.components.spot import SPOT

NEVER_SHORT = ("strict", "solo", "solo-pdb", "spread", "web-a", "web-b")
# What this scenario has no use for: ReplicaSets of their own, autoscalers, policies that have pods deleted, notices
# whose deadline changes or that are too many. It may have none for Moves that more pods join, if both nodes are known
# to leave before the first Move is written, and for Events that come again.
UNUSED = {
    ("placement.novasphere.dev", "moves", "patch"),
    ("placement.novasphere.dev", "nodenotices", "patch"),
    ("placement.novasphere.dev", "nodenotices", "delete"),
    ("", "pods", "delete"),
    ("apps", "replicasets/scale", "patch"),
    ("autoscaling", "horizontalpodautoscalers", "patch"),
    ("events.k8s.io", "events", "patch"),
}


@pytest.mark.slow(waits=45)  # it waits longer, and begins when stories in real time are over: it has two beds
async def test_nobody_falls_short_when_spot_nodes_go_where_replacements_come_first(
    own_bed: OwnBed, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    ours, plain = own_bed(nodes=0), own_bed(nodes=0)
    kubeconfig, log = await furnish_component(ours, tmp_path), tmp_path / "run.log"
    with component_running(kubeconfig, log):
        results = await asyncio.gather(
            play(ours, "wukong", evictor=ACCOUNT), play(plain, "drain", drain, watch_seconds=5.0)
        )
        await assert_undone(ours, log)
    for result in results:
        record_property("figure", result.describe())
    assert_kept(results[0])
    assert results[1].lost, "a plain drain loses the pods whose budgets allow nothing: else this shows nothing"
    assert results[1].losses["solo"].fewest == 0
    assert_rights(ours)


def assert_kept(result: Result) -> None:
    assert result.lost == []
    assert result.refused == 0  # nobody asks a budget for what it does not allow
    assert {name: result.losses[name].fewest for name in NEVER_SHORT} == {name: REPLICAS[name] for name in NEVER_SHORT}
    assert result.losses["db"].fewest >= 2  # one at a time


async def assert_undone(bed: Bed, log: Path) -> None:
    async with bed.client() as client:
        moves = (await client.get(f"/apis/placement.novasphere.dev/v1alpha1/namespaces/{NAMESPACE}/moves"))["items"]
        deployments = (await client.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"))["items"]
        pods = (await client.get(f"/api/v1/namespaces/{NAMESPACE}/pods"))["items"]
    assert moves == [], log.read_text()
    assert {it["metadata"]["name"]: it["spec"]["replicas"] for it in deployments} == {
        name: count for name, count in REPLICAS.items() if name != "db"
    }
    async with bed.client() as client:
        notices = (await client.get("/apis/placement.novasphere.dev/v1alpha1/nodenotices"))["items"]
    history = {notice["spec"]["node"]: notice["status"] for notice in notices}
    assert sorted(history) == ["spot-0", "spot-1"]
    for status in history.values():
        assert (status["outcome"], status.get("lost", 0)) == ("Gone", 0)
        assert {pod["way"] for pod in status["pods"]} == {"replaced", "evicted"}
    marked = [pod["metadata"]["name"] for pod in pods if "placement.novasphere.dev/moving" in str(pod["metadata"])]
    assert marked == []


def assert_rights(bed: Bed) -> None:
    """What was done was granted, and what is granted was done: of the kinds that this scenario has."""
    granted = {
        (permission.group, permission.resource, verb)
        for permission in list_permissions([SPOT])
        for verb in permission.verbs
        if permission.resource != "virtualmachineinstances" and not permission.in_own_namespace
    }
    used = used_by(bed, ACCOUNT)
    assert granted - UNUSED <= used, sorted(granted - UNUSED - used)
