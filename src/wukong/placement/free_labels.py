"""What a node has free, as labels that node affinity can compare: their keys, and their units.

    free.novasphere.dev/cpu: "3500"               millicores
    free.novasphere.dev/memory: "7936"            Mi, and so for storage
    free.novasphere.dev/gpu: "1"                  devices: the most that one of the known GPU resources has free
    free.novasphere.dev/nvidia.com_A100: "2"      any other resource, by its count

Written by the `load` controller (rounded down: a label never promises what is not there), compared by node_terms.py
(rounded up: a floor never asks for less than it says). A node that lacks a resource carries "0"; a label that is absent
says that nothing is known.
"""

from __future__ import annotations

from hashlib import sha256

from wukong.api.quantity import LARGEST_AMOUNT, parse_quantity, scheduler_amount
from wukong.placement.compile import GPU, GPU_NAMES, RESOURCES

FREE_PREFIX = "free.novasphere.dev"
_MEBI = 1 << 20
_LONGEST_NAME = 63  # of a label's name, after the prefix and its slash
_HASH_DIGITS = 12


def free_label_of(resource_type: str, prefix: str = FREE_PREFIX) -> str:
    """The key of the label for a resource type as policies name it: cpu, memory, storage, gpu, or an extended resource.

    Names of extended resources have a slash, which the name of a label must not have: it becomes "_", which no domain
    has, so that two resources never share a label. A name that is too long ends in a digest of the whole.
    """
    name = resource_type.replace("/", "_")
    if len(name) > _LONGEST_NAME:
        digest = sha256(resource_type.encode()).hexdigest()[:_HASH_DIGITS]
        name = f"{name[: _LONGEST_NAME - _HASH_DIGITS - 1]}_{digest}"
    return f"{prefix}/{name}"


def find_resource_type(label: str, prefix: str = FREE_PREFIX) -> str:
    """The extended resource that such a label is named after; "" for any other label, or one that ends in a digest."""
    name = label.removeprefix(f"{prefix}/")
    is_whole = name != label and "_" in name and len(name) < _LONGEST_NAME
    return name.replace("_", "/", 1) if is_whole else ""


def resources_of(resource_type: str) -> tuple[str, ...]:
    """The API's names of what this label counts. Of several, the one with the most free counts, as in a policy."""
    return GPU_NAMES if resource_type == GPU else (RESOURCES.get(resource_type, resource_type),)


def free_amount(resource_type: str, quantity: str | int) -> int:
    """What is asked, in the unit of the label, rounded up. Raises InputError for what is no quantity."""
    (resource, *_) = resources_of(resource_type)
    return _in_label_unit(resource, scheduler_amount(resource, parse_quantity(quantity)) + _unit_of(resource) - 1)


def free_label_value(resource_type: str, amount: int) -> str:
    """The label's value for what a node has free, in the scheduler's unit (millicores, bytes); never below zero."""
    (resource, *_) = resources_of(resource_type)
    return str(_in_label_unit(resource, min(max(amount, 0), LARGEST_AMOUNT)))


def _in_label_unit(resource: str, amount: int) -> int:
    return amount // _unit_of(resource)


def _unit_of(resource: str) -> int:
    return _MEBI if resource in ("memory", "ephemeral-storage") else 1
