"""The node affinity of a Wukong's virtual machines: the user's terms, and resource affinity by labels. Pure.

Required terms are alternatives, so a floor is ANDed into every one of them; a floor is itself a choice (enough is free,
or nothing is known), so the terms are a cross product:

    user: A or B;  floors: cpu >= 4, memory >= 8Gi
    A & cpu Gt 3999 & memory Gt 8191     A & cpu Gt 3999 & memory absent     A & cpu absent & memory Gt 8191     …

It doubles with every resource, so it is bounded: more than MOST_TERMS is a problem of the Wukong (problems.py), which
then needs fewer floors or alternatives, or another mode.
A preference is two terms, so that a node of which nothing is known is neither avoided nor sought (half the weight).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

import msgspec

from wukong.api.placement import ResourceAffinity, ResourcePreference
from wukong.api.pod_affinity import NodeAffinitySpec
from wukong.api.vm import Wukong
from wukong.errors import InputError
from wukong.placement.compile import GPU
from wukong.placement.limits import MOST_NODE_TERMS
from wukong.placement.percent import parse_percent
from wukong.placement.vm.affinity import PREFERRED, REQUIRED
from wukong.placement.vm.free_labels import free_amount, free_label_of
from wukong.placement.vm.settings import VmSettings
from wukong.ports import Document

MOST_TERMS = MOST_NODE_TERMS  # required terms of one VM


def build_node_affinity(wukong: Wukong, settings: VmSettings) -> Document:
    """`required…` and `preferred…` of a pod's nodeAffinity, as far as something is asked for.

    Raises InputError where floors and alternatives make more than MOST_TERMS; find_wukong_problems says so before.
    """
    scheduling = wukong.spec.scheduling
    asked = (scheduling and scheduling.node_affinity) or NodeAffinitySpec()
    terms: list[Document] = msgspec.to_builtins(asked.required)
    preferred: list[Document] = msgspec.to_builtins(asked.preferred)
    if settings.resource_affinity == "labels":
        affinity = (scheduling and scheduling.resource_affinity) or ResourceAffinity()
        terms = _cross(terms, find_floors(wukong), settings)
        preferred += build_usage_preferences(affinity, settings)
    required = {"nodeSelectorTerms": terms} if terms else None
    return {name: value for name, value in ((REQUIRED, required), (PREFERRED, preferred)) if value}


def find_floors(wukong: Wukong) -> dict[str, int]:
    """Resource type → what must be free, in the unit of its label. Of a resource asked twice the larger counts.

    `gpu` means the devices of spec.gpus, each of them, where it has some. A floor of zero is none.
    """
    scheduling = wukong.spec.scheduling
    affinity = scheduling.resource_affinity if scheduling is not None else None
    floors: dict[str, int] = {}
    for entry in affinity.required_resources if affinity is not None else ():
        for resource_type in gpu_types_of(wukong) if entry.resource_type == GPU else (entry.resource_type,):
            amount = free_amount(resource_type, entry.min_available)
            floors[resource_type] = max(amount, floors.get(resource_type, 0))
    return {resource_type: amount for resource_type, amount in floors.items() if amount > 0}


def gpu_types_of(wukong: Wukong) -> tuple[str, ...]:
    """What `gpu` means for a Wukong: the devices that it names, or any GPU."""
    return tuple(dict.fromkeys(gpu.device_name for gpu in wukong.spec.gpus)) or (GPU,)


def count_terms(wukong: Wukong) -> int:
    """How many required terms there would be in mode labels."""
    scheduling = wukong.spec.scheduling
    asked = scheduling.node_affinity if scheduling is not None else None
    alternatives = len(asked.required) if asked is not None else 0
    floors = len(find_floors(wukong))
    return max(alternatives, 1) << floors if floors else alternatives


def build_usage_preferences(affinity: ResourceAffinity, settings: VmSettings) -> list[Document]:
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
        for term in _build_preference(f"{settings.usage_prefix}/{kind}", preference)
    ]


def _build_preference(key: str, preference: ResourcePreference) -> Iterator[Document]:
    """Labels are whole percents rounded down, so a threshold is rounded up: below 70.5 means a label below 71."""
    threshold = math.ceil(parse_percent(preference.threshold) or 0.0)
    is_below = {"key": key, "operator": "Lt", "values": [str(threshold)]}
    yield {"weight": preference.weight, "preference": {"matchExpressions": [is_below]}}
    is_unknown = {"key": key, "operator": "DoesNotExist"}
    yield {"weight": max(preference.weight // 2, 1), "preference": {"matchExpressions": [is_unknown]}}


def _cross(terms: list[Document], floors: dict[str, int], settings: VmSettings) -> list[Document]:
    """Every term with every choice of every floor. A term without any condition matches no node, and stays so."""
    if not floors:
        return terms
    if max(len(terms), 1) << len(floors) > MOST_TERMS:
        raise InputError(
            f"expected at most {MOST_TERMS} required node-affinity terms, got {max(len(terms), 1)} alternatives times "
            f"two choices for each of {len(floors)} resources."
        )
    choices = list(product(*(_build_floor(resource, amount, settings) for resource, amount in floors.items())))
    return [
        {**term, "matchExpressions": [*term.get("matchExpressions", ()), *choice]} if term or not terms else {}
        for term in terms or [{}]
        for choice in (choices if term or not terms else choices[:1])
    ]


def _build_floor(resource_type: str, amount: int, settings: VmSettings) -> tuple[Document, Document]:
    key = free_label_of(resource_type, settings.free_prefix)
    return (
        {"key": key, "operator": "Gt", "values": [str(amount - 1)]},
        {"key": key, "operator": "DoesNotExist"},
    )
