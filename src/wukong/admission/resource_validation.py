"""What the API server refuses in requests, limits and overhead: names, quantities, and requests above limits.

Called by pod_validation.py. Every quantity is checked at its own path.
"""

from __future__ import annotations

from collections.abc import Iterator

from wukong.admission.problem_text import describe_problem, format_choices
from wukong.api.core import Pod, Quantities, ResourceRequirements
from wukong.api.documents import path_of
from wukong.api.quantity import NANO, format_amount, parse_quantity, scheduler_amount
from wukong.errors import InputError, nearest
from wukong.semantics.label_syntax import is_label_key
from wukong.semantics.requests import container_requests_of, is_extended, is_huge_pages, is_pod_level

CONTAINER_RESOURCES = ("cpu", "memory", "ephemeral-storage")


def find_resource_problems(pod: Pod) -> list[str]:
    problems = list(_find_container_problems(pod))
    problems += _find_quantity_problems(pod.spec.overhead, "$.spec.overhead")
    if pod.spec.resources is not None:
        problems += _find_pod_level_problems(pod.spec.resources)
        # Adding up needs quantities that can be read.
        problems += [] if problems else _find_sum_problems(pod, pod.spec.resources)
    return problems


def _find_container_problems(pod: Pod) -> Iterator[str]:
    for place, containers in (("initContainers", pod.spec.init_containers), ("containers", pod.spec.containers)):
        for index, container in enumerate(containers):
            if not container.resources.requests and not container.resources.limits:
                continue
            path = f"$.spec.{place}[{index}].resources"
            yield from _find_quantity_problems(container.resources.requests, f"{path}.requests")
            yield from _find_quantity_problems(container.resources.limits, f"{path}.limits")
            yield from _find_balance_problems(container.resources, path)


def _find_quantity_problems(quantities: Quantities, path: str) -> Iterator[str]:
    for name, quantity in quantities.items():
        here = path_of(path, name)
        yield from _find_name_problems(name, here)
        try:
            amount = parse_quantity(quantity)
        except InputError as error:
            yield from error.at(here).problems
            continue
        if amount < 0:
            yield describe_problem(here, "0 or more", quantity, "Remove the minus sign.")
        if is_extended(name) and amount % NANO:
            yield describe_problem(here, "a whole number", quantity, f"{name} comes in whole pieces: round it.")


def _find_name_problems(name: str, path: str) -> Iterator[str]:
    if "/" in name:
        if not is_label_key(name):
            yield describe_problem(path, "a resource name such as nvidia.com/gpu", name, "Mend the name.")
    elif name not in CONTAINER_RESOURCES and not is_huge_pages(name):
        hint = nearest(name, CONTAINER_RESOURCES) if len(name) > 3 else ""  # gpu is no slip for cpu
        choices = format_choices((*CONTAINER_RESOURCES, "a name with a domain such as nvidia.com/gpu"))
        yield describe_problem(path, choices, name, f"Mend the name.{hint}")


def _find_balance_problems(resources: ResourceRequirements, path: str) -> Iterator[str]:
    """Requests stay within limits. Extended resources and huge pages cannot be overcommitted: both must be equal."""
    for name, quantity in resources.requests.items():
        limit = resources.limits.get(name)
        request, allowed = _parse_amount(quantity), _parse_amount(limit)
        here = path_of(f"{path}.requests", name)
        if (is_extended(name) or is_huge_pages(name)) and request is not None:
            if limit is None:
                yield describe_problem(
                    path_of(f"{path}.limits", name), f"the same as the request, {quantity}", None, "Add the limit."
                )
            elif request != allowed:
                yield describe_problem(here, f"the same as the limit, {limit}", quantity, "Make them equal.")
        elif request is not None and allowed is not None and request > allowed:
            yield describe_problem(
                here, f"at most the limit, {limit}", quantity, "Lower the request or raise the limit."
            )


def _find_pod_level_problems(resources: ResourceRequirements) -> Iterator[str]:
    path = "$.spec.resources"
    for side, quantities in (("requests", resources.requests), ("limits", resources.limits)):
        for name in quantities:
            if not is_pod_level(name):
                here = path_of(f"{path}.{side}", name)
                yield describe_problem(here, "cpu, memory or hugepages-…", name, "Move it to the containers.")
        known = {name: quantity for name, quantity in quantities.items() if is_pod_level(name)}
        yield from _find_quantity_problems(known, f"{path}.{side}")
    yield from _find_balance_problems(resources, path)


def _find_sum_problems(pod: Pod, resources: ResourceRequirements) -> Iterator[str]:
    """The pod as a whole cannot ask for less than its containers together."""
    together = container_requests_of(pod)
    for name, quantity in resources.requests.items():
        least = together.get(name, 0)
        if parse_quantity(quantity) < least:
            amount = format_amount(name, scheduler_amount(name, least))
            here = path_of("$.spec.resources.requests", name)
            yield describe_problem(here, f"at least what the containers ask for, {amount}", quantity, "Raise it.")


def _parse_amount(quantity: str | int | float | None) -> int | None:
    """The quantity, or nothing where there is none or it cannot be read (which has been reported)."""
    try:
        return None if quantity is None else parse_quantity(quantity)
    except InputError:
        return None
