"""Evictions that a drain asked for and was refused, as events of a story. play/player.py has it hear every step.

A drain asks again and again: a refusal is an event when it is the first of its pod, or says something else than before.
"""

from __future__ import annotations

from wukong.actions import Evict
from wukong.api.resources import Key
from wukong.embedded.scenario.record.story import Event
from wukong.embedded.world.world import Step


class RefusedEvictions:
    def __init__(self, started_at: float) -> None:
        self.started_at = started_at
        self.events: list[Event] = []
        self._last_errors: dict[Key, str] = {}  # pod → why its last eviction was refused

    def hear(self, step: Step) -> None:
        if not isinstance(step.action, Evict):
            return
        key = step.action.key
        if step.error and self._last_errors.get(key) != step.error:
            at = round(step.at - self.started_at, 3)
            self.events.append(Event(at, f"pod {key}", f"eviction refused: {step.error}"))
        if step.error:
            self._last_errors[key] = step.error
        else:
            self._last_errors.pop(key, None)
