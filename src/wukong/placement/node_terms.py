"""Node-affinity terms put together from parts: those of pods (placement.pods), and of VMs (placement.vm). Pure.

Required terms are alternatives, so a rule is ANDed into every one of them; a rule may itself be a choice (a floor:
enough is free, or nothing is known), so the terms are a cross product:

    user: A or B;  floors: cpu >= 4, memory >= 8Gi
    A & cpu Gt 3999 & memory Gt 8191     A & cpu Gt 3999 & memory absent     A & cpu absent & memory Gt 8191     …

It multiplies with every rule; callers bound it (limits.MOST_NODE_TERMS).
A preference is two terms, so that a node of which nothing is known is neither avoided nor sought (half the weight).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from wukong.api.placement import ResourceAffinity, ResourcePreference
from wukong.placement.compile import GPU
from wukong.placement.free_labels import free_amount, free_label_of
from wukong.placement.percent import parse_percent
from wukong.ports import Document

PARTS = ("matchExpressions", "matchFields")


def cross_terms(terms: Sequence[Document], alternatives: Sequence[Document]) -> list[Document]:
    """Every term with every alternative; no terms mean any node. The terms given are not changed.

    A term that contains one of the alternatives stays as it is: it asks for more than the choice does. One without any
    condition matches no node, and stays so.
    """
    if not terms:
        return list(alternatives)
    return [crossed for term in terms for crossed in _cross_term(term, alternatives)]


def _cross_term(term: Document, alternatives: Sequence[Document]) -> list[Document]:
    is_empty = not any(term.get(part) for part in PARTS)
    if is_empty or any(_contains(term, alternative) for alternative in alternatives):
        return [term]
    return [_merge_terms(term, alternative) for alternative in alternatives]


def _contains(term: Document, alternative: Document) -> bool:
    return all(entry in (term.get(part) or ()) for part in PARTS for entry in alternative.get(part) or ())


def _merge_terms(term: Document, alternative: Document) -> Document:
    merged = dict(term)
    for part in PARTS:
        own_entries = term.get(part) or []
        if entries := [entry for entry in alternative.get(part) or () if entry not in own_entries]:
            merged[part] = [*own_entries, *entries]
    return merged


def collect_floors(affinity: ResourceAffinity | None, gpu_types: Sequence[str] = (GPU,)) -> dict[str, int]:
    """Resource type → what must be free, in the unit of its label. Of a resource asked twice the larger counts.

    `gpu_types` is what `gpu` means: each of them. A floor of zero is none.
    """
    floors: dict[str, int] = {}
    for entry in affinity.required_resources if affinity is not None else ():
        for resource_type in gpu_types if entry.resource_type == GPU else (entry.resource_type,):
            amount = free_amount(resource_type, entry.min_available)
            floors[resource_type] = max(amount, floors.get(resource_type, 0))
    return {resource_type: amount for resource_type, amount in floors.items() if amount > 0}


def build_floor_terms(resource_type: str, amount: int, prefix: str) -> list[Document]:
    """The two alternatives of a floor: enough is free, or nothing is known of it."""
    key = free_label_of(resource_type, prefix)
    has_enough = {"key": key, "operator": "Gt", "values": [str(amount - 1)]}
    is_unknown = {"key": key, "operator": "DoesNotExist"}
    return [{"matchExpressions": [has_enough]}, {"matchExpressions": [is_unknown]}]


def build_usage_preferences(affinity: ResourceAffinity, prefix: str) -> list[Document]:
    """Two terms per preference: used less than the threshold, or not measured at half the weight."""
    preferences = (
        ("cpu", affinity.preferred_cpu),
        ("memory", affinity.preferred_memory),
        ("storage", affinity.preferred_storage),
    )
    return [
        term
        for kind, preference in preferences
        if preference is not None
        for term in _build_preference(f"{prefix}/{kind}", preference)
    ]


def _build_preference(key: str, preference: ResourcePreference) -> Iterator[Document]:
    """Labels are whole percents rounded down, so a threshold is rounded up: below 70.5 means a label below 71."""
    threshold = math.ceil(parse_percent(preference.threshold) or 0.0)
    is_below = {"key": key, "operator": "Lt", "values": [str(threshold)]}
    yield {"weight": preference.weight, "preference": {"matchExpressions": [is_below]}}
    is_unknown = {"key": key, "operator": "DoesNotExist"}
    yield {"weight": max(preference.weight // 2, 1), "preference": {"matchExpressions": [is_unknown]}}
