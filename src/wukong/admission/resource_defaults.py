"""Requests and limits as the API server stores them: quantities rounded, missing requests and limits filled in."""

from __future__ import annotations

from wukong.api.core import Pod, Quantities
from wukong.api.quantity import NANO, milli, parse_quantity
from wukong.semantics.requests import (
    Amounts,
    container_requests_of,
    is_huge_pages,
    is_pod_level,
    parse_quantities,
    sum_containers,
)

_MILLI_NANOS = 10**6


def set_default_resources(pod: Pod) -> None:
    """In place: requests default to limits, for each container, then for the pod as a whole if it sets any limit."""
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        container.resources.requests = round_quantities(container.resources.requests)
        container.resources.limits = round_quantities(container.resources.limits)
        container.resources.requests = {**container.resources.limits, **container.resources.requests}
    pod.spec.overhead = round_quantities(pod.spec.overhead)
    own = pod.spec.resources
    if own is not None:
        own.requests, own.limits = round_quantities(own.requests), round_quantities(own.limits)
        own.limits = _pod_limits(pod, own.requests, own.limits)
        own.requests = _pod_requests(pod, own.requests, own.limits)


def round_quantities(quantities: Quantities) -> Quantities:
    """The API server stores no quantity finer than a thousandth: it rounds each up, before anything is added."""
    return {
        name: quantity if parse_quantity(quantity) % _MILLI_NANOS == 0 else f"{milli(parse_quantity(quantity))}m"
        for name, quantity in quantities.items()
    }


def _pod_limits(pod: Pod, requests: Quantities, limits: Quantities) -> Quantities:
    """Huge pages that only the containers limit are limited for the pod too."""
    if not requests and not limits:
        return limits
    together = sum_containers(pod.spec, lambda container, _: parse_quantities(container.resources.limits))
    pages = {name: amount for name, amount in together.items() if is_huge_pages(name) and name not in requests}
    return {**_format_amounts(pages), **limits}


def _pod_requests(pod: Pod, requests: Quantities, limits: Quantities) -> Quantities:
    """With limits set, missing requests are what the containers ask for together; what none asks for is the limit."""
    if not limits:
        return requests
    together = {name: amount for name, amount in container_requests_of(pod).items() if name in ("cpu", "memory")}
    own_limits = {name: quantity for name, quantity in limits.items() if is_pod_level(name)}
    return {**own_limits, **_format_amounts(together), **requests}


def _format_amounts(amounts: Amounts) -> Quantities:
    return {name: amount // NANO if amount % NANO == 0 else f"{milli(amount)}m" for name, amount in amounts.items()}
