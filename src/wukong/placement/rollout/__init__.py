"""Rollouts read: their versions, the rule that keeps versions apart, and what is wrong with one."""

from wukong.placement.rollout.canary_steps import CanaryTarget, find_target, pause_seconds_of
from wukong.placement.rollout.problems import find_rollout_problems
from wukong.placement.rollout.version_rule import VersionRule, build_rule, with_rule
from wukong.placement.rollout.versions import build_template, hash_template

__all__ = [
    "CanaryTarget",
    "VersionRule",
    "build_rule",
    "build_template",
    "find_rollout_problems",
    "find_target",
    "hash_template",
    "pause_seconds_of",
    "with_rule",
]
