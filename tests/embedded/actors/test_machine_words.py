"""What KubeVirt's controllers say of a machine and put into its pod, case by case: no world is played."""

from __future__ import annotations

from typing import Any

import pytest

from wukong.embedded.actors.kubevirt.launcher_pod import _MOST_NAME, _build_init_containers, _shorten
from wukong.embedded.actors.kubevirt.machine_status import Sync, _find_word, _find_word_of_instance, run_strategy_of
from wukong.embedded.world import objects
from wukong.ports import Document


def a_machine(spec: Document | None = None, **metadata: Any) -> Any:
    document = {"metadata": {"name": "web", "namespace": "shop", "uid": "m", **metadata}, "spec": spec or {}}
    return objects.read("VirtualMachine.kubevirt.io", document)


def an_instance(phase: str = "Running", *conditions: tuple[str, str, str], **more: Any) -> Any:
    listed = [{"type": type_, "status": status, "reason": reason} for type_, status, reason in conditions]
    status = {"phase": phase, "conditions": listed, **more.pop("status", {})}
    metadata = {"name": "web", "namespace": "shop", "uid": "i", **more}
    return objects.read("VirtualMachineInstance.kubevirt.io", {"metadata": metadata, "status": status})


@pytest.mark.parametrize(
    ("spec", "strategy"),
    [
        ({"running": True}, "Always"),
        ({"running": False}, "Halted"),
        ({}, "Halted"),
        ({"runStrategy": "Manual"}, "Manual"),
        ({"runStrategy": "RerunOnFailure", "running": False}, "RerunOnFailure"),
    ],
)
def test_a_machine_says_by_one_field_or_the_other_when_it_runs(spec: Document, strategy: str) -> None:
    assert run_strategy_of(a_machine(spec)) == strategy


LEAVING: dict[str, Any] = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
UNSCHEDULABLE = ("PodScheduled", "False", "Unschedulable")
MIGRATING = {"migrationState": {"migrationUid": "x", "startTimestamp": "2026-01-01T00:00:00Z"}}


@pytest.mark.parametrize(
    ("instance", "sync", "word"),
    [
        (an_instance(), Sync(), "Running"),
        (an_instance("Running", ("Paused", "True", "")), Sync(), "Paused"),
        (an_instance("Running", ("Paused", "False", "")), Sync(), "Running"),
        (an_instance(**LEAVING), Sync(), "Stopping"),
        (an_instance(), Sync(is_stopping=True), "Stopping"),
        (an_instance("Succeeded"), Sync(is_stopping=True), ""),
        (an_instance("Failed", **LEAVING), Sync(), ""),
        (an_instance(status=MIGRATING), Sync(), "Migrating"),
        (an_instance("Scheduling"), Sync(), "Starting"),
        (an_instance("Scheduling", UNSCHEDULABLE), Sync(), "ErrorUnschedulable"),
        (an_instance("Scheduling", ("PodScheduled", "False", "Other")), Sync(), "Starting"),
        (an_instance("Pending", ("Synchronized", "False", "FailedPvcNotFound")), Sync(), "ErrorPvcNotFound"),
        (an_instance("Scheduling", ("Synchronized", "False", "ErrImagePull")), Sync(), "ErrImagePull"),
        (an_instance("Scheduling", ("Synchronized", "False", "ImagePullBackOff")), Sync(), "ImagePullBackOff"),
        (an_instance("Scheduling", ("Synchronized", "True", "ErrImagePull")), Sync(), "Starting"),
    ],
)
def test_an_instance_calls_for_a_word(instance: Any, sync: Sync, word: str) -> None:
    assert _find_word_of_instance(instance, sync) == word
    assert _find_word(a_machine(**LEAVING), instance, {}, sync) == "Terminating"


@pytest.mark.parametrize(
    ("strategy", "failures", "sync", "word"),
    [
        ("Always", 0, Sync(), "Stopped"),
        ("Always", 1, Sync(), "CrashLoopBackOff"),
        ("RerunOnFailure", 1, Sync(), "CrashLoopBackOff"),
        ("Manual", 1, Sync(), "Stopped"),
        ("Halted", 1, Sync(), "Stopped"),
        ("Always", 1, Sync(is_starting=True), "Starting"),
    ],
)
def test_a_machine_without_an_instance_waits_or_is_stopped(strategy: str, failures: int, sync: Sync, word: str) -> None:
    status = {"startFailure": {"consecutiveFailCount": failures}} if failures else {}
    assert _find_word(a_machine({"runStrategy": strategy}), None, status, sync) == word


@pytest.mark.parametrize(
    ("devices", "logs"),
    [
        ({}, True),
        ({"autoattachSerialConsole": True}, True),
        ({"autoattachSerialConsole": False}, False),
        ({"logSerialConsole": True}, True),
        ({"logSerialConsole": False}, False),
        ({"autoattachSerialConsole": False, "logSerialConsole": True}, False),
    ],
)
def test_the_console_of_a_guest_is_logged_unless_it_has_none_or_says_no(devices: Document, logs: bool) -> None:
    names = [container["name"] for container in _build_init_containers({"domain": {"devices": devices}})]
    assert names == (["guest-console-log"] if logs else [])
    disk = {"name": "root", "containerDisk": {"image": "x"}}
    spec = {"domain": {"devices": devices}, "volumes": [disk]}
    assert [container["name"] for container in _build_init_containers(spec)] == [
        *names,
        "container-disk-binary",
        "volumeroot-init",
    ]


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("web", "web"),
        ("box", "box"),
        ("web.example.com", "web"),
        ("web-.example", "web"),
        ("x" * (_MOST_NAME + 9), "x" * _MOST_NAME),
        ("x" * _MOST_NAME, "x" * _MOST_NAME),
        ("x" * (_MOST_NAME - 1) + "-y", "x" * (_MOST_NAME - 1)),
    ],
)
def test_a_guest_is_called_by_the_first_part_of_its_name_as_long_as_a_host_may_be(name: str, short: str) -> None:
    assert _shorten(name) == short
