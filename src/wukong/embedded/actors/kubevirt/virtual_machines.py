"""virt-controller's controller of VirtualMachines: an instance runs, or does not, as the run strategy says.

    Always            an instance runs; one that has ended is deleted and started again
    RerunOnFailure    the same, but one that has succeeded is not started again
    Once              an instance is started once
    Manual            on request (status.stateChangeRequests) only
    Halted            none runs

Follows pkg/virt-controller/watch/vm/vm.go of KubeVirt 1.7. Instances that fail before they ever ran are started again
after a pause (machine_status.py); what a change of the template means is worked out by live_update.py. Not played: data
volumes, hotplug of volumes and interfaces, instance types, memory dumps, volume migration.
"""

from __future__ import annotations

from typing import NamedTuple

from wukong.actions import DONE, Action, Delete, Note, Outcome, Patch
from wukong.api.kinds import VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES
from wukong.api.resources import Key
from wukong.embedded.actors.events import note_about
from wukong.embedded.actors.kubevirt import instance_status, live_update
from wukong.embedded.actors.kubevirt.conditions import find_condition
from wukong.embedded.actors.kubevirt.machine_status import (
    Sync,
    build_status,
    has_start_request,
    has_stop_request,
    run_strategy_of,
    seconds_until_start,
)
from wukong.embedded.actors.kubevirt.new_instance import create_instance
from wukong.embedded.actors.kubevirt.patches import patch_object, patch_status, replace_finalizers
from wukong.embedded.actors.pods import is_controlled_by
from wukong.embedded.actors.watch_keys import keys_of_controller
from wukong.embedded.store.documents import value_at
from wukong.embedded.store.kubevirt import names
from wukong.embedded.world.clock import Chance
from wukong.embedded.world.objects import VirtualMachine, VirtualMachineInstance
from wukong.ports import Document
from wukong.state import State
from wukong.state.controller import Watch


class Decision(NamedTuple):
    """Whether an instance is to be created or deleted now, or how many seconds later to look again."""

    starts: bool = False
    stops: bool = False
    requests_start: bool = False  # once it is gone
    wait: float | None = None


class VirtualMachines:
    name = "virt-vm"
    watches = (
        Watch(VIRTUAL_MACHINES),
        Watch(VIRTUAL_MACHINE_INSTANCES, keys_of_controller(VIRTUAL_MACHINES), is_secondary=True),
    )

    def __init__(self, chance: Chance | None = None) -> None:
        self._chance = chance or Chance()

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        machine = state.get(VirtualMachine, key)
        if machine is None:
            return DONE
        named = state.get(VirtualMachineInstance, key)
        instance = named if named is not None and is_controlled_by(named, machine) else None
        finalizers: list[str] = machine.document["metadata"].get("finalizers") or []
        is_leaving = machine.metadata.deletion_timestamp is not None
        if is_leaving and instance is None:
            return _release(machine, finalizers)
        if not is_leaving and names.VM_FINALIZER not in finalizers:
            return Outcome((replace_finalizers(VIRTUAL_MACHINES, machine, [*finalizers, names.VM_FINALIZER]),))
        if named is not None and instance is None:
            return DONE  # the instance of an earlier machine of this name: it has to go first
        decision = Decision(stops=True) if is_leaving else _decide(machine, instance, now)
        return self._carry_out(key, machine, instance, decision, state, now)

    def _carry_out(
        self,
        key: Key,
        machine: VirtualMachine,
        instance: VirtualMachineInstance | None,
        decision: Decision,
        state: State,
        now: float,
    ) -> Outcome:
        is_stopping = decision.stops and instance is not None and instance.metadata.deletion_timestamp is None
        attempt = state.attempts.get(self.name, key) if decision.starts else None
        sync = Sync(
            is_starting=decision.starts,
            is_stopping=is_stopping,
            failure=f"Failure while starting VMI: {attempt.error}" if attempt is not None else "",
            needs_restart=instance is not None
            and not is_stopping
            and live_update.needs_restart(machine.spec.get("template") or {}, instance.document),
        )
        actions: list[Action] = []
        if is_stopping and instance is not None:
            actions += _stop(machine, instance)
        uid = instance.metadata.uid if instance is not None else ""
        status = build_status(machine, instance, sync, now, self._chance.share(uid))
        if decision.requests_start and is_stopping:
            status["stateChangeRequests"] = [*status.get("stateChangeRequests", ()), {"action": "Start"}]
        # Why an earlier try failed is written before the next one, which ends all that comes after it if it fails, too.
        start, report = (
            [*_start(machine, now)] if decision.starts else [],
            patch_status(VIRTUAL_MACHINES, machine, status),
        )
        actions += [*report, *start] if sync.failure else [*start, *report]
        if instance is not None:
            actions += _update_instance(machine, instance, status, is_stopping=is_stopping)
        return Outcome(tuple(actions), decision.wait)


def _decide(machine: VirtualMachine, instance: VirtualMachineInstance | None, now: float) -> Decision:
    strategy = run_strategy_of(machine)
    if strategy == "Halted":
        return Decision(stops=instance is not None)
    if instance is not None:
        return _decide_about_instance(machine, instance, strategy)
    before = (machine.document.get("status") or {}).get("runStrategy")
    if strategy == "Manual":
        return Decision(starts=has_start_request(machine))
    if strategy == "RerunOnFailure" and before == strategy and not has_start_request(machine):
        return Decision()
    wait = seconds_until_start(machine, now) if strategy != "Once" else 0.0
    return Decision(wait=wait) if wait > 0 else Decision(starts=True)


def _decide_about_instance(machine: VirtualMachine, instance: VirtualMachineInstance, strategy: str) -> Decision:
    is_asked = has_stop_request(machine, instance)
    if strategy in ("Always", "RerunOnFailure"):
        has_failed = strategy == "RerunOnFailure" and instance.status.phase == "Failed"
        return Decision(stops=is_asked or instance_status.is_final(instance), requests_start=has_failed)
    return Decision(stops=is_asked and strategy == "Manual")


def _start(machine: VirtualMachine, now: float) -> tuple[Action, Note]:
    text = f"Started the virtual machine by creating the new virtual machine instance {machine.metadata.name}"
    return create_instance(machine, now), note_about(VIRTUAL_MACHINES, machine, "SuccessfulCreate", text)


def _stop(machine: VirtualMachine, instance: VirtualMachineInstance) -> list[Action]:
    meta = instance.metadata
    text = f"Stopped the virtual machine by deleting the virtual machine instance {meta.uid}"
    return [
        Delete(VIRTUAL_MACHINE_INSTANCES, Key(meta.namespace, meta.name), uid=meta.uid),
        note_about(VIRTUAL_MACHINES, machine, "SuccessfulDelete", text),
    ]


def _update_instance(
    machine: VirtualMachine, instance: VirtualMachineInstance, status: Document, *, is_stopping: bool
) -> list[Patch]:
    """Let go an instance that has ended, or copy into one that runs what can be changed while it does."""
    finalizers: list[str] = instance.document["metadata"].get("finalizers") or []
    if instance_status.is_final(instance):
        if names.VM_FINALIZER not in finalizers:
            return []
        rest = [name for name in finalizers if name != names.VM_FINALIZER]
        return [replace_finalizers(VIRTUAL_MACHINE_INSTANCES, instance, rest)]
    is_leaving = is_stopping or instance.metadata.deletion_timestamp is not None
    has_to_restart = find_condition(status.get("conditions") or [], "RestartRequired") is not None
    if is_leaving or has_to_restart or instance_status.is_migrating(instance):
        return []
    template_spec = value_at(machine.document, "spec.template.spec") or {}
    spec = live_update.update_spec(template_spec, instance.spec)
    return patch_object(VIRTUAL_MACHINE_INSTANCES, instance, {**instance.document, "spec": spec})


def _release(machine: VirtualMachine, finalizers: list[str]) -> Outcome:
    """Let go a machine that is being deleted and has no instance any more."""
    if names.VM_FINALIZER not in finalizers:
        return DONE
    rest = [name for name in finalizers if name != names.VM_FINALIZER]
    return Outcome((replace_finalizers(VIRTUAL_MACHINES, machine, rest),))
