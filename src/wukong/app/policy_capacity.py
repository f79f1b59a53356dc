"""How many more pods like this one fit where a scheduler asks our extender: placed one by one, asked anew about each.

Called by `wukong capacity` where policies hold. What the extender says of a pod depends on those before it (floors,
spot first while there is room), so every copy is put into its mirror as well as on a fork of the snapshot. The
caller's snapshot is not changed; the mirror of the question is, and is of no use afterwards.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from wukong.api.core import Pod
from wukong.app.extender_question import ExtenderQuestion
from wukong.engine import Scheduler
from wukong.engine.capacity import Capacity, count_capacity
from wukong.replies.extender.plugin import add_extender

replace = msgspec.structs.replace


def count_policy_capacity(
    scheduler: Scheduler,
    pod: Pod,
    question: ExtenderQuestion,
    limit: int | None = None,
    report_progress: Callable[[int, int], object] = lambda done, total: None,
) -> Capacity:
    """Place up to `limit` copies, each where the scheduler would put it with the extender's word."""
    extended, _ = add_extender(scheduler, question.extender, question.entry, question.now, pod)

    def place_copies(trial: Scheduler, count: int, key: str) -> list[str]:
        nodes: list[str] = []
        for number in range(count):
            trial.snapshot.views.clear()  # compiled anew, so that the extender is asked again
            node = trial.place(pod, f"{key}-{number}")
            if node is None:
                break
            nodes.append(node)
            question.extender.state.apply("ADDED", _bind_copy(pod, f"{key}-{number}", node))
        return nodes

    return count_capacity(extended, pod, limit, report_progress, place_copies)


def _bind_copy(pod: Pod, key: str, node: str) -> Pod:
    """A copy on its node, under a name that no pod can have."""
    name = key.partition("/")[2]
    return replace(pod, metadata=replace(pod.metadata, name=name, uid=name), spec=replace(pod.spec, node_name=node))
