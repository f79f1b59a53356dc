"""virt-controller's controller of VirtualMachineInstanceMigrations: a target pod, and the hand-over to virt-handlers.

    (none) ─► Pending ─► Scheduling ─► Scheduled ─► PreparingTarget ─► TargetReady ─► Running ─► Succeeded
                │ waits for a free place       └ target pod up: handed over to the handlers      └► Failed, from any
                └ target pod made

Follows pkg/virt-controller/watch/migration of KubeVirt 1.7: no more than 5 at a time in the cluster and 2 from a node;
those that wait look again after 5 s. A target pod that finds no node is given up after 5 minutes, one that does not
start for another reason after 15. A migration of the evacuation controller that follows failed ones waits 20 s, doubled
with each. Of finished ones the last five of an instance are kept. Not played: migrations between clusters, backend
storage, hotplugged volumes, priorities, migration policies.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, NamedTuple

from wukong.actions import DONE, Action, Create, Delete, Outcome, Patch
from wukong.api.kinds import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
    VIRTUAL_MACHINE_INSTANCES,
)
from wukong.api.meta import Object
from wukong.api.resources import Key, key_of
from wukong.embedded.actors.events import note_about
from wukong.embedded.actors.kubevirt import instance_status, virt_nodes
from wukong.embedded.actors.kubevirt.instance_status import is_up, migration_state_of
from wukong.embedded.actors.kubevirt.instances import find_claims
from wukong.embedded.actors.kubevirt.launcher_keys import of_launchers
from wukong.embedded.actors.kubevirt.launcher_pod import build_target_pod
from wukong.embedded.actors.kubevirt.migration_index import MigrationIndex
from wukong.embedded.actors.kubevirt.patches import patch_finalizers, patch_object, patch_status
from wukong.embedded.actors.pods import condition, delete_pod
from wukong.embedded.store.documents import format_time, meta_of, parse_time
from wukong.embedded.store.kubevirt import names
from wukong.embedded.world.objects import Node, Pod, VirtualMachineInstance, VirtualMachineInstanceMigration
from wukong.ports import Document
from wukong.state import Change, State
from wukong.state.controller import PodRight, Watch, no_keys

MOST_IN_CLUSTER, MOST_FROM_NODE = 5, 2
BUSY_SECONDS, EXPECTED_SECONDS = 5.0, 1.0
UNSCHEDULABLE_SECONDS, PENDING_SECONDS = 300.0, 900.0
FIRST_BACKOFF = 20.0
MOST_FINISHED = 5
_BEFORE_TARGET = ("", "Pending")
_BEFORE_HAND_OVER = ("", "Pending", "Scheduling", "Scheduled")


def _key_of_target(pod: Object, state: State) -> Iterable[Key]:
    """The migration whose target pod this is."""
    labels = pod.metadata.labels
    if names.MIGRATION_JOB_LABEL not in labels:
        return ()
    name = pod.metadata.annotations.get(names.MIGRATION_JOB_ANNOTATION)
    return (Key(pod.metadata.namespace, name),) if name else ()


def _keys_of_instance(change: Change, state: State) -> Iterable[Key]:
    """The migrations of an instance that changed."""
    return state.index_of(MigrationIndex).of_instance(change.key)


class Step(NamedTuple):
    """What is done for a migration before its status is written, and when to look again."""

    actions: tuple[Action, ...] = ()
    wait: float | None = None


class Migrations:
    name = "virt-migration"
    pod_rights: ClassVar[frozenset[PodRight]] = frozenset(
        {PodRight.CREATE_MIGRATION_TARGETS, PodRight.DELETE_MIGRATION_TARGETS}
    )
    watches = (
        Watch(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS),
        Watch(PODS, of_launchers(_key_of_target), is_secondary=True),
        Watch(VIRTUAL_MACHINE_INSTANCES, _keys_of_instance, is_secondary=True),
        Watch(NODES, no_keys),
        Watch(PERSISTENT_VOLUME_CLAIMS, no_keys),
    )

    def __init__(self) -> None:
        self._expected: dict[Key, str] = {}  # migrations whose target pod was asked for and not seen yet → their uid

    def copy_memory(self, source: Migrations, _: State) -> None:
        self._expected = dict(source._expected)

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        self._expected.pop(key, None)
        migration = state.get(VirtualMachineInstanceMigration, key)
        if migration is None:
            return DONE
        instance = state.get(VirtualMachineInstance, Key(key.namespace, migration.spec.vmi_name))
        if instance is None:
            return Outcome(tuple(_end_without_instance(key, migration)))
        target = _find_target(migration, instance, state)
        if migration.is_final:
            return Outcome(tuple(_clean_up(key, migration, instance, state)))
        step = self._sync(key, migration, instance, target, state, now)
        phase = _find_phase(migration, instance, target, state)
        status = _build_status(migration, instance, phase, state, now)
        report = patch_status(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, migration, status)
        notes = [
            note_about(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, migration, *note) for note in _describe(phase, migration)
        ]
        return Outcome((*step.actions, *report, *notes), step.wait)

    def _sync(
        self,
        key: Key,
        migration: VirtualMachineInstanceMigration,
        instance: VirtualMachineInstance,
        target: Pod | None,
        state: State,
        now: float,
    ) -> Step:
        if instance.metadata.deletion_timestamp is not None or not _may_migrate(migration, instance, state):
            return Step()
        phase, is_cancelled = migration.status.phase, migration.metadata.deletion_timestamp is not None
        if is_cancelled and phase in _BEFORE_HAND_OVER and not _is_handed_over(migration, instance):
            return Step((delete_pod(target),)) if target is not None and not target.is_terminating else Step()
        if phase == "Pending" and target is None:
            return self._create_target(key, migration, instance, state, now)
        if phase in ("Pending", "Scheduling") and target is not None:
            return _check_pending(target, now)
        if phase == "Scheduled" and target is not None and is_up(target):
            return Step(tuple(_hand_over(migration, instance, target, state)))
        if phase in ("PreparingTarget", "TargetReady") and _has_lost_target(migration, instance, target):
            return Step(tuple(_mark_failed(instance, now)))
        if phase == "Running" and is_cancelled and _is_handed_over(migration, instance):
            return Step(tuple(_request_abort(instance)))
        return Step()

    def _create_target(
        self,
        key: Key,
        migration: VirtualMachineInstanceMigration,
        instance: VirtualMachineInstance,
        state: State,
        now: float,
    ) -> Step:
        source = instance_status.find_current_pod(instance, state)
        if source is None or instance.status.phase != "Running":
            return Step()
        if (wait := _seconds_to_back_off(migration, state, now)) > 0:
            return Step(wait=wait)
        if self._expected or instance_status.count_active_pods(instance, state) > 1:
            return Step(wait=EXPECTED_SECONDS)
        running = _list_running(state)
        if len(running) >= MOST_IN_CLUSTER:
            return Step(wait=BUSY_SECONDS)
        if _count_from_node(instance.status.node_name, running, state) >= MOST_FROM_NODE:
            return Step(wait=BUSY_SECONDS)
        self._expected[key] = migration.metadata.uid
        node = state.get(Node, Key("", instance.status.node_name))
        body = build_target_pod(
            instance,
            migration,
            source,
            node.metadata.labels if node is not None else {},
            find_claims(instance, state),
            emulates=virt_nodes.emulates(state),
        )
        return Step((Create(PODS, body, instance.metadata.namespace),))


def _find_target(
    migration: VirtualMachineInstanceMigration, instance: VirtualMachineInstance, state: State
) -> Pod | None:
    uid = migration.metadata.uid
    pods = instance_status.list_pods(instance, state)
    return next((pod for pod in pods if pod.metadata.labels.get(names.MIGRATION_JOB_LABEL) == uid), None)


def _is_handed_over(migration: VirtualMachineInstanceMigration, instance: VirtualMachineInstance) -> bool:
    return migration_state_of(instance).get("migrationUid") == migration.metadata.uid


def _may_migrate(migration: VirtualMachineInstanceMigration, instance: VirtualMachineInstance, state: State) -> bool:
    """Whether no other migration of this instance is under way."""
    current = migration_state_of(instance).get("migrationUid")
    if not current or current == migration.metadata.uid:
        return True
    others = state.index_of(MigrationIndex).of_instance(key_of(instance))
    other = next(
        (
            found
            for key in others
            if (found := state.get(VirtualMachineInstanceMigration, key)) is not None and found.metadata.uid == current
        ),
        None,
    )
    return other is None or other.is_final


def _check_pending(target: Pod, now: float) -> Step:
    """Give up a target pod that has waited too long for a node, or to start."""
    if target.status.phase != "Pending" or target.is_terminating:
        return Step()
    age = int(now) - parse_time(target.metadata.creation_timestamp or "")
    scheduled = condition(target, "PodScheduled")
    is_unschedulable = scheduled is not None and scheduled.status == "False" and scheduled.reason == "Unschedulable"
    left = (UNSCHEDULABLE_SECONDS if is_unschedulable else PENDING_SECONDS) - age
    return Step(wait=left) if left > 0 else Step((delete_pod(target),))


def _hand_over(
    migration: VirtualMachineInstanceMigration, instance: VirtualMachineInstance, target: Pod, state: State
) -> list[Patch]:
    """Tell the virt-handlers, by the status of the instance, to where it migrates."""
    if _is_handed_over(migration, instance):
        return []
    node, source = target.spec.node_name, instance_status.find_current_pod(instance, state)
    progress = {
        "migrationUid": migration.metadata.uid,
        "sourceNode": instance.status.node_name,
        "sourcePod": source.metadata.name if source is not None else "",
        "targetNode": node,
        "targetPod": target.metadata.name,
    }
    labels = {**instance.metadata.labels, names.MIGRATION_TARGET_LABEL: node}
    meta = {**meta_of(instance.document), "labels": labels}
    status = {**instance_status.status_of(instance), "migrationState": progress}
    return patch_object(VIRTUAL_MACHINE_INSTANCES, instance, {**instance.document, "metadata": meta, "status": status})


def _has_lost_target(
    migration: VirtualMachineInstanceMigration, instance: VirtualMachineInstance, target: Pod | None
) -> bool:
    """Whether the target pod is gone before the handlers began to copy memory."""
    state = migration_state_of(instance)
    is_untouched = not state.get("startTimestamp") and not state.get("completed") and not state.get("targetNodeAddress")
    return _is_handed_over(migration, instance) and is_untouched and (target is None or target.is_finished)


def _mark_failed(instance: VirtualMachineInstance, now: float) -> list[Patch]:
    time = format_time(now)
    end = {"startTimestamp": time, "endTimestamp": time, "failed": True, "completed": True}
    return _patch_migration_state(instance, {**end, "failureReason": "Target pod is down"})


def _request_abort(instance: VirtualMachineInstance) -> list[Patch]:
    return _patch_migration_state(instance, {"abortRequested": True})


def _patch_migration_state(instance: VirtualMachineInstance, changes: Document) -> list[Patch]:
    state = {**migration_state_of(instance), **changes}
    status = {**instance_status.status_of(instance), "migrationState": state}
    return patch_object(VIRTUAL_MACHINE_INSTANCES, instance, {**instance.document, "status": status})


def _find_phase(
    migration: VirtualMachineInstanceMigration, instance: VirtualMachineInstance, target: Pod | None, state: State
) -> str:
    """The phase in which the migration is now."""
    phase, progress = migration.status.phase, migration_state_of(instance)
    is_ours = _is_handed_over(migration, instance)
    is_cancelled = migration.metadata.deletion_timestamp is not None
    if (
        instance_status.is_final(instance)
        or (is_cancelled and not is_ours)
        or (target is not None and target.is_finished and not (is_ours and progress.get("completed")))
        or (target is None and phase not in _BEFORE_TARGET)
        or (phase not in _BEFORE_HAND_OVER and not is_ours)
        or (is_ours and progress.get("failed"))
    ):
        return "Failed"
    if phase == "":
        return "Pending" if _may_migrate(migration, instance, state) else "Failed"
    if phase == "Pending":
        return "Scheduling" if target is not None else phase
    if phase == "Scheduling":
        return "Scheduled" if target is not None and is_up(target) else phase
    if phase == "Scheduled":
        return "PreparingTarget" if is_ours and progress.get("targetNode") else phase
    if phase == "PreparingTarget":
        return "TargetReady" if progress.get("targetNodeAddress") else phase
    if phase == "TargetReady":
        return "Running" if progress.get("startTimestamp") else phase
    return "Succeeded" if progress.get("completed") else phase


def _build_status(
    migration: VirtualMachineInstanceMigration, instance: VirtualMachineInstance, phase: str, state: State, now: float
) -> Document:
    before: Document = migration.document.get("status") or {}
    status: Document = {**before, "phase": phase}
    if phase != before.get("phase"):
        entry = {"phase": phase, "phaseTransitionTimestamp": format_time(now)}
        status["phaseTransitionTimestamps"] = [*(before.get("phaseTransitionTimestamps") or ()), entry]
    if phase in names.FINAL_PHASES and _is_handed_over(migration, instance):
        status["migrationState"] = migration_state_of(instance)
    elif "migrationState" not in before:
        source = instance_status.find_current_pod(instance, state)
        status["migrationState"] = {"sourcePod": source.metadata.name if source is not None else ""}
    return status


def _describe(phase: str, migration: VirtualMachineInstanceMigration) -> list[tuple[str, str]]:
    """The Event of a phase that has just begun."""
    if phase == migration.status.phase:
        return []
    texts = {
        "Succeeded": ("SuccessfulMigration", "Source node reported migration succeeded"),
        "Failed": ("FailedMigration", "source node reported migration failed"),
        "PreparingTarget": ("SuccessfulHandOver", "Migration target pod is ready for preparation by virt-handler."),
    }
    return [texts[phase]] if phase in texts else []


def _seconds_to_back_off(migration: VirtualMachineInstanceMigration, state: State, now: float) -> float:
    """How long a migration of the evacuation controller waits because those before it failed."""
    if names.EVACUATION_ANNOTATION not in migration.metadata.annotations:
        return 0.0
    key = Key(migration.metadata.namespace, migration.spec.vmi_name)
    others = _list_by_age(key, state)
    others = [other for other in others if names.EVACUATION_ANNOTATION in other.metadata.annotations]
    if len(others) < 2 or others[-1].metadata.uid != migration.metadata.uid:
        return 0.0
    backoff = 0.0
    for other in reversed(others[:-1]):
        if other.status.phase == "Succeeded":
            break
        if other.status.phase == "Failed" and other.metadata.deletion_timestamp is None:
            backoff = backoff * 2 or FIRST_BACKOFF
    times = (others[-2].document.get("status") or {}).get("phaseTransitionTimestamps") or ()
    failed_at = next((entry["phaseTransitionTimestamp"] for entry in times if entry.get("phase") == "Failed"), "")
    return max(0.0, parse_time(failed_at) + backoff - now) if backoff else 0.0


def _list_by_age(key: Key, state: State) -> list[VirtualMachineInstanceMigration]:
    """The migrations of an instance, oldest first; of one second, in the order of their names."""
    found = [
        state.get(VirtualMachineInstanceMigration, each) for each in state.index_of(MigrationIndex).of_instance(key)
    ]
    migrations = [migration for migration in found if migration is not None]
    return sorted(
        migrations, key=lambda migration: (migration.metadata.creation_timestamp or "", migration.metadata.name)
    )


def _list_running(state: State) -> list[VirtualMachineInstanceMigration]:
    """Those that count against the limits: they run, or wait and have a target pod already."""
    return [
        migration
        for migration in state.index_of(MigrationIndex).list_unfinished(state)
        if migration.status.phase not in _BEFORE_TARGET or _has_target(migration, state)
    ]


def _has_target(migration: VirtualMachineInstanceMigration, state: State) -> bool:
    instance = state.get(VirtualMachineInstance, Key(migration.metadata.namespace, migration.spec.vmi_name))
    return instance is not None and _find_target(migration, instance, state) is not None


def _count_from_node(node: str, running: list[VirtualMachineInstanceMigration], state: State) -> int:
    count = 0
    for migration in running:
        instance = state.get(VirtualMachineInstance, Key(migration.metadata.namespace, migration.spec.vmi_name))
        if instance is not None:
            count += node in (instance.status.node_name, migration_state_of(instance).get("sourceNode"))
    return count


def _clean_up(
    key: Key, migration: VirtualMachineInstanceMigration, instance: VirtualMachineInstance, state: State
) -> list[Action]:
    """Let a finished migration go, and delete the oldest finished ones of its instance."""
    actions: list[Action] = []
    status = {**(migration.document.get("status") or {})}
    if _is_handed_over(migration, instance):
        status["migrationState"] = migration_state_of(instance)
        actions += patch_status(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, migration, status)
    finalizers: list[str] = migration.document["metadata"].get("finalizers") or []
    if names.MIGRATION_FINALIZER in finalizers and not actions:  # else with the next look, at the version then
        rest = [name for name in finalizers if name != names.MIGRATION_FINALIZER]
        actions.append(patch_finalizers(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, migration, rest))
    finished = [
        other
        for other in _list_by_age(Key(key.namespace, instance.metadata.name), state)
        if other.is_final and other.metadata.deletion_timestamp is None
    ]
    actions += [
        Delete(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, key_of(other), uid=other.metadata.uid)
        for other in finished[: max(0, len(finished) - MOST_FINISHED)]
    ]
    return actions


def _end_without_instance(key: Key, migration: VirtualMachineInstanceMigration) -> list[Action]:
    """Delete the migration of an instance that is gone."""
    finalizers: list[str] = migration.document["metadata"].get("finalizers") or []
    actions: list[Action] = []
    if names.MIGRATION_FINALIZER in finalizers:
        rest = [name for name in finalizers if name != names.MIGRATION_FINALIZER]
        actions.append(patch_finalizers(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, migration, rest))
    if migration.metadata.deletion_timestamp is None:
        actions.append(Delete(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, key, uid=migration.metadata.uid))
    return actions
