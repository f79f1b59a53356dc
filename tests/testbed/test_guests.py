"""What a hollow virt-handler writes next, step by step, without any KubeVirt."""

from typing import Any

import pytest

from testbed.behaviour import Behaviour
from testbed.client import Json
from testbed.kubevirt.guests import ENDED, FINAL, NODE_LABEL, TARGET_LABEL, Step, View, next_step

NOW, STAMP = 1_700_000_000.0, "2023-11-14T22:13:20Z"


def a_vmi(phase: str = "Running", *, migration: Json | None = None, **status: Any) -> Json:
    labels, state = {NODE_LABEL: "a"}, {}
    if migration is not None:
        labels[TARGET_LABEL] = "b"
        state["migrationState"] = {"migrationUid": "m", "sourcePod": "one", "targetPod": "two", **migration}
    return {
        "metadata": {"name": "web", "uid": "u", "labels": labels},
        "spec": {"domain": {"devices": {}}},
        "status": {"phase": phase, "nodeName": "a", **state, **status},
    }


def a_pod(name: str = "one", node: str = "a", phase: str = "Running", **metadata: Any) -> Json:
    return {"metadata": {"name": name, **metadata}, "spec": {"nodeName": node}, "status": {"phase": phase}}


def step(vmi: Json, *pods: Json, age: float = 0.0, silent: str = "", **behaviour: Any) -> Step:
    view = View(
        vmi=vmi,
        pods=pods or (a_pod(),),
        behaviour=Behaviour(**behaviour),
        silent_nodes=frozenset(silent),
        age=lambda event: age,
        now=NOW,
    )
    return next_step(view)


def written(found: Step) -> Json:
    assert found.vmi is not None
    return found.vmi


def migrated(vmi: Json, **behaviour: Any) -> tuple[Json, list[set[str]]]:
    """Every step until nothing is left to do, and what each changed in the state of the migration."""
    changes: list[set[str]] = []
    pods = (a_pod(), a_pod("two", "b"))
    for _ in range(12):
        found = step(vmi, *pods, age=60.0, **behaviour)
        if found.vmi is None:
            return vmi, changes
        before, after = vmi["status"].get("migrationState", {}), found.vmi["status"].get("migrationState", {})
        changes.append({key for key in after if after[key] != before.get(key)})
        vmi = found.vmi
    raise AssertionError(f"it never ends: {changes}")


def test_a_guest_boots_when_its_time_has_come() -> None:
    waiting = step(a_vmi("Scheduled"), age=0.5, boot_seconds=2.0)
    assert (waiting.vmi, waiting.again_after) == (None, 1.5)
    status = written(step(a_vmi("Scheduled"), age=2.0, boot_seconds=2.0))["status"]
    assert status["phase"] == "Running"
    assert status["phaseTransitionTimestamps"] == [{"phase": "Running", "phaseTransitionTimestamp": STAMP}]
    assert {known["type"]: known["status"] for known in status["conditions"]} == {
        "LiveMigratable": "True",
        "StorageLiveMigratable": "True",
    }


def test_a_running_guest_whose_conditions_are_shown_is_left_alone() -> None:
    shown = written(step(a_vmi()))
    assert step(shown) == Step()


@pytest.mark.parametrize(
    ("phase", "pod", "becomes"),
    [
        ("Running", a_pod(phase="Succeeded"), "Succeeded"),
        ("Running", a_pod(phase="Failed"), "Failed"),
        ("Running", a_pod(deletionTimestamp=STAMP), "Succeeded"),
        ("Scheduled", a_pod(deletionTimestamp=STAMP), "Failed"),
    ],
)
def test_the_end_of_a_guest_follows_its_pod(phase: str, pod: Json, becomes: str) -> None:
    assert written(step(a_vmi(phase), pod, age=1.0))["status"]["phase"] == becomes


def test_a_guest_takes_its_time_to_shut_down() -> None:
    assert step(a_vmi(), a_pod(deletionTimestamp=STAMP), age=1.0, stop_seconds=3.0) == Step(again_after=2.0)


@pytest.mark.parametrize("phase", FINAL)
def test_pods_end_when_their_guest_is_down(phase: str) -> None:
    assert step(a_vmi(phase), a_pod(), a_pod("two", "b")) == Step(ended_pods=["one", "two"])


@pytest.mark.parametrize("phase", ["Pending", "Scheduling"])
def test_a_guest_that_virt_controller_still_owns_is_left_to_it(phase: str) -> None:
    assert step(a_vmi(phase)) == Step()


def test_a_guest_without_a_pod_or_on_a_silent_node_is_left_alone() -> None:
    assert step(a_vmi(), a_pod(node="b")) == Step()
    assert step(a_vmi("Scheduled"), silent="a", age=60.0) == Step()


def test_a_migration_is_written_in_the_steps_of_source_and_target() -> None:
    vmi, changes = migrated(a_vmi(migration={}, evacuationNodeName="a"))
    assert changes[:5] == [
        {"targetNodeAddress", "targetDirectMigrationNodePorts"},
        {"startTimestamp", "mode"},
        {"targetNodeDomainDetected", "targetNodeDomainReadyTimestamp"},
        {"endTimestamp"},
        {"completed"},
    ]
    assert vmi["status"]["nodeName"] == vmi["metadata"]["labels"][NODE_LABEL] == "b"
    assert "evacuationNodeName" not in vmi["status"]
    assert TARGET_LABEL not in vmi["metadata"]["labels"]


def test_a_migration_that_is_to_fail_ends_on_its_source() -> None:
    vmi, _ = migrated(a_vmi(migration={}), migration_fails=True)
    state = vmi["status"]["migrationState"]
    assert (state["failed"], state.get("completed"), vmi["status"]["nodeName"]) == (True, None, "a")
    assert TARGET_LABEL not in vmi["metadata"]["labels"]


def test_a_migration_that_was_aborted_stops_at_once() -> None:
    started = {"targetNodeAddress": "172.16.0.1", "startTimestamp": STAMP, "abortRequested": True}
    found = step(a_vmi(migration=started), a_pod(), a_pod("two", "b"), migration_seconds=60.0)
    state = written(found)["status"]["migrationState"]
    assert (state["failed"], state["abortStatus"]) == (True, "Succeeded")


@pytest.mark.parametrize(("outcome", "left_over"), [({"completed": True}, "one"), ({"failed": True}, "two")])
def test_the_pod_that_is_left_over_by_a_migration_is_ended_once(outcome: Json, left_over: str) -> None:
    vmi = a_vmi(migration={"endTimestamp": STAMP, **outcome})
    vmi["status"]["nodeName"] = "b" if left_over == "one" else "a"
    pods = {"one": a_pod(), "two": a_pod("two", "b")}
    assert step(vmi, *pods.values()).ended_pods == [left_over]
    pods[left_over]["metadata"]["annotations"] = dict(ENDED)
    assert step(vmi, *pods.values()).ended_pods == []


def test_a_pod_of_the_next_migration_is_not_taken_for_a_left_over() -> None:
    vmi = a_vmi(migration={"endTimestamp": STAMP, "completed": True})
    vmi["status"]["nodeName"] = "b"
    over, running, next_target = a_pod(phase="Succeeded"), a_pod("two", "b"), a_pod("three", "a")
    assert step(vmi, over, running, next_target).ended_pods == []


def test_what_was_plugged_in_is_there_after_the_migration() -> None:
    changes = [{"type": "HotVCPUChange", "status": "True"}, {"type": "HotMemoryChange", "status": "True"}]
    vmi = a_vmi(migration={}, conditions=changes, memory={"guestAtBoot": "1Gi", "guestCurrent": "1Gi"})
    vmi["spec"]["domain"] |= {"cpu": {"sockets": 2, "cores": 1}, "memory": {"guest": "2Gi"}}
    status = migrated(vmi)[0]["status"]
    assert status["currentCPUTopology"] == {"sockets": 2, "cores": 1}
    assert status["memory"] == {"guestAtBoot": "1Gi", "guestCurrent": "2Gi", "guestRequested": "2Gi"}
    assert status["conditions"] == []
