"""Evictions that a drain asked for and was refused, as events of a story. Called by playing.py once it is over.

A drain asks again and again: a refusal is told when it is the first of its pod, or says something else than before.
"""

from __future__ import annotations

from collections.abc import Iterable

from wukong.actions import Evict
from wukong.api.resources import Key
from wukong.embedded.scenario.story import Event
from wukong.embedded.world import Step


def refusals(trace: Iterable[Step], begun: float) -> list[Event]:
    found: list[Event] = []
    told: dict[Key, str] = {}  # pod → what was said of it last
    for step in trace:
        if not isinstance(step.action, Evict):
            continue
        key = step.action.key
        if step.error and told.get(key) != step.error:
            found.append(Event(round(step.at - begun, 3), f"pod {key}", f"eviction refused: {step.error}"))
        told[key] = step.error
    return found
