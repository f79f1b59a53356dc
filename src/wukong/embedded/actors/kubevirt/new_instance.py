"""The VirtualMachineInstance that a VirtualMachine starts, with the defaults of KubeVirt's mutating webhook; pure."""

from __future__ import annotations

from wukong.actions import Create
from wukong.api.kinds import VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES
from wukong.embedded.actors.kubevirt.instance_status import with_phase
from wukong.embedded.actors.kubevirt.launcher_resources import count_vcpus
from wukong.embedded.actors.kubevirt.live_update import STARTED_FROM, describe_start
from wukong.embedded.actors.pods import reference_to
from wukong.embedded.store.documents import meta_of
from wukong.embedded.store.kubevirt import names
from wukong.embedded.world.objects import VirtualMachine
from wukong.ports import Document

_DEFAULT_INTERFACE = {"name": "default", "bridge": {}}  # KubeVirt's default is no masquerade, so it does not migrate


def create_instance(machine: VirtualMachine, now: float) -> Create:
    template: Document = machine.spec.get("template") or {}
    template_meta, key = meta_of(template), machine.metadata
    annotations = {
        **(template_meta.get("annotations") or {}),
        names.GENERATION_ANNOTATION: str(key.generation),
        STARTED_FROM: describe_start(template),
    }
    meta: Document = {
        "name": key.name,
        "namespace": key.namespace,
        "labels": {**(template_meta.get("labels") or {})},
        "annotations": annotations,
        "finalizers": [names.VM_FINALIZER, names.VMI_FINALIZER],
        "ownerReferences": [reference_to(VIRTUAL_MACHINES, machine)],
    }
    body = {"metadata": meta, "spec": _with_defaults(template.get("spec") or {})}
    return Create(VIRTUAL_MACHINE_INSTANCES, {**body, "status": with_phase({}, "Pending", now)}, key.namespace)


def _with_defaults(spec: Document) -> Document:
    domain = {**(spec.get("domain") or {})}
    cpu, devices = {**(domain.get("cpu") or {})}, {**(domain.get("devices") or {})}
    if not any(cpu.get(name) for name in ("cores", "sockets", "threads")):
        cpu |= {"cores": 1, "sockets": count_vcpus(domain), "threads": 1}
    cpu.setdefault("model", "host-model")
    domain["cpu"] = cpu
    domain["machine"] = {"type": names.MACHINE_TYPE, **(domain.get("machine") or {})}
    defaulted = {"architecture": names.ARCHITECTURE, **spec, "domain": domain}
    if (
        devices.get("autoattachPodInterface") is not False
        and not spec.get("networks")
        and not devices.get("interfaces")
    ):
        devices["interfaces"] = [_DEFAULT_INTERFACE]
        defaulted["networks"] = [{"name": "default", "pod": {}}]
    domain["devices"] = devices
    return defaulted
