"""Wukongs on a real API server: what the CRD takes, what it refuses, and what a person is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from live.bad_wukongs import CEL, CONDITION, KUBEVIRT, BadWukong, bad_wukongs_of
from live.test_policies import create, path_of, table
from random_wukongs import random_wukong
from testbed.client import ApiError, Client
from testbed.pytest_plugin import Bed

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "vm").glob("*.yaml"))


@pytest.fixture(scope="module")
def bed(kinds: Bed) -> Bed:
    """Whose namespaces `namespace` makes: no controller of another test judges our Wukongs there."""
    return kinds


async def try_to_create(client: Client, name: str, spec: Any) -> dict[str, Any]:
    return await create(client, "Wukong", "default", name, spec, dryRun="All")


@pytest.mark.parametrize("bad", bad_wukongs_of(CEL), ids=lambda bad: bad.name)
async def test_a_bad_wukong_is_refused_with_its_path(kinds: Bed, bad: BadWukong) -> None:
    async with kinds.client() as client:
        with pytest.raises(ApiError) as caught:
            await try_to_create(client, bad.name, bad.spec)
    assert caught.value.status == 422
    assert f"{bad.path}: " in str(caught.value)
    assert bad.says in str(caught.value)


async def test_what_others_refuse_is_stored(kinds: Bed) -> None:
    async with kinds.client() as client:
        for bad in (*bad_wukongs_of(CONDITION), *bad_wukongs_of(KUBEVIRT)):
            stored = await try_to_create(client, bad.name, bad.spec)
            assert stored["spec"] == bad.spec, bad.name


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
async def test_an_example_applies_unchanged(kinds: Bed, path: Path) -> None:
    document = yaml.safe_load(path.read_text("utf-8"))
    async with kinds.client() as client:
        stored = await try_to_create(client, document["metadata"]["name"], document["spec"])
    assert stored["spec"] == document["spec"]


async def test_random_wukongs_are_stored_and_nothing_of_them_is_pruned(kinds: Bed) -> None:
    async with kinds.client() as client:
        for seed in range(100):
            document = random_wukong(seed)
            stored = await try_to_create(client, document["metadata"]["name"], document["spec"])
            assert stored["spec"] == document["spec"], seed


@pytest.mark.parametrize(("before", "after"), [({}, {"replicas": 1}), ({"replicas": 1}, {"replicas": None})])
async def test_replicas_can_be_changed_but_neither_added_nor_removed(
    kinds: Bed, namespace: str, before: dict[str, Any], after: dict[str, Any]
) -> None:
    path = path_of("Wukong", namespace, "web")
    async with kinds.client() as client:
        await create(client, "Wukong", namespace, "web", before)
        with pytest.raises(ApiError, match=r"spec\.replicas: .*expected replicas to stay given, or absent"):
            await client.patch(path, {"spec": after})
        await client.patch(path, {"spec": {"cpu": 2, **({"replicas": 3} if before else {})}})


async def test_a_person_sees_machines_readiness_node_and_reason(kinds: Bed, namespace: str) -> None:
    async with kinds.client() as client:
        await create(client, "Wukong", namespace, "web", {})
        status = {"replicas": 2, "readyReplicas": 1, "node": "2 nodes", "reason": "Unschedulable"}
        await client.patch(f"{path_of('Wukong', namespace, 'web')}/status", {"status": status})
        columns, rows = await table(client, path_of("Wukong", namespace))
    assert columns == ["Name", "VMs", "Ready", "Node", "Reason", "Age"]
    assert [row[:-1] for row in rows] == [["web", 2, 1, "2 nodes", "Unschedulable"]]
