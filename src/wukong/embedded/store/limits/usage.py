"""How much of what quotas count an object takes: pods, Services, PersistentVolumeClaims, and numbers of all else.

Follows kube-apiserver's quota evaluators (1.35; pkg/quota/v1/evaluator/core). Read by quotas.py at admission and by the
quota controller, so both count alike. Pure. Not counted: resource claims and their device classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from wukong.api.kinds import PERSISTENT_VOLUME_CLAIMS, PODS, SERVICES
from wukong.api.quantity import NANO, units
from wukong.api.quota import ScopedSelectorRequirement
from wukong.embedded.store.documents import parse_time, value_at
from wukong.embedded.store.limits.amounts import Amount, Amounts, count_of, parse_amounts
from wukong.embedded.store.limits.pod_resources import list_containers, resources_of, sum_resources
from wukong.embedded.store.limits.pod_scopes import read_scopes
from wukong.ports import Document
from wukong.semantics.requests import is_extended, is_huge_pages

IGNORED = frozenset({"events", "events.events.k8s.io"})
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_POD_RESOURCES = frozenset(
    {"count/pods", "pods", *_COMPUTE, *(f"{part}.{name}" for part in ("requests", "limits") for name in _COMPUTE)}
)
# A quota on one of these has every container say how much: a mistake of old that Kubernetes keeps.
_REQUIRED = frozenset(
    {"cpu", "memory", *(f"{part}.{name}" for part in ("requests", "limits") for name in ("cpu", "memory"))}
)
_SERVICE_RESOURCES = frozenset({"count/services", "services", "services.nodeports", "services.loadbalancers"})
_CLAIM_RESOURCES = ("persistentvolumeclaims", "requests.storage")
_BY_CLASS = ".storageclass.storage.k8s.io/"
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_OLD_NAMES = ("configmaps", "resourcequotas", "replicationcontrollers", "secrets")


class Evaluator(NamedTuple):
    """How objects of one kind are counted. `has_scopes`: quotas with scopes may count them."""

    counts: Callable[[str], bool]  # whether this resource of a quota is theirs
    measure: Callable[[Document], Amounts]
    has_scopes: bool = False

    def select_counted(self, names: Iterable[str]) -> list[str]:
        return sorted(filter(self.counts, names))

    def matches(self, requirements: Iterable[ScopedSelectorRequirement], document: Document) -> bool:
        """Whether an object is one of those that these scopes are about."""
        requirements = list(requirements)
        if not requirements or not self.has_scopes:
            return not requirements
        scopes = read_scopes(document)
        return all(map(scopes.matches, requirements))


def evaluator_of(store_name: str) -> Evaluator:
    """The evaluator of a kind, by its name in the store: `pods`, `deployments.apps`."""
    return _EVALUATORS.get(store_name) or _count_objects(store_name)


def _count_objects(store_name: str) -> Evaluator:
    names = {f"count/{store_name}", *((store_name,) if store_name in _OLD_NAMES else ())}
    usage = dict.fromkeys(sorted(names), count_of(1))
    return Evaluator(names.__contains__, lambda _: dict(usage))


# ---- pods


def is_pod_compute(name: str) -> bool:
    """Whether it is cpu or memory that pods ask for or are limited to, which scopes may be about."""
    return name in _REQUIRED


def _is_pod_resource(name: str) -> bool:
    return (
        name in _POD_RESOURCES
        or is_huge_pages(name.removeprefix("requests."))
        or (name.startswith("requests.") and "/" in name and "kubernetes.io/" not in name)
    )


def measure_pod(pod: Document, now: float | None = None) -> Amounts:
    """What a pod counts for. One that has ended, or has stopped for longer than it may at `now`, is only there."""
    usage = {"count/pods": count_of(1)}
    if is_over(pod, now):
        return usage
    requests = sum_resources(pod, "requests", with_overhead=True)
    limits = sum_resources(pod, "limits", with_overhead=True)
    return usage | _name_as_quota(requests, limits)


def is_over(pod: Document, now: float | None) -> bool:
    if value_at(pod, "status.phase") in ("Failed", "Succeeded"):
        return True
    end = end_of_grace(pod)
    return now is not None and end is not None and now > end


def end_of_grace(pod: Document) -> float | None:
    """When a pod that is being deleted no longer counts, though its kubelet has not removed it."""
    meta = pod.get("metadata") or {}
    grace = meta.get("deletionGracePeriodSeconds")
    if not meta.get("deletionTimestamp") or grace is None:
        return None
    return parse_time(meta["deletionTimestamp"]) + float(grace)


def _name_as_quota(requests: Amounts, limits: Amounts) -> Amounts:
    """The resources of a pod, or of a container, by the names that quotas have for them."""
    usage = {"pods": count_of(1)}
    for name in _COMPUTE:
        if name in requests:
            usage |= {name: requests[name], f"requests.{name}": requests[name]}
        if name in limits:
            usage[f"limits.{name}"] = limits[name]
    for name, amount in requests.items():
        if is_huge_pages(name):
            usage[name] = amount
        if is_huge_pages(name) or is_extended(name):
            usage[f"requests.{name}"] = amount
    return usage


def find_missing_resources(pod: Document, counted: Iterable[str]) -> str:
    """What the containers of a pod must say for a quota on these resources, in words; "" if they do."""
    if (pod.get("spec") or {}).get("resources"):
        return ""
    required, lacking = _REQUIRED.intersection(counted), dict[str, set[str]]()
    for container in list_containers(pod):
        usage = _name_as_quota(resources_of(container, "requests"), resources_of(container, "limits"))
        for name in required.difference(usage):
            lacking.setdefault(name, set()).add(container.get("name", ""))
    if not lacking:
        return ""
    parts = [f"{name} for: {','.join(sorted(lacking[name]))}" for name in sorted(lacking)]
    return f"must specify {'; '.join(parts)}"


# ---- Services and claims


def _measure_service(service: Document) -> Amounts:
    spec = service.get("spec") or {}
    ports, type_ = spec.get("ports") or [], spec.get("type")
    node_ports = 0
    if type_ == "NodePort":
        node_ports = len(ports)
    elif type_ == "LoadBalancer":
        allocates = spec.get("allocateLoadBalancerNodePorts") is not False
        node_ports = len(ports) if allocates else sum(bool(port.get("nodePort")) for port in ports)
    return {
        "count/services": count_of(1),
        "services": count_of(1),
        "services.loadbalancers": count_of(int(type_ == "LoadBalancer")),
        "services.nodeports": count_of(node_ports),
    }


def _is_claim_resource(name: str) -> bool:
    plain = name.rpartition(_BY_CLASS)[2]
    return name == "count/persistentvolumeclaims" or plain in _CLAIM_RESOURCES


def _measure_claim(claim: Document) -> Amounts:
    usage = {"persistentvolumeclaims": count_of(1), "count/persistentvolumeclaims": count_of(1)}
    annotations = (claim.get("metadata") or {}).get("annotations") or {}
    class_name = annotations.get(_CLASS_ANNOTATION, value_at(claim, "spec.storageClassName")) or ""
    if class_name:
        usage[f"{class_name}{_BY_CLASS}persistentvolumeclaims"] = count_of(1)
    storage = _find_storage(claim)
    if storage is not None:
        usage["requests.storage"] = storage
        if class_name:
            usage[f"{class_name}{_BY_CLASS}requests.storage"] = storage
    return usage


def _find_storage(claim: Document) -> Amount | None:
    """What a claim asks for in whole bytes, or what it was given if that is more."""
    asked = parse_amounts(value_at(claim, "spec.resources.requests")).get("storage")
    given = parse_amounts(value_at(claim, "status.allocatedResources")).get("storage")
    if asked is None:
        return None
    amount = given if given is not None and given.nanos > asked.nanos else asked
    return Amount(units(amount.nanos) * NANO, amount.form)


_EVALUATORS = {
    PODS.plural: Evaluator(_is_pod_resource, measure_pod, has_scopes=True),
    SERVICES.plural: Evaluator(_SERVICE_RESOURCES.__contains__, _measure_service),
    PERSISTENT_VOLUME_CLAIMS.plural: Evaluator(_is_claim_resource, _measure_claim),
}
