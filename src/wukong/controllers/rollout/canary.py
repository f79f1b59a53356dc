"""Canary: the new version replaces the stable one step by step, within maxSurge and maxUnavailable.

    step: setWeight, setReplicas ─► sizes ─► as many available ─► the next step
          pause ─► time, or somebody promotes ─► the next step
    after the last ─► all of it ─► enough available: it is stable ─► the rest of the old ones go
    aborted ─► the stable one gets all its pods back

The step at hand is in the status; sizes follow from it, so that a crash loses nothing. Pure; called by controller.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from wukong.api.rollout import Canary
from wukong.api.times import parse_time
from wukong.controllers.rollout.deadlock import find_deadlock
from wukong.controllers.rollout.decision import (
    Decision,
    Memory,
    find_soonest,
    is_aborted,
    is_fully_promoted,
    is_promoted,
    read_memory,
)
from wukong.controllers.rollout.versions import Look, Version, find_condition
from wukong.placement.percent import parse_share
from wukong.placement.rollout import CanaryTarget, find_target, pause_seconds_of

ROOM_SECONDS = 30.0  # new pods may wait so long for a node before old ones make room for them


class Limits(NamedTuple):
    """How many pods there may be beyond `replicas`, and how many must be available at least."""

    surge: int
    floor: int  # whatever happens
    kept: int  # as long as pods on top find room


class Position(NamedTuple):
    """Where in its steps a canary is."""

    step: int
    paused_at: float | None = None
    wait: float | None = None  # seconds until the pause is over
    waiting: str = ""


def read_limits(strategy: Canary, replicas: int, budget_floor: int) -> Limits:
    """Shares are rounded as a Deployment does. A disruption budget counts where there may be pods on top.

    Where there may be, none need be missing: new ones come first, and old ones only make room if these find none.
    """
    surge_share, unavailable_share = parse_share(strategy.max_surge), parse_share(strategy.max_unavailable)
    surge = surge_share.count_of(replicas) if surge_share is not None else 0
    unavailable = 0
    if unavailable_share is not None:
        unavailable = unavailable_share.count or replicas * unavailable_share.percent // 100
    if not surge and not unavailable:
        unavailable = 1
    floor = max(0, replicas - unavailable)
    if not surge:
        return Limits(0, floor, floor)
    return Limits(surge, max(floor, min(replicas, budget_floor)), replicas)


def decide_canary(look: Look, strategy: Canary, budget_floor: int = 0) -> Decision:
    memory, limits = read_memory(look), read_limits(strategy, look.replicas, budget_floor)
    stable = look.find_live(look.rollout.status.stable)
    if stable is None or stable.hash == look.current.hash:
        return _settle(look, strategy, limits, memory)
    return _replace(look, strategy, stable, limits, memory)


def _settle(look: Look, strategy: Canary, limits: Limits, memory: Memory) -> Decision:
    """The current version is the stable one, or the first: it gets all pods, whatever the steps say."""
    current = look.current
    targets = {current.hash: look.replicas}
    is_stable = look.rollout.status.stable == current.hash or _is_enough(look, limits)
    is_complete = (
        current.replica_set is not None
        and current.available >= look.replicas == current.replicas
        and not any(version.is_live for version in look.others)
    )
    stable = current.hash if is_stable else ""
    return Decision(
        sizes=limit_sizes(look, targets, limits, [current.hash]),
        selectors=_select(look, strategy, stable, stable),
        roles={current.hash: "Stable"},
        serving=_list_serving(look),
        separation=None,
        stable=stable,
        step=len(strategy.steps),
        promoted_at=memory.promoted_at if look.rollout.status.stable == stable else look.now,
        is_complete=is_complete,
        again_after=_find_available_wait(look),
    )


def _replace(look: Look, strategy: Canary, stable: Version, limits: Limits, memory: Memory) -> Decision:
    current = look.current
    aborted = is_aborted(look)
    deadlock, patience = find_deadlock(look, stable, memory)
    if aborted or deadlock is not None:
        position = Position(0 if aborted else memory.step)
        target = CanaryTarget(0, look.replicas)
    else:
        position = _advance(look, strategy, stable, limits, memory)
        target = find_target(strategy.steps, position.step, look.replicas, limits.surge)
    is_last = position.step >= len(strategy.steps) and not aborted and deadlock is None
    is_done = is_last and _is_enough(look, limits) and _is_made(look, strategy)
    order = [stable.hash, current.hash] if aborted or deadlock is not None else [current.hash, stable.hash]
    sizes = limit_sizes(look, {current.hash: target.canary, stable.hash: target.stable}, limits, order)
    if look.rollout.spec.paused and not aborted:
        sizes.pop(current.hash, None)
    promoted = current.hash if is_done else stable.hash
    return Decision(
        sizes=sizes,
        selectors=_select(look, strategy, promoted, stable.hash if aborted else current.hash),
        roles={stable.hash: "Stable", current.hash: "Canary"},
        serving=_list_serving(look),
        separation=strategy.anti_affinity,
        stable=promoted,
        step=position.step,
        paused_at=position.paused_at,
        promoted_at=look.now if is_done else memory.promoted_at,
        waiting=position.waiting,
        is_aborted=aborted,
        deadlock=deadlock,
        again_after=find_soonest(patience, position.wait, _find_available_wait(look)),
    )


def _advance(look: Look, strategy: Canary, stable: Version, limits: Limits, memory: Memory) -> Position:
    """The step at hand, after all those that are done."""
    steps, step, paused_at = strategy.steps, memory.step, memory.paused_at
    if is_fully_promoted(look):
        return Position(len(steps))
    if look.rollout.spec.paused:
        return Position(step, paused_at, waiting="It is paused ($.spec.paused).")
    while step < len(steps):
        pause = steps[step].pause
        if pause is None:
            target = find_target(steps, step, look.replicas, limits.surge)
            if not _is_reached(look, stable, target):
                return Position(step)
        else:
            paused_at = look.now if paused_at is None else paused_at
            seconds = pause_seconds_of(pause)
            wait = paused_at + seconds - look.now if seconds is not None else None
            if not is_promoted(look, step) and (wait is None or wait > 0):
                return Position(step, paused_at, wait, _describe_pause(look, step, wait))
        step, paused_at = step + 1, None
    return Position(step)


def _is_reached(look: Look, stable: Version, target: CanaryTarget) -> bool:
    return (
        look.current.available >= target.canary == look.current.replicas
        and stable.replicas == target.stable
        and not any(version.replicas for version in look.others if version.hash != stable.hash)
    )


def _is_enough(look: Look, limits: Limits) -> bool:
    """Whether the current version can carry all: the old ones are no longer needed."""
    enough = max(limits.floor, min(1, look.replicas))
    return look.current.replica_set is not None and look.current.lasting >= enough


def _is_made(look: Look, strategy: Canary) -> bool:
    """Whether all pods that are to have the rule are there: with the promotion it leaves the template."""
    return strategy.anti_affinity is None or len(look.current.pods) >= look.replicas


def limit_sizes(look: Look, targets: Mapping[str, int], limits: Limits, order: list[str]) -> dict[str, int]:
    """The sizes that may be set now on the way to the targets; versions without a target go.

    Never more than replicas and surge together, and never fewer available than the floor. Who is first in `order`
    grows first, and shrinks last.
    """
    sizes = {version.hash: version.replicas for version in look.versions.values()}
    room = look.replicas + limits.surge - sum(sizes.values())
    for name in order:
        growth = max(0, min(targets.get(name, 0) - sizes[name], room))
        sizes[name] += growth
        room -= growth
    least = limits.floor if find_room_wait(look) == 0 else limits.kept
    budget = sum(version.lasting for version in look.versions.values()) - least
    oldest_first = [version.hash for version in look.versions.values() if version.hash not in order]
    for name in (*oldest_first, *reversed(order)):
        version = look.versions[name]
        surplus = max(0, version.replicas - targets.get(name, 0))
        unready = min(surplus, max(0, version.replicas - version.ready))
        ready = max(0, min(surplus - unready, budget))
        budget -= ready
        if surplus:
            sizes[name] = version.replicas - unready - ready
    return sizes


def find_room_wait(look: Look) -> float | None:
    """Seconds until new pods have waited long enough for a node that old ones make room; None if none waits."""
    waiting = [
        parse_time(pod.metadata.creation_timestamp) or look.now
        for pod in look.current.pods
        if not pod.spec.node_name
        and (scheduled := find_condition(pod, "PodScheduled")) is not None
        and scheduled.reason == "Unschedulable"
    ]
    return max(0.0, min(waiting) + ROOM_SECONDS - look.now) if waiting else None


def _describe_pause(look: Look, step: int, wait: float | None) -> str:
    name = look.rollout.metadata.name
    if wait is None:
        return f"Step {step + 1} is a pause: wukong rollout promote {name}."
    return f"Step {step + 1} is a pause that ends by itself."


def _list_serving(look: Look) -> list[str]:
    return list(look.versions)


def _find_available_wait(look: Look) -> float | None:
    waits = [version.available_in for version in look.versions.values()]
    return find_soonest(find_room_wait(look) or None, *waits)


def _select(look: Look, strategy: Canary, stable: str, canary: str) -> dict[str, str]:
    wanted = {strategy.stable_service: stable, strategy.canary_service: canary}
    return {service: name for service, name in wanted.items() if name and service in look.services}
