"""Requests and limits of containers and pods, overhead, and what claims ask for.

Called by containers.py, spec.py, volumes.py and workloads.py; pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from wukong.api.core import Pod
from wukong.api.quantity import NANO, parse_quantity
from wukong.embedded.store.validation.pods.problems import duplicate, invalid, not_found, required
from wukong.ports import Document
from wukong.semantics.label_syntax import is_label_key
from wukong.semantics.requests import container_requests_of, is_extended, is_huge_pages, is_pod_level

STANDARD = ("cpu", "memory", "ephemeral-storage")


def find_resource_problems(resources: Document, path: str, claims: Iterable[str] = ()) -> Iterator[str]:
    """Check the resources of a container. `claims` are the names of the pod's resource claims."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for side, quantities in (("limits", limits), ("requests", requests)):
        for name, quantity in quantities.items():
            yield from find_quantity_problems(name, quantity, f"{path}.{side}[{name}]")
    yield from _find_balance_problems(limits, requests, path)
    yield from _find_claim_name_problems(resources.get("claims") or [], set(claims), f"{path}.claims")


def find_quantity_problems(name: str, quantity: str, path: str) -> Iterator[str]:
    if not _is_resource_name(name):
        yield invalid(path, name, "must be a standard resource type or fully qualified")
    amount = parse_quantity(quantity)
    if amount < 0:
        yield invalid(path, quantity, "must be greater than or equal to 0")
    if is_extended(name) and amount % NANO:
        yield invalid(path, quantity, "must be an integer")


def _is_resource_name(name: str) -> bool:
    return is_label_key(name) if "/" in name else name in STANDARD or is_huge_pages(name)


def _find_balance_problems(limits: Document, requests: Document, path: str) -> Iterator[str]:
    """Requests stay within limits; of what cannot be overcommitted both must be equal."""
    for name, quantity in requests.items():
        is_exact = is_extended(name) or is_huge_pages(name)
        if name in limits:
            request, limit = parse_quantity(quantity), parse_quantity(limits[name])
            if is_exact and request != limit:
                yield invalid(f"{path}.requests", quantity, f"must be equal to {name} limit of {limits[name]}")
            elif request > limit:
                yield invalid(
                    f"{path}.requests", quantity, f"must be less than or equal to {name} limit of {limits[name]}"
                )
        elif is_exact:
            yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")


def _find_claim_name_problems(claims: list[Document], known: set[str], path: str) -> Iterator[str]:
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        name = claim.get("name", "")
        here = f"{path}[{index}]"
        if not name:
            yield required(here)
            continue
        request = f"{name}/{claim['request']}" if claim.get("request") else name
        if request in seen or name in seen:
            yield duplicate(here, request)
        seen.add(request)
        if name not in known:
            yield not_found(here, name)


def find_overhead_problems(overhead: Document, path: str) -> Iterator[str]:
    """A server reads the overhead as limits, and says so."""
    for name, quantity in overhead.items():
        yield from find_quantity_problems(name, quantity, f"{path}.limits[{name}]")


def find_pod_level_problems(spec: Document, path: str) -> Iterator[str]:
    """Check the resources of a pod as a whole: it cannot ask for less than its containers together."""
    resources: Document = spec["resources"]
    for side in ("limits", "requests"):
        for name, quantity in (resources.get(side) or {}).items():
            here = f"{path}.resources.{side}[{name}]"
            if is_pod_level(name):
                yield from find_quantity_problems(name, quantity, here)
            else:
                yield f'{here}: Unsupported value: "{name}": supported values: "cpu", "hugepages-", "memory"'
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    yield from _find_balance_problems(limits, requests, f"{path}.resources")
    containers = [
        {"resources": container.get("resources") or {}, **_restart_policy_of(container)}
        for container in spec.get("initContainers") or ()
    ]
    plain = {
        "containers": [{"resources": entry.get("resources") or {}} for entry in spec.get("containers") or ()],
        "initContainers": containers,
    }
    together = container_requests_of(msgspec.convert({"spec": plain}, Pod))
    for name, quantity in requests.items():
        if parse_quantity(quantity) < together.get(name, 0):
            here = f"{path}.resources.requests[{name}]"
            yield invalid(here, quantity, "must be greater than or equal to aggregate container requests")


def _restart_policy_of(container: Document) -> Document:
    return {"restartPolicy": container["restartPolicy"]} if "restartPolicy" in container else {}
