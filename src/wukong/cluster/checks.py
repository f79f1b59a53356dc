"""Checks objects of a snapshot before the engine reads them, and adds defaults that the API server would have set.

Called by files.py. A snapshot's objects were accepted by an API server, so only names
and quantities are checked, without which the engine cannot decide. Reads no files.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import msgspec

from wukong.admission import admit
from wukong.api.core import Container, ContainerStatus, Node, Pod, Quantities
from wukong.api.documents import path_of
from wukong.api.meta import Object
from wukong.api.objects import Objects
from wukong.api.quantity import LARGEST_AMOUNT, parse_quantity, scheduler_amount
from wukong.errors import InputError


def problems_of(subject: Object, thorough: bool, *, is_stored: bool = True) -> list[str]:
    """Return what is wrong with an object, each with its JSON path. Not `thorough`: an equal one was checked before.

    A pod that is stored in a cluster may ask for absurd amounts, which are capped: anybody may have created it. One
    that is not, and a node, are refused with them: somebody mistyped a number.
    """
    problems = [] if subject.metadata.name else ["$.metadata.name: expected a name, got none. Give the object one."]
    if thorough and isinstance(subject, Node | Pod):
        if isinstance(subject, Pod) and is_stored and _has_only_good_amounts(subject):
            return problems
        quantities = _node_quantities(subject) if isinstance(subject, Node) else _pod_quantities(subject)
        most = None if is_stored and isinstance(subject, Pod) else LARGEST_AMOUNT
        problems += [problem for path, amounts in quantities for problem in _find_bad_quantities(amounts, path, most)]
    return problems


def add_defaults(objects: Objects, place: str) -> list[str]:
    """Set the defaults that the API server sets on objects it stores. Return the problems of pods it would refuse."""
    for node in objects.nodes:
        if not node.status.allocatable:
            node.status.allocatable = node.status.capacity
    has_default = any(priority_class.global_default for priority_class in objects.priority_classes)
    problems: list[str] = []
    for number, pod in enumerate(objects.pods):
        # A stored pod always has a priority.
        if pod.spec.priority is None and (has_default or _lacks_defaults(pod)):
            try:
                objects.pods[number] = admit(pod, objects)
            except InputError as error:
                problems += error.at(f"{place}: Pod {pod.key}").problems
    return problems


def _lacks_defaults(pod: Pod) -> bool:
    """Tell whether admission would change something that a decision reads. Most placed pods need no copy."""
    spec = pod.spec
    containers = (*spec.init_containers, *spec.containers)
    return (
        not spec.node_name
        or bool(spec.priority_class_name)
        or spec.affinity is not None
        or spec.resources is not None
        or spec.host_network
        or any(container.resources.limits for container in containers)
    )


def _node_quantities(node: Node) -> Iterator[tuple[str, Quantities]]:
    yield "$.status.capacity", node.status.capacity
    yield "$.status.allocatable", node.status.allocatable


def _pod_quantities(pod: Pod) -> Iterator[tuple[str, Quantities]]:
    yield from _container_quantities("$.spec.containers", pod.spec.containers)
    yield from _container_quantities("$.spec.initContainers", pod.spec.init_containers)
    yield "$.spec.overhead", pod.spec.overhead
    if pod.spec.resources is not None:
        yield "$.spec.resources.requests", pod.spec.resources.requests
        yield "$.spec.resources.limits", pod.spec.resources.limits
    yield from _status_quantities("$.status.containerStatuses", pod.status.container_statuses)
    yield from _status_quantities("$.status.initContainerStatuses", pod.status.init_container_statuses)


def _has_only_good_amounts(pod: Pod) -> bool:
    """Whether a stored pod has surely no bad quantity. Most have none: their paths need not be written down."""
    spec, status = pod.spec, pod.status
    if spec.overhead or spec.resources is not None:
        return False
    for entry in (*status.container_statuses, *status.init_container_statuses):
        if entry.allocated_resources or entry.resources is not None:
            return False
    for container in (*spec.containers, *spec.init_containers):
        for quantities in (container.resources.requests, container.resources.limits):
            if quantities and not all(map(_is_quantity, quantities.values())):
                return False
    return True


@lru_cache(maxsize=4096)
def _is_quantity(quantity: str | int | float) -> bool:
    try:
        parse_quantity(quantity)
    except InputError:
        return False
    return True


def _container_quantities(path: str, containers: list[Container]) -> Iterator[tuple[str, Quantities]]:
    for index, container in enumerate(containers):
        yield f"{path}[{index}].resources.requests", container.resources.requests
        yield f"{path}[{index}].resources.limits", container.resources.limits


def _status_quantities(path: str, statuses: list[ContainerStatus]) -> Iterator[tuple[str, Quantities]]:
    for index, status in enumerate(statuses):
        yield f"{path}[{index}].allocatedResources", status.allocated_resources
        if status.resources is not None:
            yield f"{path}[{index}].resources.requests", status.resources.requests


def _find_bad_quantities(quantities: Quantities, path: str, most: int | None) -> Iterator[str]:
    for name, quantity in quantities.items():
        try:
            amount = scheduler_amount(name, parse_quantity(quantity))
        except InputError as error:
            yield from error.at(path_of(path, name)).problems
            continue
        if most is not None and abs(amount) >= most:
            yield f"{path_of(path, name)}: expected what a machine can have, got {quantity!r}. Mend number or suffix."


def find_oversized_numbers(subject: msgspec.Struct) -> Iterator[str]:
    """Yield a problem for each whole number beyond 64 bits: no field of Kubernetes holds one."""
    yield from _find_oversized(msgspec.to_builtins(subject), "$")


def _find_oversized(value: object, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from _find_oversized(entry, path_of(path, key))
    elif isinstance(value, list):
        for index, entry in enumerate(value):
            yield from _find_oversized(entry, f"{path}[{index}]")
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        yield f"{path}: expected a number of at most 64 bits, got {value}. Mend the number."
