"""The status of a VirtualMachine as virt-controller writes it: a word for people, conditions, failures to start; pure.

Follows updateStatus of pkg/virt-controller/watch/vm/vm.go, KubeVirt 1.7. Data volumes are not played, and whether
claims are bound is not known, so the words Provisioning, DataVolumeError and WaitingForVolumeBinding do not occur.
"""

from __future__ import annotations

from typing import NamedTuple

from wukong.embedded.actors.kubevirt import instance_status
from wukong.embedded.actors.kubevirt.conditions import (
    copy_condition,
    find_condition,
    has_status,
    remove_condition,
    set_condition,
)
from wukong.embedded.actors.kubevirt.live_update import RESTART_MESSAGE, is_unchanged
from wukong.embedded.store.documents import format_time, meta_of, parse_time
from wukong.embedded.store.kubevirt import names
from wukong.embedded.world.objects import VirtualMachine, VirtualMachineInstance
from wukong.ports import Document

_OWN_CONDITIONS = ("Ready", "Failure", "RestartRequired")  # of the machine; all others are its instance's
_RESTARTED = ("Always", "RerunOnFailure", "Once")  # strategies with which failures to start count
_MOST_DELAY, _INTERVAL = 300, 10


class Sync(NamedTuple):
    """What was decided about a machine in one look at it."""

    is_starting: bool = False  # its instance is being created
    is_stopping: bool = False  # its instance is being deleted
    failure: str = ""  # why its instance could not be created
    needs_restart: bool = False


def build_status(
    machine: VirtualMachine, instance: VirtualMachineInstance | None, sync: Sync, now: float, chance: float
) -> Document:
    before: Document = machine.document.get("status") or {}
    status: Document = {**before, "created": instance is not None}
    conditions = instance_status.conditions_of(instance) if instance is not None else []
    status["ready"] = has_status(conditions, "Ready")
    if before.get("runStrategy") or instance is not None:
        status["runStrategy"] = run_strategy_of(machine)
    if instance is not None:
        status |= _build_generations(machine, instance)
    requests = _trim_requests(before.get("stateChangeRequests") or [], instance)
    status["stateChangeRequests"] = requests
    status["startFailure"] = _count_start_failures(machine, before.get("startFailure"), instance, now, chance)
    status["conditions"] = _build_conditions(before.get("conditions") or [], instance, sync, now)
    status = {name: value for name, value in status.items() if value not in (None, [])}
    return {**status, "printableStatus": _find_word(machine, instance, status, sync)}


def run_strategy_of(machine: VirtualMachine) -> str:
    spec = machine.spec
    running = "Always" if spec.get("running") else "Halted"
    return str(spec.get("runStrategy") or running)


def has_start_request(machine: VirtualMachine) -> bool:
    requests = (machine.document.get("status") or {}).get("stateChangeRequests") or []
    return bool(requests) and requests[0].get("action") == "Start"


def has_stop_request(machine: VirtualMachine, instance: VirtualMachineInstance) -> bool:
    requests = (machine.document.get("status") or {}).get("stateChangeRequests") or []
    return bool(requests) and requests[0].get("action") == "Stop" and requests[0].get("uid") == instance.metadata.uid


def seconds_until_start(machine: VirtualMachine, now: float) -> float:
    """How long the machine is left alone because its instances failed before they ran."""
    failure = (machine.document.get("status") or {}).get("startFailure") or {}
    retry_at = failure.get("retryAfterTimestamp")
    return max(0.0, parse_time(retry_at) - now) if retry_at else 0.0


def _build_generations(machine: VirtualMachine, instance: VirtualMachineInstance) -> Document:
    annotations = meta_of(instance.document).get("annotations") or {}
    started = annotations.get(names.GENERATION_ANNOTATION) or ""
    generation = machine.metadata.generation
    is_current = is_unchanged(machine.spec.get("template") or {}, instance.document)
    observed = generation if is_current or not started.isdigit() else int(started)
    return {"observedGeneration": observed, "desiredGeneration": generation}


def _trim_requests(requests: list[Document], instance: VirtualMachineInstance | None) -> list[Document]:
    """Without the first request once it has been met."""
    if not requests:
        return requests
    action, uid = requests[0].get("action"), requests[0].get("uid")
    if action == "Stop":
        is_met = instance is None or uid != instance.metadata.uid
    else:
        is_met = (
            instance is not None
            and instance.metadata.deletion_timestamp is None
            and not instance_status.is_final(instance)
        )
    return requests[1:] if is_met else requests


def _count_start_failures(
    machine: VirtualMachine, before: Document | None, instance: VirtualMachineInstance | None, now: float, chance: float
) -> Document | None:
    """Failures in a row of instances that never ran. The pause grows with their square, ten seconds at first."""
    if run_strategy_of(machine) not in _RESTARTED or (instance is not None and instance_status.was_running(instance)):
        return None
    if instance is None or not instance_status.is_final(instance):
        return before
    if before is not None and before.get("lastFailedVMIUID") == instance.metadata.uid:
        return before
    count: int = (before or {}).get("consecutiveFailCount", 0) + 1
    delay = _INTERVAL * count**2
    delay = min(_MOST_DELAY, delay + int(chance * (delay // 2 + 1)))
    return {
        "consecutiveFailCount": count,
        "lastFailedVMIUID": instance.metadata.uid,
        "retryAfterTimestamp": format_time(now + delay),
    }


def _build_conditions(
    before: list[Document], instance: VirtualMachineInstance | None, sync: Sync, now: float
) -> list[Document]:
    theirs = instance_status.conditions_of(instance) if instance is not None else []
    conditions = _copy_ready(before, instance, theirs, now)
    if sync.failure:
        conditions = set_condition(conditions, "Failure", "True", now, reason="FailedCreate", message=sync.failure)
    else:
        conditions = remove_condition(conditions, "Failure")
    if sync.is_starting or sync.is_stopping:
        conditions = remove_condition(conditions, "RestartRequired")
    elif sync.needs_restart:
        conditions = set_condition(conditions, "RestartRequired", "True", now, message=RESTART_MESSAGE)
    if instance is None:
        return conditions
    for condition in theirs:
        if condition["type"] not in _OWN_CONDITIONS:
            conditions = copy_condition(conditions, condition)
    kept = {*_OWN_CONDITIONS, *(condition["type"] for condition in theirs)}
    return [condition for condition in conditions if condition["type"] in kept]


def _copy_ready(
    before: list[Document], instance: VirtualMachineInstance | None, theirs: list[Document], now: float
) -> list[Document]:
    ready = find_condition(theirs, "Ready")
    if instance is None:
        return set_condition(before, "Ready", "False", now, reason="VMINotExists", message="VMI does not exist")
    if ready is None:
        message = "VMI is missing the Ready condition"
        return set_condition(before, "Ready", "False", now, reason="VMIConditionMissing", message=message)
    return copy_condition(before, ready)


def _find_word(machine: VirtualMachine, instance: VirtualMachineInstance | None, status: Document, sync: Sync) -> str:
    if machine.metadata.deletion_timestamp is not None:
        return "Terminating"
    if instance is not None and (word := _find_word_of_instance(instance, sync)):
        return word
    if instance is None and sync.is_starting:
        return "Starting"
    is_failing = (status.get("startFailure") or {}).get("consecutiveFailCount", 0) > 0
    if is_failing and run_strategy_of(machine) in _RESTARTED:
        return "CrashLoopBackOff"
    return "Stopped"


def _find_word_of_instance(instance: VirtualMachineInstance, sync: Sync) -> str:
    """The word that an instance calls for; none for one that has ended."""
    conditions, phase = instance_status.conditions_of(instance), instance.status.phase
    is_final = instance_status.is_final(instance)
    if not is_final and (instance.metadata.deletion_timestamp is not None or sync.is_stopping):
        return "Stopping"
    if instance_status.is_migrating(instance):
        return "Migrating"
    if phase == "Running":
        return "Paused" if has_status(conditions, "Paused") else "Running"
    if has_status(conditions, "Synchronized", "False", "FailedPvcNotFound"):
        return "ErrorPvcNotFound"
    if has_status(conditions, "PodScheduled", "False", "Unschedulable"):
        return "ErrorUnschedulable"
    for reason in ("ErrImagePull", "ImagePullBackOff"):
        if has_status(conditions, "Synchronized", "False", reason):
            return reason
    return "" if is_final else "Starting"
