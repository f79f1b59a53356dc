"""The status of a Wukong as it should be: conditions, how each virtual machine stands, and what changed. Pure.

Of many virtual machines the status has the first MOST_VMS, those that are not ready before the others: a Wukong must
stay small enough to be read.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from wukong.api.vm import VmStatus, Wukong, WukongStatus
from wukong.controllers.conditions import Claim, update_conditions
from wukong.controllers.vm.conditions import ACCEPTED, BOOTABLE, PLACED, READY, RESTART_REQUIRED
from wukong.controllers.vm.machines import Machine
from wukong.controllers.vm.pending_changes import PendingChanges
from wukong.controllers.vm.vm_status import NAME_TAKEN, NOT_PLACED, Trouble, build_vm_status
from wukong.controllers.vm.vm_writes import name_some
from wukong.ports import Document

MOST_VMS = 128
MOST_MESSAGES = 8  # virtual machines whose message is told in full
MOST_NAMED = 5
_IDLE = ("Halted", "Manual")  # run strategies under which a virtual machine may stand still


class MachineReport(NamedTuple):
    """What is known of one virtual machine."""

    machine: Machine
    trouble: Trouble
    pending: PendingChanges


class Findings(NamedTuple):
    """What is known of a Wukong as a whole."""

    problems: list[str]  # for which it is not accepted
    is_bootable: bool
    obstacle: tuple[str, str] | None  # what keeps us from writing VirtualMachines: reason and message
    advice: str  # the smallest change that would give a virtual machine a node
    restarting: str  # what is done about pending changes


def build_status(wukong: Wukong, reports: list[MachineReport], findings: Findings, now: float) -> WukongStatus:
    vms = [build_vm_status(report.machine, report.trouble, report.pending) for report in reports]
    claims = (
        _claim_accepted(findings.problems),
        _claim_bootable(findings.is_bootable),
        _claim_placed(wukong, reports, findings.advice),
        _claim_ready(wukong, vms, findings),
        _claim_restart_required(wukong, reports, findings.restarting),
    )
    nodes = sorted({vm.node for vm in vms if vm.node})
    troubled = next((vm.reason for vm in vms if vm.reason), "")
    generation = wukong.metadata.generation
    return WukongStatus(
        observed_generation=generation,
        replicas=sum(report.machine.is_owned for report in reports),
        ready_replicas=sum(vm.ready for vm in vms),
        node=nodes[0] if len(nodes) == 1 else f"{len(nodes)} nodes" if nodes else "",
        reason=_find_reason(findings, troubled),
        vms=_shorten(vms),
        conditions=update_conditions(wukong.status.conditions, claims, generation, now),
    )


def format_status(status: WukongStatus) -> Document:
    """The status for a merge patch: what is empty is said, too, for it may have been otherwise."""
    return {
        "observedGeneration": status.observed_generation,
        "replicas": status.replicas,
        "readyReplicas": status.ready_replicas,
        "node": status.node,
        "reason": status.reason,
        "vms": msgspec.to_builtins(status.vms),
        "conditions": msgspec.to_builtins(status.conditions),
    }


def _find_reason(findings: Findings, troubled: str) -> str:
    if findings.problems:
        return "NotAccepted"
    return findings.obstacle[0] if findings.obstacle is not None else troubled


def _shorten(vms: list[VmStatus]) -> list[VmStatus]:
    if len(vms) > MOST_VMS:
        vms = sorted(vms, key=lambda vm: vm.ready)[:MOST_VMS]  # the order of names stays within both halves
    told = 0
    shortened = []
    for vm in vms:
        told += bool(vm.message)
        shortened.append(msgspec.structs.replace(vm, message="") if vm.message and told > MOST_MESSAGES else vm)
    return shortened


def _claim_accepted(problems: list[str]) -> Claim:
    if problems:
        return Claim(ACCEPTED, False, "Invalid", "\n".join(problems))
    return Claim(ACCEPTED, True, "Understood", "No problem was found.")


def _claim_bootable(is_bootable: bool) -> Claim:
    if is_bootable:
        return Claim(BOOTABLE, True, "HasDisk", "There is something to start from.")
    return Claim(BOOTABLE, False, "NoDisk", "There is nothing to start from: add a disk to $.spec.disks.")


def _claim_placed(wukong: Wukong, reports: list[MachineReport], advice: str) -> Claim:
    unplaced = [report for report in reports if report.trouble.reason in NOT_PLACED]
    if unplaced:
        first = unplaced[0]
        names = name_some([report.machine.name for report in unplaced])
        message = f"{names}: {first.trouble.message}" + (f" {advice}" if advice else "")
        return Claim(PLACED, False, first.trouble.reason, message)
    running = [report for report in reports if report.machine.node]
    is_idle = wukong.spec.run_strategy in _IDLE
    if len(running) == len(reports) or is_idle:
        return Claim(PLACED, True, "Placed", f"{len(running)} of {len(reports)} have a node.")
    return Claim(PLACED, False, "Starting", "Some have no node yet.")


def _claim_ready(wukong: Wukong, vms: list[VmStatus], findings: Findings) -> Claim:
    ready = sum(vm.ready for vm in vms)
    count = f"{ready} of {len(vms)} are ready."
    if findings.obstacle is not None:
        return Claim(READY, False, *findings.obstacle)
    taken = [vm for vm in vms if vm.reason == NAME_TAKEN]
    if taken:
        return Claim(READY, False, NAME_TAKEN, taken[0].message)
    if ready == len(vms):
        return Claim(READY, True, "AllReady", count)
    if findings.problems:
        return Claim(READY, False, "NotAccepted", f"{count} See the condition {ACCEPTED}.")
    if wukong.spec.run_strategy == "Halted":
        return Claim(READY, False, "Halted", "runStrategy is Halted: none is to run.")
    troubled = [vm for vm in vms if vm.reason and not vm.ready]
    if troubled:
        return Claim(READY, False, troubled[0].reason, f"{count} {troubled[0].name}: {troubled[0].message}")
    return Claim(READY, False, "NotReady", count)


def _claim_restart_required(wukong: Wukong, reports: list[MachineReport], restarting: str) -> Claim:
    restart = [report for report in reports if report.pending.is_restart_required]
    next_pod = [report for report in reports if report.pending.next_pod]
    if restart:
        parts = [_describe_restart(report) for report in restart[:MOST_NAMED]]
        parts += [f"and {len(restart) - MOST_NAMED} more"] if len(restart) > MOST_NAMED else []
        how = restarting or (
            "Restart them (virtctl restart NAME), or set restartPolicy: WhenSafe."
            if wukong.spec.restart_policy == "Never"
            else ""
        )
        return Claim(RESTART_REQUIRED, True, RESTART_REQUIRED, f"{'; '.join(parts)}. {how}".strip())
    if next_pod:
        names = name_some([report.machine.name for report in next_pod])
        paths = ", ".join(next_pod[0].pending.next_pod)
        text = f"{names}: {paths} changed: obeyed by the next pod. A live migration is enough. {restarting}"
        return Claim(RESTART_REQUIRED, False, "NextPod", text.strip())
    return Claim(RESTART_REQUIRED, False, "UpToDate", "All that runs is as it is asked for.")


def _describe_restart(report: MachineReport) -> str:
    paths = report.pending.restart[:MOST_NAMED]
    return f"{report.machine.name} waits for a restart" + (f" to take up {', '.join(paths)}" if paths else "")
