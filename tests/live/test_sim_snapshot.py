"""A snapshot of a real cluster stays at rest when it is loaded, and foretells what a change to it really does."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest
from click.testing import CliRunner

from testbed import nodes
from testbed.behaviour import HOLLOW
from testbed.pytest_plugin import Bed, HollowNodes, remove
from wukong.api.kinds import KINDS
from wukong.api.meta import Object
from wukong.api.resources import Key
from wukong.app.sim_live.ownership import label_document
from wukong.app.sim_live.plan import make_plan
from wukong.app.sim_live.real_cluster import RealCluster
from wukong.cli.verbs.plan import command as plan_verb
from wukong.cli.verbs.sim_run import command as sim_run
from wukong.cli.verbs.snapshot import encode_list
from wukong.cluster.capture import capture_documents
from wukong.cluster.credentials import load
from wukong.cluster.kube import Kube
from wukong.embedded.scenario import Scenario
from wukong.embedded.scenario.play import steps
from wukong.embedded.scenario.play.quiescence import COMPLETE_SECONDS
from wukong.embedded.scenario.record import workload_status
from wukong.ports import Document

pytestmark = pytest.mark.slow(waits=10)
SECONDS = 120.0


# A server fills in defaults of each (modes, expiration), which are no change when the same is applied again.
LABELS = [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]
TOKEN = [{"serviceAccountToken": {"path": "token"}}, {"downwardAPI": {"items": LABELS}}]
VOLUMES = [{"name": "labels", "downwardAPI": {"items": LABELS}}, {"name": "token", "projected": {"sources": TOKEN}}]
SIZE = {"storage": "1Gi"}


def a_workload(
    kind: str, whom: str, image: str, *, apart: bool = False, ready: str = "2.5", claims: bool = False, **spec: Any
) -> Document:
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in ("labels", "token", *(["data"] if claims else []))]
    container = {"name": "main", "image": image, "volumeMounts": mounts}
    pod = {"containers": [container], "volumes": VOLUMES, **nodes.on_reserved(whom)}
    if apart:
        term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
        pod["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    # While a pod gets ready as many as there are count, for longer than a passing moment.
    meta = {"labels": {"app": "web"}, "annotations": {"sim.novasphere.dev/ready-seconds": ready}}
    sizes: dict[str, Any] = {} if kind == "DaemonSet" else {"replicas": 3}
    if claims:
        claim = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": SIZE}}
        sizes["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": claim}]
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "web", "namespace": whom},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": meta, "spec": pod},
            **sizes,
            **spec,
        },
    }


class Case(NamedTuple):
    kind: str
    settings: dict[str, Any]
    completes: bool = True


CASES = {
    "a rollout": Case("Deployment", {}),
    "a deadlock": Case("Deployment", {"apart": True, "ready": "0.1", "progressDeadlineSeconds": 5}, completes=False),
    "a stateful set": Case("StatefulSet", {"serviceName": "web", "podManagementPolicy": "Parallel", "claims": True}),
    "a daemon set": Case("DaemonSet", {}),
}


def of(real: RealCluster, kind: str, namespace: str) -> Object | None:
    return real.state.objects.get(KINDS.resource_named(kind).group_kind, {}).get(Key(namespace, "web"))


def is_complete(found: Object | None) -> bool:
    return found is not None and workload_status.count_replicas(found).is_complete


def is_given_up(found: Object | None) -> bool:
    return found is not None and bool(workload_status.list_failures(found))


async def as_kubectl_gets(cluster: Kube) -> list[Document]:
    """Whole objects, without ControllerRevisions and managed fields."""
    found = []
    for resource in (kind.resource for kind in KINDS.list_deciding() if kind.is_built_in):
        for each in (await cluster.list(resource, dict)).items:
            each["metadata"].pop("managedFields", None)
            found.append({**each, "kind": resource.kind, "apiVersion": resource.api_version})
    return found


def foretold(verb: click.Command, tmp_path: Path, text: bytes, change: Document, *options: str) -> Any:
    (tmp_path / "cluster.json").write_bytes(text)
    (tmp_path / "change.json").write_text(json.dumps(change), "utf-8")
    words = ["-s", str(tmp_path / "cluster.json"), "-f", str(tmp_path / "change.json"), "-o", "json", *options]
    return json.loads(CliRunner().invoke(verb, words, catch_exceptions=False, standalone_mode=False).stdout)


def concerns(document: Document, namespace: str, own: list[str]) -> bool:
    """The bed is shared: our nodes, what is in our namespace, and what belongs to all."""
    meta = document["metadata"]
    if document["kind"] in ("Node", "Namespace"):
        return meta["name"] in (namespace, *own)
    if document["kind"] == "PersistentVolume":  # of another's claim, which is left out: it would look released
        return bool(document["spec"].get("claimRef", {}).get("namespace") == namespace)
    return bool(meta.get("namespace", namespace) == namespace)


@asynccontextmanager
async def furnished(bed: Bed, namespace: str) -> AsyncIterator[str]:
    """Volumes for claims; and what is wrong in many a cluster: a node that is not ready, and a pod that waits for ever.

    Gives the name that both have.
    """
    name = f"sick-{namespace}"
    zone = {"topology.kubernetes.io/zone": name}  # that the nodes of others are not in
    node = nodes.a_node(name, now=time.time(), labels=zone)
    node["metadata"]["labels"].pop(HOLLOW)  # or its kubelet would put it right
    node["status"]["conditions"] = [{"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": ""}]
    pod = {"nodeSelector": {"there-is": "none"}, "containers": [{"name": "main", "image": "huge"}]}
    volumes = [f"{namespace}-{number}" for number in range(3)]
    try:
        async with bed.client() as client:
            await client.create("/api/v1/nodes", node)
            await client.create(f"/api/v1/namespaces/{namespace}/pods", {"metadata": {"name": name}, "spec": pod})
            for number, volume in enumerate(volumes):
                claim = {"namespace": namespace, "name": f"data-web-{number}"}
                spec = {
                    "accessModes": ["ReadWriteOnce"],
                    "capacity": SIZE,
                    "hostPath": {"path": "/data"},
                    "claimRef": claim,
                }
                await client.create("/api/v1/persistentvolumes", {"metadata": {"name": volume}, "spec": spec})
            await client.wait_until(f"/api/v1/nodes/{name}", is_driven_out)
            await client.wait_until(
                f"/api/v1/namespaces/{namespace}/pods/{name}", lambda it: "conditions" in it["status"]
            )
        yield name
    finally:
        await remove(bed, [f"/api/v1/nodes/{name}", *(f"/api/v1/persistentvolumes/{volume}" for volume in volumes)])


def is_driven_out(node: Document) -> bool:
    taints = [(taint["key"], taint["effect"]) for taint in node["spec"].get("taints", ())]
    return (nodes.NOT_READY, "NoExecute") in taints


@pytest.mark.parametrize("title", CASES)
async def test_a_real_cluster_does_what_its_snapshot_foretold(
    bed: Bed, namespace: str, hollow_nodes: HollowNodes, tmp_path: Path, title: str
) -> None:
    case = CASES[title]
    own = await hollow_nodes(3)
    before, change = (a_workload(case.kind, namespace, image, **case.settings) for image in ("web:1", "web:2"))
    async with furnished(bed, namespace) as sick, Kube(load(str(bed.kubeconfig))) as cluster:
        real = RealCluster(cluster, await make_plan(cluster, Scenario(manifests=[before]), makes_nodes=False))
        real.recorder.started_at = real.clock.now()
        await real.open()
        try:
            await real.perform(steps.apply_documents([before], frozenset({namespace})), "before")
            assert await real.wait_until(lambda: is_complete(of(real, case.kind, namespace)), SECONDS)
            await until_at_rest(cluster, namespace, sick)
            documents = [each async for each in capture_documents(cluster) if concerns(each, namespace, own)]
            whole = [each for each in await as_kubectl_gets(cluster) if concerns(each, namespace, [*own, sick])]
            generation = await read_generation(cluster, case.kind, namespace)
            await real.perform(steps.apply_documents([before], frozenset({namespace})), "the same again")
            assert await read_generation(cluster, case.kind, namespace) == generation
            await real.perform(steps.apply_documents([change], frozenset({namespace})), "change")
            assert await real.wait_until(lambda: not is_complete(of(real, case.kind, namespace)), SECONDS)
            ends = is_complete if case.completes else is_given_up
            assert await real.wait_until(lambda: ends(of(real, case.kind, namespace)), SECONDS)
            real.recorder.finish(real.clock.now())
            summary = real.recorder.workloads[f"{namespace}/web"]
        finally:
            await real.close()
    before, change = (label_document(each, real.plan.run) for each in (before, change))  # as the run made them
    documents, healthy = ([it for it in items if it["metadata"]["name"] != sick] for items in (documents, whole))
    for text in (encode_list(documents), encode(healthy)):
        story = foretold(sim_run, tmp_path, text, change)
        fate = story["workloads"][f"{namespace}/web"]
        assert story["before"]["changes"] == 0
        assert story["settled"] == case.completes
        assert (fate["minAvailable"], fate["maxPods"]) == (summary.min_available, summary.max_pods)
        if not case.completes:
            assert "didn't match pod anti-affinity rules" in " ".join(story["stuck"])
        same = foretold(sim_run, tmp_path, text, before)
        assert (same["settled"], len(same["timeline"])) == (True, 1)  # the apply itself, and nothing that came of it
    story = foretold(sim_run, tmp_path, encode(whole), change)  # what was wrong before is not held against the change
    assert story["settled"] == case.completes
    assert [reason.partition(":")[0] for reason in story["stuckBefore"]] == [f"pod {namespace}/{sick}"]
    plan = foretold(plan_verb, tmp_path, encode_list(documents), change, "--seeds", "2")
    workload = plan["shown"]["workloads"][f"{namespace}/web"]
    assert plan["verdict"]["kind"] == ("completes" if case.completes else "never-ends"), plan["verdict"]
    assert workload["minAvailable"] == summary.min_available
    assert [seen["rollout"]["starts"] for seen in plan["changes"]] == [True]


async def until_at_rest(cluster: Kube, namespace: str, sick: str) -> None:
    """Nothing in the namespace has changed for a while; the sick pod's reason changes with the nodes of others."""
    before: list[Document] = []
    async with asyncio.timeout(SECONDS):
        while True:
            found = [it for it in await as_kubectl_gets(cluster) if it["metadata"].get("namespace") == namespace]
            own = [it for it in found if it["metadata"]["name"] != sick]
            if own and own == before:
                return
            before = own
            await asyncio.sleep(COMPLETE_SECONDS)


def encode(documents: list[Document]) -> bytes:
    """As kubectl prints them."""
    return json.dumps({"kind": "List", "items": documents}).encode()


async def read_generation(cluster: Kube, kind: str, namespace: str) -> int:
    document = await cluster.get(KINDS.resource_named(kind), Key(namespace, "web"), dict)
    return int(document["metadata"]["generation"])
