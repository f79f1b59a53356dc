"""What a pod asks for, in the integers kube-scheduler counts with.

Three readings of the same pod: what must fit (`needed`), what a placed pod takes (`taken`, `taken_nonzero`), and what
NodeResourcesFit scores by (`scored`). Sums are exact and rounded up once. Called when a template is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from wukong.api.core import Container, ContainerStatus, Pod, PodSpec, Quantities
from wukong.api.quantity import parse_quantity, scheduler_amount

Amounts = dict[str, int]  # resource → nanos while adding up, scheduler integers in the end

DEFAULTS: Amounts = {"cpu": parse_quantity("100m"), "memory": parse_quantity("200Mi")}
_POD_LEVEL = ("cpu", "memory")


class Requests(NamedTuple):
    needed: Amounts
    taken: Amounts
    taken_nonzero: tuple[int, int]  # cpu, memory with the scheduler's defaults for what is missing
    scored: Amounts


def read_requests(pod: Pod) -> Requests:
    spec = pod.spec
    statuses = _statuses(pod)
    needed = _total(spec, {}, None, pod_level=True)
    taken = _total(spec, statuses, None, pod_level=True, infeasible=_is_resize_infeasible(pod)) if statuses else needed
    has_pod_level = spec.resources is not None and any(is_pod_level(name) for name in spec.resources.requests)
    missing = {name: amount for name, amount in DEFAULTS.items() if not has_pod_level or name not in taken}
    nonzero = _total(spec, statuses, missing, pod_level=True, infeasible=_is_resize_infeasible(pod))
    # NodeResourcesFit never learnt of pod-level resources when it scores: it adds up containers only.
    scored = _total(spec, {}, DEFAULTS, pod_level=False)
    return Requests(
        needed=_integers(needed),
        taken=_integers(taken),
        taken_nonzero=(
            scheduler_amount("cpu", nonzero.get("cpu", 0)),
            scheduler_amount("memory", nonzero.get("memory", 0)),
        ),
        scored=_integers(scored),
    )


def is_counted(name: str) -> bool:
    """Whether kube-scheduler keeps account of this resource beside cpu, memory, storage and pods."""
    return "/" in name or name.startswith(("hugepages-", "attachable-volumes-"))


def is_pod_level(name: str) -> bool:
    return name in _POD_LEVEL or name.startswith("hugepages-")


def _integers(nanos: Amounts) -> Amounts:
    return {
        name: scheduler_amount(name, amount)
        for name, amount in nanos.items()
        if name in ("cpu", "memory", "ephemeral-storage") or is_counted(name)
    }


def _total(
    spec: PodSpec,
    statuses: Mapping[str, ContainerStatus],
    missing: Amounts | None,
    *,
    pod_level: bool,
    infeasible: bool = False,
) -> Amounts:
    """Containers run together, init containers one after the other beside the sidecars started before them."""
    total: Amounts = {}
    for container in spec.containers:
        _add(total, _one(container, statuses.get(container.name), missing, infeasible))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.init_containers:
        is_sidecar = container.restart_policy == "Always"
        status = statuses.get(container.name) if is_sidecar else None
        asked = _one(container, status, missing, infeasible)
        if is_sidecar:
            _add(total, asked)
            _add(sidecars, asked)
            _raise_to(peak, sidecars)
        else:
            _add(asked, sidecars)
            _raise_to(peak, asked)
    _raise_to(total, peak)
    if pod_level and spec.resources is not None:
        total.update({name: value for name, value in _nanos(spec.resources.requests).items() if is_pod_level(name)})
    _add(total, _nanos(spec.overhead))
    return total


def _one(container: Container, status: ContainerStatus | None, missing: Amounts | None, infeasible: bool) -> Amounts:
    asked = _nanos(container.resources.requests)
    if status is not None and status.resources is not None:  # resized in place: the largest of the three views holds
        effective = {} if infeasible else dict(asked)
        _raise_to(effective, _nanos(status.resources.requests))
        _raise_to(effective, _nanos(status.allocated_resources))
        asked = effective
    for name, amount in (missing or {}).items():
        asked.setdefault(name, amount)
    return asked


def _nanos(quantities: Quantities) -> Amounts:
    return {name: parse_quantity(value) for name, value in quantities.items()}


def _add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(total: Amounts, least: Amounts) -> None:
    for name, amount in least.items():
        if name not in total or amount > total[name]:
            total[name] = amount


def _statuses(pod: Pod) -> dict[str, ContainerStatus]:
    entries = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    return {entry.name: entry for entry in entries if entry.resources is not None}


def _is_resize_infeasible(pod: Pod) -> bool:
    pending = next((entry for entry in pod.status.conditions if entry.type == "PodResizePending"), None)
    return pending is not None and pending.reason == "Infeasible"
