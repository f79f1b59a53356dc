"""Another number of replicas: as many as have a place, or one more so that a budget can let one go.

Left alone where an autoscaler sets the number.
"""

from __future__ import annotations

from collections.abc import Iterator

from wukong.forecast.advice.candidate import Candidate, Loss
from wukong.forecast.advice.patches import build_patch
from wukong.forecast.advice.question import Question, StuckWorkload

FEWER, MORE = "fewer-replicas", "more-replicas"


def propose_fewer(question: Question) -> Iterator[Candidate]:
    """Where the change is stuck: one fewer, or as many as are available then, or one fewer than that."""
    for workload in question.workloads if question.is_stuck else ():
        forecast = question.play.workloads.get(str(workload.key))
        placed = forecast.available if forecast is not None else 0
        for size in dict.fromkeys((workload.replicas - 1, placed, placed - 1)):
            if 0 < size < workload.replicas and not question.is_autoscaled(workload):
                costs = f"{workload.replicas - size} of {workload.replicas} pods, and what they serve."
                yield _resize(workload, size, FEWER, Loss.CAPACITY, costs)


def propose_more(question: Question) -> Iterator[Candidate]:
    """Where a node is drained: a pod more is there before one goes."""
    is_drained = any(step.drain is not None for step in question.change.steps)
    for workload in question.workloads if is_drained else ():
        if not question.is_autoscaled(workload):
            yield _resize(workload, workload.replicas + 1, MORE, Loss.MONEY, "One pod more to pay for.")


def _resize(workload: StuckWorkload, size: int, code: str, loss: Loss, costs: str) -> Candidate:
    return Candidate(
        code=code,
        text=f"Ask for {size} replicas of {workload.subject} instead of {workload.replicas}.",
        loss=loss,
        gives_up=costs,
        patches=(build_patch(workload.document, workload.with_spec(replicas=size)),),
    )
