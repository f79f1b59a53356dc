"""What a Kube asks an API server when it reads: paths and parameters, one by one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

import pytest

from scripted_api_server import a_line, a_list, says, served, streams
from wukong.api.kinds import DEPLOYMENTS, NODES, PODS
from wukong.api.resources import Key
from wukong.cluster.credentials import Credentials
from wukong.cluster.kube import Kube
from wukong.cluster.kubeconfig import ClusterEntry, Login
from wukong.ports import Selection

WEB = Key("shop", "web")
CHOSEN = Selection("shop", "app=web", "status.phase=Running")
LISTS: dict[str, tuple[Callable[[Kube], Awaitable[Any]], str, dict[str, str]]] = {
    "everything": (lambda kube: kube.list(PODS, dict), "/api/v1/pods", {}),
    "of a group": (lambda kube: kube.list(DEPLOYMENTS, dict), "/apis/apps/v1/deployments", {}),
    "of a namespace, by labels and fields": (
        lambda kube: kube.list(PODS, dict, CHOSEN),
        "/api/v1/namespaces/shop/pods",
        {"labelSelector": "app=web", "fieldSelector": "status.phase=Running"},
    ),
    "the first page": (lambda kube: kube.list(PODS, dict, limit=500), "/api/v1/pods", {"limit": "500"}),
    "the next page, whose token has its version": (
        lambda kube: kube.list(PODS, dict, limit=500, token="t", resource_version="5"),
        "/api/v1/pods",
        {"limit": "500", "continue": "t"},
    ),
    "what the cache has": (
        lambda kube: kube.list(PODS, dict, resource_version="0"),
        "/api/v1/pods",
        {"resourceVersion": "0"},
    ),
}


@pytest.mark.parametrize("title", LISTS)
async def test_a_list_is_asked_for_by_path_and_parameters(title: str) -> None:
    read, path, query = LISTS[title]
    async with served(says(a_list("a", version=7, token="more"))) as (kube, script):
        page = await read(kube)
    assert (script.asked[0].method, script.asked[0].path, script.asked[0].query) == ("GET", path, query)
    assert (len(page.items), page.resource_version, page.token) == (1, "7", "more")


async def test_an_object_is_asked_for_by_its_name() -> None:
    answer = {"metadata": {"name": "web", "namespace": "shop", "uid": "u"}}
    async with served(says(answer), says({"metadata": {"name": "n"}})) as (kube, script):
        assert await kube.get(PODS, WEB, dict) == answer
        await kube.get(NODES, Key("", "n"), dict)
    assert [asked.path for asked in script.asked] == ["/api/v1/namespaces/shop/pods/web", "/api/v1/nodes/n"]


async def test_a_watch_asks_for_bookmarks_from_a_version_on_and_skips_empty_lines() -> None:
    async with served(streams(b"\n", a_line("ADDED", "a", 6))) as (kube, script):
        async with aclosing(kube.watch(PODS, dict, CHOSEN, resource_version="5")) as events:
            assert [event.type async for event in events] == ["ADDED"]
        assert (script.asked[0].method, script.asked[0].path) == ("GET", "/api/v1/namespaces/shop/pods")
        assert script.asked[0].query == {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": "5",
            "labelSelector": "app=web",
            "fieldSelector": "status.phase=Running",
        }


async def test_a_watch_may_be_bounded() -> None:
    async with served(streams(a_line("ADDED", "a", 6))) as (direct, script):
        login = Login(place="p", cluster=ClusterEntry(server=direct.credentials.server))
        async with (
            Kube(Credentials(login), watch_seconds=30) as kube,
            aclosing(kube.watch(PODS, dict, resource_version="5")) as events,
        ):
            assert [event.type async for event in events] == ["ADDED"]
    assert script.asked[0].query["timeoutSeconds"] == "30"


async def test_the_servers_version_is_asked_for() -> None:
    async with served(says({"gitVersion": "v1.35.8"}), says({})) as (kube, script):
        assert await kube.version() == "v1.35.8"
        assert await kube.version() == ""
    assert [(asked.method, asked.path) for asked in script.asked] == [("GET", "/version")] * 2
