"""Shows Wukongs as trees: Wukong → VirtualMachine → instance → pods → nodes, with migrations and what is wrong.

Called by `wukong get`. What is wrong is found as the vm controller finds it, so the tree tells of clusters, too, in
which that controller does not run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from wukong.api.core import Pod, PodCondition
from wukong.api.kubevirt import VirtualMachineInstance, VirtualMachineInstanceMigration, find_condition
from wukong.api.resources import key_of
from wukong.api.vm import Wukong, vm_names_of
from wukong.cli.views.console import Part
from wukong.cli.views.table import Table
from wukong.controllers.vm.machines import Machine, find_machine, is_leaving, list_owned_names
from wukong.controllers.vm.pending_changes import find_pending_changes
from wukong.controllers.vm.vm_status import find_trouble
from wukong.state import State

_LONGEST_INFO = 100  # characters, where -o wide is not asked for
_BRANCH, _LAST, _LINE, _GAP = "├─ ", "└─ ", "│  ", "   "


class TreeEntry(NamedTuple):
    """An object, and those that belong to it."""

    kind: str  # as kubectl shortens it: wk, vm, vmi, pod, migration, node
    name: str
    ready: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    children: tuple[TreeEntry, ...] = ()

    def build_document(self) -> dict[str, object]:
        fields = {"kind": self.kind, "name": self.name, "ready": self.ready, "status": self.status}
        fields |= {"reason": self.reason, "message": self.message}
        document: dict[str, object] = {name: text for name, text in fields.items() if text}
        if self.children:
            document["children"] = [child.build_document() for child in self.children]
        return document


def build_tree(wukong: Wukong, state: State, now: float) -> TreeEntry:
    """All that is known of a Wukong. Virtual machines that it does not ask for any more come last."""
    wanted = vm_names_of(wukong)
    surplus = [name for name in list_owned_names(wukong, state) if name not in wanted]
    machines = [find_machine(wukong, name, state) for name in (*wanted, *sorted(surplus))]
    ready = sum(machine.is_ready for machine in machines[: len(wanted)])
    reason, message = _find_wukong_reason(wukong)
    return TreeEntry(
        kind="wk",
        name=wukong.metadata.name,
        ready=f"{ready}/{len(wanted)}",
        status="Deleting" if is_leaving(wukong) else "",
        reason=reason,
        message=message,
        children=tuple(_build_machine(machine, now) for machine in machines),
    )


def _find_wukong_reason(wukong: Wukong) -> tuple[str, str]:
    """The first of its conditions that is not as it should be, and that its virtual machines do not tell themselves."""
    told = {condition.type: condition for condition in wukong.status.conditions}
    for kind in ("Accepted", "Placed", "RestartRequired", "Bootable"):
        condition = told.get(kind)
        is_bad = condition is not None and (condition.status == "True") == (kind == "RestartRequired")
        if condition is not None and is_bad and condition.reason != "Starting":
            return condition.reason, condition.message
    return wukong.status.reason, ""


def _build_machine(machine: Machine, now: float) -> TreeEntry:
    if machine.vm is None:
        return TreeEntry("vm", machine.name, "", "Missing")
    trouble = find_trouble(machine, now)
    pending = find_pending_changes(machine)
    reason, message = trouble.reason, trouble.message
    if not reason and pending.is_restart_required:
        reason, message = "RestartRequired", ", ".join(pending.restart)
    return TreeEntry(
        kind="vm",
        name=machine.name,
        ready="yes" if machine.is_ready else "no",
        status="Deleting" if is_leaving(machine.vm) else machine.vm.status.printable_status,
        reason=reason,
        message=message,
        children=(_build_instance(machine, machine.instance),) if machine.instance is not None else (),
    )


def _build_instance(machine: Machine, instance: VirtualMachineInstance) -> TreeEntry:
    migratable = find_condition(instance.status.conditions, "LiveMigratable")
    is_stuck = migratable is not None and migratable.status == "False"
    pods = tuple(_build_pod(pod) for pod in machine.pods)
    migrations = (_build_migration(machine.migration),) if machine.migration is not None else ()
    return TreeEntry(
        kind="vmi",
        name=instance.metadata.name,
        status="Deleting" if is_leaving(instance) else instance.status.phase,
        reason="NotLiveMigratable" if is_stuck else "",
        message=migratable.message if migratable is not None and is_stuck else "",
        children=(*migrations, *pods),
    )


def _build_migration(migration: VirtualMachineInstanceMigration) -> TreeEntry:
    return TreeEntry("migration", migration.metadata.name, status=migration.status.phase or "Pending")


def _build_pod(pod: Pod) -> TreeEntry:
    refusal = next((condition for condition in pod.status.conditions if _is_refusal(condition)), None)
    node = pod.spec.node_name
    return TreeEntry(
        kind="pod",
        name=pod.metadata.name,
        status="Terminating" if pod.is_terminating else pod.status.phase,
        reason=refusal.reason if refusal is not None else "",
        message=refusal.message if refusal is not None else "",
        children=(TreeEntry("node", node),) if node else (),
    )


def _is_refusal(condition: PodCondition) -> bool:
    return condition.type == "PodScheduled" and condition.status == "False"


def build_view(trees: Iterable[tuple[Wukong, TreeEntry]], *, all_namespaces: bool, is_wide: bool) -> list[Part]:
    """A table of all trees, one line for each object."""
    headings = (*(("NAMESPACE",) if all_namespaces else ()), "NAME", "READY", "STATUS", "REASON", "MESSAGE")
    table = Table(*headings, whole=["READY"], names=["NAMESPACE", "NAME"], is_wide=is_wide)
    for wukong, tree in trees:
        for prefix, entry in _walk(tree, "", ""):
            message = entry.message.partition("\n")[0]
            if not is_wide and len(message) > _LONGEST_INFO:
                message = f"{message[: _LONGEST_INFO - 1]}…"
            cells = (f"{prefix}{entry.kind}/{entry.name}", entry.ready, entry.status, entry.reason, message)
            table.add_row(*((wukong.metadata.namespace,) if all_namespaces else ()), *cells)
    return [table]


def _walk(entry: TreeEntry, prefix: str, below: str) -> Iterator[tuple[str, TreeEntry]]:
    """Each entry with the lines before it."""
    yield prefix, entry
    for number, child in enumerate(entry.children, start=1):
        is_last = number == len(entry.children)
        yield from _walk(child, below + (_LAST if is_last else _BRANCH), below + (_GAP if is_last else _LINE))


def build_document(trees: Iterable[tuple[Wukong, TreeEntry]]) -> dict[str, object]:
    items = [{"namespace": wukong.metadata.namespace, **tree.build_document()} for wukong, tree in trees]
    return {"kind": "WukongTreeList", "items": items}


def list_names(trees: Iterable[tuple[Wukong, TreeEntry]]) -> list[str]:
    """As `kubectl get -o name` writes them."""
    return [f"wukong.vm.novasphere.dev/{key_of(wukong).name}" for wukong, _ in trees]
