"""Another maxSurge and maxUnavailable: an old pod goes before the new one comes, and leaves it its place.

Or the other way round, where old pods have to go too early: none goes before a new one is there. As a last resort all
of them go first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wukong.embedded.actors.deployment.sizes import resolve_limits
from wukong.forecast.advice import match_label_keys
from wukong.forecast.advice.candidate import Candidate, Loss
from wukong.forecast.advice.patches import build_patch
from wukong.forecast.advice.question import Question, StuckWorkload
from wukong.forecast.advice.rules import TEMPLATE_HASH
from wukong.ports import Document

CODE = "rollout-limits"
_DEFAULT = "25%"


def propose(question: Question) -> Iterator[Candidate]:
    for workload in question.workloads:
        if workload.kind != "Deployment" or workload.replicas == 0 or str(workload.key) not in question.rolled:
            continue  # the limits are about rollouts alone
        strategy = workload.document["spec"].get("strategy") or {}
        if strategy.get("type") == "Recreate":
            yield _roll(workload, maxSurge=1, maxUnavailable=0)
            yield _roll(workload, maxSurge=0, maxUnavailable=1)
            continue
        surge, unavailable = _read_limits(strategy)
        limits = resolve_limits(workload.replicas, surge, unavailable)
        if limits.unavailable == 0:
            yield _limit(workload, maxUnavailable=1)
            if match_label_keys.is_known(question):
                yield from _limit_with_keys(workload)
        if limits.surge > 0:
            yield _limit(workload, maxSurge=0, maxUnavailable=max(1, limits.unavailable))
        if limits.unavailable > 0:
            yield _limit(workload, maxSurge=1, maxUnavailable=0)
        yield _recreate(workload)


def _read_limits(strategy: Document) -> tuple[Any, Any]:
    rolling = strategy.get("rollingUpdate") or {}
    return rolling.get("maxSurge", _DEFAULT), rolling.get("maxUnavailable", _DEFAULT)


def with_limits(workload: StuckWorkload, **limits: int) -> Document:
    """The workload with these limits and the others that it has."""
    strategy = workload.document["spec"].get("strategy") or {}
    rolling = {**(strategy.get("rollingUpdate") or {}), **limits}
    return workload.with_spec(strategy={"type": "RollingUpdate", **strategy, "rollingUpdate": rolling})


def _limit(workload: StuckWorkload, **limits: int) -> Candidate:
    words = " and ".join(f"{name}: {value}" for name, value in limits.items())
    missing = limits["maxUnavailable"]
    available = max(0, workload.replicas - missing)
    costs = f"While a rollout lasts {available} of {workload.replicas} pods are available."
    return Candidate(
        code=CODE,
        text=f"Set {words} in the strategy of {workload.subject}.",
        loss=Loss.AVAILABILITY if missing and available else Loss.SERVICE if missing else Loss.NOTHING,
        gives_up=costs if missing else "A rollout needs room for one pod more.",
        patches=(build_patch(workload.document, with_limits(workload, **limits)),),
    )


def _limit_with_keys(workload: StuckWorkload) -> Iterator[Candidate]:
    """Both: the limit for this rollout, and the key so that no later one needs it."""
    keyed = match_label_keys.build_document(workload)
    if keyed is None or workload.replicas < 2:
        return
    document = with_limits(StuckWorkload(workload.kind, workload.key, keyed, workload.template), maxUnavailable=1)
    yield Candidate(
        code=f"{CODE}+{match_label_keys.CODE}",
        text=f"Set maxUnavailable: 1 in the strategy of {workload.subject}, and add matchLabelKeys: [{TEMPLATE_HASH}] "
        "to its rules: later rollouts need no limit.",
        loss=Loss.AVAILABILITY,
        gives_up=f"While a rollout lasts {workload.replicas - 1} of {workload.replicas} pods are available, and old "
        "and new pods may share a domain.",
        patches=(build_patch(workload.document, document),),
    )


def _roll(workload: StuckWorkload, **limits: int) -> Candidate:
    """Of one that is recreated: not all have to go first."""
    rolling = {"type": "RollingUpdate", "rollingUpdate": limits}
    words = " and ".join(f"{name}: {value}" for name, value in limits.items())
    needs = "a rollout needs room for one pod more" if limits["maxSurge"] else "one pod is missing meanwhile"
    return Candidate(
        code=CODE,
        text=f"Set strategy RollingUpdate with {words} for {workload.subject}.",
        loss=Loss.AVAILABILITY if limits["maxUnavailable"] else Loss.NOTHING,
        gives_up=f"Two versions run at once, and {needs}.",
        patches=(build_patch(workload.document, workload.with_spec(strategy=rolling)),),
    )


def _recreate(workload: StuckWorkload) -> Candidate:
    changed = workload.with_spec(strategy={"type": "Recreate"})
    return Candidate(
        code=CODE,
        text=f"Set strategy Recreate for {workload.subject}.",
        loss=Loss.SERVICE,
        gives_up="No pod is available from when the old ones stop until new ones are ready.",
        patches=(build_patch(workload.document, changed),),
    )
