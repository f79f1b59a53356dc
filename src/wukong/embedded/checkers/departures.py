"""No pod goes with its machine that could have been evicted in time, where nothing went wrong.

Looked at when a Node is removed whose end was written down a minute before at least: a pod that is still there, has a
controller other than a DaemonSet, and whose budget allows a disruption, was forgotten. Not judged in a world with
faults: whoever was down or behind in the last half minute was late for a reason.
"""

from __future__ import annotations

from typing import Any

import msgspec

from wukong.api.apps import PodDisruptionBudget
from wukong.api.core import NEVER_MOVE, Node, Pod
from wukong.api.json_values import decode_json
from wukong.api.meta import controller_of
from wukong.api.times import parse_time
from wukong.embedded.checkers.findings import Findings
from wukong.errors import InputError
from wukong.rules.selectors import requirements, selects
from wukong.state import Change, State

_LEAVING = "placement.novasphere.dev/leaving"
_decoder = msgspec.json.Decoder(dict[str, Any])
_LEAST_SECONDS = 60.0
_STAYING = ("DaemonSet", "Node", "VirtualMachineInstance")


class Departures:
    def __init__(self, findings: Findings) -> None:
        self.findings, self.world = findings, findings.world

    def fork(self, findings: Findings) -> Departures:
        return Departures(findings)

    def observe(self, change: Change) -> None:
        node = change.old
        if change.new is not None or not isinstance(node, Node) or len(self.world.processes) > 1:
            return
        if not _was_announced(node, self.world.clock.now()):
            return
        for pod in self.world.state.pods_on(change.key.name):
            if _could_go(pod, self.world.state):
                self.findings.report(f"pod {pod.key}", f"went with node {change.key.name}, and could have been evicted")


def _was_announced(node: Node, now: float) -> bool:
    """Whether its end was known for long enough, and came when it was expected."""
    try:
        record = decode_json(node.metadata.annotations.get(_LEAVING, "{}").encode(), _decoder)
    except (InputError, msgspec.ValidationError):
        return False
    seen, deadline = parse_time(record.get("seen")), parse_time(record.get("deadline"))
    if record.get("course") != "Reclaim" or seen is None or deadline is None:
        return False
    return deadline - seen >= _LEAST_SECONDS and now >= deadline - 1.0


def _could_go(pod: Pod, state: State) -> bool:
    reference = controller_of(pod.metadata)
    if reference is None or reference.kind in _STAYING or pod.metadata.annotations.get(NEVER_MOVE) == "true":
        return False
    if pod.is_finished or pod.is_terminating:
        return False
    budgets = [
        budget
        for budget in state.all(PodDisruptionBudget)
        if budget.metadata.namespace == pod.metadata.namespace
        and budget.spec.selector is not None
        and selects(requirements(budget.spec.selector), pod.metadata.labels)
    ]
    return len(budgets) < 2 and all(budget.status.disruptions_allowed > 0 for budget in budgets)
