"""Finds what the CEL rules of our own kinds refuse, without evaluating CEL.

`find_policy_problems` and `find_wukong_problems` know the same rules and more. Of their findings those count whose path
has a CEL rule in the schema, and that rule's message is reported; of two rules at one path, the one with the most
similar wording. So a rule that they do not know is not enforced, and what only a controller can tell (a rule that is
not installed, its config, the syntax of a label) is stored, as on a real server. Called by objects.py for documents
that fit the schema; pure.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from difflib import SequenceMatcher

import msgspec

from wukong.api.crds import Schema
from wukong.api.kinds import CLUSTER_PLACEMENT_POLICIES, PLACEMENT_POLICIES, ROLLOUTS, WUKONGS
from wukong.api.placement import DEFAULT, ClusterPlacementPolicy, PlacementPolicy
from wukong.api.rollout import Rollout
from wukong.api.vm import Wukong
from wukong.embedded.store.documents import meta_of
from wukong.embedded.store.kinds import ServedKind
from wukong.placement.compile import find_policy_problems
from wukong.placement.rollout import find_rollout_problems
from wukong.placement.vm import find_wukong_problems
from wukong.ports import Document

_RULES = "x-kubernetes-validations"
_NAME = re.compile(r"\w*[A-Z]\w*")
_INDEX = re.compile(r"\[\d+\]")
# Findings about an entry whose rule stands at the list: CEL names no index there.
_ENTRY = re.compile(r"(?<=\.matchFields)\[\d+\]\.\w+$|(?<=\.topologySpreadConstraints)\[\d+\]$")
_SYNTAX = ("expected a label key", "expected a label value", "expected a taint value")  # CEL does not know it
_REPEATED_KEY = re.compile(r"(?<=\.matchLabelKeys)\[\d+\]$")
_STRUCTS: dict[str, type[PlacementPolicy | ClusterPlacementPolicy | Rollout | Wukong]] = {
    "PlacementPolicy": PlacementPolicy,
    "ClusterPlacementPolicy": ClusterPlacementPolicy,
    "Rollout": Rollout,
    "Wukong": Wukong,
}


def is_ours(kind: ServedKind) -> bool:
    return kind.resource in (PLACEMENT_POLICIES, CLUSTER_PLACEMENT_POLICIES, ROLLOUTS, WUKONGS)


def find_rule_problems(kind: ServedKind, document: Document) -> list[str]:
    """Return messages such as `spec.mode: Invalid value: expected Enforce or Observe`."""
    schema, messages_at = kind.schema or {}, defaultdict[str, list[str]](list)
    subject = msgspec.convert(_without_configs(document), _STRUCTS[kind.resource.kind])
    problems = _find_problems(subject)
    findings = [problem.partition(": ")[::2] for problem in problems]
    for place, message in _list_rules(schema, "$") if findings else ():
        messages_at[place].append(message)
    return [
        *_find_default_problems(schema, document),
        *(
            f"{path.removeprefix('$.')}: Invalid value: {_find_closest(problem, messages)}"
            for path, problem in ((_find_rule_path(path, problem), problem) for path, problem in findings)
            if not problem.startswith(_SYNTAX) and (messages := messages_at.get(_INDEX.sub("[]", path)))
        ),
    ]


def _find_problems(subject: PlacementPolicy | ClusterPlacementPolicy | Rollout | Wukong) -> list[str]:
    if isinstance(subject, Rollout):
        return find_rollout_problems(subject)
    return find_wukong_problems(subject, {}) if isinstance(subject, Wukong) else find_policy_problems(subject, {})


def find_change_problems(kind: ServedKind, before: Document, after: Document) -> list[str]:
    """Check the rules about a change: a Wukong's replicas stay given, or absent; a Rollout's selector stays."""
    if kind.resource == ROLLOUTS:
        selectors = [(document.get("spec") or {}).get("selector") for document in (before, after)]
        rule = kind.schema["properties"]["spec"]["properties"]["selector"][_RULES][0] if kind.schema else {}
        is_kept = None in selectors or selectors[0] == selectors[1]
        return [] if is_kept else [f"spec.selector: Invalid value: {rule.get('message', '')}"]
    if kind.resource != WUKONGS:
        return []
    was_given, is_given = ("replicas" in (document.get("spec") or {}) for document in (before, after))
    rules = (kind.schema or {}).get(_RULES) or []
    return [
        f"spec.replicas: Invalid value: {rule['message']}"
        for rule in rules
        if was_given != is_given and "oldSelf" in rule["rule"]
    ]


def _find_rule_path(path: str, problem: str) -> str:
    """The path at which a rule about this finding would stand."""
    path = _ENTRY.sub("", path)
    return _REPEATED_KEY.sub("", path) if problem.startswith("expected a key that ") else path


def _without_configs(document: Document) -> Document:
    """A copy without the configs of rules: no CEL rule reads them, and a struct refuses those that are too large."""
    copy = part = dict(document)
    for name in ("spec", "scheduling", "schedulingPolicy"):
        part[name] = dict(part.get(name) or {})
        part = part[name]
    part["rules"] = [{**rule, "config": {}} for rule in part.get("rules") or ()]
    return copy


def _find_closest(problem: str, messages: list[str]) -> str:
    """The message that names the same things (In, matchLabelKeys) as the finding, and of those the most similar one."""
    names = set(_NAME.findall(problem.partition(", got ")[0]))

    def closeness(message: str) -> tuple[int, float]:
        return len(names.intersection(_NAME.findall(message))), SequenceMatcher(None, message, problem).ratio()

    return max(messages, key=closeness)


def _list_rules(schema: Schema, path: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the message of every rule, with [] for any index."""
    for rule in schema.get(_RULES) or []:
        yield path + rule.get("fieldPath", ""), rule["message"]
    for name, inner in (schema.get("properties") or {}).items():
        yield from _list_rules(inner, f"{path}.{name}")
    if isinstance(items := schema.get("items"), dict):
        yield from _list_rules(items, f"{path}[]")


def _find_default_problems(schema: Schema, document: Document) -> Iterator[str]:
    """Check the one rule about a whole object. It is written out, for `problems` accepts empty selectors."""
    spec = document.get("spec") or {}
    is_default = meta_of(document).get("name") == DEFAULT
    if is_default and ("selector" in spec or "namespaceSelector" in spec):
        yield from (f"spec: Invalid value: {rule['message']}" for rule in schema.get(_RULES) or [])
