"""The mirror takes in events as they come: doubled, late, of names created again; and says what really changed."""

from __future__ import annotations

import random

import pytest

from builders import a_node, a_pod
from wukong.api.core import Pod
from wukong.api.meta import Object, ObjectMeta
from wukong.api.resources import Key
from wukong.api.unreadable import Unreadable
from wukong.state import State

WEB = Key("default", "web-1")
TTL = 30.0


def version(number: int, uid: str = "1", *, node: str = "") -> Pod:
    pod = a_pod(WEB.name, node=node)
    pod.metadata.resource_version, pod.metadata.uid = str(number), uid
    return pod


def test_events_say_what_really_changed() -> None:
    state = State()
    first, second = version(1), version(2)
    assert [change.type for change in state.apply("MODIFIED", first)] == ["ADDED"]
    assert [change.type for change in state.apply("ADDED", second)] == ["MODIFIED"]
    assert state.get(Pod, WEB) is second
    (gone,) = state.apply("DELETED", version(3))
    assert (gone.type, gone.key, gone.old, gone.new) == ("DELETED", WEB, second, None)
    assert state.apply("DELETED", version(3)) == []
    assert state.apply("BOOKMARK", version(9)) == []


def test_the_same_version_twice_changes_nothing() -> None:
    state = State()
    state.apply("ADDED", version(1))
    assert state.apply("ADDED", version(1)) == []
    assert state.replace("Pod", [version(1)]) == []


def test_versions_are_opaque_so_only_the_order_of_a_watch_keeps_an_older_one_from_winning() -> None:
    state = State()
    old, new = version(1), version(2)
    state.apply("ADDED", new)
    assert [change.type for change in state.apply("MODIFIED", old)] == ["MODIFIED"]
    assert state.get(Pod, WEB) is old


def test_a_name_created_again_is_a_deletion_and_an_addition() -> None:
    state = State()
    state.apply("ADDED", version(1, "old"))
    assert [change.type for change in state.apply("ADDED", version(5, "new"))] == ["DELETED", "ADDED"]
    assert state.apply("DELETED", version(4, "old")) == []
    assert state.get(Pod, WEB) is not None


def test_a_list_gives_the_changes_watching_would_have_shown() -> None:
    state = State()
    state.replace("Pod", [a_pod("a"), a_pod("b"), a_pod("c")])
    changed = a_pod("c", node="n0")
    changes = state.replace("Pod", [changed, a_pod("d")])
    told = [(change.type, change.key.name) for change in changes]
    assert told == [("DELETED", "a"), ("DELETED", "b"), ("MODIFIED", "c"), ("ADDED", "d")]


def assumed() -> State:
    state = State()
    state.replace("Node", [a_node("n0"), a_node("n1")])
    state.apply("ADDED", version(1))
    assert state.assume(WEB, "n0", 100.0, TTL)
    return state


def where(state: State) -> str:
    placed = state.snapshot.pods.get(str(WEB))
    return state.snapshot.rows[placed.row].name if placed else ""


def test_an_assumed_pod_counts_at_once_and_through_other_changes() -> None:
    state = assumed()
    assert where(state) == "n0"
    assert str(WEB) not in state.snapshot.pending
    state.apply("MODIFIED", version(2))
    assert where(state) == "n0"


@pytest.mark.parametrize(("seen", "expected"), [("n0", "n0"), ("n1", "n1")])
def test_the_watch_confirms_or_corrects_an_assumption(seen: str, expected: str) -> None:
    state = assumed()
    state.apply("MODIFIED", version(2, node=seen))
    assert where(state) == expected
    assert len(state.placements) == 0
    assert state.expire(1e9) == []
    assert where(state) == expected


def test_an_assumption_expires_and_its_pod_waits_again() -> None:
    state = assumed()
    assert state.placements.next_expiry() == 130.0
    assert state.expire(129.9) == []
    assert [change.key for change in state.expire(130.0)] == [WEB]
    assert where(state) == ""
    assert str(WEB) in state.snapshot.pending


def test_assuming_again_moves_the_deadline() -> None:
    state = assumed()
    state.assume(WEB, "n1", 120.0, TTL)
    assert state.expire(130.0) == []
    assert where(state) == "n1"


@pytest.mark.parametrize("event", ["delete", "recreate", "forget"])
def test_an_assumption_ends_with_its_pod_or_when_taken_back(event: str) -> None:
    state = assumed()
    if event == "delete":
        state.apply("DELETED", version(2))
    elif event == "recreate":
        state.apply("ADDED", version(2, "other"))
    else:
        state.forget(WEB)
    assert where(state) == ""
    assert len(state.placements) == 0


def test_a_bound_pod_is_not_assumed_elsewhere_and_an_unknown_one_needs_its_object() -> None:
    state = assumed()
    state.apply("MODIFIED", version(2, node="n1"))
    assert not state.assume(WEB, "n0", 200.0, TTL)
    assert where(state) == "n1"
    stranger = a_pod("stranger")
    with pytest.raises(KeyError, match="default/stranger"):
        state.assume(Key("default", "stranger"), "n0", 0.0, TTL)
    assert state.assume(Key("default", "stranger"), "n0", 0.0, TTL, stranger)
    assert "default/stranger" in state.snapshot.pods
    state.expire(1e9)
    assert "default/stranger" not in state.snapshot.pods


def test_attempts_count_until_one_succeeds() -> None:
    attempts = State().attempts
    assert attempts.get("spot", WEB) is None
    attempts.record_failure("spot", WEB, "409", 1.0)
    found = attempts.record_failure("spot", WEB, "429", 2.0)
    assert (found.count, found.error, found.at) == (2, "429", 2.0)
    assert attempts.get("spot", WEB) == found
    assert attempts.get("vm", WEB) is None
    attempts.record_success("spot", WEB)
    assert attempts.get("spot", WEB) is None


def unreadable(name: str, uid: str = "", problem: str = "broken") -> Unreadable:
    return Unreadable(metadata=ObjectMeta(name=name, namespace="default", uid=uid), problem=problem)


def test_an_object_that_becomes_unreadable_leaves_the_mirror_and_comes_back_when_mended() -> None:
    state = State()
    state.replace("Node", [a_node("n0")])
    state.apply("ADDED", version(1, node="n0"))
    assert len(state.snapshot.pods) == 1
    (gone,) = state.apply("MODIFIED", unreadable("web-1", "1"), "Pod")
    assert (gone.type, gone.new) == ("DELETED", None)
    assert len(state.snapshot.pods) == 0
    known = state.get_unreadable(Pod, WEB)
    assert known is not None
    assert known.problem == "broken"
    assert state.fork().get_unreadable(Pod, WEB) is known
    assert state.apply("MODIFIED", unreadable("web-1", "1", "otherwise"), "Pod") == []
    (back,) = state.apply("MODIFIED", version(3, node="n0"))
    assert back.type == "ADDED"
    assert state.get_unreadable(Pod, WEB) is None
    assert len(state.snapshot.pods) == 1


def test_unreadable_objects_go_with_their_deletion_and_with_a_list_without_them() -> None:
    state = State()
    state.replace("Pod", [a_pod("a"), unreadable("b"), unreadable("c")])
    assert [key.name for key in state.unreadable["Pod"]] == ["b", "c"]
    state.apply("DELETED", unreadable("b"), "Pod")
    assert [key.name for key in state.unreadable["Pod"]] == ["c"]
    state.replace("Pod", [a_pod("a")])
    assert state.unreadable["Pod"] == {}


def test_pages_come_to_what_the_whole_list_comes_to() -> None:
    chance = random.Random(4)
    for _ in range(300):
        names = [f"p{number}" for number in range(8)]

        def some(among: list[str] = names) -> list[Object]:
            chosen = [name for name in among if chance.random() < 0.6]
            return [unreadable(name) if chance.random() < 0.3 else a_pod(name) for name in chosen]

        before, listed = some(), some()
        whole, paged = State(), State()
        for state in (whole, paged):
            state.replace("Pod", before)
        pages = [listed[number : number + 2] for number in range(0, len(listed), 2)] or [[]]
        if len(pages) > 1 and chance.random() < 0.3:  # one that never came to its end
            paged.take_page("Pod", some(), is_first=True, is_last=False)
        changes = [
            change
            for number, page in enumerate(pages)
            for change in paged.take_page("Pod", page, is_first=number == 0, is_last=number == len(pages) - 1)
        ]
        whole.replace("Pod", listed)
        assert sorted(whole.objects.get("Pod", {})) == sorted(paged.objects.get("Pod", {}))
        assert sorted(whole.unreadable.get("Pod", {})) == sorted(paged.unreadable.get("Pod", {}))
        assert len({change.key for change in changes}) == len(changes)
        assert not paged._unlisted
