"""No virtual machine runs twice, none is lost, and nothing of one that is gone is left behind.

While things happen: of the pods of one machine one runs, or two that are source and target of a migration. A pod that
is being deleted runs until it is gone. At rest:

- a machine that is to run has an instance that has not ended, unless somebody keeps failing to start it, or it waits
  because its guests failed before they ran;
- an instance that runs has a pod that has not ended;
- an instance has its machine, and a virt-launcher pod its instance, unless they are being deleted and wait for a pod;
- nothing waits for a finalizer of KubeVirt's while no pod of it is left;
- a Wukong that was accepted has all its machines and no others, where a controller cares for Wukongs and nobody else
  has a machine of that name; and a machine of a Wukong has that Wukong.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from wukong.api.core import Pod
from wukong.api.kinds import PODS, VIRTUAL_MACHINES, WUKONGS
from wukong.api.kubevirt import VirtualMachine, VirtualMachineInstance
from wukong.api.meta import Object, OwnerReference, controller_of
from wukong.api.resources import Key, key_of
from wukong.api.vm import Wukong, vm_names_of
from wukong.embedded.checkers.findings import Findings
from wukong.embedded.checkers.pods import owned_pods
from wukong.embedded.checkers.touched_objects import TouchedObjects
from wukong.embedded.world.world import World
from wukong.ports import Document
from wukong.state import Change, State
from wukong.state.controller import own_key

_LAUNCHER, _MACHINE = "kubevirt.io", "vmi.kubevirt.io/id"  # labels of virt-launcher pods
_JOB = "kubevirt.io/migrationJobUID"
_FINALIZERS = {"kubevirt.io/foregroundDeleteVirtualMachine", "kubevirt.io/virtualMachineControllerFinalize"}
_STARTED = ("Scheduled", "Running")  # phases of an instance whose guest boots or runs
_MachineKey = tuple[str, str]  # namespace, and the label that names a machine


class Machines:
    """Counts the running pods of each machine. Costs one look at the labels of a pod whose phase changes."""

    kinds: ClassVar[frozenset[str]] = frozenset({PODS.group_kind})

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self._running: dict[
            _MachineKey, dict[str, str]
        ] = {}  # → uid of a running pod → the migration it is a target of
        for pod in findings.world.state.of(Pod).values():
            self._note(None, pod)

    def fork(self, findings: Findings) -> Machines:
        copy = Machines.__new__(Machines)
        copy.findings = findings
        copy._running = {machine: dict(pods) for machine, pods in self._running.items()}
        return copy

    def observe(self, change: Change) -> None:
        old, new = change.old, change.new
        if not isinstance(new if new is not None else old, Pod):
            return
        if self._note(old, new) and new is not None:
            self._check(change.key, _machine_of(new))

    def _note(self, old: Object | None, new: Object | None) -> bool:
        """Whether this pod has just begun to run."""
        was_running, is_running = _is_running(old), _is_running(new)
        if was_running == is_running:
            return False
        pod = new if is_running else old
        assert pod is not None
        machine = _machine_of(pod)
        if is_running:
            self._running.setdefault(machine, {})[pod.metadata.uid] = pod.metadata.labels.get(_JOB, "")
            return True
        pods = self._running[machine]
        del pods[pod.metadata.uid]
        if not pods:
            del self._running[machine]
        return False

    def _check(self, key: Key, machine: _MachineKey) -> None:
        jobs = list(self._running[machine].values())
        is_pair = len(jobs) == 2 and jobs[0] != jobs[1]
        if len(jobs) > 1 and not is_pair:
            text = f"runs while {len(jobs) - 1} other pods of machine {machine[1]} run: its guest is there twice"
            self.findings.report(f"pod {key}", text)


def _is_running(pod: Object | None) -> bool:
    if not isinstance(pod, Pod) or pod.metadata.labels.get(_LAUNCHER) != "virt-launcher":
        return False
    return pod.status.phase == "Running" and bool(pod.spec.node_name)


def _machine_of(pod: Object) -> _MachineKey:
    return pod.metadata.namespace, pod.metadata.labels.get(_MACHINE, "")


def check(findings: Findings, touched: TouchedObjects) -> None:
    """What must hold at rest, of the objects that were touched since this was last asked."""
    state = findings.world.state
    for machine in touched.list_all(VirtualMachine, state):
        _check_machine(findings, machine, state)
    for instance in touched.list_all(VirtualMachineInstance, state):
        _check_instance(findings, instance, state)
    if touched.includes(VirtualMachineInstance):  # there may be none left
        for pod in touched.list_all(Pod, state):
            _check_launcher(findings, pod, state)
    if touched.includes(Wukong) and _has_controller(findings.world):
        for wukong in touched.list_all(Wukong, state):
            _check_wukong(findings, wukong, state)
        for machine in touched.list_all(VirtualMachine, state):
            _check_owner(findings, machine, state)


def _check_machine(findings: Findings, machine: VirtualMachine, state: State) -> None:
    key = key_of(machine)
    instance = state.get(VirtualMachineInstance, key)
    _check_finalizers(findings, "virtualmachine", machine, [] if instance is None else [instance])
    strategy = machine.spec.get("runStrategy") or ("Always" if machine.spec.get("running") else "Halted")
    if machine.metadata.deletion_timestamp is not None:
        return
    if strategy == "Halted":
        if instance is not None and instance.metadata.deletion_timestamp is None:
            findings.report(f"virtualmachine {key}", "at rest it is to be halted, and has an instance")
        return
    if strategy != "Always" or (instance is not None and not instance.is_final):
        return
    status: Document = getattr(machine, "document", {}).get("status") or {}
    is_failing = any(condition.type == "Failure" for condition in machine.status.conditions)
    if not is_failing and not status.get("startFailure"):
        text = "has none" if instance is None else f"has one that is {instance.status.phase}"
        findings.report(f"virtualmachine {key}", f"at rest it is to have an instance that runs, and {text}")


def _check_instance(findings: Findings, instance: VirtualMachineInstance, state: State) -> None:
    key, owner = key_of(instance), controller_of(instance.metadata)
    pods = owned_pods(state, instance.metadata.uid)
    if instance.is_final:
        _check_finalizers(findings, "virtualmachineinstance", instance, pods)
    elif instance.status.phase in _STARTED and all(pod.is_finished for pod in pods):
        text = f"at rest it is {instance.status.phase}, and none of its pods runs: its guest is lost"
        findings.report(f"virtualmachineinstance {key}", text)
    if owner is None or owner.kind != VIRTUAL_MACHINES.kind:
        return
    waits_for_pods = instance.metadata.deletion_timestamp is not None and bool(pods)
    if _is_gone(owner, VirtualMachine, key.namespace, state) and not waits_for_pods:
        findings.report(f"virtualmachineinstance {key}", "at rest its virtual machine is gone, and it is left behind")


def _check_launcher(findings: Findings, pod: Pod, state: State) -> None:
    owner = controller_of(pod.metadata)
    if pod.metadata.labels.get(_LAUNCHER) != "virt-launcher" or owner is None or pod.is_terminating:
        return
    if _is_gone(owner, VirtualMachineInstance, pod.metadata.namespace, state):
        findings.report(f"pod {key_of(pod)}", "at rest its instance is gone, and it is left behind")


def _check_owner(findings: Findings, machine: VirtualMachine, state: State) -> None:
    """A machine that a Wukong controls has it still; the garbage collector takes away those that have not."""
    owner = controller_of(machine.metadata)
    if owner is None or owner.kind != WUKONGS.kind or machine.metadata.deletion_timestamp is not None:
        return
    if _is_gone(owner, Wukong, machine.metadata.namespace, state):
        findings.report(f"virtualmachine {key_of(machine)}", "at rest its Wukong is gone, and it is left behind")


def _is_gone(owner: OwnerReference, struct: type[Object], namespace: str, state: State) -> bool:
    """Whether the object that an owner reference names is not there, not even as one that cannot be read."""
    is_unreadable = state.get_unreadable(struct, Key(namespace, owner.name)) is not None
    return state.owner(namespace, owner) is None and not is_unreadable


def _check_finalizers(findings: Findings, kind: str, subject: Object, remaining: Iterable[Object]) -> None:
    """Nothing that is being deleted, and of which nothing else is left, is held by finalizers of KubeVirt's alone."""
    document: Document = getattr(subject, "document", {})
    finalizers = (document.get("metadata") or {}).get("finalizers") or []
    is_held = bool(finalizers) and set(finalizers) <= _FINALIZERS
    if subject.metadata.deletion_timestamp is not None and is_held and not [*remaining]:
        findings.report(f"{kind} {key_of(subject)}", f"at rest it still waits for its finalizer {finalizers[0]}")


def _has_controller(world: World) -> bool:
    """Whether somebody makes machines of Wukongs: a controller that watches both, and whose keys are Wukongs.

    The garbage collector watches both, too.
    """
    for process in world.processes:
        for controller in process.dispatch.controllers.values():
            keys_by_kind = {watch.resource: watch.keys for watch in controller.watches}
            if keys_by_kind.get(WUKONGS) is own_key and VIRTUAL_MACHINES in keys_by_kind:
                return True
    return False


def _check_wukong(findings: Findings, wukong: Wukong, state: State) -> None:
    is_refused = any(
        condition.type == "Accepted" and condition.status == "False" for condition in wukong.status.conditions
    )
    if wukong.metadata.deletion_timestamp is not None or is_refused:
        return
    namespace, wanted = wukong.metadata.namespace, set(vm_names_of(wukong))
    keys = state.owners.owned_by(wukong.metadata.uid, VIRTUAL_MACHINES)
    machines = [machine for key in keys if (machine := state.get(VirtualMachine, key)) is not None]
    present = {machine.metadata.name for machine in machines if machine.metadata.deletion_timestamp is None}
    owned = {machine.metadata.name for machine in machines}
    taken = {name for name in wanted - owned if state.get(VirtualMachine, Key(namespace, name)) is not None}
    for name in sorted(wanted - present - taken):
        findings.report(f"wukong {namespace}/{wukong.metadata.name}", f"at rest its virtual machine {name} is lost")
    for name in sorted(present - wanted):
        text = f"at rest virtual machine {name} is left behind: nobody asks for it"
        findings.report(f"wukong {namespace}/{wukong.metadata.name}", text)
