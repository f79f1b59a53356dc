"""cost-aware {costFactor}: points for nodes that are quiet and cheap. As a filter {maxPerHour}: not the dear ones.

    points = 100 · ((1 − costFactor) · quietness + costFactor · cheapness)

quietness is 1 − usage, the mean of cpu and memory. cheapness is 1 for the lowest price per core and hour in the
cluster, 0 for the highest, in proportion between them. What is not known counts one half.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from wukong.api.core import Pod
from wukong.engine.arrays import Floats, Mask
from wukong.placement.fleet import Fleet
from wukong.placement.rule import Rule

_HALF = 0.5


class Config(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    cost_factor: float = 0.5
    max_per_hour: float | None = None


class CostAware(Rule[Config]):
    name = "cost-aware"
    config = Config

    def problems(self, config: Config, type_: str) -> Iterable[str]:
        if not 0 <= config.cost_factor <= 1:
            yield f"costFactor: expected a number from 0 (load alone counts) to 1 (price), got {config.cost_factor}."
        if type_ == "filter" and config.max_per_hour is None:
            yield "maxPerHour: expected a price per hour, got none. A filter needs one."
        if config.max_per_hour is not None and not config.max_per_hour >= 0:  # NaN is not, either
            yield f"maxPerHour: expected a price that is not negative, got {config.max_per_hour}."

    def points(self, config: Config, fleet: Fleet, pod: Pod) -> Floats:
        factor = config.cost_factor
        return 100 * ((1 - factor) * score_quietness(fleet) + factor * score_cheapness(fleet.price_per_core))

    def refuses(self, config: Config, fleet: Fleet, pod: Pod) -> Mask:
        assert config.max_per_hour is not None
        return fleet.price > config.max_per_hour

    def reason(self, config: Config) -> str:
        return f"costs more than {config.max_per_hour} per hour"


def score_quietness(fleet: Fleet) -> Floats:
    known = [fleet.used("cpu"), fleet.used("memory")]
    busy = np.where(np.isnan(known[0]), known[1], np.where(np.isnan(known[1]), known[0], (known[0] + known[1]) / 2))
    return np.where(np.isnan(busy), _HALF, 1 - np.clip(busy, 0, 100) / 100)


def score_cheapness(price: Floats) -> Floats:
    if not np.isfinite(price).any():
        return np.full_like(price, _HALF)
    low, high = np.nanmin(price), np.nanmax(price)
    if low == high:
        return np.where(np.isnan(price), _HALF, 1.0)
    return np.where(np.isnan(price), _HALF, (high - price) / (high - low))
