"""Actions become calls, once each: after a lost answer it looks before it repeats."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from runtime.tiny import TinyCluster
from runtime.virtual import EPOCH, play
from wukong.actions import Action, Bind, Create, Delete, Evict, Note, Patch, Scale
from wukong.api.kinds import EVENTS, NODES, PODS, REPLICA_SETS
from wukong.api.resources import Key
from wukong.errors import AlreadyExists, Conflict, OutcomeUnknown, ServerFailed
from wukong.ports import PatchBody
from wukong.runtime.effect_check import contains, has_happened
from wukong.runtime.event_writer import event_of
from wukong.runtime.pending_writes import WrittenVersion
from wukong.runtime.performer import Performer, describe_action

SETS = REPLICA_SETS
WEB = Key("default", "web")
LOST = OutcomeUnknown("connection lost")
BODY = {"metadata": {"name": "new"}, "spec": {"priority": 7}}
ACTIONS: list[tuple[Action, str]] = [
    (Create(PODS, BODY, "default"), "create"),
    (Patch(PODS, WEB, PatchBody("merge", {"metadata": {"labels": {"a": "b"}}})), "patch"),
    (Delete(PODS, WEB), "delete"),
    (Evict(WEB), "delete"),
    (Bind(WEB, "n0"), "bind"),
    (Scale(SETS, WEB, 3), "patch"),
]


def a_cluster() -> TinyCluster:
    cluster = TinyCluster()
    cluster.put("Pod", "web")
    cluster.put("ReplicaSet", "web", replicas=1)
    return cluster


def performed(cluster: TinyCluster, *actions: Action, at: float = 0.0) -> None:
    performer = Performer(cluster)

    async def story() -> None:
        for action in actions:
            await performer.perform(action, EPOCH + at)

    play(story())


@pytest.mark.parametrize(("action", "verb"), ACTIONS, ids=lambda value: getattr(type(value), "__name__", ""))
class TestLostAnswers:
    def test_what_has_happened_is_not_repeated(self, action: Action, verb: str) -> None:
        cluster = a_cluster()
        cluster.after = [LOST]
        performed(cluster, action)
        assert [call[0] for call in cluster.calls] == [verb]

    def test_what_has_not_is_done_again(self, action: Action, verb: str) -> None:
        cluster = a_cluster()
        cluster.before = [LOST]
        performed(cluster, action)
        assert [call[0] for call in cluster.calls] == [verb, verb]

    def test_it_gives_up_after_three(self, action: Action, verb: str) -> None:
        cluster = a_cluster()
        cluster.before = [LOST] * 9
        with pytest.raises(OutcomeUnknown, match="3 times"):
            performed(cluster, action)
        assert len(cluster.calls) == 3

    def test_other_errors_are_the_callers(self, action: Action, verb: str) -> None:
        cluster = a_cluster()
        cluster.before = [ServerFailed("etcd")]
        with pytest.raises(ServerFailed):
            performed(cluster, action)
        assert len(cluster.calls) == 1


def test_after_a_lost_answer_the_version_to_wait_for_is_known_all_the_same() -> None:
    cluster = a_cluster()
    cluster.after = [LOST]
    action = Patch(PODS, WEB, PatchBody("merge", {"metadata": {"labels": {"a": "b"}}}))
    written = play(Performer(cluster).perform(action, EPOCH))
    uid = cluster.objects["Pod", WEB]["metadata"]["uid"]
    assert written == WrittenVersion("Pod", WEB, str(cluster.version), uid)


def test_gone_already_is_as_good_as_removed() -> None:
    performed(TinyCluster(), Delete(PODS, WEB), Evict(WEB))


def test_a_name_somebody_else_took_is_reported() -> None:
    cluster = a_cluster()
    with pytest.raises(AlreadyExists):
        performed(cluster, Create(PODS, {"metadata": {"name": "web"}}, "default"))


def test_a_pod_bound_elsewhere_meanwhile_is_reported() -> None:
    cluster = a_cluster()
    cluster.put("Pod", "web", nodeName="n9")
    cluster.before = [LOST]
    with pytest.raises(Conflict):
        performed(cluster, Bind(WEB, "n0"))


@pytest.mark.parametrize(
    ("node", "uid", "is_ours"),
    [("n0", "uid-web", True), ("n9", "uid-web", False), ("n0", "uid-of-its-predecessor", False)],
)
def test_a_binding_that_conflicts_is_looked_up_for_it_may_be_of_our_own_earlier_process(
    node: str, uid: str, is_ours: bool
) -> None:
    cluster = a_cluster()
    cluster.put("Pod", "web", nodeName=node)
    cluster.objects["Pod", WEB]["metadata"]["uid"] = "uid-web"
    cluster.before = [Conflict("pod web is already assigned to a node")]
    with contextlib.nullcontext() if is_ours else pytest.raises(Conflict):
        performed(cluster, Bind(WEB, "n0", uid))
    assert [call[0] for call in cluster.calls].count("bind") == 1


def test_a_generated_name_cannot_be_looked_for() -> None:
    class Generating(TinyCluster):
        async def create(self, *_: Any) -> Any:
            raise LOST

    with pytest.raises(OutcomeUnknown, match="no name to look for"):
        performed(Generating(), Create(PODS, {"metadata": {"generateName": "web-"}}, "default"))


@pytest.mark.parametrize(
    ("found", "asked", "expected"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, True),
        ({"a": 1}, {"a": 2}, False),
        ({}, {"a": None}, True),
        ({"a": 1}, {"a": None}, False),
        ({"a": [{"x": 1, "default": True}]}, {"a": [{"x": 1}]}, True),
        ({"a": []}, {"a": [{"x": 1}]}, False),
        ({"metadata": {"resourceVersion": "2"}}, {"metadata": {"resourceVersion": "1"}}, True),
        ({}, {"a": {"b": 1}}, False),
    ],
)
def test_what_was_asked_for_is_recognized(found: Any, asked: Any, expected: bool) -> None:
    assert contains(found, asked) is expected


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ({"op": "add", "path": "/metadata/labels/a~1b", "value": "c"}, True),
        ({"op": "replace", "path": "/metadata/labels/a~1b", "value": "d"}, False),
        ({"op": "remove", "path": "/metadata/labels/gone"}, True),
        ({"op": "remove", "path": "/metadata/labels/a~1b"}, False),
        ({"op": "add", "path": "/spec/list/-", "value": {"k": 1}}, True),
        ({"op": "add", "path": "/spec/list/-", "value": {"k": 2}}, False),
        ({"op": "replace", "path": "/spec/list/0/k", "value": 1}, True),
        ({"op": "replace", "path": "/spec/list/1/k", "value": 1}, False),
        ({"op": "replace", "path": "/spec/list/-1/k", "value": 1}, False),
        ({"op": "replace", "path": "/spec/list/²/k", "value": 1}, False),
        ({"op": "remove", "path": f"/spec/list/{'9' * 5000}"}, True),
        ({"op": "test", "path": "/spec/list/0/k", "value": 5}, True),
    ],
)
def test_a_json_patch_is_recognized(operation: dict[str, Any], expected: bool) -> None:
    found = {"metadata": {"labels": {"a/b": "c"}}, "spec": {"list": [{"k": 1}]}}
    assert has_happened(Patch(PODS, WEB, PatchBody("json", [operation])), found) is expected


@pytest.mark.parametrize(
    ("entries", "value", "expected"),
    [
        (["a", "b"], ["a"], False),
        (["a"], [], False),
        ([], [], True),
        (None, [], True),
        (["a"], ["a"], True),
        (None, ["a"], False),
        ([{"k": 1, "default": 2}], [{"k": 1}], True),
    ],
)
def test_a_list_that_a_json_patch_writes_whole_is_not_recognized_in_a_longer_one(
    entries: list[Any] | None, value: list[Any], expected: bool
) -> None:
    found = {"metadata": {} if entries is None else {"finalizers": entries}}
    operation = {"op": "add", "path": "/metadata/finalizers", "value": value}
    assert has_happened(Patch(PODS, WEB, PatchBody("json", [operation])), found) is expected


def test_a_deletion_shows_by_its_timestamp_or_another_uid() -> None:
    assert has_happened(Delete(PODS, WEB, uid="1"), {"metadata": {"uid": "2"}})
    assert has_happened(Evict(WEB, uid="1"), {"metadata": {"uid": "1", "deletionTimestamp": "now"}})
    assert not has_happened(Delete(PODS, WEB, uid="1"), {"metadata": {"uid": "1"}})


def test_a_deletion_at_once_has_not_happened_while_the_object_has_time_to_leave() -> None:
    leaving = {"metadata": {"uid": "1", "deletionTimestamp": "soon", "deletionGracePeriodSeconds": 30}}
    assert has_happened(Delete(PODS, WEB, uid="1"), leaving)
    assert not has_happened(Delete(PODS, WEB, uid="1", grace_seconds=0), leaving)
    held = {"metadata": {**leaving["metadata"], "deletionGracePeriodSeconds": 0, "finalizers": ["a/b"]}}
    assert has_happened(Delete(PODS, WEB, uid="1", grace_seconds=0), held)


def test_a_note_repeated_counts_up_as_a_series() -> None:
    cluster = TinyCluster()
    performer = Performer(cluster, "pod-7")
    note = Note(PODS, WEB, "Moved", "to n0", is_warning=True)

    async def story(*seconds: float) -> None:
        for second in seconds:
            await performer.perform(note, EPOCH + second)

    play(story(0.0, 1.0, 2.0, 3.0, 40.0))
    assert [call[0] for call in cluster.calls] == ["create", "patch", "patch"]
    (event,) = cluster.objects.values()
    assert event["series"] == {"count": 5, "lastObservedTime": "2026-01-01T00:00:40.000000Z"}
    assert (event["type"], event["reason"], event["regarding"]["name"]) == ("Warning", "Moved", "web")
    cluster.objects.clear()  # Events live for an hour
    play(story(90.0))
    assert len(cluster.objects) == 1
    play(story(9000.0))
    assert len(cluster.objects) == 2


def test_an_event_fits_what_the_api_server_accepts() -> None:
    event = event_of(Note(NODES, Key("", "n0"), "R" * 300, "é" * 1000), "x" * 300, EPOCH)
    assert (event["apiVersion"], event["metadata"]["namespace"]) == (EVENTS.api_version, "default")
    assert len(event["note"].encode()) == 1024
    assert {len(event[name]) for name in ("reason", "action", "reportingInstance")} == {128}
    assert "namespace" not in event["regarding"]


def test_an_action_is_described_by_its_subject() -> None:
    assert describe_action(Bind(WEB, "n0")) == "Bind Pod default/web"
    assert describe_action(Scale(SETS, WEB, 1)) == "Scale ReplicaSet default/web"
