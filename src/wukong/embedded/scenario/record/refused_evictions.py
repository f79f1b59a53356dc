"""Evictions that a drain asked for and was refused, as events of a story. Told of every step by playing.py.

A drain asks again and again: a refusal is told when it is the first of its pod, or says something else than before.
"""

from __future__ import annotations

from wukong.actions import Evict
from wukong.api.resources import Key
from wukong.embedded.scenario.record.story import Event
from wukong.embedded.world.world import Step


class RefusedEvictions:
    def __init__(self, begun: float) -> None:
        self.begun = begun
        self.events: list[Event] = []
        self._told: dict[Key, str] = {}  # pod → what was said of it last

    def hear(self, step: Step) -> None:
        if not isinstance(step.action, Evict):
            return
        key = step.action.key
        if step.error and self._told.get(key) != step.error:
            at = round(step.at - self.begun, 3)
            self.events.append(Event(at, f"pod {key}", f"eviction refused: {step.error}"))
        if step.error:
            self._told[key] = step.error
        else:
            self._told.pop(key, None)
