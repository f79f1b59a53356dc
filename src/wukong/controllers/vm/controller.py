"""The vm controller: the VirtualMachines of each Wukong, and how they fare on its status.

Keys are Wukongs. One look reads all that is known of the virtual machines (machines.py), says what is to be written
(vm_writes.py, restarts.py) and how things stand (status.py). The status comes first: what a write of a VirtualMachine
is refused for shows there at the next look, and would otherwise be stuck behind that write.

    not accepted, or unreadable ─► nothing of what runs is changed; the condition Accepted says why
    KubeVirt is not installed   ─► the condition Ready says so; looked at again
    being deleted               ─► nothing: the garbage collector deletes what it owns
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from wukong.actions import DONE, Action, Outcome, Patch
from wukong.api.kinds import (
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    PRIORITY_CLASSES,
    VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
    VIRTUAL_MACHINE_INSTANCES,
    VIRTUAL_MACHINES,
    WUKONGS,
)
from wukong.api.profile import default_profile
from wukong.api.resources import Key
from wukong.api.vm import Wukong, WukongStatus, vm_names_of
from wukong.controllers.conditions import Claim, is_turned, update_conditions
from wukong.controllers.vm.conditions import ACCEPTED, PLACED
from wukong.controllers.vm.machines import (
    find_machine,
    list_owned_names,
    wukongs_of_instance,
    wukongs_of_migration,
    wukongs_of_pod,
    wukongs_of_vm,
)
from wukong.controllers.vm.pending_changes import find_pending_changes
from wukong.controllers.vm.placement_advice import advise
from wukong.controllers.vm.priority_classes import ClassUsers, find_class_obstacle
from wukong.controllers.vm.priority_limits import PriorityLimits, find_priority_problems
from wukong.controllers.vm.restarts import PAUSE_SECONDS, Restarts
from wukong.controllers.vm.status import Findings, MachineReport, build_status, format_status
from wukong.controllers.vm.vm_status import MIGRATION_WAITS, UNSCHEDULABLE, find_trouble
from wukong.controllers.vm.vm_writes import VmWriter, Writes, build_note
from wukong.placement.rule import Rules
from wukong.placement.vm import VmSettings, find_wukong_problems, is_bootable
from wukong.ports import PatchBody
from wukong.state import State
from wukong.state.controller import Watch, no_keys
from wukong.state.mirror import Change

STATUS_SECONDS = 1.0  # changes of virtual machines alone are told no more often than this
MOST_TURNS = 10  # conditions that turn are told at once, but so many in a row: KubeVirt may turn them to and fro
ADVICE_SECONDS = 15.0  # an explanation holds so long while the scheduler says the same
MISSING_SECONDS = 30.0  # until a look whether KubeVirt has been installed
OBSTACLE_SECONDS = 5.0
_PERMANENT = ("Invalid", "Denied", "GateRefusal")  # errors that are told when they first come


def wukongs_of_class(change: Change, state: State) -> list[Key]:
    return state.index_of(ClassUsers).list_asking(change.key.name)


class Judgement(NamedTuple):
    """What does not change while a Wukong's spec does not."""

    uid: str
    generation: int
    problems: list[str]
    is_bootable: bool


class Advice(NamedTuple):
    pod_uid: str
    refusal: str  # of the scheduler
    at: float
    text: str


class VirtualMachineController:
    name = "vm"
    watches = (
        Watch(WUKONGS),
        Watch(VIRTUAL_MACHINES, wukongs_of_vm, optional=True, is_secondary=True),
        Watch(VIRTUAL_MACHINE_INSTANCES, wukongs_of_instance, optional=True, is_secondary=True),
        Watch(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, wukongs_of_migration, optional=True, is_secondary=True),
        Watch(PODS, wukongs_of_pod, is_secondary=True),
        Watch(PRIORITY_CLASSES, wukongs_of_class, is_secondary=True),
        Watch(POD_DISRUPTION_BUDGETS, no_keys),
        # What the explanation of an unplaced virtual machine goes by.
        Watch(NODES, no_keys),
        Watch(NAMESPACES, no_keys),
        Watch(PERSISTENT_VOLUME_CLAIMS, no_keys),
        Watch(PERSISTENT_VOLUMES, no_keys),
    )

    def __init__(
        self,
        rules: Rules,
        settings: VmSettings | None = None,
        limits: PriorityLimits | None = None,
        pause_seconds: float = PAUSE_SECONDS,
    ) -> None:
        """`pause_seconds` is the least time between the start of a virtual machine and its restart."""
        self.rules, self.settings, self.limits = rules, settings or VmSettings(), limits or PriorityLimits()
        self.writer, self.restarts = VmWriter(self.settings), Restarts(pause_seconds)
        self._profile = default_profile()
        # What may be lost: it saves work, and writes in quick succession.
        self._judged: dict[Key, Judgement] = {}
        self._advice: dict[Key, Advice] = {}
        self._told_at: dict[Key, float] = {}
        self._quiet_at: dict[Key, float] = {}  # when all that was told would have been, told once in STATUS_SECONDS

    def copy_memory(self, source: VirtualMachineController, _: State) -> None:
        self.writer.copy_memory(source.writer)
        self._judged, self._advice = dict(source._judged), dict(source._advice)
        self._told_at, self._quiet_at = dict(source._told_at), dict(source._quiet_at)

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        wukong = state.get(Wukong, key)
        if wukong is None:
            self._forget(key)
            return _report_unreadable(key, state, now)
        if wukong.metadata.deletion_timestamp is not None:
            return DONE
        return self._look(wukong, key, state, now)

    def _look(self, wukong: Wukong, key: Key, state: State, now: float) -> Outcome:
        judgement = self._judge(wukong, key)
        wanted = [find_machine(wukong, name, state) for name in vm_names_of(wukong)]
        names = {machine.name for machine in wanted}
        surplus = [find_machine(wukong, name, state) for name in list_owned_names(wukong, state) if name not in names]
        reports = [
            MachineReport(machine, find_trouble(machine, now), find_pending_changes(machine)) for machine in wanted
        ]
        obstacle = find_obstacle(wukong, state)
        may_write = not judgement.problems and obstacle is None
        writes = self.writer.plan(wukong, wanted, surplus, now) if may_write else Writes(actions=[])
        is_settled = may_write and not writes.actions and not surplus
        restart = self.restarts.plan(wukong, reports, state, now) if is_settled else None
        findings = Findings(
            problems=judgement.problems,
            is_bootable=judgement.is_bootable,
            obstacle=obstacle or self._find_failure(key, state),
            advice=self._advise(key, reports, state, now),
            restarting=restart.text if restart is not None else "",
        )
        status = build_status(wukong, reports, findings, now)
        told, wait = self._tell(wukong, key, status, now)
        actions = [*told, *writes.actions, *(restart.actions if restart is not None else ())]
        waits = [
            wait,
            writes.again_after,
            restart.again_after if restart is not None else None,
            *(report.trouble.again_after for report in reports),
            _wait_for(obstacle),
        ]
        return Outcome(tuple(actions), requeue_after=min((wait for wait in waits if wait is not None), default=None))

    def _judge(self, wukong: Wukong, key: Key) -> Judgement:
        """Once for each generation."""
        meta, known = wukong.metadata, self._judged.get(key)
        if known is not None and (known.uid, known.generation) == (meta.uid, meta.generation):
            return known
        problems = find_wukong_problems(wukong, self.rules, self.settings)
        problems += find_priority_problems(wukong, self.limits)
        can_boot = is_bootable(wukong) if not problems else True
        self._judged[key] = Judgement(meta.uid, meta.generation, problems, can_boot)
        return self._judged[key]

    def _find_failure(self, key: Key, state: State) -> tuple[str, str] | None:
        """What the API server or KubeVirt's webhook last refused, unless it may pass by itself."""
        attempt = state.attempts.get(self.name, key)
        if attempt is None or (attempt.count < 3 and attempt.error.partition(":")[0] not in _PERMANENT):
            return None
        return "WriteFailed", f"What should be written is refused: {attempt.error}"

    def _advise(self, key: Key, reports: list[MachineReport], state: State, now: float) -> str:
        """The smallest change for the first that has no node; the others are like it."""
        reasons = (UNSCHEDULABLE, MIGRATION_WAITS)
        report = next((report for report in reports if report.trouble.reason in reasons), None)
        pod = report.machine.waiting_pod if report is not None else None
        if report is None or pod is None:
            self._advice.pop(key, None)
            return ""
        uid, refusal, known = pod.metadata.uid, report.trouble.message, self._advice.get(key)
        if known is not None and (known.pod_uid, known.refusal) == (uid, refusal) and now - known.at < ADVICE_SECONDS:
            return known.text
        self._advice[key] = Advice(uid, refusal, now, advise(pod, state.snapshot, self._profile))
        return self._advice[key].text

    def _tell(self, wukong: Wukong, key: Key, status: WukongStatus, now: float) -> tuple[list[Action], float | None]:
        """Write the status unless it stands there, and Events about what turned. Or the seconds until that is due."""
        present = wukong.status
        if format_status(present) == format_status(status):
            return [], None
        told_at = self._told_at.get(key, -STATUS_SECONDS)
        left = told_at + STATUS_SECONDS - now if told_at <= now else 0.0  # a clock may be set back
        quiet_at = max(self._quiet_at.get(key, now), now)
        is_restless = quiet_at - now > (MOST_TURNS - 1) * STATUS_SECONDS
        turned = is_turned(present.conditions, status.conditions) and not is_restless
        is_new = turned or present.observed_generation != status.observed_generation
        if not is_new and left > 0:
            return [], left
        self._told_at[key], self._quiet_at[key] = now, quiet_at + STATUS_SECONDS
        body = {"metadata": {"resourceVersion": wukong.metadata.resource_version}, "status": format_status(status)}
        patch = Patch(WUKONGS, key, PatchBody("merge", body), subresource="status")
        return [patch, *_list_events(wukong, status)], None

    def _forget(self, key: Key) -> None:
        self.writer.forget(key)
        for memory in (self._judged, self._advice, self._told_at, self._quiet_at):
            memory.pop(key, None)


def find_obstacle(wukong: Wukong, state: State) -> tuple[str, str] | None:
    """What keeps us from writing any VirtualMachine, as reason and message."""
    if VIRTUAL_MACHINES.group_kind in state.missing_kinds:
        return "KubeVirtMissing", "The cluster has no kind VirtualMachine: KubeVirt is not installed."
    return find_class_obstacle(wukong, state)


def _wait_for(obstacle: tuple[str, str] | None) -> float | None:
    if obstacle is None:
        return None
    return MISSING_SECONDS if obstacle[0] == "KubeVirtMissing" else OBSTACLE_SECONDS


def _list_events(wukong: Wukong, status: WukongStatus) -> list[Action]:
    """An Event for each condition that turned for the worse, or for the better after that."""
    before = {condition.type: condition for condition in wukong.status.conditions}
    notes: list[Action] = []
    for condition in status.conditions:
        known = before.get(condition.type)
        is_same = known is not None and (known.status, known.reason) == (condition.status, condition.reason)
        if is_same or condition.type not in (ACCEPTED, PLACED) or condition.reason == "Starting":
            continue
        is_bad = condition.status == "False"
        if is_bad or (known is not None and known.status == "False" and known.reason != "Starting"):
            reason = condition.reason if is_bad else condition.type
            notes.append(build_note(wukong, reason, condition.message, is_warning=is_bad))
    return notes


def _report_unreadable(key: Key, state: State, now: float) -> Outcome:
    """Say on a Wukong that cannot be read what is wrong with it. Everything else it says stays as it was."""
    unreadable = state.get_unreadable(Wukong, key)
    if unreadable is None or not isinstance(unreadable.remains, Wukong):
        return DONE
    wukong = unreadable.remains
    claim = Claim(ACCEPTED, False, "Unreadable", unreadable.problem)
    generation = wukong.metadata.generation
    conditions = update_conditions(wukong.status.conditions, [claim], generation, now)
    if conditions == wukong.status.conditions and wukong.status.observed_generation == generation:
        return DONE
    body = {
        "metadata": {"resourceVersion": wukong.metadata.resource_version},
        "status": {
            "observedGeneration": generation,
            "reason": "NotAccepted",
            "conditions": msgspec.to_builtins(conditions),
        },
    }
    return Outcome((Patch(WUKONGS, key, PatchBody("merge", body), subresource="status"),))
