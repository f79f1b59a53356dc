"""Another budget: one that lets a pod go at a time, where it refuses every eviction or more than is needed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wukong.forecast.advice.candidate import Candidate, Loss
from wukong.forecast.advice.patches import build_patch
from wukong.forecast.advice.question import Question
from wukong.ports import Document

CODE = "other-budget"


def propose(question: Question) -> Iterator[Candidate]:
    for budget, document in question.budgets:
        spec = document["spec"]
        if isinstance(least := spec.get("minAvailable"), int) and least > 1:
            yield _change(document, f"minAvailable: {least - 1}", {**spec, "minAvailable": least - 1})
        if spec.get("maxUnavailable") != 1:
            rest = {name: value for name, value in spec.items() if name not in ("minAvailable", "maxUnavailable")}
            yield _change(document, "maxUnavailable: 1", {**rest, "maxUnavailable": 1})
        if budget.spec.unhealthy_pod_eviction_policy != "AlwaysAllow":
            policy = "unhealthyPodEvictionPolicy: AlwaysAllow"
            yield _change(document, policy, {**spec, "unhealthyPodEvictionPolicy": "AlwaysAllow"})


def _change(document: Document, words: str, spec: dict[str, Any]) -> Candidate:
    meta = document["metadata"]
    return Candidate(
        code=CODE,
        text=f"Set {words} in PodDisruptionBudget {meta.get('namespace', 'default')}/{meta['name']}.",
        loss=Loss.PROTECTION,
        gives_up="Its pods are protected less, at other times, too.",
        patches=(build_patch(document, {**document, "spec": spec}),),
    )
