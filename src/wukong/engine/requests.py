"""What a pod asks for, in the integers kube-scheduler counts with.

Three readings of the same pod: what must fit (`needed`), what a placed pod takes (`taken`, `taken_nonzero`), and what
NodeResourcesFit scores by (`scored`). Sums are exact and rounded up once. Called when a template is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from wukong.api.core import Container, ContainerStatus, Pod, PodSpec
from wukong.api.quantity import parse_quantity, scheduler_amount
from wukong.semantics.requests import (
    Amounts,
    add_amounts,
    is_pod_level,
    parse_quantities,
    raise_amounts,
    sum_containers,
)

DEFAULTS: Amounts = {"cpu": parse_quantity("100m"), "memory": parse_quantity("200Mi")}


class Requests(NamedTuple):
    needed: Amounts
    taken: Amounts
    taken_nonzero: tuple[int, int]  # cpu, memory with the scheduler's defaults for what is missing
    scored: Amounts


def read_requests(pod: Pod) -> Requests:
    spec = pod.spec
    statuses = _statuses_of(pod)
    needed = _sum_requests(spec, {}, None, pod_level=True)
    taken = (
        _sum_requests(spec, statuses, None, pod_level=True, infeasible=is_resize_infeasible(pod))
        if statuses
        else needed
    )
    has_pod_level = spec.resources is not None and any(is_pod_level(name) for name in spec.resources.requests)
    missing = {name: amount for name, amount in DEFAULTS.items() if not has_pod_level or name not in taken}
    nonzero = _sum_requests(spec, statuses, missing, pod_level=True, infeasible=is_resize_infeasible(pod))
    # NodeResourcesFit never learnt of pod-level resources when it scores: it adds up containers only.
    scored = _sum_requests(spec, {}, DEFAULTS, pod_level=False)
    return Requests(
        needed=_round_amounts(needed),
        taken=_round_amounts(taken),
        taken_nonzero=(
            scheduler_amount("cpu", nonzero.get("cpu", 0)),
            scheduler_amount("memory", nonzero.get("memory", 0)),
        ),
        scored=_round_amounts(scored),
    )


def is_counted(name: str) -> bool:
    """Whether kube-scheduler keeps account of this resource beside cpu, memory, storage and pods."""
    return "/" in name or name.startswith(("hugepages-", "attachable-volumes-"))


def _round_amounts(amounts: Amounts) -> Amounts:
    return {
        name: scheduler_amount(name, amount)
        for name, amount in amounts.items()
        if name in ("cpu", "memory", "ephemeral-storage") or is_counted(name)
    }


def _sum_requests(
    spec: PodSpec,
    statuses: Mapping[str, ContainerStatus],
    defaults: Amounts | None,
    *,
    pod_level: bool,
    infeasible: bool = False,
) -> Amounts:
    """What the pod asks for, in billionths: its containers, replaced by its own requests, plus its overhead."""

    def amounts_of(container: Container, keeps_running: bool) -> Amounts:
        # Init containers that end are never resized in place, so their status is not consulted.
        status = statuses.get(container.name) if keeps_running else None
        return _container_amounts(container, status, defaults, infeasible)

    total = sum_containers(spec, amounts_of)
    if pod_level and spec.resources is not None:
        own = parse_quantities(spec.resources.requests)
        total.update({name: amount for name, amount in own.items() if is_pod_level(name)})
    add_amounts(total, parse_quantities(spec.overhead))
    return total


def _container_amounts(
    container: Container, status: ContainerStatus | None, defaults: Amounts | None, infeasible: bool
) -> Amounts:
    amounts = parse_quantities(container.resources.requests)
    if status is not None and status.resources is not None:  # resized in place: the largest of the three views holds
        effective = {} if infeasible else dict(amounts)
        raise_amounts(effective, parse_quantities(status.resources.requests))
        raise_amounts(effective, parse_quantities(status.allocated_resources))
        amounts = effective
    for name, amount in (defaults or {}).items():
        amounts.setdefault(name, amount)
    return amounts


def _statuses_of(pod: Pod) -> dict[str, ContainerStatus]:
    entries = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    return {entry.name: entry for entry in entries if entry.resources is not None}


def is_resize_infeasible(pod: Pod) -> bool:
    """Whether its node cannot give a pod what it asks for since it was placed."""
    pending = next((entry for entry in pod.status.conditions if entry.type == "PodResizePending"), None)
    return pending is not None and pending.reason == "Infeasible"
