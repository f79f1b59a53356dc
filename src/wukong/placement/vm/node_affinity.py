"""The node affinity of a Wukong's virtual machines: the user's terms, and resource affinity by labels. Pure.

A floor is ANDed into every term of the user's, and is itself a choice: see placement.node_terms. The terms double with
every resource, so they are bounded: more than MOST_TERMS is a problem of the Wukong (problems.py), which then needs
fewer floors or alternatives, or another mode.
"""

from __future__ import annotations

import msgspec

from wukong.api.placement import ResourceAffinity
from wukong.api.pod_affinity import NodeAffinitySpec
from wukong.api.vm import Wukong
from wukong.errors import InputError
from wukong.placement.compile import GPU
from wukong.placement.limits import MOST_NODE_TERMS
from wukong.placement.node_terms import build_floor_terms, build_usage_preferences, collect_floors, cross_terms
from wukong.placement.vm.affinity import PREFERRED, REQUIRED
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
        terms = _add_floors(terms, find_floors(wukong), settings)
        preferred += build_usage_preferences(affinity, settings.usage_prefix)
    required = {"nodeSelectorTerms": terms} if terms else None
    return {name: value for name, value in ((REQUIRED, required), (PREFERRED, preferred)) if value}


def find_floors(wukong: Wukong) -> dict[str, int]:
    """Resource type → what must be free, in the unit of its label.

    `gpu` means the devices of spec.gpus, each of them, where it has some.
    """
    scheduling = wukong.spec.scheduling
    return collect_floors(scheduling.resource_affinity if scheduling is not None else None, gpu_types_of(wukong))


def gpu_types_of(wukong: Wukong) -> tuple[str, ...]:
    """What `gpu` means for a Wukong: the devices that it names, or any GPU."""
    return tuple(dict.fromkeys(gpu.device_name for gpu in wukong.spec.gpus)) or (GPU,)


def count_terms(wukong: Wukong) -> int:
    """How many required terms there would be in mode labels, at most."""
    scheduling = wukong.spec.scheduling
    asked = scheduling.node_affinity if scheduling is not None else None
    alternatives = len(asked.required) if asked is not None else 0
    floors = len(find_floors(wukong))
    return max(alternatives, 1) << floors if floors else alternatives


def _add_floors(terms: list[Document], floors: dict[str, int], settings: VmSettings) -> list[Document]:
    """Every term with every choice of every floor."""
    if floors and max(len(terms), 1) << len(floors) > MOST_TERMS:
        raise InputError(
            f"expected at most {MOST_TERMS} required node-affinity terms, got {max(len(terms), 1)} alternatives times "
            f"two choices for each of {len(floors)} resources."
        )
    for resource_type, amount in floors.items():
        terms = cross_terms(terms, build_floor_terms(resource_type, amount, settings.free_prefix))
    return terms
