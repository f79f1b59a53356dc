"""What waits for finalizers of KubeVirt's alone, and of which nothing else is left, is found."""

from __future__ import annotations

from typing import Any

import pytest

from wukong.embedded.checkers.machines import _FINALIZERS, _check_finalizers
from wukong.embedded.world import objects

OWN = sorted(_FINALIZERS)


class Reports:
    def __init__(self) -> None:
        self.texts: list[str] = []

    def report(self, subject: str, text: str) -> None:
        self.texts.append(f"{subject}: {text}")


@pytest.mark.parametrize(
    ("finalizers", "is_leaving", "has_rest", "is_found"),
    [
        (OWN[:1], True, False, True),
        (OWN, True, False, True),
        ([], True, False, False),
        (OWN[:1], False, False, False),
        (OWN[:1], True, True, False),
        ([*OWN, "example.com/held"], True, False, False),
        (["example.com/held"], True, False, False),
    ],
)
def test_an_object_is_held_by_nobody_but_kubevirt(
    finalizers: list[str], is_leaving: bool, has_rest: bool, is_found: bool
) -> None:
    metadata: dict[str, Any] = {"name": "web", "namespace": "shop", "uid": "u", "finalizers": finalizers}
    if is_leaving:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    machine: Any = objects.read("VirtualMachine.kubevirt.io", {"metadata": metadata, "spec": {}})
    reports: Any = Reports()
    _check_finalizers(reports, "virtualmachine", machine, [machine] if has_rest else [])
    assert len(reports.texts) == is_found
    if is_found:
        assert reports.texts[0] == f"virtualmachine shop/web: at rest it still waits for its finalizer {finalizers[0]}"
