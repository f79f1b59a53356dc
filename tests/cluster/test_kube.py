"""What only a real API server shows: TLS, tokens, how it answers paged and cached lists, and its restart."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest
import yaml

from conformance_helpers import next_shown
from scripted_api_server import says, served
from testbed.control_plane import ControlPlane
from testbed.pytest_plugin import Bed
from wukong.api.core import Node
from wukong.api.kinds import NODES
from wukong.api.resources import Resource
from wukong.cluster.credentials import Credentials, load
from wukong.cluster.kube import Kube
from wukong.cluster.kubeconfig import ClusterEntry, Login, UserEntry
from wukong.cluster.list_watch import follow
from wukong.errors import ClusterError, Denied, ServerFailed
from wukong.ports import Document, Listing, Selection, WatchFailure, WatchUpdate

CONFIG_MAPS = Resource("ConfigMap", plural="configmaps")
SECONDS = 120.0


def entry(bed: Bed) -> ClusterEntry:
    written = yaml.safe_load(bed.kubeconfig.read_text())["clusters"][0]["cluster"]
    return ClusterEntry(server=written["server"], certificate_authority_data=written["certificate-authority-data"])


def a_map(name: str) -> Document:
    return {"metadata": {"name": name, "labels": {"mine": ""}}}


def names_in(documents: list[Document]) -> set[str]:
    return {document["metadata"]["name"] for document in documents}


async def test_a_limit_is_ignored_where_the_cache_may_answer_and_honoured_where_it_must_be_fresh(bed: Bed) -> None:
    """Why list_watch.py asks for pages of the newest state and not for resourceVersion=0."""
    async with Kube(load(str(bed.kubeconfig))) as kube:
        cached = await kube.list(NODES, Node, limit=1, resource_version="0")
        fresh = await kube.list(NODES, Node, limit=1)
    assert (len(cached.items) > 1, cached.token) == (True, "")
    assert (len(fresh.items), bool(fresh.token)) == (1, True)


async def test_a_server_of_another_authority_is_not_trusted(bed: Bed) -> None:
    cluster = ClusterEntry(server=entry(bed).server)  # the system's authorities do not know it
    async with Kube(Credentials(Login(place="p", cluster=cluster))) as kube:
        with pytest.raises(ClusterError, match="cannot be trusted") as caught:
            await kube.list(NODES, Node)
    assert not isinstance(caught.value, ServerFailed)  # waiting does not mend it


async def test_a_service_account_token_is_known_and_a_made_up_one_denied(
    bed: Bed, namespace: str, tmp_path: Path
) -> None:
    accounts = Resource("ServiceAccount", plural="serviceaccounts")
    async with bed.client() as client:
        path = accounts.path(namespace, "default", "token")
        token = (await client.create(path, {"spec": {"expirationSeconds": 600}}))["status"]["token"]
    file = tmp_path / "token"
    file.write_text("made-up")
    login = Login(place="p", cluster=entry(bed), user=UserEntry(token_file=str(file)))
    async with Kube(Credentials(login)) as kube:
        with pytest.raises(Denied) as unknown:
            await kube.list(NODES, Node)
        file.write_text(token)  # renewed because of the 401 that comes first
        with pytest.raises(Denied, match=f"system:serviceaccount:{namespace}:default") as known:
            await kube.list(NODES, Node)
    assert (unknown.value.code, known.value.code) == (401, 403)


async def test_following_survives_a_restart_of_the_server(lone_api_server: ControlPlane) -> None:
    async with Kube(load(str(lone_api_server.kubeconfig))) as kube:
        stream = follow(kube, CONFIG_MAPS, dict, Selection("default", labels="mine"))
        failures: list[ClusterError] = []

        async def without_failures() -> AsyncIterator[WatchUpdate[Document]]:
            async for update in stream:
                if isinstance(update, WatchFailure):
                    failures.append(update.error)
                else:
                    yield update

        updates = without_failures()
        async with asyncio.timeout(SECONDS), aclosing(stream):
            assert isinstance(await anext(updates), Listing)
            await kube.create(CONFIG_MAPS, a_map("before"), "default")
            assert names_in(await next_shown(updates)) == {"before"}
            lone_api_server.kill("apiserver")
            lone_api_server.launch("apiserver")
            await asyncio.to_thread(lone_api_server.await_ready, "apiserver")
            await kube.create(CONFIG_MAPS, a_map("after"), "default")
            assert "after" in names_in(await next_shown(updates))
    assert all(isinstance(error, ServerFailed) or error.code in (410, 429) for error in failures)


DEEP_ITEM = b'{"metadata":{"name":"deep"},"x":' + b"[" * 2000 + b"]" * 2000 + b"}"


@pytest.mark.parametrize(
    "text",
    [
        b'{"metadata":{"resourceVersion":"7"},"items":[' + DEEP_ITEM + b',{"metadata":{"name":"a"}}',  # cut
        b'{"metadata":{"resourceVersion":"7"},"others":[' + DEEP_ITEM + b"]}",
        b'{"items":[' + DEEP_ITEM + b"]}",
        b'{"metadata":{"resourceVersion":"7"},"items":[' + DEEP_ITEM + b',{"metadata":}]}',
    ],
)
async def test_what_is_no_list_is_not_taken_for_one_because_an_item_is_nested_deeply(text: bytes) -> None:
    async with served(says(text)) as (kube, _):
        with pytest.raises(ClusterError):
            await kube.list(NODES, Node)
