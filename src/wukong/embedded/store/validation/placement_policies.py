"""What the CEL rules of our own kinds would refuse, without evaluating CEL.

`placement.compile.problems` knows the same rules and more. Of its findings those count whose place has a CEL rule in
the schema, and what is said is that rule's message; of two rules at one place, the one worded most alike. So a rule
that `problems` does not know is not kept, and what only the `policy` controller can tell (a rule that is not installed,
its config) is stored, as on a real server. Called by validation.py after the schema has been found to hold.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from difflib import get_close_matches

import msgspec

from wukong.api.crds import Schema
from wukong.api.kinds import OURS
from wukong.api.placement import DEFAULT, GROUP, ClusterPlacementPolicy, PlacementPolicy
from wukong.embedded.store.documents import meta_of
from wukong.embedded.store.kinds import Kind
from wukong.placement.compile import find_policy_problems
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
    """Sentences such as `spec.mode: Invalid value: expected Enforce or Observe`."""
    schema, said = kind.schema or {}, defaultdict[str, list[str]](list)
    for place, message in _rules(schema, "$"):
        said[place].append(message)
    policy = msgspec.convert(document, _STRUCTS[kind.resource.kind])
    found = [problem.partition(": ")[::2] for problem in find_policy_problems(policy, {})]
    return [
        *_about_the_default(schema, document),
        *(
            f"{path.removeprefix('$.')}: Invalid value: {_closest(problem, messages)}"
            for path, problem in found
            if (messages := said.get(_INDEX.sub("[]", path)))
        ),
    ]


def _closest(problem: str, messages: list[str]) -> str:
    return get_close_matches(problem, messages, n=1, cutoff=0.0)[0]


def _rules(schema: Schema, path: str) -> Iterator[tuple[str, str]]:
    """Every rule's message, and the place it points to, with [] for any index."""
    for rule in schema.get(_RULES) or []:
        yield path + rule.get("fieldPath", ""), rule["message"]
    for name, inner in (schema.get("properties") or {}).items():
        yield from _rules(inner, f"{path}.{name}")
    if isinstance(items := schema.get("items"), dict):
        yield from _rules(items, f"{path}[]")


def _about_the_default(schema: Schema, document: Document) -> Iterator[str]:
    """The one rule about an object as a whole: written out, for `problems` forgives selectors that are empty."""
    spec = document.get("spec") or {}
    is_default = meta_of(document).get("name") == DEFAULT
    if is_default and ("selector" in spec or "namespaceSelector" in spec):
        yield from (f"spec: Invalid value: {rule['message']}" for rule in schema.get(_RULES) or [])
