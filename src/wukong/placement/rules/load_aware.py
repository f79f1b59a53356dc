"""load-aware {cpu, memory, storage}: points for nodes that are little used. As a filter {threshold}: not the busy ones.

The three numbers say how much each resource counts (1, 1, 0 if none is given). A node that nobody measured, or not
lately, gets 50 points, and no filter refuses it: a fresh node must not starve.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from wukong.api.core import Pod
from wukong.engine.arrays import Floats, Mask
from wukong.placement.fleet import USED, Fleet
from wukong.placement.percent import parse_percent
from wukong.placement.rule import Rule


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    cpu: float = 1.0
    memory: float = 1.0
    storage: float = 0.0
    threshold: str = ""


class LoadAware(Rule[Config]):
    name = "load-aware"
    config = Config

    def problems(self, config: Config, type_: str) -> Iterable[str]:
        for resource in USED:
            if not 0 <= getattr(config, resource) < np.inf:
                yield f"{resource}: expected how much it counts, 0 or more, got {getattr(config, resource)}."
        if not any(getattr(config, resource) > 0 for resource in USED):
            yield "cpu: expected at least one of cpu, memory and storage above 0. Nothing would count."
        if type_ == "filter" and not config.threshold:
            yield 'threshold: expected a percentage such as "65%", got none. A filter needs one.'
        if config.threshold and parse_percent(config.threshold) is None:
            yield f'threshold: expected a percentage such as "65%", got {config.threshold!r}.'

    def points(self, config: Config, fleet: Fleet, pod: Pod) -> Floats:
        weights = np.array([[getattr(config, resource)] for resource in USED])
        known = ~np.isnan(fleet.usage) & (weights > 0)
        total = np.where(known, weights, 0).sum(axis=0)
        used = np.where(known, fleet.usage * weights, 0).sum(axis=0)
        mean: Floats = np.full(fleet.size, np.nan)
        np.divide(used, total, out=mean, where=total > 0)
        return 100 - np.clip(mean, 0, 100)

    def refuses(self, config: Config, fleet: Fleet, pod: Pod) -> Mask:
        threshold = parse_percent(config.threshold)
        assert threshold is not None
        counted = [row for row, resource in enumerate(USED) if getattr(config, resource) > 0]
        refused: Mask = np.any(fleet.usage[counted] > threshold, axis=0)
        return refused

    def reason(self, config: Config) -> str:
        return f"used more than {config.threshold}"
