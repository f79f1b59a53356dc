"""Which rules policies may name: the built-in ones, and those of packages installed beside Wukong.

Called once, when a component starts, and by the verbs that read policies. A package offers rules by the entry point
`wukong.rules`, each a subclass of placement.rule.Rule (docs/rules.md). One that is broken is left out with a warning
that names it: policies that use its rules are reported as such, and everybody else's go on.
"""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points

import msgspec

from wukong.api.placement import RULE_TYPES
from wukong.placement.rule import AnyRule, Rule
from wukong.placement.rules import BUILT_IN

GROUP = "wukong.rules"
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")  # what a policy can write

log = logging.getLogger(__name__)


def load_rules() -> dict[str, AnyRule]:
    """Every rule by name: built in, or offered by whatever is installed."""
    return with_offered(entry_points(group=GROUP))


def with_offered(entries: Iterable[EntryPoint]) -> dict[str, AnyRule]:
    """The built-in rules and those of these entry points that are sound."""
    rules: dict[str, AnyRule] = dict(BUILT_IN)
    package_of_rule = dict.fromkeys(BUILT_IN, "wukong")
    for entry in sorted(entries, key=_order):
        try:
            rule = _read(entry)
            if rule.name in rules:
                raise ValueError(f"{package_of_rule[rule.name]} already has a rule named {rule.name}")
        except Exception as error:  # whatever somebody else's package does when it is imported
            problem = str(error) if type(error) in (TypeError, ValueError) else f"{type(error).__name__}: {error}"
            log.warning(
                "a rule was left out",
                extra={"package": _package(entry), "entry_point": f"{entry.name} = {entry.value}", "problem": problem},
            )
            continue
        rules[rule.name], package_of_rule[rule.name] = rule, _package(entry)
    return rules


def _read(entry: EntryPoint) -> AnyRule:
    """The rule an entry point names. Raises ValueError or TypeError with what is wrong, else whatever it raises."""
    candidate = entry.load()
    if not (inspect.isclass(candidate) and issubclass(candidate, Rule)):
        raise TypeError(f"expected a subclass of wukong.placement.rule.Rule, got {candidate!r}")
    name: object = candidate.name
    config: object = getattr(candidate, "config", None)
    if not (isinstance(name, str) and _NAME.fullmatch(name)):
        raise ValueError(f"expected a name such as rack-spread, got {name!r}; give the class a name")
    if not (inspect.isclass(config) and issubclass(config, msgspec.Struct)):
        raise TypeError(f"expected a msgspec.Struct as its config, got {config!r}; NoConfig is for rules without")
    rule: AnyRule = candidate()
    if not any(rule.can_be(type_) for type_ in RULE_TYPES):
        raise TypeError("expected points, refuses or both, got neither")
    return rule


def _package(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else entry.module


def _order(entry: EntryPoint) -> tuple[str, str, str]:
    """By package: of two that clash the same one wins on every machine."""
    return _package(entry), entry.name, entry.value
