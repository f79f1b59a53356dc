"""Policies of a text or of a cluster's objects: those that people wrote read strictly, those a cluster holds leniently.

Called by the verbs that decide by policies. In a text everything must be right: every problem is told, with its place,
and nothing is decided. In a cluster a policy with a problem is left out, as the extender leaves it out. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from wukong.api.decode import decode_objects
from wukong.api.documents import unfold_list
from wukong.api.meta import Object
from wukong.api.objects import Objects
from wukong.api.placement import GROUP, VERSION, ClusterPlacementPolicy, PlacementPolicy
from wukong.api.strict import unknown_fields
from wukong.api.yaml_values import load_documents
from wukong.errors import InputError, nearest
from wukong.placement.compile import Policy, find_policy_problems, title_of
from wukong.placement.rule import Rules

API_VERSION = f"{GROUP}/{VERSION}"
KINDS: dict[str, type[Policy]] = {
    "PlacementPolicy": PlacementPolicy,
    "ClusterPlacementPolicy": ClusterPlacementPolicy,
}


def choose_good_policies(objects: Objects, rules: Rules) -> tuple[list[Policy], list[str]]:
    """The good ones among those a cluster holds, and a note on each of the others."""
    policies: list[Policy] = [*objects.placement_policies, *objects.cluster_placement_policies]
    good: list[Policy] = []
    notes: list[str] = []
    for policy in policies:
        wrong = find_policy_problems(policy, rules)
        if not wrong:
            good.append(policy)
            continue
        others = len(wrong) - 1
        more = f" (and {others:,} more problem{'s' if others > 1 else ''})" if others else ""
        notes.append(f"{title_of(policy)} is left out, as the extender leaves it out: {wrong[0].rstrip('.')}{more}.")
    return good, notes


def read_policies(data: bytes, rules: Rules, set_namespace: Callable[[Object], None] | None = None) -> list[Policy]:
    """The policies of a text that people wrote, all of them good. Raises InputError with every problem.

    `set_namespace` gets each of them first: one that is written without a namespace has none. Else it is in default.
    """
    documents = _documents(data)
    misspelt = [problem for where, document in documents for problem in _misspelt(where, document)]
    if not all(_is_policy(document) for _, document in documents):
        raise InputError(*misspelt)
    try:
        objects = list(decode_objects(data, namespace="default" if set_namespace is None else ""))
    except InputError as error:
        raise InputError(*misspelt, *error.problems) from None
    policies = [policy for policy in objects if isinstance(policy, PlacementPolicy | ClusterPlacementPolicy)]
    if set_namespace is not None:
        for policy in policies:
            set_namespace(policy)
    wrong = [
        *misspelt,
        *(f"{title_of(policy)}: {problem}" for policy in policies for problem in _problems(policy, rules)),
    ]
    if not policies:
        wrong.append(f"expected a {' or a '.join(KINDS)}, got nothing.")
    if wrong:
        raise InputError(*wrong)
    return policies


def _documents(data: bytes) -> list[tuple[str, dict[str, object]]]:
    """Every object of the text, as it is written, with its place."""
    try:
        documents = load_documents(data)
    except InputError:
        return []  # reading for real says what is broken
    entries = [entry for document in documents for entry in _unfold(document)]
    several = len(entries) > 1
    return [(f"document {number}: " if several else "", entry) for number, entry in enumerate(entries, start=1)]


def _is_policy(document: dict[str, object]) -> bool:
    return str(document.get("kind")) in KINDS and document.get("apiVersion") == API_VERSION


def _misspelt(where: str, document: dict[str, object]) -> Iterator[str]:
    """What reading for real would overlook: other kinds and versions, and fields nobody knows."""
    kind, version = str(document.get("kind") or ""), document.get("apiVersion")
    if kind not in KINDS:
        fix = nearest(kind, KINDS) or " Only policies belong into this file."
        yield f"{where}$.kind: expected {' or '.join(KINDS)}, got {kind!r}.{fix}"
        return
    if version != API_VERSION:
        yield f"{where}$.apiVersion: expected {API_VERSION}, got {version!r}. Write it so."
    if "spec" not in document:
        yield f"{where}$.spec: expected what the policy says, got nothing. Add a spec."
    yield from (f"{where}{problem}" for problem in unknown_fields(document, KINDS[kind]))


def _unfold(document: object) -> Iterator[dict[str, object]]:
    if isinstance(document, dict):
        items = unfold_list(document) if "items" in document else [document]
        yield from (item for item in items if isinstance(item, dict))


def _problems(policy: Policy, rules: Rules) -> Iterator[str]:
    if not policy.metadata.name:
        yield "$.metadata.name: expected a name, got none. Give the policy one."
    if isinstance(policy, ClusterPlacementPolicy) and policy.metadata.namespace:
        yield "$.metadata.namespace: expected none, it is of the whole cluster. Remove it, or use a PlacementPolicy."
    yield from find_policy_problems(policy, rules)
