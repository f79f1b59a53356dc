"""What the status of a Wukong claims, condition by condition: each reason has its case."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from wukong.api.vm import VmStatus, Wukong, WukongSpec
from wukong.controllers.conditions import Claim
from wukong.controllers.vm import status
from wukong.controllers.vm.machines import Machine
from wukong.controllers.vm.pending_changes import NO_CHANGES, PendingChanges
from wukong.controllers.vm.status import Findings, MachineReport
from wukong.controllers.vm.vm_status import NAME_TAKEN, UNSCHEDULABLE, Trouble

FINE = Findings(problems=[], is_bootable=True, obstacle=None, advice="", restarting="")
UP, DOWN = VmStatus(name="web-0", ready=True), VmStatus(name="web-1")
STUCK = VmStatus(name="web-2", reason="Unschedulable", message="no room")
TAKEN = VmStatus(name="web-3", reason=NAME_TAKEN, message="somebody else's")


def a_wukong(run_strategy: str = "Always") -> Wukong:
    return Wukong(spec=WukongSpec(run_strategy=run_strategy))


@pytest.mark.parametrize(
    ("wukong", "vms", "findings", "claim"),
    [
        (a_wukong(), [UP], FINE, Claim("Ready", True, "AllReady", "1 of 1 are ready.")),
        (a_wukong(), [], FINE, Claim("Ready", True, "AllReady", "0 of 0 are ready.")),
        (a_wukong(), [UP, DOWN], FINE, Claim("Ready", False, "NotReady", "1 of 2 are ready.")),
        (
            a_wukong(),
            [UP],
            FINE._replace(obstacle=("KubeVirtMissing", "Install it.")),
            Claim("Ready", False, "KubeVirtMissing", "Install it."),
        ),
        (a_wukong(), [UP, TAKEN], FINE, Claim("Ready", False, NAME_TAKEN, "somebody else's")),
        (
            a_wukong(),
            [UP, DOWN],
            FINE._replace(problems=["$.spec"]),
            Claim("Ready", False, "NotAccepted", "1 of 2 are ready. See the condition Accepted."),
        ),
        (a_wukong(), [UP], FINE._replace(problems=["$.spec"]), Claim("Ready", True, "AllReady", "1 of 1 are ready.")),
        (
            a_wukong(run_strategy="Halted"),
            [DOWN],
            FINE,
            Claim("Ready", False, "Halted", "runStrategy is Halted: none is to run."),
        ),
        (
            a_wukong(),
            [UP, DOWN, STUCK],
            FINE,
            Claim("Ready", False, "Unschedulable", "1 of 3 are ready. web-2: no room"),
        ),
        (
            a_wukong(),
            [replace(STUCK, ready=True), DOWN],
            FINE,
            Claim("Ready", False, "NotReady", "1 of 2 are ready."),
        ),
    ],
)
def test_whether_all_are_ready_and_why_not(
    wukong: Wukong, vms: list[VmStatus], findings: Findings, claim: Claim
) -> None:
    assert status._claim_ready(wukong, vms, findings) == claim


def a_report(name: str, reason: str = "", pending: PendingChanges = NO_CHANGES) -> MachineReport:
    return MachineReport(Machine(name), Trouble(reason, "why" if reason else ""), pending)


@pytest.mark.parametrize(
    ("strategy", "reports", "advice", "claim"),
    [
        ("Always", [], "", Claim("Placed", True, "Placed", "0 of 0 have a node.")),
        ("Always", [a_report("a")], "", Claim("Placed", False, "Starting", "Some have no node yet.")),
        ("Halted", [a_report("a")], "", Claim("Placed", True, "Placed", "0 of 1 have a node.")),
        ("Manual", [a_report("a")], "", Claim("Placed", True, "Placed", "0 of 1 have a node.")),
        ("Once", [a_report("a")], "", Claim("Placed", False, "Starting", "Some have no node yet.")),
        (
            "Always",
            [a_report("a"), a_report("b", UNSCHEDULABLE), a_report("c", UNSCHEDULABLE)],
            "",
            Claim("Placed", False, UNSCHEDULABLE, "b, c: why"),
        ),
        (
            "Always",
            [a_report("b", UNSCHEDULABLE)],
            "Add cpu.",
            Claim("Placed", False, UNSCHEDULABLE, "b: why Add cpu."),
        ),
        ("Always", [a_report("b", "Other")], "", Claim("Placed", False, "Starting", "Some have no node yet.")),
    ],
)
def test_whether_all_have_a_node_and_why_not(
    strategy: str, reports: list[MachineReport], advice: str, claim: Claim
) -> None:
    assert status._claim_placed(a_wukong(run_strategy=strategy), reports, advice) == claim


def test_whether_it_is_understood_and_can_start() -> None:
    assert status._claim_accepted([]) == Claim("Accepted", True, "Understood", "No problem was found.")
    assert status._claim_accepted(["a", "b"]) == Claim("Accepted", False, "Invalid", "a\nb")
    assert status._claim_bootable(True) == Claim("Bootable", True, "HasDisk", "There is something to start from.")
    claim = status._claim_bootable(False)
    assert (claim.is_true, claim.reason) == (False, "NoDisk")


@pytest.mark.parametrize(
    ("findings", "reason"),
    [
        (FINE, "Stuck"),
        (FINE._replace(problems=["x"], obstacle=("Why", "")), "NotAccepted"),
        (FINE._replace(obstacle=("Why", "")), "Why"),
    ],
)
def test_one_word_for_the_first_thing_that_is_wrong(findings: Findings, reason: str) -> None:
    assert status._find_reason(findings, "Stuck") == reason
