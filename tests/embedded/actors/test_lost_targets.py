"""A migration whose target pod is gone before memory was copied has failed, and says so."""

from __future__ import annotations

from typing import Any

import pytest

from wukong.embedded.actors.kubevirt.migrations import _has_lost_target, _mark_failed
from wukong.embedded.world import objects

BEGUN = {"migrationUid": "m"}


def an_instance(**state: Any) -> Any:
    metadata = {"name": "web", "namespace": "shop", "uid": "i", "resourceVersion": "1"}
    document = {"metadata": metadata, "spec": {}, "status": {"phase": "Running", "migrationState": state}}
    return objects.read("VirtualMachineInstance.kubevirt.io", document)


def a_target(phase: str) -> Any:
    return objects.read("Pod", {"metadata": {"name": "t", "namespace": "shop"}, "spec": {}, "status": {"phase": phase}})


MIGRATION: Any = objects.read(
    "VirtualMachineInstanceMigration.kubevirt.io", {"metadata": {"name": "move", "namespace": "shop", "uid": "m"}}
)


@pytest.mark.parametrize(
    ("state", "target", "is_lost"),
    [
        (BEGUN, None, True),
        (BEGUN, a_target("Failed"), True),
        (BEGUN, a_target("Succeeded"), True),
        (BEGUN, a_target("Running"), False),
        ({"migrationUid": "other"}, None, False),
        ({}, None, False),
        ({**BEGUN, "startTimestamp": "2026-01-01T00:00:00Z"}, None, False),
        ({**BEGUN, "completed": True}, None, False),
        ({**BEGUN, "targetNodeAddress": "10.0.0.1"}, None, False),
    ],
)
def test_a_target_is_lost_while_nothing_was_copied(state: dict[str, Any], target: Any, is_lost: bool) -> None:
    assert _has_lost_target(MIGRATION, an_instance(**state), target) is is_lost


def test_a_failed_migration_began_and_ended_at_once() -> None:
    (patch,) = _mark_failed(an_instance(**BEGUN), 1_767_225_600.0)
    assert patch.key.name == "web"
    moment = "2026-01-01T00:00:00Z"
    written = str(patch.patch.body)
    for name, value in (("startTimestamp", moment), ("endTimestamp", moment), ("failureReason", "Target pod is down")):
        assert f"'{name}': '{value}'" in written
    for name in ("failed", "completed"):
        assert f"'{name}': True" in written
