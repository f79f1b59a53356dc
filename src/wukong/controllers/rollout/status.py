"""The status of a Rollout as it should be: phase, conditions, counts of each version, and what is remembered. Pure."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from wukong.api.meta import LabelSelector
from wukong.api.rollout import MOST_VERSIONS, Rollout, RolloutStatus, VersionStatus
from wukong.api.times import format_time, parse_time
from wukong.controllers.conditions import Claim, cut, update_conditions
from wukong.controllers.rollout.decision import Decision
from wukong.controllers.rollout.versions import Look, Version, find_condition
from wukong.ports import Document

ACCEPTED, AVAILABLE, PROGRESSING, SEPARATED = "Accepted", "Available", "Progressing", "Separated"
LONGEST_MESSAGE = 1024


class Obstacle(NamedTuple):
    """What keeps us from going on."""

    reason: str
    message: str


class Report(NamedTuple):
    status: RolloutStatus
    deadline_in: float | None  # seconds until it is late


def build_status(look: Look, decision: Decision, obstacle: Obstacle | None) -> Report:
    rollout, before = look.rollout, look.rollout.status
    versions = list(look.versions.values())
    is_ending = decision.is_complete or decision.is_aborted or bool(decision.waiting)
    has_moved = _has_progressed(look, decision) or is_ending
    known_at = parse_time(before.progressed_at)
    progressed_at = look.now if has_moved or known_at is None else known_at
    deadline = rollout.spec.progress_deadline_seconds
    late_in = progressed_at + deadline - look.now if deadline and not is_ending else None
    phase, progressing = _judge(look, decision, obstacle, is_late=late_in is not None and late_in <= 0)
    serving = sum(version.available for version in versions if version.hash in decision.serving)
    claims = (
        Claim(ACCEPTED, True, "Understood", "No problem was found."),
        _claim_available(look, serving),
        progressing,
        _claim_separated(look, decision),
    )
    told_at = before.progressed_at if is_ending and before.phase == phase else format_time(progressed_at)
    status = RolloutStatus(
        observed_generation=rollout.metadata.generation,
        replicas=sum(len(version.pods) for version in versions),
        updated_replicas=len(look.current.pods),
        ready_replicas=sum(version.ready for version in versions),
        available_replicas=serving,
        selector=format_selector(rollout.spec.selector),
        phase=phase,
        message=progressing.message,
        stable=decision.stable,
        previous=decision.previous,
        current=look.current.hash,
        revision=look.revision,
        step=decision.step,
        paused_at=_format(decision.paused_at),
        promoted_at=_format(decision.promoted_at),
        progressed_at=told_at or format_time(look.now),
        versions=_list_versions(look, decision),
        conditions=update_conditions(before.conditions, claims, rollout.metadata.generation, look.now),
    )
    return Report(status, late_in if late_in is not None and late_in > 0 else None)


def format_status(status: RolloutStatus) -> Document:
    """The status for a merge patch: what is empty is said, too, for it may have been otherwise."""
    return {
        field.encode_name: msgspec.to_builtins(getattr(status, field.name))
        for field in msgspec.structs.fields(RolloutStatus)
    }


def format_selector(selector: LabelSelector | None) -> str:
    """In kubectl's syntax, as autoscalers read it."""
    if selector is None:
        return ""
    terms = [f"{key}={value}" for key, value in sorted(selector.match_labels.items())]
    for entry in selector.match_expressions:
        values = f"({','.join(entry.values)})"
        words = {"In": f"{entry.key} in {values}", "NotIn": f"{entry.key} notin {values}", "Exists": entry.key}
        terms.append(words.get(entry.operator, f"!{entry.key}"))
    return ",".join(terms)


def _format(moment: float | None) -> str:
    return format_time(moment) if moment is not None else ""


def _has_progressed(look: Look, decision: Decision) -> bool:
    before = look.rollout.status
    if not look.is_known or before.stable != decision.stable or before.step != decision.step:
        return True
    if before.phase in ("", "Paused", "Healthy", "Aborted", "NotAccepted"):
        return True
    known = next((entry for entry in before.versions if entry.hash == look.current.hash), VersionStatus())
    return look.current.available > known.available


def _judge(look: Look, decision: Decision, obstacle: Obstacle | None, *, is_late: bool) -> tuple[str, Claim]:
    count = f"{look.current.available} of {look.replicas} pods of revision {look.revision} are available."
    if decision.is_aborted:
        text = f"Revision {look.revision} was aborted; revision {_revision_of(look, decision.stable)} goes on."
        return "Aborted", Claim(PROGRESSING, False, "Aborted", text)
    if obstacle is not None:
        return "Degraded", Claim(PROGRESSING, False, obstacle.reason, obstacle.message)
    if decision.deadlock is not None:
        text = "The new version yields: the one that gets the traffic cannot be placed beside it."
        return "Degraded", Claim(PROGRESSING, False, "Yielded", text)
    if decision.is_complete:
        return "Healthy", Claim(PROGRESSING, True, "Complete", count)
    if decision.waiting:
        return "Paused", Claim(PROGRESSING, True, "Paused", decision.waiting)
    refusal = _find_refusal(look.current)
    if is_late:
        text = f"No progress for {look.rollout.spec.progress_deadline_seconds} s. {count}{refusal}"
        return "Degraded", Claim(PROGRESSING, False, "ProgressDeadlineExceeded", text)
    return "Progressing", Claim(PROGRESSING, True, "Progressing", f"{count}{refusal}")


def _find_refusal(version: Version) -> str:
    """What the scheduler says of the first of its pods that has no node."""
    for pod in version.pods:
        scheduled = find_condition(pod, "PodScheduled")
        if not pod.spec.node_name and scheduled is not None and scheduled.status == "False" and scheduled.message:
            return f" {pod.metadata.name} has no node: {cut(scheduled.message, LONGEST_MESSAGE)}"
    return ""


def _claim_available(look: Look, serving: int) -> Claim:
    text = f"{serving} of {look.replicas} pods that get traffic are available."
    is_whole = serving >= look.replicas
    return Claim(AVAILABLE, is_whole, "Whole" if is_whole else "PodsMissing", text)


def _claim_separated(look: Look, decision: Decision) -> Claim:
    if decision.deadlock is not None:
        revision = _revision_of(look, decision.deadlock.version)
        text = (
            f"Pods of revision {revision} cannot be placed because of the rule of revision {look.revision}, which has "
            f"no pods until revision {revision} is whole again."
        )
        return Claim(SEPARATED, False, "Yielded", text)
    if decision.separation is None:
        return Claim(SEPARATED, True, "NotNeeded", "No rule keeps versions apart now.")
    return Claim(SEPARATED, True, "RuleInPlace", "New pods are kept away from those of other versions.")


def _revision_of(look: Look, version: str) -> int:
    known = look.versions.get(version)
    return known.revision if known is not None else 0


def _list_versions(look: Look, decision: Decision) -> list[VersionStatus]:
    told = [version for version in look.versions.values() if version.is_live or version.hash == look.current.hash]
    told.sort(key=lambda version: (version.hash == look.current.hash, version.revision), reverse=True)
    return [
        VersionStatus(
            hash=version.hash,
            revision=look.revision if version.hash == look.current.hash else version.revision,
            role=decision.roles.get(version.hash, "Old"),
            replicas=decision.sizes.get(version.hash, version.replicas),
            ready=version.ready,
            available=version.available,
        )
        for version in told[:MOST_VERSIONS]
    ]


def build_refusal(rollout: Rollout, reason: str, problems: str, now: float) -> RolloutStatus:
    """The status of a Rollout that is not accepted: all that is remembered stays."""
    generation = rollout.metadata.generation
    claim = Claim(ACCEPTED, False, reason, problems)
    return msgspec.structs.replace(
        rollout.status,
        observed_generation=generation,
        phase="NotAccepted",
        message=cut(problems, LONGEST_MESSAGE),
        conditions=update_conditions(rollout.status.conditions, [claim], generation, now),
    )
