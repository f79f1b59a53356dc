"""The rules that are built in, one file each. A new one needs a line here."""

from __future__ import annotations

from wukong.placement.rule import AnyRule
from wukong.placement.rules.cost_aware import CostAware
from wukong.placement.rules.label_match import LabelMatch
from wukong.placement.rules.latency import Latency
from wukong.placement.rules.load_aware import LoadAware
from wukong.placement.rules.packing import Packing
from wukong.placement.rules.spot_risk import SpotRisk

BUILT_IN: dict[str, AnyRule] = {
    rule.name: rule for rule in (CostAware(), SpotRisk(), LoadAware(), Latency(), LabelMatch(), Packing())
}

__all__ = ["BUILT_IN"]
