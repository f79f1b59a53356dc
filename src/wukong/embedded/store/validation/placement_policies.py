"""Finds what the CEL rules of our own kinds refuse, without evaluating CEL.

`placement.compile.problems` knows the same rules and more. Of its findings those count whose path has a CEL rule in
the schema, and that rule's message is reported; of two rules at one path, the one with the most similar wording. So a
rule that `problems` does not know is not enforced, and what only the `policy` controller can tell (a rule that is not
installed, its config) is stored, as on a real server. Called by objects.py for documents that fit the schema; pure.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from difflib import get_close_matches

import msgspec

from wukong.api.crds import Schema
from wukong.api.kinds import CLUSTER_PLACEMENT_POLICIES, PLACEMENT_POLICIES
from wukong.api.placement import DEFAULT, ClusterPlacementPolicy, PlacementPolicy
from wukong.embedded.store.documents import meta_of
from wukong.embedded.store.kinds import ServedKind
from wukong.placement import compile as policy_compiler
from wukong.ports import Document

_RULES = "x-kubernetes-validations"
_INDEX = re.compile(r"\[\d+\]")
_STRUCTS: dict[str, type[PlacementPolicy | ClusterPlacementPolicy]] = {
    "PlacementPolicy": PlacementPolicy,
    "ClusterPlacementPolicy": ClusterPlacementPolicy,
}


def is_ours(kind: ServedKind) -> bool:
    return kind.resource in (PLACEMENT_POLICIES, CLUSTER_PLACEMENT_POLICIES)


def find_policy_problems(kind: ServedKind, document: Document) -> list[str]:
    """Return messages such as `spec.mode: Invalid value: expected Enforce or Observe`."""
    schema, messages_at = kind.schema or {}, defaultdict[str, list[str]](list)
    for place, message in _list_rules(schema, "$"):
        messages_at[place].append(message)
    policy = msgspec.convert(_without_configs(document), _STRUCTS[kind.resource.kind])
    findings = [problem.partition(": ")[::2] for problem in policy_compiler.find_policy_problems(policy, {})]
    return [
        *_find_default_problems(schema, document),
        *(
            f"{path.removeprefix('$.')}: Invalid value: {_find_closest(problem, messages)}"
            for path, problem in findings
            if (messages := messages_at.get(_INDEX.sub("[]", path)))
        ),
    ]


def _without_configs(document: Document) -> Document:
    """A copy without the configs of rules: no CEL rule reads them, and a struct refuses those that are too large."""
    copy = part = dict(document)
    for name in ("spec", "scheduling", "schedulingPolicy"):
        part[name] = dict(part.get(name) or {})
        part = part[name]
    part["rules"] = [{**rule, "config": {}} for rule in part.get("rules") or ()]
    return copy


def _find_closest(problem: str, messages: list[str]) -> str:
    return get_close_matches(problem, messages, n=1, cutoff=0.0)[0]


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
