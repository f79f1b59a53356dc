"""Scenarios: what a file says should happen to an embedded cluster, how it is played, the story that comes of it."""

from __future__ import annotations

from wukong.embedded.scenario.format.fields import Scenario
from wukong.embedded.scenario.format.read import read_scenario
from wukong.embedded.scenario.play.player import play
from wukong.embedded.scenario.record.story import Story

__all__ = ["Scenario", "Story", "play", "read_scenario"]
