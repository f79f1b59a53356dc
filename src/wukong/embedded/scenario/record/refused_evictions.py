"""Evictions that a drain asked for and was refused, as events of a story. play/player.py has it hear every step.

A drain asks again and again: a refusal is an event when it is the first of its pod, or says something else than before.
By some refusals KubeVirt takes an eviction upon itself: it migrates the virtual machine, which is an event of its own.
"""

from __future__ import annotations

from wukong.actions import Evict
from wukong.api.resources import Key
from wukong.embedded.scenario.record.story import Event
from wukong.embedded.world.world import Step

EVACUATES = "Eviction triggered evacuation of VMI"  # in KubeVirt's answer to an eviction that it has accepted


class RefusedEvictions:
    def __init__(self, started_at: float) -> None:
        self.started_at = started_at
        self.events: list[Event] = []
        self._last_errors: dict[Key, str] = {}  # pod → why its last eviction was refused

    def hear(self, step: Step) -> None:
        if not isinstance(step.action, Evict):
            return
        key = step.action.key
        text = _describe(step.error)
        if text and _describe(self._last_errors.get(key, "")) != text:
            self.events.append(Event(round(step.at - self.started_at, 3), f"pod {key}", text))
        if step.error:
            self._last_errors[key] = step.error
        else:
            self._last_errors.pop(key, None)


def _describe(error: str) -> str:
    if EVACUATES in error:
        return "eviction taken over by KubeVirt, which migrates the virtual machine"
    return f"eviction refused: {error}" if error else ""
