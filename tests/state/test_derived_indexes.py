"""Which changes a derived index is handed."""

from __future__ import annotations

from typing import ClassVar

from wukong.api.core import Pod
from wukong.api.kinds import NODES, PODS
from wukong.api.meta import Object, ObjectMeta, OwnerReference
from wukong.api.resources import Key
from wukong.state import State

KEY = Key("shop", "db-0")


class StatefulPods:
    """Remembers what it was handed."""

    kinds: ClassVar[frozenset[str]] = frozenset({PODS.group_kind, NODES.group_kind})
    pod_controller: ClassVar[str] = "StatefulSet"

    def __init__(self) -> None:
        self.changes: list[tuple[str, str]] = []

    def note(self, group_kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        self.changes.append((_owner_of(old), _owner_of(new)))

    def fork(self) -> StatefulPods:
        copy = StatefulPods()
        copy.changes = list(self.changes)
        return copy


def _owner_of(subject: Object | None) -> str:
    return subject.metadata.owner_references[0].kind if subject and subject.metadata.owner_references else ""


def a_pod(owner: str, version: int) -> Pod:
    owners = [OwnerReference(api_version="apps/v1", kind=owner, name="db", uid="1", controller=True)] if owner else []
    return Pod(
        metadata=ObjectMeta(
            name=KEY.name, namespace=KEY.namespace, uid="u", resource_version=str(version), owner_references=owners
        )
    )


def changes_of(*owners: str) -> list[tuple[str, str]]:
    state = State()
    state.index_of(StatefulPods)
    for version, owner in enumerate(owners, 1):
        state.apply("MODIFIED", a_pod(owner, version))
    return state.index_of(StatefulPods).changes


def test_an_index_of_the_pods_of_one_kind_of_controllers_is_handed_no_others() -> None:
    assert changes_of("ReplicaSet", "ReplicaSet", "", "DaemonSet") == []


def test_it_is_handed_a_pod_that_becomes_one_of_these_or_was_one() -> None:
    assert changes_of("ReplicaSet", "StatefulSet", "StatefulSet", "DaemonSet", "") == [
        ("ReplicaSet", "StatefulSet"),
        ("StatefulSet", "StatefulSet"),
        ("StatefulSet", "DaemonSet"),
    ]


def test_its_fork_is_handed_the_same_and_the_original_nothing_of_it() -> None:
    state = State()
    state.index_of(StatefulPods)
    fork = state.fork()
    fork.apply("ADDED", a_pod("StatefulSet", 1))
    fork.apply("MODIFIED", a_pod("", 2))
    assert fork.index_of(StatefulPods).changes == [("", "StatefulSet"), ("StatefulSet", "")]
    assert state.index_of(StatefulPods).changes == []
