"""Blue/green: the new version comes up whole beside the active one, and then the active Service is switched.

    first version ──────────────► whole ─► the Service selects it
    new version ─► preview, whole ─► paused ─► promoted: all of it ready ─► the Service is switched ─► the old one stays
                        │               └─ somebody promotes, or the time is up                        for its delay
                        └─ aborted ─► to 0

Which version is active is what the Service selects: its switch is the one moment that counts, and the status follows
it. So a crash before or after leaves nothing half done. Pure; called by controller.py.
"""

from __future__ import annotations

from wukong.api.rollout import BlueGreen
from wukong.api.times import parse_time
from wukong.controllers.rollout.deadlock import find_deadlock
from wukong.controllers.rollout.decision import (
    Decision,
    Memory,
    find_soonest,
    is_aborted,
    is_promoted,
    list_superseded,
    read_memory,
)
from wukong.controllers.rollout.versions import Look, Version

STOP_SECONDS = 60.0  # until the next look at pods that have not been asked to stop yet


def decide_blue_green(look: Look, strategy: BlueGreen) -> Decision:
    memory = read_memory(look)
    active = find_active(look, strategy)
    if active is None:
        return _begin(look, strategy, memory)
    if active.hash == look.current.hash:
        return _rest(look, strategy, active, memory)
    return _replace(look, strategy, active, memory)


def find_active(look: Look, strategy: BlueGreen) -> Version | None:
    """The version that gets the traffic: what the Service selects if that can be, else what was promoted last."""
    selected = look.find_live(look.selected_by(strategy.active_service))
    promoted = look.find_live(look.rollout.status.stable)
    if selected is None or promoted is None:
        return selected or promoted
    is_sound = selected.hash in (look.current.hash, promoted.hash) or selected.available >= look.replicas > 0
    return selected if is_sound else promoted


def _begin(look: Look, strategy: BlueGreen, memory: Memory) -> Decision:
    """There is no version that gets traffic yet. The Service is not touched before the first one is whole."""
    current = look.current
    is_whole = current.replica_set is not None and current.available >= look.replicas
    return Decision(
        sizes={current.hash: look.replicas, **{version.hash: 0 for version in list_superseded(look, ())}},
        selectors=_select(look, strategy, current.hash, current.hash) if is_whole else {},
        roles={current.hash: "Active"},
        serving=(current.hash,),
        separation=None,
        stable="",
        promoted_at=memory.promoted_at,
        is_complete=False,
        again_after=current.available_in,
    )


def _rest(look: Look, strategy: BlueGreen, active: Version, memory: Memory) -> Decision:
    """The current version is active. The one before stays for its delay; all others go."""
    previous, promoted_at = _find_previous(look, active, memory)
    sizes, wait = _scale_down(look, strategy, active, previous, promoted_at)
    has_others = any(version.is_live and version.hash != previous for version in look.others)
    is_complete = active.available >= look.replicas and active.replicas == look.replicas and not has_others
    return Decision(
        sizes={**sizes, active.hash: look.replicas},
        selectors=_select(look, strategy, active.hash, active.hash),
        roles={active.hash: "Active", **({previous: "Previous"} if previous else {})},
        serving=(active.hash,),
        separation=None,
        stable=active.hash,
        previous=previous,
        promoted_at=promoted_at,
        is_complete=is_complete,
        again_after=find_soonest(wait, active.available_in),
    )


def _replace(look: Look, strategy: BlueGreen, active: Version, memory: Memory) -> Decision:
    """Another version than the active one is asked for."""
    current, paused = look.current, look.rollout.spec.paused
    previous, promoted_at = _find_previous(look, active, memory)
    sizes, wait = _scale_down(look, strategy, active, previous, promoted_at)
    deadlock, patience = find_deadlock(look, active, memory)
    aborted, stop_wait = is_aborted(look), _find_stop_wait(look)
    target = look.replicas if strategy.preview_replicas is None else min(strategy.preview_replicas, look.replicas)
    is_whole = current.replica_set is not None and current.available >= target
    paused_at = memory.paused_at if memory.paused_at is not None else look.now if is_whole else None
    approval_wait = _find_approval_wait(look, strategy, paused_at, is_known_good=current.hash == previous)
    is_approved = approval_wait == 0.0 and not paused and not aborted
    is_complete = current.replica_set is not None and current.available >= look.replicas
    is_saved = deadlock is not None and strategy.on_deadlock == "Promote" and is_complete and not aborted
    is_switched = (
        is_complete and strategy.active_service in look.services and (is_saved or (is_approved and deadlock is None))
    )
    is_waiting = paused or (is_whole and not is_approved)
    if aborted or (deadlock is not None and not is_switched):
        sizes[current.hash] = 0
    elif not paused:
        is_held_back = strategy.anti_affinity is not None and not current.replicas and stop_wait is not None
        sizes[current.hash] = 0 if is_held_back else look.replicas if is_approved else target
    selected = current.hash if is_switched else active.hash
    return Decision(
        sizes={**sizes, active.hash: look.replicas},
        selectors=_select(look, strategy, selected, active.hash if aborted else current.hash),
        roles={**({previous: "Previous"} if previous else {}), active.hash: "Active", current.hash: "Preview"},
        serving=(active.hash,),
        separation=strategy.anti_affinity,
        stable=active.hash,
        previous=previous,
        paused_at=paused_at,
        promoted_at=promoted_at,
        waiting=_describe_wait(look, approval_wait) if is_waiting and deadlock is None else "",
        is_aborted=aborted,
        deadlock=None if is_switched else deadlock,
        again_after=find_soonest(
            wait, patience, approval_wait or None, current.available_in, active.available_in, stop_wait
        ),
    )


def _find_previous(look: Look, active: Version, memory: Memory) -> tuple[str, float | None]:
    """The version that was active before, and when that ended. A switch that the status does not know has just been."""
    status = look.rollout.status
    if active.hash != status.stable:
        previous = look.find_live(status.stable)
        return (previous.hash if previous is not None else "", look.now)
    previous = look.find_live(status.previous)
    return (previous.hash if previous is not None and previous.is_live else "", memory.promoted_at)


def _scale_down(
    look: Look, strategy: BlueGreen, active: Version, previous: str, promoted_at: float | None
) -> tuple[dict[str, int], float | None]:
    """Nobody needs the others any more; the one before the active one not after its delay."""
    selected = look.selected_by(strategy.active_service)
    sizes = {
        version.hash: 0
        for version in list_superseded(look, (active.hash, previous))
        if version.hash != selected or version.hash == active.hash
    }
    if not previous or previous == look.current.hash:
        return sizes, None
    left = (promoted_at or 0.0) + strategy.scale_down_delay_seconds - look.now
    if left <= 0 and previous != selected:
        sizes[previous] = 0
    return sizes, left if left > 0 else None


def _find_stop_wait(look: Look) -> float | None:
    """Seconds until the pods of versions that were replaced before their promotion should have stopped.

    A version that keeps away from others waits for that: else it would avoid their nodes, and new ones would be bought
    although these become free in a moment. None if there is nothing to wait for.
    """
    status = look.rollout.status
    kept = (look.current.hash, status.stable, status.previous)
    leaving = [version for version in look.versions.values() if version.hash not in kept and version.is_live]
    ends = [parse_time(pod.metadata.deletion_timestamp) or look.now for version in leaving for pod in version.stopping]
    if any(version.pods or version.replicas for version in leaving):
        return STOP_SECONDS
    waits = [end - look.now for end in ends if end > look.now]
    return max(waits) if waits else None


def _find_approval_wait(
    look: Look, strategy: BlueGreen, paused_at: float | None, *, is_known_good: bool
) -> float | None:
    """0.0: it may be promoted; seconds until it may be; None: when somebody says so."""
    if is_promoted(look) or is_known_good:
        return 0.0
    if not strategy.auto_promotion_enabled or paused_at is None:
        return None
    return max(0.0, paused_at + strategy.auto_promotion_seconds - look.now)


def _describe_wait(look: Look, approval_wait: float | None) -> str:
    if look.rollout.spec.paused:
        return "It is paused ($.spec.paused)."
    if approval_wait:
        return "The new version is whole; it is promoted when autoPromotionSeconds have passed."
    return f"The new version is whole and waits: wukong rollout promote {look.rollout.metadata.name}."


def _select(look: Look, strategy: BlueGreen, active: str, preview: str) -> dict[str, str]:
    wanted = {strategy.active_service: active}
    if strategy.preview_service:
        wanted[strategy.preview_service] = preview
    return {service: name for service, name in wanted.items() if service in look.services}
