"""How much a pod asks for, in exact billionths and in the whole numbers the scheduler counts with.

    asked    = Σ containers + Σ sidecars, but at least what the hungriest moment of initialisation needs
    pod      = asked, replaced by the pod's own requests where it has some, plus overhead

Sums stay exact and are rounded up once per pod (millicores for cpu, whole units else). Five readings of a pod exist,
each used in one place: see the functions. Never looks at more than one node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from wukong.api.core import Container, ContainerStatus, Node, Pod, Quantities
from wukong.api.quantity import parse_quantity, scheduler_amount
from wukong.rules.labels import is_label_key

Amounts = dict[str, int]

# What a container without a request is taken to use when nodes are scored; never when they are filtered.
DEFAULT_REQUESTS: Mapping[str, int] = {"cpu": parse_quantity("100m"), "memory": parse_quantity("200Mi")}
_COUNTED = ("cpu", "memory", "ephemeral-storage")


# The five readings -----------------------------------------------------------------------------------------------


def filter_requests_of(pod: Pod) -> Amounts:
    """What a node must have free for this newcomer."""
    return _round_counted(_add_overhead(pod, _apply_pod_level(pod, container_requests_of(pod))))


def fit_score_requests_of(pod: Pod) -> Amounts:
    """What NodeResourcesFit scores a newcomer by: its containers, with defaults.

    kube-scheduler forgets the pod's own requests here (the scorer is built without the feature gate that the filter
    and BalancedAllocation get, up to 1.37); followed on purpose.
    """
    return _round_counted(_add_overhead(pod, container_requests_of(pod, defaults=DEFAULT_REQUESTS)))


def placed_requests_of(pod: Pod) -> Amounts:
    """What a pod takes from its node. Also what BalancedAllocation counts for a newcomer, which has no status yet."""
    return _round_counted(_sum_placed(pod, {}))


def placed_nonzero_requests_of(pod: Pod) -> Amounts:
    """The same with defaults, for NodeResourcesFit. Own requests of the pod leave defaults only for what nobody set."""
    known = _sum_placed(pod, {}) if has_pod_level_requests(pod) else {}
    missing = {name: amount for name, amount in DEFAULT_REQUESTS.items() if name not in known}
    return _round_counted(_sum_placed(pod, missing))


def container_requests_of(pod: Pod, *, use_status: bool = False, defaults: Mapping[str, int] | None = None) -> Amounts:
    """What all containers ask for together, exact, without the pod's own requests and overhead."""
    statuses = _statuses_of(pod) if use_status else {}
    is_infeasible = use_status and _is_resize_infeasible(pod)

    def requests_of(container: Container) -> Amounts:
        spec = parse_amounts(container.resources.requests)
        status = statuses.get(container.name) if use_status and _can_be_resized(pod, container) else None
        if status is not None and status.resources is not None:
            reported = merge_largest(
                parse_amounts(status.resources.requests), parse_amounts(status.allocated_resources)
            )
            spec = reported if is_infeasible else merge_largest(spec, reported)
        return {**(defaults or {}), **spec}

    return sum_containers(pod, requests_of)


# Allocatable and requested on a node -----------------------------------------------------------------------------


def allocatable_of(node: Node) -> Amounts:
    """What the node offers. What it does not mention, it does not have."""
    return _round_counted(parse_amounts(node.status.allocatable))


def count_allowed_pods(node: Node) -> int:
    """How many pods may run on the node. Not a resource like the others: it cannot be requested or scored."""
    return scheduler_amount("pods", parse_quantity(node.status.allocatable.get("pods", 0)))


def add_all(amounts: Iterable[Amounts]) -> Amounts:
    summed: Amounts = {}
    for more in amounts:
        add(summed, more)
    return summed


# Names -----------------------------------------------------------------------------------------------------------


def is_scalar(name: str) -> bool:
    """Everything counted besides cpu, memory and ephemeral-storage: extended resources, huge pages and the like."""
    is_native = "kubernetes.io/" in name or name.startswith("attachable-volumes-")
    return is_native or is_huge_pages(name) or is_extended(name)


def is_extended(name: str) -> bool:
    """A resource of someone's own, such as nvidia.com/gpu."""
    if "/" not in name or "kubernetes.io/" in name or name.startswith("requests."):
        return False
    return is_label_key(f"requests.{name}")


def is_huge_pages(name: str) -> bool:
    return name.startswith("hugepages-")


def is_pod_level(name: str) -> bool:
    """Whether a pod may ask for this resource as a whole."""
    return name in ("cpu", "memory") or is_huge_pages(name)


def has_pod_level_requests(pod: Pod) -> bool:
    return pod.spec.resources is not None and any(map(is_pod_level, pod.spec.resources.requests))


def is_sidecar(init_container: Container) -> bool:
    return init_container.restart_policy == "Always"


# Arithmetic ------------------------------------------------------------------------------------------------------


def sum_containers(pod: Pod, requests_of: Callable[[Container], Amounts]) -> Amounts:
    """Containers and sidecars run together; init containers one after the other, each beside the sidecars before it."""
    running = add_all(map(requests_of, pod.spec.containers))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in pod.spec.init_containers:
        needs = requests_of(container)
        if is_sidecar(container):
            add(running, needs)
            add(sidecars, needs)
            peak = merge_largest(peak, sidecars)
        else:
            peak = merge_largest(peak, add_all([needs, sidecars]))
    return merge_largest(running, peak)


def parse_amounts(quantities: Quantities) -> Amounts:
    return {name: parse_quantity(quantity) for name, quantity in quantities.items()}


def add(amounts: Amounts, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        amounts[name] = amounts.get(name, 0) + amount


def merge_largest(first: Amounts, second: Amounts) -> Amounts:
    """Each resource at the larger of both."""
    return {name: max(amounts[name] for amounts in (first, second) if name in amounts) for name in {**first, **second}}


def _sum_placed(pod: Pod, defaults: Mapping[str, int]) -> Amounts:
    return _add_overhead(pod, _apply_pod_level(pod, container_requests_of(pod, use_status=True, defaults=defaults)))


def _apply_pod_level(pod: Pod, amounts: Amounts) -> Amounts:
    if pod.spec.resources is None:
        return amounts
    own = parse_amounts(pod.spec.resources.requests)
    return {**amounts, **{name: amount for name, amount in own.items() if is_pod_level(name)}}


def _add_overhead(pod: Pod, amounts: Amounts) -> Amounts:
    return add_all([amounts, parse_amounts(pod.spec.overhead)])


def _round_counted(amounts: Amounts) -> Amounts:
    """Rounded up to what the scheduler counts; resources it does not know are dropped."""
    known = {name: amount for name, amount in amounts.items() if name in _COUNTED or is_scalar(name)}
    return {name: scheduler_amount(name, amount) for name, amount in known.items()}


def _statuses_of(pod: Pod) -> dict[str, ContainerStatus]:
    return {status.name: status for status in [*pod.status.container_statuses, *pod.status.init_container_statuses]}


def _can_be_resized(pod: Pod, container: Container) -> bool:
    """Init containers that end are never resized in place, so their status is not consulted."""
    return is_sidecar(container) or not any(container is init for init in pod.spec.init_containers)


def _is_resize_infeasible(pod: Pod) -> bool:
    pending = [condition for condition in pod.status.conditions if condition.type == "PodResizePending"]
    return bool(pending) and pending[0].reason == "Infeasible"
