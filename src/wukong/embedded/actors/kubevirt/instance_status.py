"""What the status of a VirtualMachineInstance says, and statuses with another phase. Used by all actors here; pure."""

from __future__ import annotations

from wukong.api.kinds import PODS
from wukong.embedded.actors.kubevirt.conditions import has_status
from wukong.embedded.actors.pods import is_controlled_by
from wukong.embedded.store.documents import format_time, parse_time
from wukong.embedded.store.kubevirt.names import FINAL_PHASES
from wukong.embedded.world.objects import Pod, VirtualMachineInstance
from wukong.ports import Document
from wukong.state import State


def status_of(instance: VirtualMachineInstance) -> Document:
    status: Document = instance.document.get("status") or {}
    return status


def conditions_of(instance: VirtualMachineInstance) -> list[Document]:
    conditions: list[Document] = status_of(instance).get("conditions") or []
    return conditions


def migration_state_of(instance: VirtualMachineInstance) -> Document:
    """How its last migration stands; empty if it never migrated."""
    state: Document = status_of(instance).get("migrationState") or {}
    return state


def is_final(instance: VirtualMachineInstance) -> bool:
    return instance.status.phase in FINAL_PHASES


def is_unprocessed(instance: VirtualMachineInstance) -> bool:
    return instance.status.phase in ("", "Pending")


def is_migratable(instance: VirtualMachineInstance) -> bool:
    return has_status(conditions_of(instance), "LiveMigratable")


def is_migrating(instance: VirtualMachineInstance) -> bool:
    """Whether its memory is being copied."""
    state = migration_state_of(instance)
    return bool(state.get("startTimestamp")) and not state.get("endTimestamp")


def was_running(instance: VirtualMachineInstance) -> bool:
    """Whether it was ever in the phase Running."""
    times = status_of(instance).get("phaseTransitionTimestamps") or ()
    return instance.status.phase == "Running" or any(entry.get("phase") == "Running" for entry in times)


def with_phase(status: Document, phase: str, now: float) -> Document:
    """The status in another phase, with the time at which that began."""
    if status.get("phase") == phase:
        return status
    times = [entry for entry in status.get("phaseTransitionTimestamps") or () if entry.get("phase") != phase]
    entry = {"phase": phase, "phaseTransitionTimestamp": format_time(now)}
    return {**status, "phase": phase, "phaseTransitionTimestamps": [*times, entry]}


def list_pods(instance: VirtualMachineInstance, state: State) -> list[Pod]:
    """The virt-launcher pods of an instance, finished ones too. Sorted by key."""
    pods = [state.get(Pod, key) for key in state.owners.owned_by(instance.metadata.uid, PODS)]
    return [pod for pod in pods if pod is not None and is_controlled_by(pod, instance)]


def find_current_pod(instance: VirtualMachineInstance, state: State) -> Pod | None:
    """The youngest pod on the node of the instance, or of all its pods where it has no node yet."""
    node = instance.status.node_name
    pods = [pod for pod in list_pods(instance, state) if not node or pod.spec.node_name == node]
    return max(
        pods, key=lambda pod: (parse_time(pod.metadata.creation_timestamp or ""), not pod.is_finished), default=None
    )


def count_active_pods(instance: VirtualMachineInstance, state: State) -> int:
    return sum(not pod.is_finished for pod in list_pods(instance, state))


def is_going_down(pod: Pod) -> bool:
    """Whether the pod has ended, or is being deleted."""
    return pod.is_finished or pod.is_terminating


def is_up(pod: Pod) -> bool:
    """Whether its guest can be started: all containers run, and those but `compute` are ready (IsPodReady)."""
    if is_going_down(pod) or pod.status.phase != "Running":
        return False
    statuses = (pod.document.get("status") or {}).get("containerStatuses") or ()
    return all(
        "running" in (status.get("state") or {}) if status.get("name") == "compute" else status.get("ready")
        for status in statuses
    )
