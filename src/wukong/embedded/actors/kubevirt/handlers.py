"""The virt-handlers of all nodes as one actor, with hollow guests: its keys are VirtualMachineInstances.

    Scheduled ──boot-seconds──► Running ──its pod has ended──► Succeeded | Failed

    migration, once virt-controller has handed it over:
    target prepared ──► memory is copied, by the guest's size ──► the instance is on the target, the source pod ends
                                      └──► or it fails: too slow, aborted, or the target pod is gone

A node whose kubelet is silent has a silent virt-handler, too. What it remembers (since when a guest boots, since when
it migrates) may be lost: then times of the status are used, which are whole seconds.
"""

from __future__ import annotations

from collections.abc import Iterable

from wukong.actions import DONE, Outcome, Patch
from wukong.api import core
from wukong.api.kinds import NODES, PERSISTENT_VOLUME_CLAIMS, PODS, VIRTUAL_MACHINE_INSTANCES
from wukong.api.resources import Key, key_of
from wukong.embedded.actors.kubelet import pod_status
from wukong.embedded.actors.kubelet.behaviour import Stage
from wukong.embedded.actors.kubelet.controller import address_of, is_silent
from wukong.embedded.actors.kubevirt import instance_status
from wukong.embedded.actors.kubevirt.conditions import set_condition
from wukong.embedded.actors.kubevirt.guest_behaviour import (
    migration_seconds,
    most_migration_seconds,
    read_behaviour,
)
from wukong.embedded.actors.kubevirt.instance_status import is_going_down, is_up, migration_state_of, with_phase
from wukong.embedded.actors.kubevirt.instances import keys_of_claim
from wukong.embedded.actors.kubevirt.launcher_keys import is_launcher, key_of_instance, keys_of_launchers
from wukong.embedded.actors.kubevirt.launcher_resources import count_guest_bytes
from wukong.embedded.actors.kubevirt.migratable import find_obstacle
from wukong.embedded.actors.kubevirt.patches import HANDLER, patch_object
from wukong.embedded.store.documents import format_time, meta_of, parse_time, value_at
from wukong.embedded.store.kubevirt import names
from wukong.embedded.world.clock import Chance
from wukong.embedded.world.objects import Node, Pod, VirtualMachineInstance
from wukong.ports import Document, PatchBody
from wukong.state import Change, State
from wukong.state.controller import Watch

_ENDED, _BROKEN = Stage("Succeeded", exit_code=0), Stage("Failed", exit_code=1)
_MIGRATION_PORTS = {"49152": 49152, "49153": 49153}


def _keys_on_heard_node(change: Change, state: State) -> Iterable[Key]:
    """The instances with pods on a node that is heard of again, or no longer."""
    old, new = change.old, change.new
    if not state.of(VirtualMachineInstance):
        return ()
    if isinstance(old, Node) and isinstance(new, Node) and is_silent(old) == is_silent(new):
        return ()
    launchers = filter(is_launcher, state.pods_on(change.key.name))
    return [key for pod in launchers for key in key_of_instance(pod, state)]


class VirtHandlers:
    name = "virt-handler"
    watches = (
        Watch(VIRTUAL_MACHINE_INSTANCES),
        Watch(PODS, keys_of_launchers, is_secondary=True),
        Watch(NODES, _keys_on_heard_node, is_secondary=True),
        Watch(PERSISTENT_VOLUME_CLAIMS, keys_of_claim, is_secondary=True),
    )

    def __init__(self, chance: Chance | None = None) -> None:
        self._chance = chance or Chance()
        self._booting_since: dict[str, float] = {}  # uid of an instance → when its guest was started
        self._migrating_since: dict[str, float] = {}  # uid of a migration → when it began to copy memory

    def copy_memory(self, source: VirtHandlers, _: State) -> None:
        self._booting_since, self._migrating_since = dict(source._booting_since), dict(source._migrating_since)

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        instance = state.get(VirtualMachineInstance, key)
        if instance is None:
            self._forget_gone(state)
            return DONE
        if instance.status.phase not in ("Scheduled", "Running"):
            self._booting_since.pop(instance.metadata.uid, None)
            return DONE
        if patches := _prepare_target(instance, state):
            return Outcome(tuple(patches))
        pod = instance_status.find_current_pod(instance, state)
        if pod is None or not _is_heard_of(instance.status.node_name, state):
            return DONE
        if pod.is_finished or (instance.metadata.deletion_timestamp is not None and pod.is_terminating):
            return Outcome(tuple(_end(instance, pod, now)))
        if instance.status.phase == "Scheduled":
            return self._boot(instance, pod, state, now)
        return self._run(instance, pod, state, now)

    def _forget_gone(self, state: State) -> None:
        for times in (self._booting_since, self._migrating_since):
            if len(times) > 100 + 2 * len(state.of(VirtualMachineInstance)):
                times.clear()

    def _boot(self, instance: VirtualMachineInstance, pod: Pod, state: State, now: float) -> Outcome:
        if not is_up(pod):
            return DONE
        since = self._booting_since.setdefault(instance.metadata.uid, now)
        left = since + read_behaviour(instance.metadata.annotations).boot_seconds - now
        if left > 1e-6:
            return Outcome(requeue_after=left)
        self._booting_since.pop(instance.metadata.uid, None)
        status = {**with_phase(instance_status.status_of(instance), "Running", now), "selinuxContext": "none"}
        status["conditions"] = _set_migratable(instance, state, now)
        return Outcome(tuple(_patch(instance, status)))

    def _run(self, instance: VirtualMachineInstance, pod: Pod, state: State, now: float) -> Outcome:
        patches = _end_migrated_pods(instance, state, now)
        status = {**instance_status.status_of(instance), "conditions": _set_migratable(instance, state, now)}
        migration = migration_state_of(instance)
        if not migration.get("targetNodeAddress") or migration.get("completed"):
            return Outcome((*patches, *_patch(instance, status)))
        uid = migration.get("migrationUid") or ""
        if not migration.get("startTimestamp"):
            self._migrating_since[uid] = now
            status["migrationState"] = {**migration, "startTimestamp": format_time(now)}
            return Outcome((*patches, *_patch(instance, status)))
        if problem := _find_target_problem(instance, migration, state):
            return Outcome((*patches, *_fail_migration(instance, status, problem, now)))
        left, problem = self._seconds_to_migrate(instance, migration, now)
        if left > 1e-6:
            return Outcome((*patches, *_patch(instance, status)), requeue_after=left)
        if problem:
            return Outcome((*patches, *_fail_migration(instance, status, problem, now)))
        self._migrating_since.pop(uid, None)
        return Outcome((*patches, *_switch_over(instance, status, now)))

    def _seconds_to_migrate(
        self, instance: VirtualMachineInstance, migration: Document, now: float
    ) -> tuple[float, str]:
        """How long the memory is still being copied, and why that does not end well, if it does not."""
        behaviour = read_behaviour(instance.metadata.annotations)
        guest_bytes = count_guest_bytes(instance.spec.get("domain") or {})
        seconds, most = migration_seconds(behaviour, guest_bytes), most_migration_seconds(guest_bytes)
        started = parse_time(migration["startTimestamp"])
        since = self._migrating_since.setdefault(migration.get("migrationUid") or "", started)
        share = self._chance.share(migration.get("migrationUid"))
        fails = behaviour.migration_fails or share < behaviour.migration_failure_share
        if migration.get("abortRequested"):
            return 0.0, "Live migration has been aborted"
        if seconds > most:
            return since + most - now, f"Live migration is not completed after {most:.0f} seconds and has been aborted"
        return since + seconds - now, "hollow migration is to fail" if fails else ""


def _patch(instance: VirtualMachineInstance, status: Document, **meta: Document) -> list[Patch]:
    document = {**instance.document, "status": status, "metadata": {**meta_of(instance.document), **meta}}
    return patch_object(VIRTUAL_MACHINE_INSTANCES, instance, document, HANDLER)


def _is_heard_of(name: str, state: State) -> bool:
    node = state.get(Node, Key("", name))
    return node is not None and not is_silent(node)


def _set_migratable(instance: VirtualMachineInstance, state: State, now: float) -> list[Document]:
    namespace = instance.metadata.namespace

    def access_modes_of(name: str) -> list[str] | None:
        claim = state.get(core.PersistentVolumeClaim, Key(namespace, name))
        return claim.spec.access_modes if claim is not None else None

    obstacle = find_obstacle(instance.spec, instance.metadata.annotations, access_modes_of)
    conditions = instance_status.conditions_of(instance)
    if obstacle is None:
        conditions = set_condition(conditions, "LiveMigratable", "True", now)
    else:
        reason, message = obstacle
        conditions = set_condition(conditions, "LiveMigratable", "False", now, reason=reason, message=message)
    return set_condition(conditions, "StorageLiveMigratable", "True", now)


def _end(instance: VirtualMachineInstance, pod: Pod, now: float) -> list[Patch]:
    """The guest is off: by itself, or because the instance is being deleted."""
    phase = "Failed" if pod.status.phase == "Failed" else "Succeeded"
    return _patch(instance, with_phase(instance_status.status_of(instance), phase, now))


def _prepare_target(instance: VirtualMachineInstance, state: State) -> list[Patch]:
    """What the virt-handler of the target node does once virt-controller has handed a migration over."""
    migration = migration_state_of(instance)
    target = migration.get("targetNode")
    if not target or migration.get("targetNodeAddress") or migration.get("completed"):
        return []
    pod = _find_target_pod(instance, migration, state)
    if pod is None or not is_up(pod) or not _is_heard_of(target, state):
        return []
    ready = {"targetNodeAddress": address_of(target), "targetDirectMigrationNodePorts": _MIGRATION_PORTS}
    status = {**instance_status.status_of(instance), "migrationState": {**migration, **ready}}
    return _patch(instance, status)


def _find_target_pod(instance: VirtualMachineInstance, migration: Document, state: State) -> Pod | None:
    return state.get(Pod, Key(instance.metadata.namespace, migration.get("targetPod") or ""))


def _find_target_problem(instance: VirtualMachineInstance, migration: Document, state: State) -> str:
    pod = _find_target_pod(instance, migration, state)
    return "Target pod is down" if pod is None or is_going_down(pod) else ""


def _fail_migration(instance: VirtualMachineInstance, status: Document, reason: str, now: float) -> list[Patch]:
    end = {"endTimestamp": format_time(now), "completed": True, "failed": True, "failureReason": reason}
    status = {**status, "migrationState": {**migration_state_of(instance), **end}}
    return _patch(instance, status, labels=_without_target(instance))


def _switch_over(instance: VirtualMachineInstance, status: Document, now: float) -> list[Patch]:
    """The guest runs on the target node now."""
    migration, time = migration_state_of(instance), format_time(now)
    end = {"endTimestamp": time, "targetNodeDomainReadyTimestamp": time, "targetNodeDomainDetected": True}
    status = {name: value for name, value in status.items() if name != "evacuationNodeName"}
    status |= {"migrationState": {**migration, **end, "completed": True}, "nodeName": migration["targetNode"]}
    labels = {**_without_target(instance), names.NODE_NAME_LABEL: migration["targetNode"]}
    return _patch(instance, status, labels=labels)


def _without_target(instance: VirtualMachineInstance) -> dict[str, str]:
    labels = instance.metadata.labels
    return {key: value for key, value in labels.items() if key != names.MIGRATION_TARGET_LABEL}


def _end_migrated_pods(instance: VirtualMachineInstance, state: State, now: float) -> list[Patch]:
    """End the pod that a migration has left: the source's, or the target's if it failed. Its containers exit."""
    migration = migration_state_of(instance)
    if not migration.get("completed"):
        return []
    has_failed = bool(migration.get("failed"))
    name = migration.get("targetPod" if has_failed else "sourcePod") or ""
    pod = state.get(Pod, Key(instance.metadata.namespace, name))
    if pod is None or is_going_down(pod) or not _is_heard_of(pod.spec.node_name, state):
        return []
    return [_patch_pod(pod, _BROKEN if has_failed else _ENDED, now)]


def _patch_pod(pod: Pod, stage: Stage, now: float) -> Patch:
    host = address_of(pod.spec.node_name)
    address = value_at(pod.document, "status.podIP") or host
    body = pod_status.build_patch(pod.document, stage, now, pod_address=address, host_address=host)
    return Patch(PODS, key_of(pod), PatchBody("strategic", body, manager="kubelet"), "status")
