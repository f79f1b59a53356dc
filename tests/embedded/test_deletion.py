"""How objects go: grace, finalizers, evictions, garbage and namespaces. Cases beyond the conformance suite."""

from __future__ import annotations

import pytest

from embedded.store_fixtures import (
    BUDGETS,
    NAMESPACE,
    a_budget,
    a_map,
    a_pod,
    a_running_pod,
    a_server,
    key,
    merge_patch,
)
from small_cluster import ManualClock, settle
from wukong.actions import Delete
from wukong.api.kinds import CONFIG_MAPS, EVENTS, NAMESPACES, PODS
from wukong.api.resources import Key
from wukong.embedded.store import Server, garbage_collection
from wukong.embedded.store.deletion import DeleteOptions
from wukong.embedded.store.writes import _completes_deletion
from wukong.errors import Denied, NotFound, ServerFailed, TooManyRequests
from wukong.ports import Document


def exists(server: Server, name: str) -> bool:
    try:
        server.get(PODS, key(name))
    except NotFound:
        return False
    return True


def is_terminating(server: Server, name: str) -> bool:
    return "deletionTimestamp" in server.get(PODS, key(name))["metadata"]


# Grace -----------------------------------------------------------------------------------------------------------


def test_a_bound_pod_waits_for_its_kubelet_and_its_end_is_announced() -> None:
    server = a_server()
    a_running_pod(server)
    server.delete(PODS, key("web"), DeleteOptions(grace_seconds=20))
    meta = server.get(PODS, key("web"))["metadata"]
    assert (meta["deletionTimestamp"], meta["deletionGracePeriodSeconds"]) == ("2026-01-01T00:00:20Z", 20)
    assert meta["generation"] == 2


def test_a_grace_can_only_be_shortened() -> None:
    server = a_server()
    a_running_pod(server)
    for requested, expected in ((20, 20), (30, 20), (5, 5), (None, 5)):
        server.delete(PODS, key("web"), DeleteOptions(grace_seconds=requested))
        assert server.get(PODS, key("web"))["metadata"]["deletionGracePeriodSeconds"] == expected
    assert server.get(PODS, key("web"))["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:05Z"
    server.delete(PODS, key("web"), DeleteOptions(grace_seconds=0))
    assert not exists(server, "web")


def test_a_finished_pod_has_nothing_to_wait_for() -> None:
    server = a_server()
    a_running_pod(server)
    server.patch(PODS, key("web"), merge_patch(status={"phase": "Succeeded"}), "status")
    server.delete(PODS, key("web"))
    assert not exists(server, "web")


def test_a_graceless_end_is_seen_as_a_change_and_then_a_deletion() -> None:
    server = a_server()
    server.create(PODS, a_pod(), NAMESPACE)
    before = server.database.version
    server.delete(PODS, key("web"))
    assert [change.type for change in server.database.changes_since("pods", before)] == ["MODIFIED", "DELETED"]


# Evictions -------------------------------------------------------------------------------------------------------


def test_a_budget_remembers_whom_it_let_go_and_is_charged_once() -> None:
    server = a_server()
    for name in ("one", "two"):
        a_running_pod(server, name)
    a_budget(server, disruptionsAllowed=1)
    server.evict(key("one"))
    status = server.get(BUDGETS, key("budget"))["status"]
    assert (status["disruptionsAllowed"], status["disruptedPods"]) == (0, {"one": "2026-01-01T00:00:00Z"})
    server.evict(key("one"))  # it is leaving: no budget is asked again
    with pytest.raises(TooManyRequests) as caught:
        server.evict(key("two"))
    assert (caught.value.cause, caught.value.retry_after) == ("DisruptionBudget", None)
    assert not is_terminating(server, "two")


def test_a_budget_whose_pods_are_not_counted_yet_says_when_to_ask_again() -> None:
    server = a_server()
    a_running_pod(server)
    a_budget(server, disruptionsAllowed=1)
    server.patch(BUDGETS, key("budget"), merge_patch(spec={"minAvailable": 2}))
    with pytest.raises(TooManyRequests) as caught:
        server.evict(key("web"))
    assert caught.value.retry_after == 10


@pytest.mark.parametrize(
    ("policy", "counts", "is_evicted"),
    [
        ("AlwaysAllow", {"currentHealthy": 0, "desiredHealthy": 3}, True),
        ("IfHealthyBudget", {"currentHealthy": 3, "desiredHealthy": 3}, True),
        ("IfHealthyBudget", {"currentHealthy": 2, "desiredHealthy": 3}, False),
        ("", {"currentHealthy": 0, "desiredHealthy": 0}, False),
        ("", {"currentHealthy": 1, "desiredHealthy": 1}, True),
    ],
)
def test_a_pod_that_is_not_ready_may_go_uncharged(policy: str, counts: dict[str, int], is_evicted: bool) -> None:
    server = a_server()
    a_running_pod(server, is_ready=False)
    a_budget(server, "budget", policy, **counts)
    if not is_evicted:
        with pytest.raises(TooManyRequests):
            server.evict(key("web"))
    else:
        server.evict(key("web"))
        assert is_terminating(server, "web")
    assert "disruptedPods" not in server.get(BUDGETS, key("budget"))["status"]


def test_two_budgets_are_one_too_many() -> None:
    server = a_server()
    a_running_pod(server)
    for name in ("one", "two"):
        a_budget(server, name, disruptionsAllowed=1)
    with pytest.raises(ServerFailed, match="more than one PodDisruptionBudget"):
        server.evict(key("web"))


# Garbage ---------------------------------------------------------------------------------------------------------


def a_map_owned_by(name: str, *owners: Document, block: bool = True) -> Document:
    references = [
        {"apiVersion": "v1", "kind": "ConfigMap", "blockOwnerDeletion": block}
        | {field: owner["metadata"][field] for field in ("name", "uid")}
        for owner in owners
    ]
    return a_map(name, ownerReferences=references)


def names_of_maps(server: Server) -> list[str]:
    return [document["metadata"]["name"] for document in server.database.list_objects("configmaps")]


def test_grandchildren_go_with_their_grandparents() -> None:
    server = a_server()
    top = server.create(CONFIG_MAPS, a_map("top"), NAMESPACE)
    middle = server.create(CONFIG_MAPS, a_map_owned_by("middle", top), NAMESPACE)
    server.create(CONFIG_MAPS, a_map_owned_by("bottom", middle), NAMESPACE)
    server.delete(CONFIG_MAPS, key("top"), DeleteOptions(propagation="Background"))
    settle(server)
    assert names_of_maps(server) == []


def test_a_child_with_another_owner_stays_and_forgets_the_one_that_went() -> None:
    server = a_server()
    first, second = (server.create(CONFIG_MAPS, a_map(name), NAMESPACE) for name in ("one", "two"))
    server.create(CONFIG_MAPS, a_map_owned_by("child", first, second), NAMESPACE)
    server.delete(CONFIG_MAPS, key("one"))
    settle(server)
    assert names_of_maps(server) == ["child", "two"]
    references = server.get(CONFIG_MAPS, key("child"))["metadata"]["ownerReferences"]
    assert [reference["name"] for reference in references] == ["two"]


def test_in_the_foreground_the_lowest_goes_first() -> None:
    server = a_server()
    top = server.create(CONFIG_MAPS, a_map("top"), NAMESPACE)
    middle = server.create(CONFIG_MAPS, a_map_owned_by("middle", top), NAMESPACE)
    server.create(CONFIG_MAPS, a_map_owned_by("bottom", middle), NAMESPACE)
    before = server.database.version
    server.delete(CONFIG_MAPS, key("top"), DeleteOptions(propagation="Foreground"))
    settle(server)
    deleted = [
        change.key.name for change in server.database.changes_since("configmaps", before) if change.type == "DELETED"
    ]
    assert deleted == ["bottom", "middle", "top"]


def test_a_child_that_does_not_block_does_not_hold_its_owner() -> None:
    server = a_server()
    top = server.create(CONFIG_MAPS, a_map("top"), NAMESPACE)
    child = a_map_owned_by("child", top, block=False)
    child["metadata"]["finalizers"] = ["wukong.test/held"]
    server.create(CONFIG_MAPS, child, NAMESPACE)
    server.delete(CONFIG_MAPS, key("top"), DeleteOptions(propagation="Foreground"))
    settle(server)
    assert names_of_maps(server) == ["child"]


def test_a_recreated_owner_of_the_same_name_is_another() -> None:
    server = a_server()
    first = server.create(CONFIG_MAPS, a_map("owner"), NAMESPACE)
    server.create(CONFIG_MAPS, a_map_owned_by("child", first), NAMESPACE)
    server.delete(CONFIG_MAPS, key("owner"))
    server.create(CONFIG_MAPS, a_map("owner"), NAMESPACE)
    settle(server)
    assert names_of_maps(server) == ["owner"]


def test_owners_and_dependents_of_a_change_are_all_it_affects() -> None:
    server = a_server()
    owner = server.create(CONFIG_MAPS, a_map("owner"), NAMESPACE)
    server.create(CONFIG_MAPS, a_map_owned_by("child", owner), NAMESPACE)
    server.create(CONFIG_MAPS, a_map("unrelated"), NAMESPACE)
    server.delete(CONFIG_MAPS, key("owner"))
    change = server.database.changes_since("configmaps", 0)[-1]
    refs = garbage_collection.find_affected_objects(server.database, "configmaps", change)
    assert [ref.key.name for ref in refs] == ["child", "owner"]
    [action] = garbage_collection.plan_actions(server.database, server.kinds, refs)
    assert isinstance(action, Delete)
    assert action.key == key("child")


def test_events_are_forgotten_after_an_hour() -> None:
    clock = ManualClock()
    server = Server(clock)
    server.create(EVENTS, {"metadata": {"name": "old"}}, "default")
    clock.time += 3000
    server.create(EVENTS, {"metadata": {"name": "new"}}, "default")
    clock.time += 1000
    assert [
        deletion.key.name for deletion in garbage_collection.plan_event_deletions(server.database, clock.now())
    ] == ["old"]


# Namespaces ------------------------------------------------------------------------------------------------------


def test_a_namespace_goes_after_what_is_in_it_and_takes_nothing_new_meanwhile() -> None:
    server = a_server()
    server.create(CONFIG_MAPS, a_map("held", finalizers=["wukong.test/held"]), NAMESPACE)
    server.create(CONFIG_MAPS, a_map("free"), NAMESPACE)
    server.delete(NAMESPACES, Key("", NAMESPACE))
    settle(server)
    assert names_of_maps(server) == ["held"]
    assert server.get(NAMESPACES, Key("", NAMESPACE))["status"]["phase"] == "Terminating"
    with pytest.raises(Denied, match="because it is being terminated"):
        server.create(CONFIG_MAPS, a_map("late"), NAMESPACE)
    server.patch(CONFIG_MAPS, key("held"), merge_patch(metadata={"finalizers": None}))
    settle(server)
    with pytest.raises(NotFound):
        server.get(NAMESPACES, Key("", NAMESPACE))
    with pytest.raises(NotFound, match='namespaces "shop" not found'):
        server.create(CONFIG_MAPS, a_map("too-late"), NAMESPACE)


def test_some_namespaces_cannot_be_deleted() -> None:
    with pytest.raises(Denied, match="this namespace may not be deleted"):
        a_server().delete(NAMESPACES, Key("", "kube-system"))


LEAVING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
HELD = {"finalizers": ["kubernetes"]}


@pytest.mark.parametrize(
    ("before", "after", "is_over"),
    [
        ({"metadata": LEAVING}, {"kind": "Pod", "metadata": LEAVING}, True),
        ({"metadata": {}}, {"kind": "Pod", "metadata": {}}, False),
        ({"metadata": LEAVING}, {"kind": "Pod", "metadata": {**LEAVING, "finalizers": ["a/b"]}}, False),
        ({"metadata": {**LEAVING, "finalizers": ["a/b"]}}, {"kind": "Pod", "metadata": LEAVING}, True),
        ({"metadata": {**LEAVING, "deletionGracePeriodSeconds": 30}}, {"kind": "Pod", "metadata": LEAVING}, False),
        ({"metadata": {**LEAVING, "deletionGracePeriodSeconds": 0}}, {"kind": "Pod", "metadata": LEAVING}, True),
        ({"metadata": LEAVING}, {"kind": "Namespace", "metadata": LEAVING}, True),
        (
            {"metadata": LEAVING},
            {"kind": "Namespace", "metadata": LEAVING, "spec": {"finalizers": ["kubernetes"]}},
            False,
        ),
        ({"metadata": LEAVING}, {"kind": "Pod", "metadata": LEAVING, "spec": {"finalizers": ["kubernetes"]}}, True),
    ],
)
def test_an_update_ends_an_object_that_waits_for_nothing_else(before: Document, after: Document, is_over: bool) -> None:
    assert _completes_deletion(before, after) is is_over


def test_a_terminating_namespace_that_is_changed_is_still_there() -> None:
    server = a_server()
    server.create(CONFIG_MAPS, a_map("held", finalizers=["wukong.test/held"]), NAMESPACE)
    server.delete(NAMESPACES, Key("", NAMESPACE))
    server.patch(NAMESPACES, Key("", NAMESPACE), merge_patch(metadata={"labels": {"a": "b"}}))
    assert server.get(NAMESPACES, Key("", NAMESPACE))["metadata"]["labels"]["a"] == "b"
