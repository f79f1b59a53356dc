"""What a rule is: the thing a policy names under `rules`, built in (rules/) or installed beside Wukong.

A rule answers for all nodes at once, with arrays. Give `points` to be used as score or prioritize, `refuses` as filter,
or both. Packages offer rules by the entry point `wukong.rules`, each a subclass of Rule; docs/rules.md shows one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Generic, TypeVar

import msgspec

from wukong.api.core import Pod
from wukong.engine.arrays import Floats, Mask
from wukong.placement.fleet import Fleet

NEUTRAL = 50.0  # the points of a node a rule knows nothing about


class NoConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """For rules that need to be told nothing."""


C = TypeVar("C", bound=msgspec.Struct)


class Rule(Generic[C]):
    """Base of all rules. One instance serves every policy; it keeps nothing between calls."""

    name: ClassVar[str] = ""
    config: type[C]  # a frozen msgspec struct, rename="camel", forbid_unknown_fields=True
    is_per_pod: ClassVar[bool] = False  # the answer depends on the pod, not only on its policy
    is_steady: ClassVar[bool] = False  # the answer depends on nodes and prices alone: not on usage, nor on the pod

    def problems(self, config: C, type_: str) -> Iterable[str]:
        """What is wrong with a config whose types are right: `maxMillis: expected …`. `type_` is what it is used as."""
        return ()

    def points(self, config: C, fleet: Fleet, pod: Pod) -> Floats:
        """[node] 0 to 100, the more the better; NaN for nodes this rule knows nothing about, which then get 50."""
        raise NotImplementedError

    def refuses(self, config: C, fleet: Fleet, pod: Pod) -> Mask:
        """[node] whether the pod must not go there. What is not known is no reason to refuse."""
        raise NotImplementedError

    def reason(self, config: C) -> str:
        """Why `refuses` refuses, in a few words: shown in the pod's events."""
        return "refused"

    def can_be(self, type_: str) -> bool:
        used = "refuses" if type_ == "filter" else "points"
        return getattr(type(self), used) is not getattr(Rule, used)


AnyRule = Rule[Any]
Rules = Mapping[str, AnyRule]  # by name
