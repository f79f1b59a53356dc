"""Replicas that are written although a HorizontalPodAutoscaler sets them: both write, and the number jumps."""

from __future__ import annotations

from collections.abc import Iterator

from wukong.forecast.fields import PlanWarning
from wukong.forecast.warnings.situation import Situation, WrittenObject

CODE = "replicas-of-autoscaler"


def find(situation: Situation) -> Iterator[PlanWarning]:
    for entry in situation.written:
        replicas = _read_replicas(entry)
        autoscaler = situation.autoscaler_of(entry.group_kind, entry.key)
        if replicas is None or autoscaler is None:
            continue
        least = 1 if autoscaler.spec.min_replicas is None else autoscaler.spec.min_replicas
        yield PlanWarning(
            code=CODE,
            subject=entry.subject,
            path="$.spec.replicas",
            text=f"sets {replicas} replicas, which HorizontalPodAutoscaler {autoscaler.key} keeps between {least} and "
            f"{autoscaler.spec.max_replicas}: each time this is applied the number jumps, and the autoscaler sets it "
            "again.",
            fix="Leave replicas out of the manifest.",
        )


def _read_replicas(entry: WrittenObject) -> int | None:
    """The number that the change writes; None if it writes none."""
    written = entry.applied
    if written is None and entry.patch is not None and isinstance(entry.patch.body, dict):
        written = entry.patch.body
    spec = written.get("spec") if written is not None else None
    replicas = spec.get("replicas") if isinstance(spec, dict) else None
    return replicas if isinstance(replicas, int) and not isinstance(replicas, bool) else None
