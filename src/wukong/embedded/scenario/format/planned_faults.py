"""The faults that a scenario plans itself, in its timeline, as episodes. Pure; called by app/embedded.py."""

from __future__ import annotations

from collections.abc import Iterator

from wukong.embedded.faults.catalogue import TYPES, Episode
from wukong.embedded.scenario.format.fields import Scenario, seconds_of


def planned_faults(scenario: Scenario) -> Iterator[Episode]:
    for entry in scenario.timeline:
        fault = entry.fault
        if fault is not None:
            begin, kind = float(entry.seconds), TYPES[fault.type]
            is_once = fault.rate is None and kind.per == "minute"
            rate = kind.rate if fault.rate is None else fault.rate
            yield Episode(fault.type, begin, begin + (seconds_of(fault.for_) or 0), rate, is_once)
