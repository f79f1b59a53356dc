"""Pods for which the autoscaler asks for no node, as events of a story. play/player.py has it hear every step."""

from __future__ import annotations

from wukong.actions import Note
from wukong.embedded.scenario.record.story import Event
from wukong.embedded.world.world import Step

NOT_TRIGGERED = "NotTriggerScaleUp"  # the reason of cluster-autoscaler's Event


class UnhelpedPods:
    def __init__(self, started_at: float) -> None:
        self.started_at = started_at
        self.events: list[Event] = []

    def hear(self, step: Step) -> None:
        if isinstance(step.action, Note) and step.action.reason == NOT_TRIGGERED:
            at = round(step.at - self.started_at, 3)
            self.events.append(Event(at, f"pod {step.action.key}", step.action.text))
