"""Versions, logs, lists as of a moment, and watches that replay them: properties over random histories."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance_helpers import document_of
from embedded.store_fixtures import CONFIG_MAPS, NAMESPACE, a_map, a_server, key, merge_patch
from wukong.embedded.store import Server, Store
from wukong.embedded.store.selectors import parse_selection
from wukong.embedded.store.watch_events import build_events
from wukong.errors import ClusterError, Gone, Invalid
from wukong.ports import Document, Selection

NAMES = ("a", "b", "c")
LABELS = ("web", "db")
Step = tuple[str, str, str]  # what to do, to which map, with which label
STEPS = st.lists(
    st.tuples(st.sampled_from(["create", "label", "delete", "same"]), st.sampled_from(NAMES), st.sampled_from(LABELS)),
    max_size=30,
)
Maps = dict[str, Document]


def perform(server: Server, step: Step) -> None:
    """Refusals are part of the game: they must leave no trace."""
    operation, name, label = step
    try:
        if operation == "create":
            server.create(CONFIG_MAPS, a_map(name, labels={"app": label}), NAMESPACE)
        elif operation == "label":
            server.patch(CONFIG_MAPS, key(name), merge_patch(metadata={"labels": {"app": label}}))
        elif operation == "same":
            server.patch(CONFIG_MAPS, key(name), merge_patch(data={"a": "1"}))
        else:
            server.delete(CONFIG_MAPS, key(name))
    except ClusterError:
        return


def list_maps(server: Server, selection: Selection) -> Maps:
    return {document["metadata"]["name"]: document for document in server.list(CONFIG_MAPS, selection).items}


def replay_events(before: Maps, server: Server, selection: Selection, version: int) -> Maps:
    """What a list was, with the events since then worked in, each of which must fit what is known by then."""
    known = dict(before)
    selector = parse_selection(server.kinds.of(CONFIG_MAPS), selection)
    for event in build_events(server.database.changes_since("configmaps", version), selector):
        name = document_of(event)["metadata"]["name"]
        assert (event.type == "ADDED") == (name not in known)
        if event.type == "DELETED":
            del known[name]
        else:
            known[name] = event.object
    return known


@pytest.mark.slow
@given(STEPS, st.sampled_from(["", "app=web"]))
def test_a_watch_from_any_version_replays_what_lists_tell(steps: list[Step], labels: str) -> None:
    server, selection = a_server(), Selection(NAMESPACE, labels)
    moments = [(server.database.version, list_maps(server, selection))]
    for step in steps:
        perform(server, step)
        moments.append((server.database.version, list_maps(server, selection)))
    for version, then in moments:
        assert replay_events(then, server, selection, version) == moments[-1][1]


@pytest.mark.slow
@given(STEPS)
def test_versions_only_grow_and_each_change_has_its_own(steps: list[Step]) -> None:
    server = a_server()
    start = server.database.version
    for step in steps:
        perform(server, step)
    changes = server.database.changes_since("configmaps", start)
    versions = [change.version for change in changes]
    assert versions == sorted(set(versions))
    assert [int(change.document["metadata"]["resourceVersion"]) for change in changes] == versions
    assert server.database.version == (versions[-1] if versions else start)


@pytest.mark.slow
@given(STEPS, st.integers(1, 3))
def test_pages_show_the_moment_of_the_first_whatever_happens_meanwhile(steps: list[Step], limit: int) -> None:
    server = a_server()
    for name in NAMES:
        server.create(CONFIG_MAPS, a_map(name), NAMESPACE)
    whole = server.list(CONFIG_MAPS, Selection(NAMESPACE)).items
    page = server.list(CONFIG_MAPS, Selection(NAMESPACE), limit=limit)
    items = list(page.items)
    pending = list(steps)
    while page.token:
        for step in pending[:5]:
            perform(server, step)
        pending = pending[5:]
        page = server.list(CONFIG_MAPS, Selection(NAMESPACE), limit=limit, token=page.token)
        items += page.items
    assert items == whole


@pytest.mark.slow
@given(STEPS)
def test_the_same_requests_make_the_same_history(steps: list[Step]) -> None:
    left, right = a_server(), a_server()
    for step in steps:
        perform(left, step)
        perform(right, step)
    assert left.database.changes_since("configmaps", 0) == right.database.changes_since("configmaps", 0)


def test_a_bounded_log_forgets_and_says_gone() -> None:
    server = a_server(log_size=3)
    start = server.database.version
    for number in range(7):
        server.create(CONFIG_MAPS, a_map(f"map-{number}"), NAMESPACE)
    assert [change.key.name for change in server.database.changes_since("configmaps", server.database.version - 3)] == [
        "map-4", "map-5", "map-6",
    ]  # fmt: skip
    with pytest.raises(Gone, match="too old resource version"):
        server.database.changes_since("configmaps", start)


def test_a_page_whose_moment_is_compacted_is_gone() -> None:
    server = a_server()
    for name in NAMES:
        server.create(CONFIG_MAPS, a_map(name), NAMESPACE)
    page = server.list(CONFIG_MAPS, Selection(NAMESPACE), limit=1)
    server.delete(CONFIG_MAPS, key("c"))
    server.database.compact()
    with pytest.raises(Gone):
        server.list(CONFIG_MAPS, Selection(NAMESPACE), limit=1, token=page.token)
    assert len(server.list(CONFIG_MAPS, Selection(NAMESPACE)).items) == 2


async def test_a_watch_that_fell_behind_a_compaction_is_gone() -> None:
    async with Store(server=a_server()) as store:
        server = store.server
        version = str(server.database.version)
        async with aclosing(store.watch(CONFIG_MAPS, dict, resource_version=version)) as stream:
            server.create(CONFIG_MAPS, a_map("a"), NAMESPACE)
            assert (await anext(stream)).type == "ADDED"
            server.create(CONFIG_MAPS, a_map("b"), NAMESPACE)
            server.database.compact()
            with pytest.raises(Gone):
                await anext(stream)


async def test_a_watch_from_nowhere_begins_with_what_is_there() -> None:
    async with Store(server=a_server()) as store:
        store.server.create(CONFIG_MAPS, a_map("old"), NAMESPACE)
        async with aclosing(store.watch(CONFIG_MAPS, dict, resource_version="0")) as stream:
            first = await anext(stream)
            store.server.create(CONFIG_MAPS, a_map("new"), NAMESPACE)
            second = await anext(stream)
    assert [(event.type, document_of(event)["metadata"]["name"]) for event in (first, second)] == [
        ("ADDED", "old"),
        ("ADDED", "new"),
    ]


@pytest.mark.parametrize("text", ["abc", "-1", "+1", "²", "٣", str(2**64), "9" * 5000])
async def test_a_version_that_is_no_number_is_a_bad_request(text: str) -> None:
    async with Store(server=a_server()) as store:
        with pytest.raises(Invalid, match="invalid resource version"):
            await store.list(CONFIG_MAPS, dict, resource_version=text)
        async with aclosing(store.watch(CONFIG_MAPS, dict, resource_version=text)) as stream:
            with pytest.raises(Invalid, match="invalid resource version"):
                await anext(stream)


async def test_watches_end_when_the_server_says_so() -> None:
    async with Store(server=a_server()) as store:

        async def follow() -> int:
            version = str(store.server.database.version)
            return len([event async for event in store.watch(CONFIG_MAPS, dict, resource_version=version)])

        task = asyncio.create_task(follow())
        await asyncio.sleep(0)  # until it waits
        store.server.create(CONFIG_MAPS, a_map("a"), NAMESPACE)
        await asyncio.sleep(0)
        store.end_watches()
        assert await task == 1


async def test_what_a_caller_does_to_an_answer_does_not_reach_the_store() -> None:
    async with Store(server=a_server()) as store:
        created = await store.create(CONFIG_MAPS, a_map("a"), NAMESPACE)
        created["data"]["a"] = "changed"
        read = await store.get(CONFIG_MAPS, key("a"), dict)
        read["data"]["a"] = "changed, too"
        assert (await store.get(CONFIG_MAPS, key("a"), dict))["data"] == {"a": "1"}
