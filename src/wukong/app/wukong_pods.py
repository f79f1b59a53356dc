"""The pod of a Wukong that is to be explained: one that is there, or the one that KubeVirt would make. Reads no file.

Called by `wukong explain wk/NAME`. A virtual machine without a node is chosen before one that has one; of one whose pod
is not there yet, the pod is built as KubeVirt 1.7 builds it.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from wukong.admission import admit
from wukong.api.core import Pod, PriorityClass
from wukong.api.kinds import (
    PODS,
    VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
    VIRTUAL_MACHINE_INSTANCES,
    VIRTUAL_MACHINES,
    WUKONGS,
)
from wukong.api.objects import Objects
from wukong.api.vm import Wukong, vm_names_of
from wukong.controllers.vm.machines import Machine, find_machine
from wukong.controllers.vm.priority_limits import policy_of
from wukong.embedded.actors.kubevirt.launcher_pod import build_launcher_pod
from wukong.embedded.actors.kubevirt.new_instance import create_instance
from wukong.embedded.world import objects as world_objects
from wukong.errors import InputError
from wukong.placement.rule import Rules
from wukong.placement.vm import (
    VmSettings,
    build_priority_class,
    build_virtual_machine,
    find_wukong_problems,
    priority_class_name_of,
)
from wukong.state import State

_KINDS = (WUKONGS, VIRTUAL_MACHINES, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, PODS)


class WukongPod(NamedTuple):
    """`is_built`: the pod is not there, KubeVirt would make it."""

    machine: str
    pod: Pod
    is_built: bool


def choose_pod(wukong: Wukong, objects: Objects, rules: Rules, settings: VmSettings | None = None) -> WukongPod:
    """The pod to explain. Raises InputError for a Wukong that is not accepted, or that asks for no virtual machine."""
    if problems := find_wukong_problems(wukong, rules):
        raise InputError(*problems).at(f"Wukong {wukong.key}")
    state = State()
    for resource in _KINDS:
        state.replace(resource.group_kind, objects.of(resource.group_kind))
    machines = [find_machine(wukong, name, state) for name in vm_names_of(wukong)]
    if not machines:
        raise InputError(f"Wukong {wukong.key}: asks for no virtual machine: replicas is 0.")
    machine = min(machines, key=_order)
    pod = machine.waiting_pod or machine.running_pod
    if pod is not None:
        return WukongPod(machine.name, pod, is_built=False)
    return WukongPod(machine.name, _build_pod(wukong, machine, objects, settings or VmSettings()), is_built=True)


def _order(machine: Machine) -> int:
    """Those that wait for a node first, then those without a pod, then those that run."""
    if machine.waiting_pod is not None:
        return 0
    return 1 if machine.running_pod is None else 2


def _build_pod(wukong: Wukong, machine: Machine, objects: Objects, settings: VmSettings) -> Pod:
    """The pod as the API server would store it after KubeVirt has made it."""
    document = build_virtual_machine(wukong, machine.name, settings)
    document["metadata"] |= {"uid": f"new-{machine.name}"}
    vm = msgspec.convert({**document, "document": document}, world_objects.VirtualMachine)
    body = create_instance(vm, 0.0).body
    body["metadata"] |= {"uid": f"new-{machine.name}"}
    instance = msgspec.convert({**body, "document": body}, world_objects.VirtualMachineInstance)
    namespace = wukong.metadata.namespace
    claims = [
        claim.metadata.name for claim in objects.persistent_volume_claims if claim.metadata.namespace == namespace
    ]
    pod = msgspec.convert(build_launcher_pod(instance, claims, emulates=False), Pod)
    pod.metadata.name = f"{pod.metadata.generate_name}new"
    _add_priority_class(wukong, objects)
    return admit(pod, objects)


def _add_priority_class(wukong: Wukong, objects: Objects) -> None:
    """The class of the Wukong, as if its controller had made it."""
    policy = policy_of(wukong)
    name = priority_class_name_of(policy)
    if policy is not None and name and all(entry.metadata.name != name for entry in objects.priority_classes):
        objects.add(msgspec.convert(build_priority_class(policy), PriorityClass))
