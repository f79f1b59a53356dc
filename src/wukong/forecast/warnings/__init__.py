"""Warnings of a plan: traps of a change that its verdict need not show. One file each, pure."""

from wukong.forecast.fields import PlanWarning
from wukong.forecast.warnings.registry import WARNINGS, find_warnings, judge
from wukong.forecast.warnings.situation import Situation, TouchedWorkload, WrittenObject

__all__ = ["WARNINGS", "PlanWarning", "Situation", "TouchedWorkload", "WrittenObject", "find_warnings", "judge"]
