"""A Rollout with its versions, their pods and nodes, and the time left of what it waits for; as lines or a document."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from wukong.api.apps import ReplicaSet
from wukong.api.core import Pod
from wukong.api.kinds import PODS, REPLICA_SETS
from wukong.api.resources import Key
from wukong.api.rollout import HASH, Rollout, VersionStatus, blue_green_of
from wukong.api.times import parse_time
from wukong.placement.rollout import pause_seconds_of
from wukong.ports import Document
from wukong.state import State


def build_lines(rollout: Rollout, state: State, now: float) -> Iterator[str]:
    status, canary = rollout.status, rollout.spec.strategy.canary
    yield f"Rollout {rollout.key}: {status.phase or 'not looked at yet'}, revision {status.revision}"
    if status.message:
        yield f"  {status.message}"
    if canary is not None and canary.steps:
        yield f"  step {min(status.step + 1, len(canary.steps))} of {len(canary.steps)}"
    for text, seconds in list_waits(rollout, now):
        yield f"  {text} in {seconds:.0f} s"
    for index, version in enumerate(status.versions):
        is_last = index == len(status.versions) - 1
        yield (
            f"{'└' if is_last else '├'}─ revision {version.revision} {version.hash} {version.role}: "
            f"{version.available} of {version.replicas} available"
        )
        for pod in list_pods(rollout, version, state):
            yield f"{' ' if is_last else '│'}    {pod.metadata.name}  {_describe(pod)}  {pod.spec.node_name or '-'}"


def list_waits(rollout: Rollout, now: float) -> Iterator[tuple[str, float]]:
    """What happens by itself, and in how many seconds."""
    status, blue_green, canary = rollout.status, blue_green_of(rollout), rollout.spec.strategy.canary
    paused_at, promoted_at = parse_time(status.paused_at), parse_time(status.promoted_at)
    if blue_green is not None:
        waits = status.phase == "Paused" and blue_green.auto_promotion_enabled and not rollout.spec.paused
        if paused_at is not None and waits:
            yield "it is promoted", max(0.0, paused_at + blue_green.auto_promotion_seconds - now)
        if promoted_at is not None and status.previous:
            yield "the version before goes", max(0.0, promoted_at + blue_green.scale_down_delay_seconds - now)
    elif canary is not None and status.step < len(canary.steps):
        pause = canary.steps[status.step].pause
        seconds = pause_seconds_of(pause) if pause is not None else None
        if paused_at is not None and seconds is not None:
            yield "the pause ends", max(0.0, paused_at + seconds - now)


def build_document(rollout: Rollout, state: State) -> Document:
    return {
        "namespace": rollout.metadata.namespace,
        "name": rollout.metadata.name,
        **{name: getattr(rollout.status, name) for name in ("phase", "message", "revision", "step")},
        "versions": [
            {
                **{field: getattr(version, field) for field in ("hash", "revision", "role", "replicas", "available")},
                "pods": [
                    {"name": pod.metadata.name, "node": pod.spec.node_name, "state": _describe(pod)}
                    for pod in list_pods(rollout, version, state)
                ],
            }
            for version in rollout.status.versions
        ],
        "conditions": msgspec.to_builtins(rollout.status.conditions),
    }


def list_pods(rollout: Rollout, version: VersionStatus, state: State) -> list[Pod]:
    keys: list[Key] = []
    for key in state.owners.owned_by(rollout.metadata.uid, REPLICA_SETS):
        replica_set = state.get(ReplicaSet, key)
        if replica_set is not None and replica_set.metadata.labels.get(HASH) == version.hash:
            keys += state.owners.owned_by(replica_set.metadata.uid, PODS)
    return [pod for key in keys if (pod := state.get(Pod, key)) is not None and not pod.is_finished]


def _describe(pod: Pod) -> str:
    if pod.is_terminating:
        return "Terminating"
    is_ready = any((entry.type, entry.status) == ("Ready", "True") for entry in pod.status.conditions)
    return "Ready" if is_ready else pod.status.phase or "Pending"
