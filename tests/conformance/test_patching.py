"""The four kinds of patches, and what they do to version, generation, status and field owners."""

from __future__ import annotations

from typing import Any

import pytest

from conformance_helpers import a_deployment, a_map, a_pod, merging
from wukong.api.kinds import CONFIG_MAPS, DEPLOYMENTS, PODS
from wukong.api.resources import Key
from wukong.errors import Conflict, Invalid, NotFound
from wukong.ports import Cluster, Document, PatchBody, PatchType


def affinity(*zones: str) -> Document:
    terms = [{"key": "zone", "operator": "In", "values": [zone]} for zone in zones]
    required = {"nodeSelectorTerms": [{"matchExpressions": [term]} for term in terms]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def in_template(spec: Document) -> Document:
    return {"spec": {"template": {"spec": spec}}}


async def test_a_merge_patch_sets_keeps_and_removes(cluster: Cluster, namespace: str) -> None:
    await cluster.create(CONFIG_MAPS, {**a_map("one"), "data": {"a": "1", "b": "2"}}, namespace)
    patched = await cluster.patch(CONFIG_MAPS, Key(namespace, "one"), merging(data={"a": None, "c": "3"}))
    assert patched["data"] == {"b": "2", "c": "3"}


async def test_a_json_patch_does_all_its_operations_or_none(cluster: Cluster, namespace: str) -> None:
    await cluster.create(CONFIG_MAPS, a_map("one"), namespace)
    key = Key(namespace, "one")
    add = {"op": "add", "path": "/data/b", "value": "2"}
    patched = await cluster.patch(CONFIG_MAPS, key, PatchBody("json", [add]))
    assert patched["data"] == {"a": "1", "b": "2"}
    operations = [{"op": "remove", "path": "/data/b"}, {"op": "test", "path": "/data/a", "value": "other"}]
    with pytest.raises(Invalid):
        await cluster.patch(CONFIG_MAPS, key, PatchBody("json", operations))
    assert (await cluster.get(CONFIG_MAPS, key, dict))["data"] == {"a": "1", "b": "2"}


@pytest.mark.parametrize(("kind", "names"), [("strategic", ["extra", "main"]), ("merge", ["extra"])])
async def test_only_a_strategic_patch_merges_containers_by_name(
    cluster: Cluster, namespace: str, kind: PatchType, names: list[str]
) -> None:
    await cluster.create(DEPLOYMENTS, a_deployment("web"), namespace)
    more = in_template({"containers": [{"name": "extra", "image": "registry.example/extra:1"}]})
    patched = await cluster.patch(DEPLOYMENTS, Key(namespace, "web"), PatchBody(kind, more))
    assert sorted(each["name"] for each in patched["spec"]["template"]["spec"]["containers"]) == names


async def test_affinity_and_tolerations_are_replaced_whole_by_a_strategic_patch(
    cluster: Cluster, namespace: str
) -> None:
    await cluster.create(DEPLOYMENTS, a_deployment("web"), namespace)
    key = Key(namespace, "web")
    two: Document = {"affinity": affinity("a", "b"), "tolerations": [{"key": "x", "operator": "Exists"}]}
    one: Document = {"affinity": affinity("c"), "tolerations": [{"key": "y", "operator": "Exists"}]}
    await cluster.patch(DEPLOYMENTS, key, PatchBody("strategic", in_template(two)))
    patched = await cluster.patch(DEPLOYMENTS, key, PatchBody("strategic", in_template(one)))
    spec = patched["spec"]["template"]["spec"]
    assert {"affinity": spec["affinity"], "tolerations": spec["tolerations"]} == one


@pytest.mark.parametrize("kind", ["merge", "strategic", "apply"])
async def test_a_patch_that_names_an_old_version_conflicts(cluster: Cluster, namespace: str, kind: PatchType) -> None:
    made = await cluster.create(CONFIG_MAPS, a_map("one"), namespace)
    key, old = Key(namespace, "one"), made["metadata"]["resourceVersion"]
    body = {"metadata": {"resourceVersion": old}, "data": {"a": "2"}}
    changed = await cluster.patch(CONFIG_MAPS, key, PatchBody(kind, body, force=kind == "apply"))
    assert changed["metadata"]["resourceVersion"] != old
    body["data"] = {"a": "3"}
    with pytest.raises(Conflict):
        await cluster.patch(CONFIG_MAPS, key, PatchBody(kind, body, force=kind == "apply"))


async def test_a_patch_that_changes_nothing_keeps_the_version(cluster: Cluster, namespace: str) -> None:
    made = await cluster.create(CONFIG_MAPS, a_map("one"), namespace)
    same = await cluster.patch(CONFIG_MAPS, Key(namespace, "one"), merging(data={"a": "1"}))
    assert same["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


@pytest.mark.parametrize("kind", ["merge", "strategic", "apply"])
async def test_a_dry_run_answers_with_what_would_come_of_it_and_stores_nothing(
    cluster: Cluster, namespace: str, kind: PatchType
) -> None:
    made = await cluster.create(CONFIG_MAPS, a_map("one"), namespace)
    key = Key(namespace, "one")
    tried = await cluster.patch(CONFIG_MAPS, key, PatchBody(kind, {"data": {"b": "2"}}, is_dry_run=True))
    assert tried["data"] == {"a": "1", "b": "2"}
    assert tried["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    stored = await cluster.get(CONFIG_MAPS, key, dict)
    assert (stored["data"], stored["metadata"]["resourceVersion"]) == ({"a": "1"}, made["metadata"]["resourceVersion"])


async def test_a_dry_run_is_refused_as_the_patch_would_be(cluster: Cluster, namespace: str) -> None:
    made = await cluster.create(DEPLOYMENTS, a_deployment("web"), namespace)
    key, old = Key(namespace, "web"), made["metadata"]["resourceVersion"]
    with pytest.raises(Invalid):
        await cluster.patch(DEPLOYMENTS, key, PatchBody("merge", {"spec": {"replicas": -1}}, is_dry_run=True))
    await cluster.patch(DEPLOYMENTS, key, merging(spec={"minReadySeconds": 5}))
    stale = PatchBody("merge", {"metadata": {"resourceVersion": old}, "spec": {"paused": True}}, is_dry_run=True)
    with pytest.raises(Conflict):
        await cluster.patch(DEPLOYMENTS, key, stale)


async def test_only_an_apply_can_be_forced(cluster: Cluster, namespace: str) -> None:
    await cluster.create(CONFIG_MAPS, a_map("one"), namespace)
    with pytest.raises(Invalid, match=r'PatchOptions\.meta\.k8s\.io "" is invalid: force: Forbidden'):
        await cluster.patch(CONFIG_MAPS, Key(namespace, "one"), PatchBody("merge", {"data": {"a": "2"}}, force=True))


async def test_the_generation_counts_changes_of_the_spec_only(cluster: Cluster, namespace: str) -> None:
    await cluster.create(DEPLOYMENTS, a_deployment("web"), namespace)
    key = Key(namespace, "web")
    generations = [
        (await cluster.patch(DEPLOYMENTS, key, patch, subresource))["metadata"]["generation"]
        for patch, subresource in [
            (merging(metadata={"labels": {"team": "a"}}), ""),
            (merging(status={"collisionCount": 3}), "status"),
            (merging(spec={"minReadySeconds": 5}), ""),
        ]
    ]
    assert generations == [1, 1, 2]


async def test_status_and_spec_are_written_apart(cluster: Cluster, namespace: str) -> None:
    await cluster.create(PODS, a_pod("web"), namespace)
    key = Key(namespace, "web")
    both: dict[str, Any] = {"spec": {"activeDeadlineSeconds": 100}, "status": {"message": "written"}}
    by_status = await cluster.patch(PODS, key, PatchBody("strategic", both), "status")
    assert by_status["status"]["message"] == "written"
    assert "activeDeadlineSeconds" not in by_status["spec"]
    both["status"] = {"message": "ignored"}
    by_spec = await cluster.patch(PODS, key, PatchBody("strategic", both))
    assert by_spec["spec"]["activeDeadlineSeconds"] == 100
    assert by_spec["status"]["message"] == "written"


async def test_a_finished_pod_may_be_said_to_wait_again_as_by_a_kubelet_that_is_behind(
    cluster: Cluster, namespace: str
) -> None:
    """A kubelet merges what it knows into the pod as it is, and keeps no phase that it has not heard of."""
    pod = await cluster.create(PODS, a_pod("web", schedulerName="nobody"), namespace)
    key, meta = Key(namespace, "web"), {"uid": pod["metadata"]["uid"]}
    for phase in ("Failed", "Pending", "Succeeded", "Running"):
        patch = PatchBody("strategic", {"metadata": meta, "status": {"phase": phase}})
        assert (await cluster.patch(PODS, key, patch, "status"))["status"]["phase"] == phase


async def test_to_patch_what_is_not_there_is_not_found_but_apply_makes_it(cluster: Cluster, namespace: str) -> None:
    key = Key(namespace, "one")
    for kind, body in (("merge", a_map("one")), ("strategic", a_map("one")), ("json", [])):
        with pytest.raises(NotFound):
            await cluster.patch(CONFIG_MAPS, key, PatchBody(kind, body))  # type: ignore[arg-type]
    made = await cluster.patch(CONFIG_MAPS, key, PatchBody("apply", a_map("one")))
    assert made["data"] == {"a": "1"}


async def test_apply_conflicts_over_a_field_of_another_manager_unless_forced(cluster: Cluster, namespace: str) -> None:
    key = Key(namespace, "one")

    async def apply(manager: str, data: dict[str, str], force: bool = False) -> Document:
        body = {"metadata": {"name": "one"}, "data": data}
        return await cluster.patch(CONFIG_MAPS, key, PatchBody("apply", body, manager=manager, force=force))

    await apply("alice", {"a": "1", "b": "1"})
    with pytest.raises(Conflict, match="alice"):
        await apply("bob", {"a": "2"})
    assert (await apply("bob", {"c": "1"}))["data"] == {"a": "1", "b": "1", "c": "1"}
    forced = await apply("bob", {"a": "2", "c": "1"}, force=True)
    assert forced["data"] == {"a": "2", "b": "1", "c": "1"}
    # What its only owner no longer applies goes away; what is another's by now stays.
    assert (await apply("alice", {"b": "1"}))["data"] == {"a": "2", "b": "1", "c": "1"}
    assert (await apply("bob", {"a": "2"}))["data"] == {"a": "2", "b": "1"}
