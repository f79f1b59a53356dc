"""The same manifests played on a real control plane with hollow kubelets and in the embedded cluster: the same story.

Compared: what statuses, annotations and counts say when it is over. What happens on the way is in test_fidelity.py.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing, suppress
from typing import Any, NamedTuple

import pytest

from conformance_helpers import document_of
from embedded.actors.actor_world import BUDGETS, LABELS, NAMESPACE, a_template, a_workload, a_world, is_ready
from testbed import nodes
from testbed.behaviour import SILENT
from testbed.pytest_plugin import Bed, HollowNodes
from wukong.api.kinds import DAEMON_SETS, DEPLOYMENTS, JOBS, NODES, PODS, REPLICA_SETS, STATEFUL_SETS
from wukong.api.resources import Key, Resource
from wukong.cluster.credentials import load
from wukong.cluster.kube import Kube
from wukong.ports import Document, PatchBody, Selection

SECONDS = 120.0


def is_settled(status: Document, replicas: int, generation: int) -> bool:
    counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    is_counted = all(status.get(name, 0) == replicas for name in counts) and not status.get("terminatingReplicas")
    progressing = [it["reason"] for it in status.get("conditions") or [] if it["type"] == "Progressing"]
    return is_counted and status.get("observedGeneration") == generation and progressing == ["NewReplicaSetAvailable"]


def said(status: Document) -> Document:
    """Without times, messages, names that hashes are part of, and the order of conditions, which is chance."""
    made = {name: value for name, value in status.items() if not name.endswith(("Revision", "Time", "Pods"))}
    made |= {"expectedPods": status["expectedPods"]} if "expectedPods" in status else {}
    if "conditions" in made:
        made["conditions"] = sorted((it["type"], it["status"], it.get("reason") or "") for it in made["conditions"])
    return made


def looks(found: list[Document]) -> list[Any]:
    """ReplicaSets by revision: wanted pods, annotations and status."""
    rows = [(it["metadata"]["annotations"], it["spec"]["replicas"], _counts(it["status"])) for it in found]
    return sorted(rows, key=lambda row: row[0]["deployment.kubernetes.io/revision"])


def _counts(status: Document) -> Document:
    """How often a ReplicaSet was scaled depends on which pods got ready together: its generation is left out."""
    return {name: value for name, value in said(status).items() if name != "observedGeneration"}


def rolling(surge: int | str, unavailable: int | str) -> Document:
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}


TO_VERSION_2 = PatchBody("merge", {"spec": {"template": a_template("app:2")}})


class RolloutResult(NamedTuple):
    status: Document
    sets: list[Any]
    revision: str


def rollout(replicas: int, spec: Document) -> Document:
    return a_workload("web", replicas, None, **spec)


async def on_the_test_bed(
    bed: Bed, namespace: str, replicas: int, spec: Document, expected: RolloutResult
) -> RolloutResult:
    """What it comes to. Statuses may be behind when the Deployment is complete: pods that stop, old ReplicaSets."""
    key = Key(namespace, "web")
    async with Kube(load(str(bed.kubeconfig))) as cluster, bed.client() as client:
        path = DEPLOYMENTS.path(namespace, "web")
        await cluster.create(DEPLOYMENTS, rollout(replicas, spec), namespace)
        await client.wait_until(path, lambda it: is_settled(it.get("status") or {}, replicas, 1), SECONDS)
        await cluster.patch(DEPLOYMENTS, key, TO_VERSION_2)
        await client.wait_until(path, lambda it: is_settled(it.get("status") or {}, replicas, 2), SECONDS)
        deadline = time.monotonic() + SECONDS
        while True:
            found = await cluster.get(DEPLOYMENTS, key, dict)
            sets = (await cluster.list(REPLICA_SETS, dict, Selection(namespace))).items
            result = RolloutResult(said(found["status"]), looks(sets), _revision(found))
            if result == expected or time.monotonic() > deadline:
                return result
            await asyncio.sleep(0.1)


def embedded(replicas: int, spec: Document) -> RolloutResult:
    world = a_world()
    world.server.create(DEPLOYMENTS, rollout(replicas, spec), NAMESPACE)
    world.run()
    world.server.patch(DEPLOYMENTS, Key(NAMESPACE, "web"), TO_VERSION_2)
    assert world.run() == "quiet"
    found = world.server.get(DEPLOYMENTS, Key(NAMESPACE, "web"))
    sets = world.server.list(REPLICA_SETS).items
    return RolloutResult(said(found["status"]), looks(sets), _revision(found))


def _revision(found: Document) -> str:
    return str(found["metadata"]["annotations"]["deployment.kubernetes.io/revision"])


@pytest.mark.parametrize(
    ("replicas", "spec"),
    [
        (4, {}),
        (3, {}),
        (1, {}),
        (3, {"strategy": rolling(0, 1)}),
        (6, {"strategy": rolling("50%", 0)}),
        (5, {"strategy": rolling(2, 2)}),
        (4, {"strategy": rolling(0, "100%")}),
        (3, {"strategy": {"type": "Recreate"}}),
        (2, {"minReadySeconds": 1, "strategy": rolling(1, 0)}),
    ],
)
async def test_a_rollout_leaves_the_same_behind(bed: Bed, namespace: str, replicas: int, spec: Document) -> None:
    """How many pods there are on the way is compared in test_fidelity.py, with pods that take their time."""
    expected = embedded(replicas, spec)
    assert await on_the_test_bed(bed, namespace, replicas, spec, expected) == expected


# Statuses at rest ------------------------------------------------------------------------------------------------

BUDGET = {"metadata": {"name": "web"}, "spec": {"selector": {"matchLabels": LABELS}, "maxUnavailable": "30%"}}
NEVER_READY = {"spec": {"template": a_template("app:2", **{"sim.novasphere.dev/never-ready": "true"})}}


def a_job(exit_code: str, **spec: Any) -> Document:
    template = a_template(**{"sim.novasphere.dev/run-seconds": "0.2", "sim.novasphere.dev/exit-code": exit_code})
    template["spec"]["restartPolicy"] = "Never"
    return {"metadata": {"name": "web"}, "spec": {"template": template, **spec}}


def at_home() -> Document:
    """For the nodes that were there first: other tests bring theirs meanwhile, and daemons go everywhere."""
    homes = [*(f"n{number}" for number in range(3)), *(f"node-{number}" for number in range(3))]
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": homes}]}
    template = a_template()
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    template["spec"]["affinity"] = {"nodeAffinity": required}
    return template


class StoryCase(NamedTuple):
    """What is created, what is changed when that is at rest, and what is looked at in the end."""

    create: list[tuple[Resource, Document]]
    look: list[Resource]
    change: tuple[Resource, Document] | None = None


SCENES = {
    "a stateful set": StoryCase([(STATEFUL_SETS, a_workload(serviceName="web"))], [STATEFUL_SETS]),
    "a stateful set that was updated": StoryCase(
        [(STATEFUL_SETS, a_workload(serviceName="web"))],
        [STATEFUL_SETS],
        (STATEFUL_SETS, {"spec": {"template": a_template("app:2")}}),
    ),
    "a stateful set with a partition": StoryCase(
        [(STATEFUL_SETS, a_workload(serviceName="web", updateStrategy={"rollingUpdate": {"partition": 2}}))],
        [STATEFUL_SETS],
        (STATEFUL_SETS, {"spec": {"template": a_template("app:2")}}),
    ),
    "a daemon set that was updated": StoryCase(
        [(DAEMON_SETS, a_workload(replicas=None, template=at_home()))],
        [DAEMON_SETS],
        (DAEMON_SETS, {"spec": {"template": a_template("app:2")}}),
    ),
    "a daemon set that was updated with surge": StoryCase(
        [
            (
                DAEMON_SETS,
                a_workload(
                    replicas=None,
                    template=at_home(),
                    updateStrategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
                ),
            )
        ],
        [DAEMON_SETS],
        (DAEMON_SETS, {"spec": {"template": a_template("app:2")}}),
    ),
    "a stateful set with other ordinals, updated on delete": StoryCase(
        [(STATEFUL_SETS, a_workload(serviceName="web", ordinals={"start": 3}, updateStrategy={"type": "OnDelete"}))],
        [STATEFUL_SETS],
        (STATEFUL_SETS, {"spec": {"template": a_template("app:2")}}),
    ),
    "a set that adopts a pod and lets another go": StoryCase(
        [
            (PODS, {**a_template(), "metadata": {"name": "loose", "labels": LABELS}}),
            (REPLICA_SETS, a_workload(replicas=2)),
        ],
        [REPLICA_SETS],
        (REPLICA_SETS, {"spec": {"replicas": 1}}),
    ),
    "a job that rests": StoryCase([(JOBS, a_job("0", completions=2, suspend=True))], [JOBS]),
    "a job that rested": StoryCase(
        [(JOBS, a_job("0", completions=2, suspend=True))], [JOBS], (JOBS, {"spec": {"suspend": False}})
    ),
    "a budget over a deployment": StoryCase([(DEPLOYMENTS, a_workload(replicas=5)), (BUDGETS, BUDGET)], [BUDGETS]),
    "a rollout out of time": StoryCase(
        [(DEPLOYMENTS, a_workload(replicas=4, progressDeadlineSeconds=3)), (BUDGETS, BUDGET)],
        [DEPLOYMENTS, REPLICA_SETS, BUDGETS],
        (DEPLOYMENTS, NEVER_READY),
    ),
    "a job that completes": StoryCase([(JOBS, a_job("0", completions=3, parallelism=2))], [JOBS]),
    "a job that fails": StoryCase([(JOBS, a_job("1", backoffLimit=0))], [JOBS]),
    "a paused deployment that was scaled": StoryCase(
        [(DEPLOYMENTS, a_workload(replicas=2))],
        [DEPLOYMENTS, REPLICA_SETS],
        (DEPLOYMENTS, {"spec": {"paused": True, "replicas": 4, "template": a_template("app:2")}}),
    ),
}


def played(scene: StoryCase) -> list[list[str]]:
    world = a_world()
    for resource, body in scene.create:
        world.server.create(resource, body, NAMESPACE)
    world.run()
    if scene.change is not None:
        world.server.patch(scene.change[0], Key(NAMESPACE, "web"), PatchBody("merge", scene.change[1]))
        world.run()
    return [seen(world.server.list(resource, Selection(NAMESPACE)).items) for resource in scene.look]


def seen(found: list[Document]) -> list[str]:
    """How often a ReplicaSet was scaled depends on which pods got ready together: its generation is left out."""
    rows = []
    for it in found:
        status = said(it["status"])
        counted = status.pop("observedGeneration", 0), it["metadata"]["generation"]
        rows.append(repr((None if "ownerReferences" in it["metadata"] else counted, sorted(status.items()))))
    return sorted(rows)


async def at_rest(cluster: Kube, namespace: str, scene: StoryCase, expected: list[list[str]]) -> list[list[str]]:
    """What is looked at, each kind as soon as it is as expected, or as it is when the time is up."""
    return [
        await _becoming(cluster, resource, Selection(namespace), wanted)
        for resource, wanted in zip(scene.look, expected, strict=True)
    ]


async def _becoming(cluster: Kube, resource: Resource, selection: Selection, wanted: list[str]) -> list[str]:
    page = await cluster.list(resource, dict, selection)
    held = {it["metadata"]["name"]: it for it in page.items}
    stream = cluster.watch(resource, dict, selection, resource_version=page.resource_version)
    with suppress(TimeoutError):
        async with asyncio.timeout(SECONDS), aclosing(stream):
            while seen(list(held.values())) != wanted:
                event = await anext(stream)
                if event.type == "DELETED":
                    held.pop(document_of(event)["metadata"]["name"])
                elif event.type != "BOOKMARK":
                    held[document_of(event)["metadata"]["name"]] = document_of(event)
    return seen(list(held.values()))


@pytest.mark.parametrize("title", SCENES)
async def test_statuses_at_rest_are_the_same(bed: Bed, namespace: str, title: str) -> None:
    scene = SCENES[title]
    expected = played(scene)
    async with Kube(load(str(bed.kubeconfig))) as cluster:
        for resource, body in scene.create:
            await cluster.create(resource, body, namespace)
        if scene.change is not None:
            before = StoryCase(scene.create, scene.look)
            await at_rest(cluster, namespace, before, played(before))
            await cluster.patch(scene.change[0], Key(namespace, "web"), PatchBody("merge", scene.change[1]))
        assert await at_rest(cluster, namespace, scene, expected) == expected


# A silent node ---------------------------------------------------------------------------------------------------

SILENCE = {"metadata": {"annotations": {SILENT: "true"}}}


def a_brief_pod(whom: str) -> Document:
    """One that stays two seconds on a node that is not heard of."""
    pod = {"metadata": {"name": "web"}, "spec": {**a_template()["spec"], **nodes.on_reserved(whom)}}
    key = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}
    pod["spec"]["tolerations"] = [*pod["spec"]["tolerations"], {**key, "tolerationSeconds": 2}]
    return pod


def lost(node: Document, pod: Document) -> tuple[Any, ...]:
    taints = [(it["key"].replace(node["metadata"]["name"], ""), it["effect"]) for it in node["spec"]["taints"]]
    told = [
        [(it["type"], it["status"], it.get("reason")) for it in each["status"]["conditions"]] for each in (node, pod)
    ]
    return sorted(taints), *map(sorted, told), pod["status"]["phase"], pod["metadata"]["deletionGracePeriodSeconds"]


def lost_in_the_embedded_cluster() -> tuple[Any, ...]:
    world = a_world(3)  # where every node is silent nobody is driven out
    made = nodes.a_node("lost", now=world.clock.now(), **nodes.reserved("x"))
    world.server.create(NODES, made)
    world.run()
    world.server.create(PODS, {**a_brief_pod("x"), "spec": {**a_brief_pod("x")["spec"], "nodeName": "lost"}}, NAMESPACE)
    world.run()
    world.server.patch(NODES, Key("", "lost"), PatchBody("merge", SILENCE))
    world.run()
    return lost(world.server.get(NODES, Key("", "lost")), world.server.get(PODS, Key(NAMESPACE, "web")))


@pytest.mark.slow(waits=55, real_time=True)
async def test_a_silent_node_loses_its_pods_in_the_same_way(
    bed: Bed, namespace: str, hollow_nodes: HollowNodes
) -> None:
    (name,) = await hollow_nodes(1)
    async with bed.client() as client:
        await client.create(PODS.path(namespace), a_brief_pod(namespace))
        path = PODS.path(namespace, "web")
        await client.wait_until(path, is_ready, SECONDS)
        await client.patch(NODES.path("", name), SILENCE)
        pod = await client.wait_until(path, lambda it: "deletionTimestamp" in it["metadata"], 3 * SECONDS)
        node = await client.get(NODES.path("", name))
    assert lost(node, pod) == lost_in_the_embedded_cluster()


# A rollout that Kubernetes itself never ends -------------------------------------------------------------------------

DESIRED, REVISION = "deployment.kubernetes.io/desired-replicas", "deployment.kubernetes.io/revision"


def sized_for(number: int) -> PatchBody:
    return PatchBody("merge", {"metadata": {"annotations": {DESIRED: str(number)}}})


NEW_IMAGE = PatchBody("merge", {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "app:2"}]}}}})


def images(replica_sets: list[Document]) -> list[str]:
    return sorted(it["spec"]["template"]["spec"]["containers"][0]["image"] for it in replica_sets)


def held_up_in_the_embedded_cluster() -> tuple[list[str], list[str]]:
    world = a_world()
    world.server.create(DEPLOYMENTS, a_workload(replicas=2), NAMESPACE)
    world.run()
    (old,) = world.server.list(REPLICA_SETS).items
    key = Key(NAMESPACE, old["metadata"]["name"])
    world.server.patch(REPLICA_SETS, key, sized_for(9))
    world.server.patch(DEPLOYMENTS, Key(NAMESPACE, "web"), NEW_IMAGE)
    world.run()
    before = images(world.server.list(REPLICA_SETS).items)
    world.server.patch(REPLICA_SETS, key, sized_for(2))
    world.run()
    return before, images(world.server.list(REPLICA_SETS).items)


async def test_a_replica_set_of_the_right_size_that_was_sized_for_another_holds_a_rollout_up(
    bed: Bed, namespace: str
) -> None:
    web = Key(namespace, "web")
    async with Kube(load(str(bed.kubeconfig))) as cluster, bed.client() as client:
        await cluster.create(DEPLOYMENTS, a_workload(replicas=2), namespace)
        path = DEPLOYMENTS.path(namespace, "web")
        await client.wait_until(path, lambda it: is_settled(it["status"], 2, it["metadata"]["generation"]), SECONDS)
        (old,) = (await client.get(REPLICA_SETS.path(namespace)))["items"]
        key = Key(namespace, old["metadata"]["name"])
        # Its revision comes back when the controller has seen this version, and the size it says.
        forgotten = {DESIRED: "9", REVISION: None}
        await cluster.patch(REPLICA_SETS, key, PatchBody("merge", {"metadata": {"annotations": forgotten}}))
        old_path = REPLICA_SETS.path(namespace, key.name)
        await client.wait_until(old_path, lambda it: REVISION in it["metadata"]["annotations"], SECONDS)
        await cluster.patch(DEPLOYMENTS, web, NEW_IMAGE)
        await client.wait_until(
            path, lambda it: it["status"]["observedGeneration"] == it["metadata"]["generation"], SECONDS
        )
        before = images((await client.get(REPLICA_SETS.path(namespace)))["items"])
        await cluster.patch(REPLICA_SETS, key, sized_for(2))
        await client.wait_until(path, lambda it: it["status"].get("updatedReplicas") == 2, SECONDS)
        after = images((await client.get(REPLICA_SETS.path(namespace)))["items"])
    assert (before, after) == (["app:1"], ["app:1", "app:2"])
    assert held_up_in_the_embedded_cluster() == (before, after)
