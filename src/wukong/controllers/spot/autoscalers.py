"""A HorizontalPodAutoscaler beside a Move: its least size is raised while the workload is surged, and then restored.

Used by moves.py. Without that an autoscaler takes the surge for too many pods; and one within its tolerance never goes
back by itself, so the workload is scaled back as well, after the autoscaler. Pure.
"""

from __future__ import annotations

from wukong.actions import Action, Patch
from wukong.api.apps import ScaledWorkload
from wukong.api.autoscaling import HorizontalPodAutoscaler
from wukong.api.kinds import HORIZONTAL_POD_AUTOSCALERS
from wukong.api.resources import Key, key_of
from wukong.api.spot import Move
from wukong.controllers.spot.owners import find_autoscaler
from wukong.ports import Document, PatchBody
from wukong.state import State


def describe_autoscaler(owner: ScaledWorkload, state: State) -> Document:
    """What a Move notes of it, before anything is done."""
    autoscaler = find_autoscaler(owner, state)
    if autoscaler is None:
        return {}
    before = autoscaler.spec.min_replicas
    noted = {"name": autoscaler.metadata.name, **({} if before is None else {"minReplicas": before})}
    return {"autoscaler": noted}


def raise_minimum(move: Move, state: State) -> list[Action]:
    """Nothing where there is none, it is high enough, or somebody else has set another one meanwhile: that holds."""
    autoscaler, noted = _find_noted(move, state), move.spec.autoscaler
    if autoscaler is None or noted is None or (autoscaler.spec.min_replicas or 0) >= move.spec.surged:
        return []
    if autoscaler.spec.min_replicas not in (noted.min_replicas, *move.spec.former):
        return []
    return [_set_minimum(autoscaler, move.spec.surged)]


def restore_minimum(move: Move, state: State) -> list[Action]:
    """Nothing where somebody else has set another one meanwhile: that holds."""
    autoscaler, noted = _find_noted(move, state), move.spec.autoscaler
    if autoscaler is None or noted is None:
        return []
    ours = {move.spec.surged, *move.spec.former}
    present = autoscaler.spec.min_replicas
    return [_set_minimum(autoscaler, noted.min_replicas)] if present in ours and present != noted.min_replicas else []


def confirm_minimum(move: Move, state: State) -> list[Action]:
    """Restore it, or write what it is: the API server refuses that where what we read is old."""
    autoscaler, noted = _find_noted(move, state), move.spec.autoscaler
    if autoscaler is None or noted is None:
        return []
    return restore_minimum(move, state) or [_set_minimum(autoscaler, autoscaler.spec.min_replicas)]


def read_version(move: Move, state: State) -> str:
    """Of the autoscaler that the Move notes; "" where there is none."""
    autoscaler = _find_noted(move, state)
    return "" if autoscaler is None else autoscaler.metadata.resource_version


def _find_noted(move: Move, state: State) -> HorizontalPodAutoscaler | None:
    noted = move.spec.autoscaler
    return state.get(HorizontalPodAutoscaler, Key(move.metadata.namespace, noted.name)) if noted is not None else None


def _set_minimum(autoscaler: HorizontalPodAutoscaler, least: int | None) -> Patch:
    """At the version that was read."""
    body = {"metadata": {"resourceVersion": autoscaler.metadata.resource_version}, "spec": {"minReplicas": least}}
    return Patch(HORIZONTAL_POD_AUTOSCALERS, key_of(autoscaler), PatchBody("merge", body))
