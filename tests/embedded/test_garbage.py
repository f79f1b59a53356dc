"""The index of garbage candidates, updated write by write, names every object for which an action is due."""

from __future__ import annotations

from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from embedded.store_fixtures import CONFIG_MAPS, NAMESPACE, a_map, a_server, key, merge_patch
from wukong.api.kinds import NAMESPACES
from wukong.api.resources import Key
from wukong.embedded.store import Server, garbage_collection
from wukong.embedded.store.database import ObjectRef
from wukong.embedded.store.deletion import DeleteOptions
from wukong.embedded.world.clock import VirtualClock
from wukong.embedded.world.transport import perform
from wukong.errors import ClusterError
from wukong.ports import Document, PatchBody, Propagation

NAMES = ("a", "b", "c", "d", "e")
Step = tuple[str, str, str, list[str], str]


@st.composite
def steps(draw: st.DrawFn) -> Step:
    operation = draw(st.sampled_from(("create", "create", "own", "delete", "release", "collect")))
    owners = draw(st.lists(st.sampled_from((*NAMES, "nobody", "elsewhere")), max_size=2, unique=True))
    return (
        operation,
        draw(st.sampled_from(NAMES)),
        draw(st.sampled_from(("", "shop.example/hold"))),
        owners,
        draw(st.sampled_from(("Background", "Foreground", "Orphan"))),
    )


def owner_references_to(server: Server, owners: list[str]) -> list[Document]:
    return [{"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": uid_of(server, owner)} for owner in owners]


def uid_of(server: Server, name: str) -> str:
    namespace = "default" if name == "elsewhere" else NAMESPACE
    document = server.database.get("configmaps", Key(namespace, name))
    return str(document["metadata"]["uid"]) if document else f"never-{name}"


def perform_step(server: Server, step: Step) -> None:
    operation, name, finalizer, owners, propagation = step
    if operation == "create":
        finalizers = {"finalizers": [finalizer]} if finalizer else {}
        server.create(
            CONFIG_MAPS, a_map(name, ownerReferences=owner_references_to(server, owners), **finalizers), NAMESPACE
        )
    elif operation == "own":
        server.patch(
            CONFIG_MAPS, key(name), merge_patch(metadata={"ownerReferences": owner_references_to(server, owners)})
        )
    elif operation == "delete":
        server.delete(CONFIG_MAPS, key(name), DeleteOptions(propagation=cast(Propagation, propagation)))
    elif operation == "release":
        server.patch(CONFIG_MAPS, key(name), merge_patch(metadata={"finalizers": None}))
    else:
        for action in garbage_collection.plan_actions(server.database, server.kinds, all_refs_of(server)):
            perform(server, action)


def all_refs_of(server: Server) -> list[ObjectRef]:
    return sorted(server.database.by_uid.values())


@given(st.lists(steps(), max_size=25))
def test_actions_are_due_for_candidates_only(history: list[Step]) -> None:
    server = a_server(definitions=[])
    server.create(CONFIG_MAPS, a_map("elsewhere"), "default")
    candidates = garbage_collection.GarbageCandidates(server.database)
    for step in history:
        try:
            perform_step(server, step)
        except ClusterError:
            continue
        database = server.database
        for uid in {*database.by_uid, *database.dependents}:
            ref = database.by_uid.get(uid)
            refs = sorted({*database.dependents.get(uid, ()), *([ref] if ref else [])})
            expected = garbage_collection.plan_actions(database, server.kinds, refs)
            assert garbage_collection.plan_actions(database, server.kinds, candidates.list_near(uid)) == expected
            assert (
                garbage_collection.plan_actions(
                    database, server.kinds, garbage_collection.GarbageCandidates(database).list_near(uid)
                )
                == expected
            )


def test_dependents_of_a_living_owner_are_no_candidates() -> None:
    server = a_server(definitions=[])
    candidates = garbage_collection.GarbageCandidates(server.database)
    owner = server.create(CONFIG_MAPS, a_map("owner"), NAMESPACE)
    for name in NAMES:
        server.create(CONFIG_MAPS, a_map(name, ownerReferences=owner_references_to(server, ["owner"])), NAMESPACE)
    uid = owner["metadata"]["uid"]
    assert candidates.list_near(uid) == []
    server.delete(CONFIG_MAPS, key("owner"))
    assert [ref.key.name for ref in candidates.list_near(uid)] == list(NAMES)


def test_of_owners_whose_dependents_are_gone_nothing_is_remembered() -> None:
    server = Server(VirtualClock())
    server.create(NAMESPACES, {"metadata": {"name": "shop"}})
    owner = server.create(CONFIG_MAPS, {"metadata": {"name": "owner"}}, "shop")
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    for name in ("a", "b"):
        server.create(CONFIG_MAPS, {"metadata": {"name": name, "ownerReferences": [reference]}}, "shop")
    dependents = server.database.dependents
    assert [len(refs) for _, refs in dependents.items()] == [2]
    server.delete(CONFIG_MAPS, Key("shop", "a"))
    assert [len(refs) for _, refs in dependents.items()] == [1]
    server.patch(CONFIG_MAPS, Key("shop", "b"), PatchBody("merge", {"metadata": {"ownerReferences": None}}))
    assert [*dependents.items()] == []
