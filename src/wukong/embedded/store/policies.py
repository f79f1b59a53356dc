"""What the CEL rules of our own kinds would refuse, without evaluating CEL.

`placement.compile.problems` knows the same rules and more; of its findings those count here whose place has a CEL rule
in the schema. So the wording is ours, not the rule's; a finding stands where the rule's fieldPath points; and what only
the `policy` controller can tell (a rule that is not installed, its config) is stored, as on a real server. Called by
validation.py after the schema has been found to hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from wukong.api.crds import Schema
from wukong.api.kinds import OURS
from wukong.api.placement import DEFAULT, GROUP, ClusterPlacementPolicy, PlacementPolicy
from wukong.embedded.store.documents import meta_of
from wukong.embedded.store.kinds import Kind
from wukong.placement.compile import problems
from wukong.ports import Document

_RULES = "x-kubernetes-validations"
_INDEX = re.compile(r"\[\d+\]")
_STRUCTS: dict[str, type[PlacementPolicy | ClusterPlacementPolicy]] = {
    "PlacementPolicy": PlacementPolicy,
    "ClusterPlacementPolicy": ClusterPlacementPolicy,
}


def is_ours(kind: Kind) -> bool:
    return kind.resource.group == GROUP and kind.resource.kind in OURS


def refused(kind: Kind, document: Document) -> list[str]:
    """Sentences such as `spec.mode: Invalid value: expected Enforce or Observe, got "observe". …`."""
    schema = kind.schema or {}
    places = set(_places(schema, "$"))
    policy = msgspec.convert(document, _STRUCTS[kind.resource.kind])
    found = [each for each in problems(policy, {}) if _INDEX.sub("[]", each.partition(": ")[0]) in places]
    return [*_about_the_default(schema, document), *(_worded(each) for each in found)]


def _places(schema: Schema, path: str) -> Iterator[str]:
    """Where a rule may point to, with [] for any index."""
    for rule in schema.get(_RULES) or []:
        yield path + rule.get("fieldPath", "")
    for name, inner in (schema.get("properties") or {}).items():
        yield from _places(inner, f"{path}.{name}")
    if isinstance(items := schema.get("items"), dict):
        yield from _places(items, f"{path}[]")


def _about_the_default(schema: Schema, document: Document) -> Iterator[str]:
    """The one rule about an object as a whole: written out, for `problems` forgives selectors that are empty."""
    spec = document.get("spec") or {}
    is_default = meta_of(document).get("name") == DEFAULT
    if is_default and ("selector" in spec or "namespaceSelector" in spec):
        yield from (f"spec: Invalid value: {rule['message']}" for rule in schema.get(_RULES) or [])


def _worded(problem: str) -> str:
    path, _, rest = problem.partition(": ")
    return f"{path.removeprefix('$.')}: Invalid value: {rest}"
