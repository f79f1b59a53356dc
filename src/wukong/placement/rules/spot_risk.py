"""spot-risk {percent, byInstanceType, worst}: points for nodes that are rarely reclaimed. As a filter: not the worst.

The risk is the share of such nodes reclaimed in a month, in percent: the node's label
placement.novasphere.dev/interruption-percent, else by its instance type, else `percent` (20). On-demand has none.
100 points for no risk, 0 for `worst` (25) and above, in proportion between them.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from wukong.api.core import Pod
from wukong.engine.arrays import Floats, Mask
from wukong.placement.fleet import Fleet
from wukong.placement.rule import Rule

RISK_LABEL = "placement.novasphere.dev/interruption-percent"


class Config(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    percent: float = 20.0
    by_instance_type: dict[str, float] = {}
    worst: float = 25.0


class SpotRisk(Rule[Config]):
    name = "spot-risk"
    config = Config
    is_steady = True

    def problems(self, config: Config, type_: str) -> Iterable[str]:
        shares = {"percent": config.percent, "worst": config.worst}
        shares |= {f"byInstanceType.{kind}": share for kind, share in config.by_instance_type.items()}
        for place, share in shares.items():
            if not 0 <= share <= 100:
                yield f"{place}: expected a percentage from 0 to 100, got {share}."
        if config.worst == 0:
            yield "worst: expected more than 0, got 0. Every risk would be the worst."

    def points(self, config: Config, fleet: Fleet, pod: Pod) -> Floats:
        return 100 * (1 - np.minimum(_compute_risk(config, fleet) / config.worst, 1))

    def refuses(self, config: Config, fleet: Fleet, pod: Pod) -> Mask:
        return _compute_risk(config, fleet) > config.worst

    def reason(self, config: Config) -> str:
        return f"more than {config.worst:g}% of such spot nodes are reclaimed in a month"


def _compute_risk(config: Config, fleet: Fleet) -> Floats:
    labelled = fleet.numbers(RISK_LABEL)
    by_type = config.by_instance_type
    usual = np.array(
        [by_type.get(instance_type, config.percent) for instance_type in fleet.nodes.instance_types]
        if by_type
        else np.full(fleet.size, config.percent),
        dtype=np.float64,
    )
    risk = np.where(np.isnan(labelled), usual, np.clip(labelled, 0, 100))
    return np.where(fleet.is_spot, risk, 0.0)
