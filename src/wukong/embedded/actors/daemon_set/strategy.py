"""How a DaemonSet is to be updated: whether at all, and within which limits. Read by sync.py and daemon_index.py."""

from __future__ import annotations

from typing import NamedTuple

from wukong.embedded.actors.deployment.sizes import resolve_percent
from wukong.embedded.world.objects import DaemonSet


class Limits(NamedTuple):
    surge: int
    unavailable: int


def is_rolling(daemon_set: DaemonSet) -> bool:
    strategy = daemon_set.spec.update_strategy
    return strategy is None or strategy.type in ("", "RollingUpdate")


def limits_of(daemon_set: DaemonSet, wanted: int) -> Limits:
    """The limits of an update, with `wanted` pods in all."""
    strategy = daemon_set.spec.update_strategy
    rolling = strategy.rolling_update if strategy else None
    if not is_rolling(daemon_set):
        return Limits(0, 0)
    if rolling is None:
        return Limits(0, 1)
    surge = resolve_percent(rolling.max_surge, wanted, up=True)
    unavailable = resolve_percent(rolling.max_unavailable, wanted, up=True)
    return Limits(surge, 1 if wanted and not surge and not unavailable else unavailable)
