"""Which changes a running virtual machine has not taken up yet, and what they wait for. Pure.

Used by status.py, which tells of them, and by restarts.py, which brings them about where the Wukong allows it.

    KubeVirt's condition RestartRequired      a restart; KubeVirt sees them and says so
    template labels and annotations           a restart; KubeVirt says nothing
    affinity, nodeSelector, tolerations       the next pod: a live migration is enough
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from wukong.api.core import Affinity, NodeSelectorTerm, Pod, PodAffinity, Toleration
from wukong.api.kubevirt import VirtualMachine, VirtualMachineInstance, find_condition
from wukong.api.unreadable import READ_ERRORS
from wukong.controllers.vm.machines import Machine
from wukong.placement.vm import ChangeEffect, find_change_effects

_HOST_MODEL = "node-labeller.kubevirt.io/obsolete-host-model"  # KubeVirt adds it to every required term
_CREATED_BY = "kubevirt.io/created-by"  # in the rule that keeps the target of a migration off its source's node
_RULES = ("affinity", "nodeSelector", "tolerations")


class PendingChanges(NamedTuple):
    restart: tuple[str, ...] = ()  # paths that wait for a restart; KubeVirt may say only that there are some
    is_restart_required: bool = False
    next_pod: tuple[str, ...] = ()  # paths that the next pod obeys

    def __bool__(self) -> bool:
        return self.is_restart_required or bool(self.next_pod)


NO_CHANGES = PendingChanges()


def find_pending_changes(machine: Machine) -> PendingChanges:
    """What the instance that runs has not taken up of its VirtualMachine."""
    vm, instance = machine.vm, machine.instance
    if vm is None or not machine.is_owned or instance is None or instance.is_final:
        return NO_CHANGES
    says_so = has_condition(vm, "RestartRequired")
    effects = find_change_effects(_describe_running(vm, instance), vm.spec)
    waits = (ChangeEffect.AFTER_RESTART, ChangeEffect.RESTART_REQUIRED) if says_so else (ChangeEffect.AFTER_RESTART,)
    restart = tuple(path for path, effect in effects if effect in waits)
    pod = machine.running_pod
    next_pod = _find_disobeyed(pod, vm.spec) if pod is not None else ()
    return PendingChanges(restart, says_so or bool(restart), next_pod)


def has_condition(vm: VirtualMachine, kind: str) -> bool:
    condition = find_condition(vm.status.conditions, kind)
    return condition is not None and condition.status == "True"


def _describe_running(vm: VirtualMachine, instance: VirtualMachineInstance) -> dict[str, Any]:
    """The spec of a VirtualMachine that would have made this instance. KubeVirt's own labels are left out."""
    labels = {name: value for name, value in instance.metadata.labels.items() if not is_of_kubevirt(name)}
    metadata = {"labels": labels, "annotations": instance.metadata.annotations}
    return {**vm.spec, "template": {"metadata": metadata, "spec": instance.spec}}


def is_of_kubevirt(name: str) -> bool:
    """Whether a label is one that KubeVirt puts there."""
    domain = name.partition("/")[0]
    return domain == "kubevirt.io" or domain.endswith(".kubevirt.io")


def rules_of(vm_spec: dict[str, Any]) -> dict[str, Any]:
    """The rules of a template that the next pod obeys."""
    template = vm_spec.get("template")
    spec = template.get("spec") if isinstance(template, dict) else None
    return {name: spec[name] for name in _RULES if name in spec} if isinstance(spec, dict) else {}


def _find_disobeyed(pod: Pod, vm_spec: dict[str, Any]) -> tuple[str, ...]:
    """The rules of the template that this pod was not made by."""
    rules = rules_of(vm_spec)
    try:
        affinity = msgspec.convert(rules.get("affinity") or {}, Affinity)
        tolerations = msgspec.convert(rules.get("tolerations") or [], list[Toleration])
    except READ_ERRORS:
        return ()  # KubeVirt let pass what we cannot read: then nobody can tell
    selector = rules.get("nodeSelector") or {}
    own_selector = {name: value for name, value in pod.spec.node_selector.items() if name in selector}
    is_obeyed = {
        "affinity": without_additions(pod.spec.affinity) == without_additions(affinity),
        "nodeSelector": own_selector == selector,
        "tolerations": all(toleration in pod.spec.tolerations for toleration in tolerations),
    }
    return tuple(f"spec.template.spec.{name}" for name in _RULES if not is_obeyed[name])


def without_additions(affinity: Affinity | None) -> Affinity:
    """The rules without those that KubeVirt adds to a pod; what is empty then is left out."""
    affinity = affinity or Affinity()
    node, near, apart = affinity.node_affinity, affinity.pod_affinity, affinity.pod_anti_affinity
    if node is not None and node.required is not None:
        terms = [_without_host_model(term) for term in node.required.node_selector_terms]
        terms = [term for term in terms if term.match_expressions or term.match_fields]
        required = msgspec.structs.replace(node.required, node_selector_terms=terms) if terms else None
        node = msgspec.structs.replace(node, required=required)
    if apart is not None:
        own = [
            term
            for term in apart.required
            if term.label_selector is None or _CREATED_BY not in term.label_selector.match_labels
        ]
        apart = msgspec.structs.replace(apart, required=own)
    return Affinity(
        node_affinity=node if node is not None and (node.required or node.preferred) else None,
        pod_affinity=_unless_empty(near),
        pod_anti_affinity=_unless_empty(apart),
    )


def _unless_empty(rules: PodAffinity | None) -> PodAffinity | None:
    return rules if rules is not None and (rules.required or rules.preferred) else None


def _without_host_model(term: NodeSelectorTerm) -> NodeSelectorTerm:
    expressions = [entry for entry in term.match_expressions if entry.key != _HOST_MODEL]
    return msgspec.structs.replace(term, match_expressions=expressions)
