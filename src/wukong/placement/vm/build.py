"""A Wukong becomes a VirtualMachine of KubeVirt: the whole document, ready for server-side apply. Pure.

Labels go on the template: only those reach the instance and its pod. What is left out here (machine type, firmware) is
filled in by KubeVirt, or said by `vmTemplate`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from wukong.api.core import TopologySpreadConstraint
from wukong.api.kubevirt import KUBEVIRT_GROUP
from wukong.api.placement import SchedulingPolicy
from wukong.api.vm import VM_GROUP, VM_VERSION, Network, VmScheduling, Wukong
from wukong.placement.vm.affinity import build_pod_affinity, template_labels_of
from wukong.placement.vm.domain import POD_NETWORK, build_domain, build_networks, build_volumes
from wukong.placement.vm.merge import merge_under
from wukong.placement.vm.node_affinity import build_node_affinity
from wukong.placement.vm.priority import priority_class_name_of
from wukong.placement.vm.settings import VmSettings
from wukong.ports import Document

_BOOTABLE_VOLUMES = ("containerDisk", "dataVolume", "persistentVolumeClaim", "ephemeral", "hostDisk")


def build_virtual_machine(wukong: Wukong, name: str, settings: VmSettings) -> Document:
    """The VirtualMachine of this name, one of vm_names_of(wukong), for a Wukong without problems."""
    machine = merge_under(build_own_part(wukong, settings), wukong.spec.vm_template)
    owner = {
        "apiVersion": f"{VM_GROUP}/{VM_VERSION}",
        "kind": "Wukong",
        "name": wukong.metadata.name,
        "uid": wukong.metadata.uid,
        "controller": True,
    }
    identity = {"name": name, "namespace": wukong.metadata.namespace, "ownerReferences": [owner]}
    return {**machine, "metadata": {**identity, **machine["metadata"]}}


def build_own_part(wukong: Wukong, settings: VmSettings) -> Document:
    """What the fields of a Wukong make, without its vmTemplate and without what tells one of its machines apart."""
    labels = template_labels_of(wukong)
    return {
        "apiVersion": f"{KUBEVIRT_GROUP}/v1",
        "kind": "VirtualMachine",
        "metadata": {"labels": labels},
        "spec": {
            "runStrategy": wukong.spec.run_strategy,
            "template": {"metadata": {"labels": labels}, "spec": _build_template_spec(wukong, settings)},
        },
    }


def is_bootable(wukong: Wukong) -> bool:
    """Whether there is something to boot from: a disk with an image or a volume, a kernel, or the network."""
    template_spec = build_virtual_machine(wukong, wukong.metadata.name, VmSettings(resource_affinity="extender"))
    template_spec = template_spec["spec"]["template"]["spec"]
    volumes = template_spec.get("volumes", ())
    if any(source in volume for volume in volumes for source in _BOOTABLE_VOLUMES):
        return True
    domain = template_spec["domain"]
    interfaces = domain["devices"].get("interfaces", ())
    return "kernelBoot" in domain.get("firmware", {}) or any("bootOrder" in interface for interface in interfaces)


def _build_template_spec(wukong: Wukong, settings: VmSettings) -> Document:
    spec = wukong.spec
    scheduling = spec.scheduling or VmScheduling()
    networks = _networks_of(wukong)
    node_affinity = build_node_affinity(wukong, settings)
    affinity = {**({"nodeAffinity": node_affinity} if node_affinity else {}), **build_pod_affinity(wukong)}
    policy = scheduling.scheduling_policy or SchedulingPolicy()
    optional: dict[str, Any] = {
        "volumes": build_volumes(spec),
        "networks": build_networks(networks),
        "affinity": affinity,
        "nodeSelector": dict(scheduling.node_selector),
        "tolerations": msgspec.to_builtins(scheduling.tolerations),
        "topologySpreadConstraints": [
            build_constraint(constraint) for constraint in scheduling.topology_spread_constraints
        ],
        "schedulerName": policy.scheduler_name,
        "priorityClassName": priority_class_name_of(policy),
        "readinessProbe": spec.readiness_probe,
        "livenessProbe": spec.liveness_probe,
    }
    grace = spec.termination_grace_period_seconds
    return {
        "domain": build_domain(spec, networks),
        "evictionStrategy": spec.eviction_strategy,
        **({} if grace is None else {"terminationGracePeriodSeconds": grace}),
        **{name: value for name, value in optional.items() if value},
    }


def _networks_of(wukong: Wukong) -> list[Network]:
    """The networks it names, or the pod network, unless its vmTemplate says something of networks."""
    if wukong.spec.networks:
        return wukong.spec.networks
    template_spec = _dig(wukong.spec.vm_template, "spec", "template", "spec")
    devices = _dig(template_spec, "domain", "devices")
    says_networks = "networks" in template_spec or "interfaces" in devices or "autoattachPodInterface" in devices
    return [] if says_networks else [POD_NETWORK]


def _dig(document: Any, *names: str) -> Document:
    """The map at this path, or an empty one: a vmTemplate may have anything anywhere."""
    for name in names:
        document = document.get(name) if isinstance(document, dict) else None
    return document if isinstance(document, dict) else {}


def build_constraint(constraint: TopologySpreadConstraint) -> Document:
    """whenUnsatisfiable is always written: KubeVirt's schema requires it, and structs leave defaults out."""
    document: Document = msgspec.to_builtins(constraint)
    return {**document, "whenUnsatisfiable": constraint.when_unsatisfiable}
