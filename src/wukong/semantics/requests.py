"""What the containers of a pod ask for together, exact, in billionths; and what the names of resources say.

    running = Σ containers + Σ sidecars, but at least what the hungriest moment of initialisation needs

Used by the engine, which rounds the sums to the scheduler's integers, and by admission, which writes defaults.
"""

from __future__ import annotations

from collections.abc import Callable

from wukong.api.core import Container, Pod, PodSpec, Quantities
from wukong.api.quantity import parse_quantity
from wukong.semantics.label_syntax import is_label_key

Amounts = dict[str, int]  # resource → billionths


def container_requests_of(pod: Pod) -> Amounts:
    """What all containers request together, without the pod's own requests and overhead."""
    return sum_containers(pod.spec, lambda container, _: parse_quantities(container.resources.requests))


def sum_containers(spec: PodSpec, amounts_of: Callable[[Container, bool], Amounts]) -> Amounts:
    """Containers and sidecars run together; init containers one after the other, each beside the sidecars before it.

    `amounts_of(container, keeps_running)` gives a dict that may be changed; init containers other than sidecars do not
    keep running.
    """
    running: Amounts = {}
    for container in spec.containers:
        add_amounts(running, amounts_of(container, True))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.init_containers:
        keeps_running = is_sidecar(container)
        amounts = amounts_of(container, keeps_running)
        if keeps_running:
            add_amounts(running, amounts)
            add_amounts(sidecars, amounts)
            raise_amounts(peak, sidecars)
        else:
            add_amounts(amounts, sidecars)
            raise_amounts(peak, amounts)
    raise_amounts(running, peak)
    return running


def parse_quantities(quantities: Quantities) -> Amounts:
    return {name: parse_quantity(quantity) for name, quantity in quantities.items()}


def add_amounts(total: Amounts, added: Amounts) -> None:
    """In place."""
    for name, amount in added.items():
        total[name] = total.get(name, 0) + amount


def raise_amounts(total: Amounts, least: Amounts) -> None:
    """In place: each amount becomes at least that of `least`."""
    for name, amount in least.items():
        if name not in total or amount > total[name]:
            total[name] = amount


def is_sidecar(init_container: Container) -> bool:
    return init_container.restart_policy == "Always"


def is_huge_pages(name: str) -> bool:
    return name.startswith("hugepages-")


def is_pod_level(name: str) -> bool:
    """Whether a pod may ask for this resource as a whole."""
    return name in ("cpu", "memory") or is_huge_pages(name)


def is_extended(name: str) -> bool:
    """Whether it is a resource of someone's own, such as nvidia.com/gpu."""
    if "/" not in name or "kubernetes.io/" in name or name.startswith("requests."):
        return False
    return is_label_key(f"requests.{name}")
