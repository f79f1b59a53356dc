"""label-match {matchLabels, matchExpressions}: points for nodes a selector selects. As a filter: only those."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from wukong.admission.affinity_validation import find_selector_problems
from wukong.api.core import Pod
from wukong.api.meta import LabelSelector, LabelSelectorRequirement
from wukong.engine.arrays import Floats, Mask
from wukong.placement.fleet import Fleet
from wukong.placement.limits import find_selector_size_problems
from wukong.placement.rule import Rule
from wukong.semantics.selectors import compile_selector


class Config(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    match_labels: dict[str, str] = {}
    match_expressions: list[LabelSelectorRequirement] = []

    @property
    def selector(self) -> LabelSelector:
        return LabelSelector(match_labels=self.match_labels, match_expressions=self.match_expressions)


class LabelMatch(Rule[Config]):
    name = "label-match"
    config = Config
    is_steady = True

    def problems(self, config: Config, type_: str) -> Iterable[str]:
        if not config.match_labels and not config.match_expressions:
            yield "matchLabels: expected matchLabels or matchExpressions, got neither. Every node would match."
        problems = list(find_selector_size_problems(config.selector, "$"))
        problems = problems or list(find_selector_problems(config.selector, "$"))
        yield from (problem.removeprefix("$.") for problem in problems)

    def points(self, config: Config, fleet: Fleet, pod: Pod) -> Floats:
        return np.where(fleet.select(compile_selector(config.selector)), 100.0, 0.0)

    def refuses(self, config: Config, fleet: Fleet, pod: Pod) -> Mask:
        return ~fleet.select(compile_selector(config.selector))

    def reason(self, config: Config) -> str:
        return "labels do not match"
