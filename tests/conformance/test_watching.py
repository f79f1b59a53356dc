"""Watches, as every Cluster must do them."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from conformance_helpers import SECONDS, a_map, document_of, merging, next_listing, until
from wukong.api.kinds import CONFIG_MAPS
from wukong.api.resources import Key, Resource
from wukong.cluster.list_watch import follow
from wukong.errors import Gone
from wukong.ports import Cluster, Document, Event, Listing, Selection

KINDS = Resource(
    kind="CustomResourceDefinition", group="apiextensions.k8s.io", plural="customresourcedefinitions", namespaced=False
)


def a_kind(kind: Resource) -> Document:
    names = {"kind": kind.kind, "plural": kind.plural, "singular": kind.kind.lower(), "listKind": f"{kind.kind}List"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": kind.version, "served": True, "storage": True, "schema": schema}
    spec = {"group": kind.group, "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": f"{kind.plural}.{kind.group}"}, "spec": spec}


def is_established(found: Document) -> bool:
    conditions = found.get("status", {}).get("conditions") or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


async def events(cluster: Cluster, selection: Selection, version: str, count: int) -> list[Event[Document]]:
    found: list[Event[Document]] = []
    async with (
        asyncio.timeout(SECONDS),
        aclosing(cluster.watch(CONFIG_MAPS, dict, selection, resource_version=version)) as stream,
    ):
        async for event in stream:
            found.append(Event(event.type, document_of(event)))
            if len([each for each in found if each.type != "BOOKMARK"]) == count:
                break
    return [each for each in found if each.type != "BOOKMARK"]


async def test_changes_come_in_their_order(cluster: Cluster, namespace: str) -> None:
    key, selection = Key(namespace, "one"), Selection(namespace)
    before = (await cluster.list(CONFIG_MAPS, dict, selection)).resource_version
    await cluster.create(CONFIG_MAPS, a_map("one"), namespace)
    await cluster.patch(CONFIG_MAPS, key, merging(data={"a": "2"}))
    await cluster.create(CONFIG_MAPS, a_map("two"), namespace)
    await cluster.delete(CONFIG_MAPS, key)
    # kube-root-ca.crt may still be on its way into a new namespace
    only_ours = Selection(namespace, fields="metadata.name!=kube-root-ca.crt")
    seen = await events(cluster, only_ours, before, 4)
    assert [(each.type, each.object["metadata"]["name"]) for each in seen] == [
        ("ADDED", "one"),
        ("MODIFIED", "one"),
        ("ADDED", "two"),
        ("DELETED", "one"),
    ]
    versions = [int(each.object["metadata"]["resourceVersion"]) for each in seen]
    assert versions == sorted(versions)
    assert versions[0] > int(before)
    assert seen[1].object["data"] == {"a": "2"}


async def test_a_watch_goes_on_after_the_version_it_is_given(cluster: Cluster, namespace: str) -> None:
    first = await cluster.create(CONFIG_MAPS, a_map("one"), namespace)
    await cluster.create(CONFIG_MAPS, a_map("two"), namespace)
    only_ours = Selection(namespace, fields="metadata.name!=kube-root-ca.crt")
    seen = await events(cluster, only_ours, first["metadata"]["resourceVersion"], 1)
    assert [each.object["metadata"]["name"] for each in seen] == ["two"]


async def test_to_leave_a_selection_looks_deleted_and_to_enter_it_added(cluster: Cluster, namespace: str) -> None:
    made = await cluster.create(CONFIG_MAPS, a_map("one", labels={"app": "web"}), namespace)
    key = Key(namespace, "one")
    await cluster.patch(CONFIG_MAPS, key, merging(metadata={"labels": {"app": "db"}}))
    await cluster.patch(CONFIG_MAPS, key, merging(metadata={"labels": {"app": "web"}}))
    seen = await events(cluster, Selection(namespace, labels="app=web"), made["metadata"]["resourceVersion"], 2)
    assert [each.type for each in seen] == ["DELETED", "ADDED"]


async def test_a_version_long_forgotten_is_gone(cluster: Cluster, namespace: str) -> None:
    """Version 1 is older than the kind itself, so no server remembers what came after it."""
    group = f"{namespace}.example.com"
    key, kind = Key("", f"widgets.{group}"), Resource(kind="Widget", group=group, plural="widgets")
    await cluster.create(KINDS, a_kind(kind))
    await until(cluster, KINDS, key, is_established)
    try:
        # A server whose cache of a new kind is still filling refuses watches with 429. One that sends a change has
        # filled it.
        async with asyncio.timeout(SECONDS), aclosing(follow(cluster, kind, dict)) as stream:
            await next_listing(stream)
            await cluster.create(kind, {"metadata": {"name": "one"}}, namespace)
            async for update in stream:
                if isinstance(update, Event) and update.type == "ADDED":
                    break
        with pytest.raises(Gone):
            async with aclosing(cluster.watch(kind, dict, Selection(namespace), resource_version="1")) as forgotten:
                await anext(forgotten)
    finally:
        await cluster.delete(KINDS, key)


async def test_a_quiet_watch_hears_bookmarks_newer_than_its_start(cluster: Cluster, namespace: str) -> None:
    selection = Selection(namespace, labels="never=used")
    before = (await cluster.list(CONFIG_MAPS, dict, selection)).resource_version
    await cluster.create(CONFIG_MAPS, a_map("unseen"), namespace)
    event = None
    async with asyncio.timeout(SECONDS):
        while event is None:  # an API server may end a watch at any time; whoever watches begins again
            async with aclosing(cluster.watch(CONFIG_MAPS, dict, selection, resource_version=before)) as stream:
                event = await anext(stream, None)
    assert event.type == "BOOKMARK"
    assert int(document_of(event)["metadata"]["resourceVersion"]) > int(before)


async def test_following_sees_what_was_there_and_what_comes(cluster: Cluster, namespace: str) -> None:
    await cluster.create(CONFIG_MAPS, a_map("old", labels={"mine": ""}), namespace)
    stream = follow(cluster, CONFIG_MAPS, dict, Selection(namespace, labels="mine"))
    async with asyncio.timeout(SECONDS), aclosing(stream):
        first = await anext(stream)
        assert isinstance(first, Listing)
        assert [each["metadata"]["name"] for each in first.items] == ["old"]
        await cluster.create(CONFIG_MAPS, a_map("new", labels={"mine": ""}), namespace)
        second = await anext(stream)
        while isinstance(second, Event) and second.type == "BOOKMARK":
            second = await anext(stream)
        assert isinstance(second, Event)
        assert (second.type, document_of(second)["metadata"]["name"]) == ("ADDED", "new")
