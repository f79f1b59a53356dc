"""Pods by node and labels, anything by its owners: current after every change, and nothing is left of what is gone."""

from __future__ import annotations

from builders import a_pod, selecting
from wukong.api.core import Pod
from wukong.api.kinds import PODS
from wukong.api.meta import OwnerReference
from wukong.api.resources import Key
from wukong.state import State

A, B = Key("default", "a"), Key("default", "b")


def pod(name: str, version: int, *, node: str = "", owners: tuple[str, ...] = (), **labels: str) -> Pod:
    built = a_pod(name, node=node)
    built.metadata.resource_version, built.metadata.uid, built.metadata.labels = str(version), name, labels
    built.metadata.owner_references = [OwnerReference(name=uid, uid=uid, kind="ReplicaSet") for uid in owners]
    return built


def test_a_pod_is_found_by_each_of_its_owners_and_by_others_when_they_change() -> None:
    state = State()
    state.apply("ADDED", pod("b", 1, owners=("one", "two")))
    state.apply("ADDED", pod("a", 1, owners=("one", "")))
    assert state.owners.owned_by("one", PODS) == [A, B]
    assert state.owners.owned_by("two", PODS) == [B]
    assert state.owners.owned_by("", PODS) == []
    state.apply("MODIFIED", pod("b", 2, owners=("three",)))
    owned = [state.owners.owned_by(uid, PODS) for uid in ("one", "two", "three")]
    assert owned == [[A], [], [B]]
    state.apply("MODIFIED", pod("b", 3, owners=("three",), app="web"))
    assert state.owners.owned_by("three", PODS) == [B]
    state.apply("DELETED", pod("b", 4, owners=("three",)))
    state.apply("DELETED", pod("a", 4, owners=("one",)))
    assert not state.owners.by_owner


def test_a_pod_is_found_on_its_node_and_by_its_labels_only_where_it_is_now() -> None:
    state = State()
    state.apply("ADDED", pod("b", 1, app="web"))
    state.apply("ADDED", pod("a", 1, app="web", tier="x"))
    assert state.pods.list_matching("default", selecting(app="web")) == [A, B]
    assert state.pods.list_matching("shop", selecting(app="web")) == []
    assert state.pods.on_node("") == [A, B]
    state.apply("MODIFIED", pod("b", 2, node="n", app="db"))
    assert state.pods.list_matching("default", selecting(app="web")) == [A]
    assert state.pods.list_matching("default", selecting(app="db")) == [B]
    assert (state.pods.on_node("n"), state.pods.on_node("")) == ([B], [A])
    for name in ("a", "b"):
        state.apply("DELETED", pod(name, 3))
    assert not state.pods.by_node
    assert not state.pods.by_class
    assert not state.pods.classes


def test_a_fork_has_indexes_of_its_own() -> None:
    state = State()
    state.apply("ADDED", pod("a", 1, node="n", owners=("one",), app="web"))
    fork = state.fork()
    fork.apply("MODIFIED", pod("a", 2, node="m", owners=("two",), app="db"))
    state.apply("ADDED", pod("b", 1, node="n", owners=("one",), app="web"))
    assert (state.pods.on_node("n"), state.owners.owned_by("one", PODS)) == ([A, B], [A, B])
    assert state.pods.list_matching("default", selecting(app="web")) == [A, B]
    assert (fork.pods.on_node("n"), fork.pods.on_node("m")) == ([], [A])
    assert (fork.owners.owned_by("one", PODS), fork.owners.owned_by("two", PODS)) == ([], [A])
    assert fork.pods.list_matching("default", selecting(app="db")) == [A]
