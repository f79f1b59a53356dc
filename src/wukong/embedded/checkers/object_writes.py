"""No controller writes an object of ours or of a virtual machine without end, as one that is never content with it.

Counts what each controller writes to each policy, budget, Wukong, VirtualMachine, instance, migration and PriorityClass
in ten minutes; creations and deletions count, too. Of a budget only its spec counts: its status follows each pod. An
object may be written so often for itself, and as often again for each machine that its status tells of: a Wukong has
many. What people write is not counted, nor what virt-controller writes to a VirtualMachine while a second instance of
it acts: if one is behind with instances, each writes its own status over the other's without end, as on a real cluster
(tests/live/test_two_virt_controllers.py). Two instances of ours get no such leave. The numbers are twice or more what
the soaks of examples/sim were seen to need under all faults; controllers that undo each other's work write thousands.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from wukong.api.apps import PodDisruptionBudget
from wukong.api.kinds import (
    CLUSTER_PLACEMENT_POLICIES,
    PLACEMENT_POLICIES,
    POD_DISRUPTION_BUDGETS,
    PRIORITY_CLASSES,
    VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
    VIRTUAL_MACHINE_INSTANCES,
    VIRTUAL_MACHINES,
    WUKONGS,
)
from wukong.api.meta import Object
from wukong.api.resources import Key
from wukong.api.vm import Wukong, vm_names_of
from wukong.embedded.checkers.acting_controller import ActingController, acting_controller
from wukong.embedded.checkers.findings import Findings
from wukong.state import Change

WINDOW_SECONDS = 600.0
MOST_WRITES = {  # by one controller to one object, in such a window
    WUKONGS.group_kind: 120,
    VIRTUAL_MACHINES.group_kind: 120,
    VIRTUAL_MACHINE_INSTANCES.group_kind: 120,
    VIRTUAL_MACHINE_INSTANCE_MIGRATIONS.group_kind: 120,
    PRIORITY_CLASSES.group_kind: 120,
    PLACEMENT_POLICIES.group_kind: 240,
    CLUSTER_PLACEMENT_POLICIES.group_kind: 240,
    POD_DISRUPTION_BUDGETS.group_kind: 120,
}
_Place = tuple[str, str, Key]  # a controller, and group, kind and key of an object


class Window(NamedTuple):
    since: float
    writes: int


class ObjectWrites:
    kinds: ClassVar[frozenset[str]] = frozenset(MOST_WRITES)

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self._windows: dict[_Place, Window] = {}

    def fork(self, findings: Findings) -> ObjectWrites:
        copy = ObjectWrites(findings)
        copy._windows = dict(self._windows)
        return copy

    def observe(self, change: Change) -> None:
        most = MOST_WRITES.get(change.group_kind)
        if most is None or _is_count_of_pods(change):
            return
        actor, now = acting_controller(self.findings.world), self.findings.world.clock.now()
        if actor is None or (change.group_kind == VIRTUAL_MACHINES.group_kind and self._is_one_of_two_leaders(actor)):
            return
        place = (actor.name, change.group_kind, change.key)
        before = self._windows.get(place)
        if before is None or now - before.since > WINDOW_SECONDS:
            before = Window(now, 0)
        window = self._windows[place] = Window(before.since, before.writes + 1)
        most *= 1 + _count_machines(change.new if change.new is not None else change.old)
        if window.writes == most + 1:
            text = (
                f"written {window.writes} times in {now - window.since:.0f} s by {actor.name}, which is never content"
            )
            self.findings.report(f"{change.kind.lower()} {change.key}", text)

    def _is_one_of_two_leaders(self, actor: ActingController) -> bool:
        """Whether it is none of ours, and two instances of its process are running."""
        role = actor.process.role
        instances = [process for process in self.findings.world.processes if process.role.name == role.name]
        return not actor.is_ours and len(instances) > 1


def _is_count_of_pods(change: Change) -> bool:
    """Whether only the status of a budget was written."""
    old, new = change.old, change.new
    is_budget = isinstance(old, PodDisruptionBudget) and isinstance(new, PodDisruptionBudget)
    return is_budget and old is not None and new is not None and old.metadata.generation == new.metadata.generation


def _count_machines(subject: Object | None) -> int:
    return len(vm_names_of(subject)) if isinstance(subject, Wukong) else 0
