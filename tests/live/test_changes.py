"""Workloads changed on a real control plane: seed 002's own case from the plan to the end, and what a real server makes
of every form of a change."""

from __future__ import annotations

import asyncio
import copy
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from typing import Any

import msgspec
import pytest

from affinities import AFFINITIES, HOSTNAME, ZONE, a_workload
from conformance_helpers import until
from testbed.pytest_plugin import Bed, OwnBed
from wukong.api.kinds import DEPLOYMENTS, NODES, PODS, STATEFUL_SETS
from wukong.api.resources import Key, Resource
from wukong.app.changes.reading import read_workload
from wukong.app.changes.writing import write_patch
from wukong.cli import main
from wukong.cluster.credentials import load
from wukong.cluster.kube import Kube
from wukong.placement.workloads.edits import Edit, edit_workload
from wukong.placement.workloads.patch_forms import build_patch
from wukong.placement.workloads.rules import Rule
from wukong.placement.workloads.template_rules import find_own_rules
from wukong.ports import Document, PatchBody, PatchType, Selection

Capture = pytest.CaptureFixture[str]
WEB = Key("default", "web")
FORMS: tuple[PatchType, ...] = ("json", "merge", "strategic", "apply")
APART = ("--apart", "hostname", "--required", "--yes", "--timeout", "100s")


def is_available(document: Document) -> bool:
    status = document.get("status") or {}
    return bool(status.get("availableReplicas") == 2 and status.get("updatedReplicas") == 2)


async def furnish(bed: Bed, nodes: int) -> None:
    """Two pods of app=web, both on the first node, as in the seed."""
    async with Kube(load(str(bed.kubeconfig))) as kube:
        names = sorted(node["metadata"]["name"] for node in (await kube.list(NODES, dict)).items)
        assert len(names) == nodes
        for name in names[1:]:
            await kube.patch(NODES, Key("", name), PatchBody("merge", {"spec": {"unschedulable": True}}))
        await kube.create(DEPLOYMENTS, {**a_workload(), "metadata": {"name": "web"}}, "default")
        await until(kube, DEPLOYMENTS, WEB, is_available)
        for name in names[1:]:
            await kube.patch(NODES, Key("", name), PatchBody("merge", {"spec": {"unschedulable": None}}))


async def list_nodes_of_pods(bed: Bed) -> list[str]:
    async with Kube(load(str(bed.kubeconfig))) as kube:
        pods = (await kube.list(PODS, dict, Selection("default", "app=web"))).items
        return [pod["spec"]["nodeName"] for pod in pods if "deletionTimestamp" not in pod["metadata"]]


async def read_web(bed: Bed) -> Document:
    return await read(bed, DEPLOYMENTS, WEB)


@contextmanager
def watch_availability(bed: Bed) -> Iterator[list[int]]:
    """What the Deployment says of its available pods while the block lasts, from beside it."""
    seen: list[int] = []
    loop, is_watching = asyncio.new_event_loop(), threading.Event()

    async def watch() -> None:
        async with Kube(load(str(bed.kubeconfig))) as kube:
            version = (await kube.list(DEPLOYMENTS, dict, Selection("default"))).resource_version
            events: Any = kube.watch(DEPLOYMENTS, dict, Selection("default"), resource_version=version)
            is_watching.set()
            async with aclosing(events):
                async for event in events:
                    if event.type == "MODIFIED":
                        seen.append((event.object.get("status") or {}).get("availableReplicas", 0))

    task = loop.create_task(watch())

    def run() -> None:
        try:
            loop.run_until_complete(task)
        except asyncio.CancelledError:
            pass
        finally:
            is_watching.set()

    thread = threading.Thread(target=run)
    thread.start()
    is_watching.wait(60)
    try:
        yield seen
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join(60)
        loop.close()


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [2, 3])
def test_two_pods_of_one_node_end_on_two_and_both_stay_available(nodes: int, own_bed: OwnBed, capsys: Capture) -> None:
    bed = own_bed(nodes=nodes)
    asyncio.run(furnish(bed, nodes))
    where = ("--kubeconfig", str(bed.kubeconfig), "-n", "default")
    # The seed's own patch: with two nodes it is refused, for the third pod of the rollout has no node.
    if nodes == 2:
        assert main(["patch", "deploy/web", *APART, *where]) == 1
        refusal = capsys.readouterr()
        assert "Never ends, in 16 of 16." in refusal.out
        assert "1. Add matchLabelKeys: [pod-template-hash]" in refusal.out
        assert "not changed, for it is not safe" in refusal.err
        assert len(set(asyncio.run(list_nodes_of_pods(bed)))) == 1
    advice = ("--take-advice", "1") if nodes == 2 else ()
    with watch_availability(bed) as available:
        assert main(["patch", "deploy/web", *APART, *advice, *where]) == 0
    assert "Deployment default/web: complete, 2 pods of the new version available." in capsys.readouterr().out
    assert len(set(asyncio.run(list_nodes_of_pods(bed)))) == 2
    assert min(available) == 2
    assert main(["patch", "deploy/web", *APART, *advice, *where]) == 0
    assert "nothing changes, it is so already" in capsys.readouterr().err
    assert main(["undo", "deploy/web", "--yes", "--timeout", "100s", "--seeds", "2", *where]) == 0
    image = '{"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "web:2"}]}}}}'
    canary = ("-p", image, "--canary", "1", "--yes", "--timeout", "100s", "--seeds", "2", *where)
    before = asyncio.run(read_web(bed))
    assert main(["patch", "deploy/web", "--check", "false", *canary]) == 1
    assert asyncio.run(read_web(bed))["spec"] == before["spec"], "undone whole"
    assert main(["patch", "deploy/web", "--check", "true", *canary]) == 0
    after = asyncio.run(read_web(bed))
    assert after["spec"]["template"]["spec"]["containers"][0]["image"] == "web:2"
    assert (after["spec"]["strategy"], "paused" in after["spec"]) == (before["spec"]["strategy"], False)
    assert "placement.novasphere.dev/canary" not in after["metadata"]["annotations"]
    assert main(["follow", "deploy/web", "--timeout", "100s", *where]) == 0


@pytest.mark.slow
def test_a_canary_whose_process_was_killed_is_taken_back_by_an_undo(own_bed: OwnBed, capsys: Capture) -> None:
    bed = own_bed(nodes=2)
    asyncio.run(furnish(bed, 2))
    where = ("--kubeconfig", str(bed.kubeconfig), "-n", "default", "--yes", "--seeds", "2")
    image = '{"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "web:2"}]}}}}'
    before = asyncio.run(read_web(bed))
    arguments = ("patch", "deploy/web", "-p", image, "--canary", "1", "--check", "sleep 100", *where)
    command = [sys.executable, "-m", "wukong", *arguments]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True) as process:
        try:
            asyncio.run(wait_for_pause(bed))
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # with the check that it runs
    assert main(["patch", "deploy/web", "--replicas", "3", *where]) == 2
    assert "a canary is under way. `wukong undo` takes it back." in capsys.readouterr().err
    assert main(["undo", "deploy/web", "--timeout", "100s", *where]) == 0
    after = asyncio.run(read_web(bed))
    assert after["spec"] == before["spec"]
    assert "placement.novasphere.dev/canary" not in after["metadata"]["annotations"]


@pytest.mark.slow
def test_a_stateful_set_is_patched_followed_and_undone_by_its_revisions(own_bed: OwnBed) -> None:
    bed = own_bed(nodes=2)
    key = Key("default", "db")
    asyncio.run(create_stateful_set(bed, key))
    where = ("--kubeconfig", str(bed.kubeconfig), "-n", "default", "--yes", "--seeds", "2", "--force")
    ends = ("--timeout", "100s")
    before = asyncio.run(read(bed, STATEFUL_SETS, key))["spec"]["template"]
    assert main(["patch", "sts/db", "--apart", "hostname", "--required", *ends, *where]) == 0
    patched = asyncio.run(read(bed, STATEFUL_SETS, key))
    assert list(find_own_rules(patched["spec"]["template"])) == ["apart"]
    assert patched["status"]["updatedReplicas"] == 2
    assert main(["undo", "sts/db", *ends, *where]) == 0
    assert asyncio.run(read(bed, STATEFUL_SETS, key))["spec"]["template"] == before


async def create_stateful_set(bed: Bed, key: Key) -> None:
    async with Kube(load(str(bed.kubeconfig))) as kube:
        body = {**a_workload(kind="StatefulSet", name=key.name), "metadata": {"name": key.name}}
        body["spec"] = {**body["spec"], "serviceName": key.name}
        await kube.create(STATEFUL_SETS, body, key.namespace)
        await until(kube, STATEFUL_SETS, key, is_available)


async def read(bed: Bed, resource: Resource, key: Key) -> Document:
    async with Kube(load(str(bed.kubeconfig))) as kube:
        return await read_workload(kube, resource, key)


async def wait_for_pause(bed: Bed) -> None:
    async with Kube(load(str(bed.kubeconfig))) as kube:
        await until(kube, DEPLOYMENTS, WEB, lambda document: bool(document["spec"].get("paused")))


@pytest.mark.slow
async def test_all_forms_make_the_same_object_of_thirty_affinities(bed: Bed, namespace: str) -> None:
    first = Edit(rule=Rule(name="apart", topology_key=HOSTNAME, is_per_version=True), max_surge=1)
    second = Edit(rule=Rule(name="apart", topology_key=ZONE, weight=9))
    async with Kube(load(str(bed.kubeconfig))) as kube:

        async def write(key: Key, edit: Edit, form: PatchType) -> Document:
            before = await read_workload(kube, DEPLOYMENTS, key)
            after = edit_workload(before, edit)

            def make_patch(read: Document) -> PatchBody:
                return msgspec.structs.replace(build_patch(read, after, form), force=form == "apply")

            spec: Document = (await write_patch(kube, DEPLOYMENTS, key, before, make_patch))["spec"]
            return spec

        async def compare(number: int, affinity: Document | None) -> None:
            specs: dict[str, list[Document]] = {}
            for form in FORMS:
                key = Key(namespace, f"web-{number}-{form}")
                body = {**a_workload(copy.deepcopy(affinity)), "metadata": {"name": key.name}}
                body["spec"] = {**body["spec"], "replicas": 0, "paused": True}
                created = (await kube.create(DEPLOYMENTS, body, namespace))["spec"]
                specs[form] = [await write(key, first, form), await write(key, second, form)]
                if form != "apply":  # which cannot remove what others own
                    removed = await write(key, Edit(removed="apart", max_surge="25%"), form)
                    assert removed == created, (number, form)
            assert all(spec == specs["json"] for spec in specs.values()), number

        await asyncio.gather(*(compare(number, affinity) for number, affinity in enumerate(AFFINITIES.values())))
