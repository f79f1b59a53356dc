"""The virtual machines of a snapshot: what actors/kubevirt needs to go on with them is completed. Called by load.py.

Running instances stay as they are: they count as started from the template that their machine has now. That a restart
is required already, the condition of the machine says.
"""

from __future__ import annotations

from wukong.api.kinds import PODS, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES
from wukong.embedded.actors.kubevirt.live_update import STARTED_FROM, describe_start
from wukong.embedded.snapshot.revisions import DocumentsByKind
from wukong.embedded.store.documents import meta_of, value_at
from wukong.embedded.store.kubevirt import names
from wukong.ports import Document


def complete_machines(by_kind: DocumentsByKind) -> None:
    """Owners have been linked. Changes the metadata of documents in place, and nothing else."""
    machines = {meta_of(machine)["uid"]: machine for machine in by_kind[VIRTUAL_MACHINES.group_kind]}
    instances = {meta_of(instance)["uid"]: instance for instance in by_kind[VIRTUAL_MACHINE_INSTANCES.group_kind]}
    for machine in machines.values():
        machine["metadata"].setdefault("finalizers", [names.VM_FINALIZER])
    for instance in instances.values():
        _complete_instance(instance, machines)
    if instances:
        for pod in by_kind[PODS.group_kind]:
            _complete_launcher(pod, instances)


def _complete_instance(instance: Document, machines: dict[str, Document]) -> None:
    meta: Document = instance["metadata"]
    machine = next((machines[uid] for uid in _owners_of(instance) if uid in machines), None)
    held_by = [names.VM_FINALIZER, names.VMI_FINALIZER] if machine is not None else [names.VMI_FINALIZER]
    meta.setdefault("finalizers", held_by)
    template = value_at(machine, "spec.template") if machine is not None else None
    if template is not None and STARTED_FROM not in (meta.get("annotations") or {}):
        meta["annotations"] = {**(meta.get("annotations") or {}), STARTED_FROM: describe_start(template)}


def _complete_launcher(pod: Document, instances: dict[str, Document]) -> None:
    """By the annotation the webhook for evictions finds the instance of a pod."""
    meta: Document = pod["metadata"]
    if (meta.get("labels") or {}).get(names.LAUNCHER_LABEL) != names.LAUNCHER:
        return
    instance = next((instances[uid] for uid in _owners_of(pod) if uid in instances), None)
    if instance is not None and names.DOMAIN_ANNOTATION not in (meta.get("annotations") or {}):
        annotation = {names.DOMAIN_ANNOTATION: meta_of(instance)["name"]}
        meta["annotations"] = {**(meta.get("annotations") or {}), **annotation}


def _owners_of(document: Document) -> list[str]:
    return [reference["uid"] for reference in meta_of(document).get("ownerReferences") or ()]
