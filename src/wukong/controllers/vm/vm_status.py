"""How one virtual machine stands, for the Wukong's status: phase, node, and if something is wrong, what. Pure.

What is wrong is looked for where it is known best: the pod (the scheduler's own words), then the instance, then the
VirtualMachine. A pod that nobody tries to schedule shows only by time: after SCHEDULER_SECONDS without a word.
"""

from __future__ import annotations

from typing import NamedTuple

from wukong.api.core import Pod, PodCondition
from wukong.api.kubevirt import VirtualMachineCondition, VirtualMachineInstance, find_condition
from wukong.api.times import parse_time
from wukong.api.vm import VmStatus
from wukong.controllers.conditions import cut
from wukong.controllers.vm.machines import Machine, is_leaving
from wukong.controllers.vm.pending_changes import PendingChanges
from wukong.controllers.vm.vm_writes import describe_owner

SCHEDULER_SECONDS = 30.0
DEFAULT_SCHEDULER = "default-scheduler"
LONGEST_MESSAGE = 1024
NAME_TAKEN, UNSCHEDULABLE, SCHEDULER_MISSING = "NameTaken", "Unschedulable", "SchedulerMissing"
MIGRATION_WAITS = "MigrationTargetUnschedulable"
NOT_PLACED = (UNSCHEDULABLE, SCHEDULER_MISSING, "SchedulingGated")
# Words of KubeVirt's printableStatus that say that something is wrong.
_TROUBLE = ("CrashLoopBackOff", "Unknown", "ErrImagePull", "ImagePullBackOff", "DataVolumeError", "ErrorPvcNotFound")


class Trouble(NamedTuple):
    """What is wrong, if anything; `again_after` is when it may turn out that something is."""

    reason: str = ""
    message: str = ""
    again_after: float | None = None


def find_trouble(machine: Machine, now: float) -> Trouble:
    """What keeps this virtual machine from running, or from moving."""
    if machine.vm is None:
        return Trouble()
    if not machine.is_owned:
        owner = describe_owner(machine.vm)
        return Trouble(
            NAME_TAKEN,
            f"A VirtualMachine {machine.name} is there that belongs to {owner}; it is left alone. "
            "Delete it, or give this Wukong another name.",
        )
    if is_leaving(machine.vm):
        return Trouble("Deleting", "It is being deleted; its name must be free before it can be created again.")
    pod = machine.waiting_pod
    trouble = find_pod_trouble(pod, now) if pod is not None else Trouble()
    if pod is not None and trouble.reason and machine.running_pod is not None:
        message = f"It runs, but the target of its migration has no node: {trouble.message}"
        return Trouble(MIGRATION_WAITS, message, trouble.again_after)
    if trouble.reason or trouble.again_after is not None:
        return trouble
    return _find_instance_trouble(machine.instance) or _find_vm_trouble(machine)


def find_pod_trouble(pod: Pod, now: float) -> Trouble:
    """Why a pod without a node has none, in the scheduler's words, or that no scheduler has said a word."""
    scheduled = next((condition for condition in pod.status.conditions if condition.type == "PodScheduled"), None)
    if scheduled is not None:
        return _describe_refusal(scheduled)
    created_at = parse_time(pod.metadata.creation_timestamp)
    waited = now - created_at if created_at is not None else SCHEDULER_SECONDS
    if waited < SCHEDULER_SECONDS:
        return Trouble(again_after=SCHEDULER_SECONDS - max(waited, 0.0))
    name = pod.spec.scheduler_name or DEFAULT_SCHEDULER
    return Trouble(
        SCHEDULER_MISSING,
        f"No scheduler has looked at pod {pod.metadata.name} for {SCHEDULER_SECONDS:.0f} s: nobody serves the "
        f'schedulerName "{name}". Run such a scheduler, or change scheduling.schedulingPolicy.schedulerName.',
    )


def _describe_refusal(scheduled: PodCondition) -> Trouble:
    if scheduled.status != "False":
        return Trouble()
    return Trouble(scheduled.reason or UNSCHEDULABLE, scheduled.message)


def _find_instance_trouble(instance: VirtualMachineInstance | None) -> Trouble | None:
    """KubeVirt could not make the pod, or not keep it in step: the instance says why."""
    if instance is None:
        return None
    synchronized = find_condition(instance.status.conditions, "Synchronized")
    if synchronized is not None and synchronized.status == "False":
        return Trouble(synchronized.reason or "NotSynchronized", synchronized.message)
    return None


def _find_vm_trouble(machine: Machine) -> Trouble:
    assert machine.vm is not None
    status = machine.vm.status
    failure = find_condition(status.conditions, "Failure")
    if failure is not None and failure.status == "True":
        return Trouble(failure.reason or "Failure", failure.message)
    if status.printable_status in _TROUBLE or status.printable_status.startswith("Error"):
        ready = find_condition(status.conditions, "Ready")
        return Trouble(status.printable_status, ready.message if ready is not None else "")
    return Trouble()


def build_vm_status(machine: Machine, trouble: Trouble, pending: PendingChanges) -> VmStatus:
    vm = machine.vm if machine.is_owned else None
    return VmStatus(
        name=machine.name,
        phase=vm.status.printable_status if vm is not None else "",
        node=machine.node,
        ready=machine.is_ready,
        migratable=_is_migratable(machine),
        restart_required=pending.is_restart_required,
        reason=cut(trouble.reason, 128),
        message=cut(trouble.message, LONGEST_MESSAGE),
    )


def _is_migratable(machine: Machine) -> bool | None:
    """What KubeVirt says; None while it says nothing."""
    condition: VirtualMachineCondition | None = None
    if machine.instance is not None and not machine.instance.is_final:
        condition = find_condition(machine.instance.status.conditions, "LiveMigratable")
    return None if condition is None else condition.status == "True"
