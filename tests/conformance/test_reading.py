"""Create, get and list, as every Cluster must do it."""

from __future__ import annotations

import pytest

from conformance_helpers import a_map, a_pod
from wukong.api.core import Pod
from wukong.api.kinds import CONFIG_MAPS, NODES, PODS
from wukong.api.resources import Key, Resource
from wukong.errors import AlreadyExists, Gone, Invalid, NotFound
from wukong.ports import Cluster, Selection


async def test_what_was_created_can_be_read_as_a_struct_and_as_a_dict(cluster: Cluster, namespace: str) -> None:
    created = await cluster.create(PODS, a_pod("web"), namespace)
    key = Key(namespace, "web")
    assert await cluster.get(PODS, key, dict) == created
    pod = await cluster.get(PODS, key, Pod)
    assert pod.metadata.uid == created["metadata"]["uid"] != ""
    assert pod.metadata.resource_version == created["metadata"]["resourceVersion"] != ""
    assert pod.spec.scheduler_name == "nobody"


async def test_a_name_prefix_gets_a_suffix(cluster: Cluster, namespace: str) -> None:
    body = {"metadata": {"generateName": "web-"}}
    first, second = [(await cluster.create(CONFIG_MAPS, body, namespace))["metadata"]["name"] for _ in range(2)]
    assert first.startswith("web-")
    assert first != second


async def test_what_is_not_there_is_not_found(cluster: Cluster, namespace: str) -> None:
    with pytest.raises(NotFound) as caught:
        await cluster.get(CONFIG_MAPS, Key(namespace, "nothing"), dict)
    assert caught.value.reason == "NotFound"
    with pytest.raises(NotFound):
        await cluster.get(Resource(kind="Unicorn", group="example.com", plural="unicorns"), Key(namespace, "x"), dict)


async def test_the_second_of_the_same_name_already_exists(cluster: Cluster, namespace: str) -> None:
    await cluster.create(CONFIG_MAPS, a_map("one"), namespace)
    with pytest.raises(AlreadyExists):
        await cluster.create(CONFIG_MAPS, a_map("one"), namespace)


async def test_what_breaks_the_schema_is_invalid(cluster: Cluster, namespace: str) -> None:
    with pytest.raises(Invalid, match=r"spec\.containers"):
        await cluster.create(PODS, {"metadata": {"name": "empty"}, "spec": {"containers": []}}, namespace)
    with pytest.raises(Invalid):
        await cluster.create(CONFIG_MAPS, a_map("No_Capitals"), namespace)


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ("app=web", ["a", "b"]),
        ("app=web,tier!=back", ["a"]),
        ("app in (web, db)", ["a", "b", "c"]),
        ("tier", ["b"]),
        ("!app", ["d"]),
        ("app notin (web)", ["c", "d"]),
    ],
)
async def test_labels_select(cluster: Cluster, namespace: str, labels: str, names: list[str]) -> None:
    for name, own in {"a": {"app": "web"}, "b": {"app": "web", "tier": "back"}, "c": {"app": "db"}, "d": {}}.items():
        await cluster.create(CONFIG_MAPS, a_map(name, labels=own), namespace)
    fields = "metadata.name!=kube-root-ca.crt"
    page = await cluster.list(CONFIG_MAPS, dict, Selection(namespace, labels, fields))
    assert [each["metadata"]["name"] for each in page.items] == names


async def test_fields_select(cluster: Cluster, namespace: str) -> None:
    await cluster.create(PODS, a_pod("here", nodeName="nowhere"), namespace)
    await cluster.create(PODS, a_pod("pending"), namespace)
    for fields, names in {
        "spec.nodeName=nowhere": ["here"],
        "spec.nodeName=": ["pending"],
        "metadata.name=pending,status.phase=Pending": ["pending"],
        "status.phase!=Pending": [],
    }.items():
        page = await cluster.list(PODS, Pod, Selection(namespace, fields=fields))
        assert [pod.metadata.name for pod in page.items] == names, fields
    with pytest.raises(Invalid):
        await cluster.list(PODS, Pod, Selection(namespace, fields="spec.unknown=x"))


async def test_pages_are_one_list_as_of_one_moment(cluster: Cluster, namespace: str) -> None:
    for number in range(5):
        await cluster.create(CONFIG_MAPS, a_map(f"map-{number}", labels={"paged": "yes"}), namespace)
    selection = Selection(namespace, labels="paged")
    page = await cluster.list(CONFIG_MAPS, dict, selection, limit=2)
    await cluster.create(CONFIG_MAPS, a_map("map-9", labels={"paged": "yes"}), namespace)
    pages = [page]
    while page.token:
        page = await cluster.list(CONFIG_MAPS, dict, selection, limit=2, token=page.token)
        pages.append(page)
    names = [[each["metadata"]["name"] for each in page.items] for page in pages]
    assert names == [["map-0", "map-1"], ["map-2", "map-3"], ["map-4"]]
    assert len({page.resource_version for page in pages}) == 1


async def test_a_token_that_is_none_is_refused(cluster: Cluster, namespace: str) -> None:
    with pytest.raises((Invalid, Gone)):
        await cluster.list(CONFIG_MAPS, dict, Selection(namespace), limit=2, token="made-up")


async def test_a_list_from_the_cache_comes_whole_and_cluster_wide(cluster: Cluster) -> None:
    page = await cluster.list(NODES, dict, resource_version="0")
    assert page.items
    assert page.token == ""
    assert int(page.resource_version) > 0
