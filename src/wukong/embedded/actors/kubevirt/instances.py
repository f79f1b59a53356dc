"""virt-controller's controller of VirtualMachineInstances: makes their virt-launcher pods, and follows these.

    Pending ──pod made──► Scheduling ──pod up──► Scheduled ──(virt-handler)──► Running ──► Succeeded | Failed
                              └──────────────pod gone, or going──────────────────┴───────────────► Failed

Follows pkg/virt-controller/watch/vmi of KubeVirt 1.7. From Scheduled on the instance belongs to virt-handler
(handlers.py); this controller only notes its pods and conditions, and that it has failed when its pod is gone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, NamedTuple

from wukong.actions import DONE, Action, Create, Outcome, Patch
from wukong.api import core
from wukong.api.kinds import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
    VIRTUAL_MACHINE_INSTANCES,
    VIRTUAL_MACHINES,
)
from wukong.api.meta import controller_of
from wukong.api.resources import Key, key_of
from wukong.embedded.actors.events import note_about
from wukong.embedded.actors.kubevirt import instance_status, virt_nodes
from wukong.embedded.actors.kubevirt.conditions import remove_condition, set_condition
from wukong.embedded.actors.kubevirt.expectations import Expectations
from wukong.embedded.actors.kubevirt.instance_status import is_going_down, is_up, with_phase
from wukong.embedded.actors.kubevirt.launcher_keys import keys_of_launchers, launcher_label
from wukong.embedded.actors.kubevirt.launcher_pod import build_launcher_pod
from wukong.embedded.actors.kubevirt.launcher_resources import list_claims
from wukong.embedded.actors.kubevirt.patches import CONTROLLER, patch_object
from wukong.embedded.actors.kubevirt.unseen_pods import UnseenPods
from wukong.embedded.actors.pods import condition, delete_pod
from wukong.embedded.actors.watch_keys import controller_key
from wukong.embedded.store.documents import condition_of, meta_of, with_condition
from wukong.embedded.store.kubevirt import names
from wukong.embedded.world.objects import Pod, VirtualMachine, VirtualMachineInstance, VirtualMachineInstanceMigration
from wukong.ports import Document, PatchBody
from wukong.state import Change, State
from wukong.state.controller import KeysByTrait, PodRight, Watch, no_keys

_PENDING_MIGRATION = ("", "Pending", "Succeeded", "Failed")  # phases in which none is under way
_PULL_ERRORS = ("ErrImagePull", "ImagePullBackOff")


def keys_of_claim(change: Change, state: State) -> Iterable[Key]:
    """The instances that use a volume claim."""
    instances = state.of(VirtualMachineInstance)
    if not instances:
        return ()
    return [
        key
        for key, instance in sorted(instances.items())
        if key.namespace == change.key.namespace
        and isinstance(instance, VirtualMachineInstance)
        and any(claim == change.key.name for _, claim in list_claims(instance.spec))
    ]


class Problem(NamedTuple):
    """Why an instance is not as it should be: the condition Synchronized says so."""

    reason: str = ""
    message: str = ""


NO_PROBLEM = Problem()


class Instances:
    name = "virt-vmi"
    pod_rights: ClassVar[frozenset[PodRight]] = frozenset({PodRight.CREATE_LAUNCHERS, PodRight.DELETE_LAUNCHERS})

    def __init__(self) -> None:
        self.watches = (
            Watch(VIRTUAL_MACHINE_INSTANCES, self._find_own_key),
            Watch(PODS, KeysByTrait(launcher_label, names.LAUNCHER, self._find_keys), is_secondary=True),
            Watch(PERSISTENT_VOLUME_CLAIMS, keys_of_claim, is_secondary=True),
            Watch(VIRTUAL_MACHINES, no_keys),
            Watch(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, no_keys),
            Watch(NODES, no_keys),
        )
        self._expectations = Expectations()  # of pods
        self._unseen_pods = UnseenPods()
        self._has_decided = False  # by then everything has been listed once

    def copy_memory(self, source: Instances, _: State) -> None:
        self._expectations.copy_memory(source._expectations)
        self._unseen_pods.copy_memory(source._unseen_pods)
        self._has_decided = source._has_decided

    def _find_own_key(self, change: Change, state: State) -> Iterable[Key]:
        """Itself. Pods that it did not name before may not have been seen; those named when all is listed first have.

        An instance that is new later may name pods, too: instances were listed again, and pods were not.
        """
        old, new = change.old, change.new
        if isinstance(new, VirtualMachineInstance) and (old is not None or self._has_decided):
            named = _named_pods_of(new)
            if isinstance(old, VirtualMachineInstance):
                named -= _named_pods_of(old)
            if named:
                shown = {pod.metadata.uid for pod in instance_status.list_pods(new, state)}
                self._unseen_pods.observe_named(change.key, named, shown)
        return (change.key,)

    def _find_keys(self, change: Change, state: State) -> Iterable[Key]:
        """The instance of a virt-launcher pod. A pod that shows for the first time is no longer expected."""
        keys = keys_of_launchers(change, state)
        if not keys:
            return ()
        pod = change.new if change.new is not None else change.old
        for key in keys:
            assert pod is not None
            self._unseen_pods.observe_shown(key, pod.metadata.uid, is_removed=change.new is None)
        owner = controller_of(change.new.metadata) if change.old is None and change.new is not None else None
        if owner is not None:
            for key in keys:
                self._expectations.observe(key, uid=owner.uid)
        return keys

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        self._has_decided = True
        instance = state.get(VirtualMachineInstance, key)
        if instance is None:
            self._expectations.forget(key)
            self._unseen_pods.forget(key)
            return DONE
        if (wait := self._unseen_pods.seconds_left(key, now)) > 0:
            return Outcome(requeue_after=wait)
        attempt, uid = state.attempts.get(self.name, key), instance.metadata.uid
        if (wait := self._expectations.seconds_left(key, attempt, now, uid=uid)) > 0:
            return Outcome(requeue_after=wait)
        pod = instance_status.find_current_pod(instance, state)
        actions: list[Action] = []
        if instance.metadata.deletion_timestamp is not None:
            actions += _delete_pods(instance, state)
        problem = self._find_problem(key, instance, pod, state)
        is_creating = pod is None and _may_create(instance, state) and problem.reason != "FailedPvcNotFound"
        after = _build_document(instance, pod, problem, state, now)
        actions += patch_object(VIRTUAL_MACHINE_INSTANCES, instance, after)
        if pod is not None and not is_going_down(pod):
            actions += _sync_pod(pod, after, now)
        if is_creating:
            actions.append(_create_pod(instance, state))
            self._expectations.expect(key, 1, now, uid=uid)
        return Outcome(tuple(actions))

    def _find_problem(self, key: Key, instance: VirtualMachineInstance, pod: Pod | None, state: State) -> Problem:
        """What keeps the instance from having its pod, or its pod from its image."""
        if pod is not None:
            return _find_pull_problem(pod) if instance.status.phase == "Scheduling" else NO_PROBLEM
        if not instance_status.is_unprocessed(instance):
            return NO_PROBLEM
        for volume, claim in list_claims(instance.spec):
            is_there = state.get(core.PersistentVolumeClaim, Key(key.namespace, claim)) is not None
            if "persistentVolumeClaim" in volume and not is_there:
                text = f"failed to render launch manifest: didn't find PVC {claim}"
                return Problem("FailedPvcNotFound", text)
        attempt = state.attempts.get(self.name, key)
        if attempt is None:
            return NO_PROBLEM
        return Problem("FailedCreate", f"failed to create virtual machine pod: {attempt.error}")


def _named_pods_of(instance: VirtualMachineInstance) -> set[str]:
    """The uids of the pods that its status names."""
    return set(instance_status.status_of(instance).get("activePods") or ())


def _find_pull_problem(pod: Pod) -> Problem:
    status = pod.document.get("status") or {}
    for entry in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        waiting = (entry.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") in _PULL_ERRORS:
            return Problem(waiting["reason"], waiting.get("message") or "")
    return NO_PROBLEM


def _may_create(instance: VirtualMachineInstance, state: State) -> bool:
    """Whether a pod is to be made. Never a second one: an instance that ever had a pod is past this phase."""
    if not instance_status.is_unprocessed(instance) or instance.metadata.deletion_timestamp is not None:
        return False
    return not any(
        migration.spec.vmi_name == instance.metadata.name
        and migration.metadata.namespace == instance.metadata.namespace
        and migration.status.phase not in _PENDING_MIGRATION
        for migration in state.of(VirtualMachineInstanceMigration).values()
        if isinstance(migration, VirtualMachineInstanceMigration)
    )


def _create_pod(instance: VirtualMachineInstance, state: State) -> Create:
    body = build_launcher_pod(instance, find_claims(instance, state), emulates=virt_nodes.emulates(state))
    return Create(PODS, body, instance.metadata.namespace)


def find_claims(instance: VirtualMachineInstance, state: State) -> set[str]:
    """The names of those claims of an instance that exist."""
    namespace = instance.metadata.namespace
    claims = (claim for _, claim in list_claims(instance.spec))
    return {claim for claim in claims if state.get(core.PersistentVolumeClaim, Key(namespace, claim)) is not None}


def _delete_pods(instance: VirtualMachineInstance, state: State) -> list[Action]:
    actions: list[Action] = []
    for pod in instance_status.list_pods(instance, state):
        if pod.is_terminating:
            continue
        text = f"Deleted virtual machine pod {pod.metadata.name}"
        note = note_about(VIRTUAL_MACHINE_INSTANCES, instance, "SuccessfulDelete", text)
        actions += [delete_pod(pod), note]
    return actions


def _build_document(
    instance: VirtualMachineInstance, pod: Pod | None, problem: Problem, state: State, now: float
) -> Document:
    """The instance as this controller would have it."""
    document, status = instance.document, {**instance_status.status_of(instance)}
    pods = instance_status.list_pods(instance, state)
    if pods or "activePods" in status:
        status["activePods"] = {launcher.metadata.uid: launcher.spec.node_name for launcher in pods}
    conditions = _set_ready(instance_status.conditions_of(instance), instance, pod, now)
    meta = {**meta_of(document)}
    phase = instance.status.phase
    if instance_status.is_unprocessed(instance):
        is_over = pod is None and instance.metadata.deletion_timestamp is not None
        status = with_phase(status, "Scheduling" if pod is not None else "Failed" if is_over else "Pending", now)
    elif phase == "Scheduling":
        conditions = _copy_scheduled(conditions, pod, now)
        if pod is None or is_going_down(pod):
            status = with_phase(status, "Failed", now)
        elif is_up(pod) and instance.metadata.deletion_timestamp is None:
            status = {**with_phase(status, "Scheduled", now), "nodeName": pod.spec.node_name}
            meta["labels"] = {**(meta.get("labels") or {}), names.NODE_NAME_LABEL: pod.spec.node_name}
    elif instance_status.is_final(instance):
        meta = _release(meta, instance, state, has_pods=bool(pods))
    elif pod is None:
        status = with_phase(status, "Failed", now)
    conditions = _set_synchronized(conditions, phase, problem, now)
    conditions = _set_eviction_requested(conditions, status, now)
    return {**document, "metadata": meta, "status": {**status, "conditions": conditions}}


def _set_ready(
    conditions: list[Document], instance: VirtualMachineInstance, pod: Pod | None, now: float
) -> list[Document]:
    ready = condition(pod, "Ready") if pod is not None else None
    if pod is None:
        reason, message = "PodNotExists", "virt-launcher pod has not yet been scheduled"
    elif is_going_down(pod):
        reason, message = "PodTerminating", "virt-launcher pod is terminating"
    elif instance.status.phase != "Running":
        reason, message = "GuestNotRunning", "Guest VM is not reported as running"
    elif ready is None:
        reason, message = "PodConditionMissing", "virt-launcher pod is missing the Ready condition"
    else:
        return set_condition(
            conditions, "Ready", ready.status, now, reason=ready.reason or "", message=ready.message or ""
        )
    return set_condition(conditions, "Ready", "False", now, reason=reason, message=message)


def _copy_scheduled(conditions: list[Document], pod: Pod | None, now: float) -> list[Document]:
    """While the scheduler has no node for the pod, the instance says so as the pod does."""
    scheduled = condition_of(pod.document, "PodScheduled") if pod is not None else None
    if scheduled is None or scheduled.get("status") != "False":
        return remove_condition(conditions, "PodScheduled")
    reason, message = scheduled.get("reason") or "", scheduled.get("message") or ""
    return set_condition(conditions, "PodScheduled", "False", now, reason=reason, message=message)


def _set_synchronized(conditions: list[Document], phase: str, problem: Problem, now: float) -> list[Document]:
    if phase in ("Scheduled", "Running"):  # virt-handler's, which always succeeds
        return conditions
    if not problem.reason:
        return remove_condition(conditions, "Synchronized")
    return set_condition(conditions, "Synchronized", "False", now, reason=problem.reason, message=problem.message)


def _set_eviction_requested(conditions: list[Document], status: Document, now: float) -> list[Document]:
    if not status.get("evacuationNodeName"):
        return remove_condition(conditions, "EvictionRequested")
    reason, message = "EvictionRequested", "VMI is marked for eviction"
    return set_condition(conditions, "EvictionRequested", "True", now, reason=reason, message=message)


def _release(meta: Document, instance: VirtualMachineInstance, state: State, *, has_pods: bool) -> Document:
    """The metadata of an instance that has ended, without the finalizers that nobody needs any more."""
    dropped = set() if has_pods else {names.VMI_FINALIZER}
    owner = controller_key(instance, VIRTUAL_MACHINES)
    machine = state.get(VirtualMachine, owner) if owner is not None else None
    references = {reference.uid for reference in instance.metadata.owner_references}
    if machine is None or machine.metadata.uid not in references:
        dropped.add(names.VM_FINALIZER)  # the machine that would let it go is gone
    finalizers = [name for name in meta.get("finalizers") or () if name not in dropped]
    if finalizers:
        return {**meta, "finalizers": finalizers}
    return {name: value for name, value in meta.items() if name != "finalizers"}


def _sync_pod(pod: Pod, instance: Document, now: float) -> list[Patch]:
    """Open the pod's readiness gate, and keep the label of its node as the instance has it."""
    patches = []
    key, uid = key_of(pod), pod.metadata.uid
    is_paused = (condition_of(instance, "Paused") or {}).get("status") == "True"
    wanted = "False" if is_paused else "True"
    if (condition_of(pod.document, names.UNPAUSED) or {}).get("status") != wanted:
        reason, text = ("Paused", "paused") if is_paused else ("NotPaused", "not paused")
        message = f"the virtual machine is {text}"
        gate = {"type": names.UNPAUSED, "status": wanted, "reason": reason, "message": message}
        conditions = with_condition({"status": {}}, gate, now)["status"]["conditions"]
        body = {"metadata": {"uid": uid}, "status": {"conditions": conditions}}
        patches.append(Patch(PODS, key, PatchBody("strategic", body, manager=CONTROLLER), "status"))
    node = (meta_of(instance).get("labels") or {}).get(names.NODE_NAME_LABEL)
    if node is not None and pod.metadata.labels.get(names.NODE_NAME_LABEL) != node:
        labels = {"metadata": {"uid": uid, "labels": {names.NODE_NAME_LABEL: node}}}
        patches.append(Patch(PODS, key, PatchBody("merge", labels, manager=CONTROLLER)))
    return patches
