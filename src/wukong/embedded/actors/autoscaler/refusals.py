"""Why no group helps a pod that waits, in cluster-autoscaler's words. Called by controller.py."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Sequence

from wukong.embedded.actors.autoscaler.new_node import add_new_nodes
from wukong.embedded.actors.autoscaler.scale_up import Candidate
from wukong.embedded.world.objects import Pod
from wukong.engine import Scheduler, Snapshot
from wukong.engine.decide import find_refusals

AT_MAXIMUM = "max node group size reached"


def describe_refusals(
    snapshot: Snapshot, waiting: list[Pod], candidates: Sequence[Candidate], upcoming: int, groups: int
) -> list[tuple[Pod, str]]:
    """The first of each sort of pods, and what speaks against each of the `groups`; those at their maximum are no
    candidates."""
    trial = snapshot.fork()
    names = add_new_nodes(trial, [candidate.new_node for candidate in candidates], upcoming) if candidates else []
    scheduler = Scheduler(trial)
    first_pods = {trial.table.intern(pod).number: pod for pod in reversed(waiting)}
    described = []
    for pod in sorted(first_pods.values(), key=lambda pod: pod.key):
        view = scheduler.view_of(pod)
        view.sync()
        refusals = find_refusals(view)
        reasons = Tally(reason for name in names if name in refusals for reason in refusals[name].reasons)
        reasons[AT_MAXIMUM] += groups - len(candidates)
        texts = sorted(f"{count} {reason}" for reason, count in reasons.items() if count)
        described.append((pod, f"pod didn't trigger scale-up: {', '.join(texts)}"))
    return described
