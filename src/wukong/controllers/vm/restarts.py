"""Virtual machines take up changes that wait for a restart, or for another pod: one at a time, when it is safe.

For Wukongs with restartPolicy WhenSafe. One virtual machine is chosen at each look; nothing is remembered between
looks, for what was done shows in the cluster:

    pending changes ──► restartPolicy Never ──────────────────────────► nothing; the condition tells what to do
        │
        ├─ it has no node: it serves nobody ──────────────────────────► restart
        ├─ another of this Wukong is not ready, starts, stops or moves ► wait: that change brings us back
        ├─ it was started less than SETTLE_SECONDS ago ───────────────► wait
        ├─ a budget over its pod allows no disruption ────────────────► wait BUDGET_SECONDS
        ├─ only rules for the next pod ──┬─ its node is right by them ► nothing
        │                                ├─ it can migrate ───────────► migrate; once for each change
        │                                └─ it cannot ────────────────► restart
        └─ a restart is required ─────────────────────────────────────► restart: delete the instance, KubeVirt makes
                                                                        another (runStrategy Always, RerunOnFailure)
"""

from __future__ import annotations

from hashlib import blake2b

import msgspec

from wukong.actions import Action, Create, Delete
from wukong.api.apps import PodDisruptionBudget
from wukong.api.core import Affinity, Pod
from wukong.api.kinds import VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, VIRTUAL_MACHINE_INSTANCES
from wukong.api.kubevirt import VirtualMachineInstance, VirtualMachineInstanceMigration, find_condition
from wukong.api.profile import default_profile
from wukong.api.resources import Key, key_of
from wukong.api.times import parse_time
from wukong.api.vm import NAME_LABEL, Wukong
from wukong.controllers.vm.machines import Machine, is_leaving
from wukong.controllers.vm.pending_changes import rules_of
from wukong.controllers.vm.status import MachineReport
from wukong.controllers.vm.vm_writes import build_note
from wukong.engine import Scheduler
from wukong.semantics.selectors import compile_selector, selects
from wukong.state import State

SETTLE_SECONDS = 120.0
BUDGET_SECONDS = 10.0
_RESTARTED = ("Always", "RerunOnFailure")  # run strategies under which KubeVirt starts a new instance by itself


class Step(msgspec.Struct, frozen=True):
    """What to do about pending changes now, in words for the condition; `again_after` is when to look again."""

    text: str
    actions: tuple[Action, ...] = ()
    again_after: float | None = None


class Restarts:
    def __init__(self) -> None:
        # Made once: the engine keeps compiled pods by the identity of the profile.
        filters = ("NodeAffinity", "InterPodAffinity")
        self._profile = msgspec.structs.replace(default_profile(), filters=filters, scores=(), zero_scores=())

    def plan(self, wukong: Wukong, reports: list[MachineReport], state: State, now: float) -> Step | None:
        """The next step; None where nothing is pending, or the Wukong does not ask for it."""
        if wukong.spec.restart_policy != "WhenSafe":
            return None
        pending = [report for report in reports if report.pending and report.machine.instance is not None]
        if not pending:
            return None
        unplaced = next((report for report in pending if _waits_for_node(report)), None)
        if unplaced is not None:
            return _restart(wukong, unplaced)
        candidates = [report for report in pending if self._must_act(report, state)]
        if not candidates:
            return Step("The nodes are right by the changed rules: nothing needs to move.")
        chosen = next((report for report in candidates if not report.machine.is_ready), candidates[0])
        others = [report.machine for report in reports if report is not chosen]
        if busy := next((machine for machine in others if _is_busy(machine)), None):
            return Step(f"{chosen.machine.name} is next, once {busy.name} is ready.")
        return self._act(wukong, chosen, state, now)

    def _must_act(self, report: MachineReport, state: State) -> bool:
        return report.pending.is_restart_required or self._is_on_wrong_node(report.machine, state)

    def _act(self, wukong: Wukong, report: MachineReport, state: State, now: float) -> Step:
        machine = report.machine
        if machine.migration is not None:
            return Step(f"{machine.name} is migrating.")
        instance = machine.instance
        assert instance is not None
        if is_leaving(instance):
            return Step(f"{machine.name} is restarting.")
        started_at = parse_time(instance.metadata.creation_timestamp)
        left = started_at + SETTLE_SECONDS - now if started_at is not None else 0.0
        if left > 0:
            return Step(f"{machine.name} was started a moment ago: it is next, after a pause.", again_after=left)
        if budget := _find_exhausted_budget(machine, state):
            text = f"{machine.name} is next, once PodDisruptionBudget {budget} allows a disruption."
            return Step(text, again_after=BUDGET_SECONDS)
        if not report.pending.is_restart_required and _is_migratable(instance):
            return _migrate(wukong, machine, state)
        return _restart(wukong, report)

    def _is_on_wrong_node(self, machine: Machine, state: State) -> bool:
        """Whether the rules as they are now would not let the pod onto the node where it runs."""
        pod = machine.running_pod
        if pod is None or machine.vm is None or pod.spec.node_name not in state.snapshot.row_of:
            return False
        fork = state.snapshot.fork()
        if pod.key in fork.pods:
            fork.forget(pod.key)
        view = Scheduler(fork, self._profile).view_of(_with_rules(pod, machine.vm.spec))
        view.sync()
        return not view.feasible[fork.row_of[pod.spec.node_name]]


def _waits_for_node(report: MachineReport) -> bool:
    instance = report.machine.instance
    assert instance is not None
    is_unplaced = not report.machine.node and report.machine.waiting_pod is not None
    return is_unplaced and report.pending.is_restart_required and not is_leaving(instance)


def _is_busy(machine: Machine) -> bool:
    instance = machine.instance
    return not machine.is_ready or machine.migration is not None or instance is None or is_leaving(instance)


def _with_rules(pod: Pod, vm_spec: dict[str, object]) -> Pod:
    """The pod without a node, under the rules of the template as it is now."""
    rules = rules_of(vm_spec)
    affinity = msgspec.convert(rules.get("affinity") or {}, Affinity)
    selector = {**pod.spec.node_selector, **(rules.get("nodeSelector") or {})}
    spec = msgspec.structs.replace(pod.spec, node_name="", affinity=affinity, node_selector=selector)
    return msgspec.structs.replace(pod, spec=spec)


def _find_exhausted_budget(machine: Machine, state: State) -> str:
    """The first budget over the pod that allows no disruption now."""
    pod = machine.running_pod
    if pod is None:
        return ""
    for key, budget in sorted(state.of(PodDisruptionBudget).items()):
        if key.namespace != pod.metadata.namespace or not isinstance(budget, PodDisruptionBudget):
            continue
        is_covered = selects(compile_selector(budget.spec.selector), pod.metadata.labels)
        if is_covered and budget.status.disruptions_allowed <= 0:
            return key.name
    return ""


def _is_migratable(instance: VirtualMachineInstance) -> bool:
    condition = find_condition(instance.status.conditions, "LiveMigratable")
    return condition is not None and condition.status == "True"


def _restart(wukong: Wukong, report: MachineReport) -> Step:
    machine = report.machine
    instance, strategy = machine.instance, wukong.spec.run_strategy
    assert instance is not None
    if strategy not in _RESTARTED:
        return Step(f"runStrategy is {strategy}: {machine.name} is not started again by itself. Restart it yourself.")
    delete = Delete(VIRTUAL_MACHINE_INSTANCES, key_of(instance), uid=instance.metadata.uid, propagation="Background")
    note = build_note(wukong, "Restarting", f"{machine.name} is restarted to take up what was changed.")
    return Step(f"{machine.name} is restarted.", (delete, note))


def _migrate(wukong: Wukong, machine: Machine, state: State) -> Step:
    """Start a migration, named after what it is for: one that failed is not repeated until something changes."""
    assert machine.instance is not None
    assert machine.vm is not None
    occasion = f"{machine.instance.metadata.uid} {machine.vm.metadata.generation}"
    name = f"{machine.name[:240]}-{blake2b(occasion.encode(), digest_size=5).hexdigest()}"
    key = Key(wukong.metadata.namespace, name)
    before = state.get(VirtualMachineInstanceMigration, key)
    if before is not None:
        return Step(f"The migration {name} of {machine.name} has ended as {before.status.phase}; it is not repeated.")
    body = {
        "apiVersion": VIRTUAL_MACHINE_INSTANCE_MIGRATIONS.api_version,
        "kind": VIRTUAL_MACHINE_INSTANCE_MIGRATIONS.kind,
        "metadata": {"name": name, "namespace": key.namespace, "labels": {NAME_LABEL: wukong.metadata.name}},
        "spec": {"vmiName": machine.name},
    }
    create = Create(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, body, key.namespace)
    note = build_note(wukong, "Migrating", f"{machine.name} is migrated: its node is not right by the changed rules.")
    return Step(f"{machine.name} is migrated.", (create, note))
