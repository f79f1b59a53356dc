"""What the garbage collector keeps in mind write by write is all that looking at everything would find."""

from __future__ import annotations

from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from embedded.serving import CONFIG_MAPS, NAMESPACE, a_map, a_server, key, merging
from wukong.api.resources import Key
from wukong.embedded.store import Server, garbage_collection
from wukong.embedded.store.database import ObjectRef
from wukong.embedded.store.deletion import DeleteOptions
from wukong.embedded.world.transport import perform
from wukong.errors import ClusterError
from wukong.ports import Document, Propagation

NAMES = ("a", "b", "c", "d", "e")
Step = tuple[str, str, str, list[str], str]


@st.composite
def steps(draw: st.DrawFn) -> Step:
    what = draw(st.sampled_from(("create", "create", "own", "delete", "release", "collect")))
    owners = draw(st.lists(st.sampled_from((*NAMES, "nobody", "elsewhere")), max_size=2, unique=True))
    return (
        what,
        draw(st.sampled_from(NAMES)),
        draw(st.sampled_from(("", "shop.example/hold"))),
        owners,
        draw(st.sampled_from(("Background", "Foreground", "Orphan"))),
    )


def references(server: Server, owners: list[str]) -> list[Document]:
    return [{"apiVersion": "v1", "kind": "ConfigMap", "name": it, "uid": uid_of(server, it)} for it in owners]


def uid_of(server: Server, name: str) -> str:
    space = "default" if name == "elsewhere" else NAMESPACE
    found = server.database.get("configmaps", Key(space, name))
    return str(found["metadata"]["uid"]) if found else f"never-{name}"


def play(server: Server, step: Step) -> None:
    what, name, finalizer, owners, propagation = step
    if what == "create":
        more = {"finalizers": [finalizer]} if finalizer else {}
        server.create(CONFIG_MAPS, a_map(name, ownerReferences=references(server, owners), **more), NAMESPACE)
    elif what == "own":
        server.patch(CONFIG_MAPS, key(name), merging(metadata={"ownerReferences": references(server, owners)}))
    elif what == "delete":
        server.delete(CONFIG_MAPS, key(name), DeleteOptions(propagation=cast(Propagation, propagation)))
    elif what == "release":
        server.patch(CONFIG_MAPS, key(name), merging(metadata={"finalizers": None}))
    else:
        for action in garbage_collection.plan_actions(server.database, server.kinds, everything(server)):
            perform(server, action)


def everything(server: Server) -> list[ObjectRef]:
    return sorted(server.database.by_uid.values())


@given(st.lists(steps(), max_size=25))
def test_nothing_is_due_but_where_there_is_a_doubt(history: list[Step]) -> None:
    server = a_server(definitions=[])
    server.create(CONFIG_MAPS, a_map("elsewhere"), "default")
    doubts = garbage_collection.GarbageCandidates(server.database)
    for step in history:
        try:
            play(server, step)
        except ClusterError:
            continue
        database = server.database
        for uid in {*database.by_uid, *database.dependents}:
            own = database.by_uid.get(uid)
            places = sorted({*database.dependents.get(uid, ()), *([own] if own else [])})
            expected = garbage_collection.plan_actions(database, server.kinds, places)
            assert garbage_collection.plan_actions(database, server.kinds, doubts.list_near(uid)) == expected
            assert (
                garbage_collection.plan_actions(
                    database, server.kinds, garbage_collection.GarbageCandidates(database).list_near(uid)
                )
                == expected
            )


def test_what_nobody_doubts_is_not_looked_at() -> None:
    server = a_server(definitions=[])
    doubts = garbage_collection.GarbageCandidates(server.database)
    owner = server.create(CONFIG_MAPS, a_map("owner"), NAMESPACE)
    for name in NAMES:
        server.create(CONFIG_MAPS, a_map(name, ownerReferences=references(server, ["owner"])), NAMESPACE)
    uid = owner["metadata"]["uid"]
    assert doubts.list_near(uid) == []
    server.delete(CONFIG_MAPS, key("owner"))
    assert [place.key.name for place in doubts.list_near(uid)] == list(NAMES)
