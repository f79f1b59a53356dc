"""`wukong plan` without a file of node groups goes by what the snapshot, or the cluster, tells of them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.conftest import Wukong
from small_cluster import ManualClock
from wukong.api.core import Node
from wukong.api.kinds import CONFIG_MAPS, NODE_POOLS
from wukong.api.meta import ObjectMeta
from wukong.api.resources import Key
from wukong.cluster.anonymize import anonymize_documents
from wukong.cluster.capture import capture_autoscaler_status, capture_documents
from wukong.cluster.reduction import reduce_document
from wukong.embedded.store import Server, Store
from wukong.errors import Denied
from wukong.placement.node_groups.cluster import read_cluster_groups, tells_node_groups

FOLDER = Path(__file__).parents[2] / "examples" / "plan"
CLUSTER, WEB = FOLDER / "cluster.yaml", FOLDER / "web.yaml"
TYPE, POOL = "node.kubernetes.io/instance-type", "karpenter.sh/nodepool"
STATUS = """
nodeGroups:
- name: eks-blue-2ac
  health: {minSize: 3, maxSize: 6}
"""


def a_pool(name: str = "default", **limits: str) -> dict[str, Any]:
    requirements = [{"key": TYPE, "operator": "In", "values": ["m6i.xlarge"]}]
    template = {"spec": {"requirements": requirements, "nodeClassRef": {"name": "private"}}}
    meta = {"name": name, "annotations": {"karpenter.sh/nodepool-hash": "1"}}
    spec = {"template": template, "limits": limits, "disruption": {"consolidateAfter": "1m"}}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": meta, "spec": spec}


def a_status(text: str = STATUS) -> dict[str, Any]:
    meta = {"name": "cluster-autoscaler-status", "namespace": "kube-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"status": text}}


def plan(wukong: Wukong, *more: dict[str, Any], labels: dict[str, str], options: tuple[str, ...] = ()) -> Any:
    cluster = yaml.safe_load(CLUSTER.read_text("utf-8"))
    for node in cluster["items"]:
        if node["kind"] == "Node":
            node["metadata"]["labels"] |= labels
    cluster["items"] += more
    Path("cluster.yaml").write_text(yaml.safe_dump(cluster), "utf-8")
    return wukong("plan", "-s", "cluster.yaml", "-f", WEB, "--seeds", "1", "--no-advice", "-o", "json", *options)


def test_nodes_of_a_pool_of_karpenter_come_when_pods_wait(wukong: Wukong) -> None:
    run = plan(wukong, a_pool(), labels={POOL: "default"})
    assert run.document["verdict"]["kind"] == "completes"
    assert run.document["shown"]["nodes"]["most"] == 4
    assert "nodes of its groups may come and go (default-m6i-xlarge-eu-1a" in run.err
    assert "left out" not in run.err
    kept = plan(wukong, a_pool(), labels={POOL: "default"}, options=("--node-groups", "none"))
    assert (kept.document["verdict"]["kind"], kept.err) == ("never-ends", "")


def test_nodes_of_a_group_of_cluster_autoscaler_come_when_pods_wait(wukong: Wukong) -> None:
    run = plan(wukong, a_status(), labels={"eks.amazonaws.com/nodegroup": "blue"})
    assert run.document["verdict"]["kind"] == "completes"
    assert run.document["shown"]["nodes"]["most"] == 4
    assert "(eks-blue-2ac)" in run.err


def test_what_cannot_be_read_is_left_out_and_never_stops_a_plan(wukong: Wukong) -> None:
    broken = {**a_pool("broken"), "spec": {"template": 7}}
    claim = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "c"}, "status": {"capacity": 7}}
    run = plan(wukong, broken, claim, a_status("nonsense"), labels={})
    assert run.document["verdict"]["kind"] == "never-ends"
    assert run.err.count("node groups are left out: ") == 2


def test_groups_are_those_of_pools_and_status_together() -> None:
    labels = {POOL: "default", TYPE: "m6i.xlarge", "eks.amazonaws.com/nodegroup": "blue"}
    node = Node(metadata=ObjectMeta(name="node-1", labels=labels))
    node.status.capacity = node.status.allocatable = {"cpu": "4", "memory": "16Gi"}
    groups, notes = read_cluster_groups([a_pool(), a_pool("second"), a_status()], [node])
    assert [group.name for group in groups] == ["default-m6i-xlarge", "second-m6i-xlarge", "eks-blue-2ac"]
    assert len(notes) == len(set(notes))


def test_other_config_maps_tell_nothing() -> None:
    other = a_status()
    other["metadata"] = {"name": "settings"}
    assert [tells_node_groups(document) for document in (a_pool(), a_status(), other, {}, {"kind": 7})] == [
        *(True, True, False, False, False)
    ]


def test_a_snapshot_keeps_pools_and_the_status_and_nothing_private_of_them() -> None:
    server = Server(ManualClock())
    server.create(NODE_POOLS, a_pool(cpu="64"))
    server.create(CONFIG_MAPS, {**a_status(), "data": {"status": STATUS, "token": "secret"}}, "kube-system")
    server.create(CONFIG_MAPS, {"metadata": {"name": "settings"}, "data": {"status": "secret"}}, "kube-system")

    async def take() -> list[dict[str, Any]]:
        documents = [document async for document in capture_documents(Store(server=server))]
        status = await capture_autoscaler_status(Store(server=server))
        assert status is not None
        return [*documents, status]

    documents = [document for document in asyncio.run(take()) if tells_node_groups(document)]
    assert [document["kind"] for document in documents] == ["NodePool", "ConfigMap"]
    assert documents[0]["spec"]["limits"] == {"cpu": "64"}
    assert documents[1] == a_status()
    assert not [word for word in ("secret", "private", "nodepool-hash") if word in json.dumps(documents)]


def test_pools_of_an_anonymous_snapshot_still_are_those_of_its_nodes() -> None:
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "node-1", "labels": {POOL: "team-pool", TYPE: "m6i.xlarge"}},
    }
    documents = anonymize_documents([reduce_document(node), reduce_document(a_pool("team-pool", cpu="64"))])
    assert "team-pool" not in json.dumps(documents)
    assert documents[1]["metadata"]["name"] == documents[0]["metadata"]["labels"][POOL]
    assert documents[1]["spec"]["limits"] == {"cpu": "64"}


def test_the_status_is_in_no_anonymous_snapshot_for_names_stand_in_its_text(
    wukong: Wukong, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def capture(kubeconfig: str, context: str, numbers: Any, keep: Any) -> list[Any]:
        return [keep(reduce_document(a_pool("team-pool"))), keep(a_status())]

    monkeypatch.setattr("wukong.cli.verbs.snapshot.capture_objects", capture)
    assert [item["kind"] for item in wukong("snapshot").document["items"]] == ["NodePool", "ConfigMap"]
    run = wukong("snapshot", "--anonymize")
    assert [item["kind"] for item in run.document["items"]] == ["NodePool"]
    assert "eks-blue" not in run.out
    assert run.err == "note: left out cluster-autoscaler's status, which cannot be made anonymous.\n"


def test_what_is_kept_for_plans_is_no_news_to_who_asks_something_else(wukong: Wukong) -> None:
    cluster = yaml.safe_load(CLUSTER.read_text("utf-8"))
    cluster["items"] += [a_pool(), a_status()]
    Path("cluster.yaml").write_text(yaml.safe_dump(cluster), "utf-8")
    run = wukong("capacity", "-s", "cluster.yaml", "-f", WEB)
    assert not [kind for kind in ("NodePool", "ConfigMap") if kind in run.err]
    Path("all.yaml").write_text(yaml.safe_dump({"kind": "List", "items": [*cluster["items"], *[a_status()] * 2]}))
    assert "3 ConfigMap" in wukong("capacity", "-s", "all.yaml", "-f", WEB).err


@pytest.mark.parametrize(("code", "is_noted"), [(403, True), (404, False)])
def test_a_cluster_without_the_status_or_the_right_to_read_it_has_none(code: int, is_noted: bool) -> None:
    class Refusing:
        async def get(self, resource: object, key: Key, read: type[Any]) -> Any:
            if code == 404:
                return await Store(server=Server(ManualClock())).get(CONFIG_MAPS, key, read)
            raise Denied("no", reason="Forbidden", code=code)

    notes: list[str] = []
    assert asyncio.run(capture_autoscaler_status(Refusing(), notes.append)) is None  # type: ignore[arg-type]
    assert (notes != []) == is_noted
