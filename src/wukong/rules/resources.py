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


def filter_requests(pod: Pod) -> Amounts:
    """What a node must have free for this newcomer."""
    return _counted(_with_overhead(pod, _with_pod_level(pod, container_requests(pod))))


def fit_score_requests(pod: Pod) -> Amounts:
    """What NodeResourcesFit scores a newcomer by: its containers, with defaults.

    kube-scheduler forgets the pod's own requests here (the scorer is built without the feature gate that the filter
    and BalancedAllocation get, up to 1.37); followed on purpose.
    """
    return _counted(_with_overhead(pod, container_requests(pod, defaults=DEFAULT_REQUESTS)))


def placed_requests(pod: Pod) -> Amounts:
    """What a pod takes from its node. Also what BalancedAllocation counts for a newcomer, which has no status yet."""
    return _counted(_placed(pod, {}))


def placed_nonzero_requests(pod: Pod) -> Amounts:
    """The same with defaults, for NodeResourcesFit. Own requests of the pod leave defaults only for what nobody set."""
    known = _placed(pod, {}) if has_pod_level_requests(pod) else {}
    missing = {name: amount for name, amount in DEFAULT_REQUESTS.items() if name not in known}
    return _counted(_placed(pod, missing))


def container_requests(pod: Pod, *, use_status: bool = False, defaults: Mapping[str, int] | None = None) -> Amounts:
    """What all containers ask for together, exact, without the pod's own requests and overhead."""
    statuses = _statuses(pod) if use_status else {}
    is_infeasible = use_status and _is_resize_infeasible(pod)

    def asked(container: Container) -> Amounts:
        spec = exact(container.resources.requests)
        status = statuses.get(container.name) if use_status and _can_be_resized(pod, container) else None
        if status is not None and status.resources is not None:
            reported = largest(exact(status.resources.requests), exact(status.allocated_resources))
            spec = reported if is_infeasible else largest(spec, reported)
        return {**(defaults or {}), **spec}

    return aggregate(pod, asked)


# Allocatable and requested on a node -----------------------------------------------------------------------------


def allocatable(node: Node) -> Amounts:
    """What the node offers. What it does not mention, it does not have."""
    return _counted(exact(node.status.allocatable))


def allowed_pods(node: Node) -> int:
    """How many pods may run on the node. Not a resource like the others: it cannot be requested or scored."""
    return scheduler_amount("pods", parse_quantity(node.status.allocatable.get("pods", 0)))


def total(amounts: Iterable[Amounts]) -> Amounts:
    summed: Amounts = {}
    for each in amounts:
        add(summed, each)
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


def aggregate(pod: Pod, asked: Callable[[Container], Amounts]) -> Amounts:
    """Containers and sidecars run together; init containers one after the other, each beside the sidecars before it."""
    running = total(map(asked, pod.spec.containers))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in pod.spec.init_containers:
        needs = asked(container)
        if is_sidecar(container):
            add(running, needs)
            add(sidecars, needs)
            peak = largest(peak, sidecars)
        else:
            peak = largest(peak, total([needs, sidecars]))
    return largest(running, peak)


def exact(written: Quantities) -> Amounts:
    return {name: parse_quantity(quantity) for name, quantity in written.items()}


def add(amounts: Amounts, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        amounts[name] = amounts.get(name, 0) + amount


def largest(one: Amounts, other: Amounts) -> Amounts:
    """Each resource at the larger of both."""
    return {name: max(each[name] for each in (one, other) if name in each) for name in {**one, **other}}


def _placed(pod: Pod, defaults: Mapping[str, int]) -> Amounts:
    return _with_overhead(pod, _with_pod_level(pod, container_requests(pod, use_status=True, defaults=defaults)))


def _with_pod_level(pod: Pod, amounts: Amounts) -> Amounts:
    if pod.spec.resources is None:
        return amounts
    own = exact(pod.spec.resources.requests)
    return {**amounts, **{name: amount for name, amount in own.items() if is_pod_level(name)}}


def _with_overhead(pod: Pod, amounts: Amounts) -> Amounts:
    return total([amounts, exact(pod.spec.overhead)])


def _counted(amounts: Amounts) -> Amounts:
    """Rounded up to what the scheduler counts; resources it does not know are dropped."""
    known = {name: amount for name, amount in amounts.items() if name in _COUNTED or is_scalar(name)}
    return {name: scheduler_amount(name, amount) for name, amount in known.items()}


def _statuses(pod: Pod) -> dict[str, ContainerStatus]:
    return {status.name: status for status in [*pod.status.container_statuses, *pod.status.init_container_statuses]}


def _can_be_resized(pod: Pod, container: Container) -> bool:
    """Init containers that end are never resized in place, so their status is not consulted."""
    return is_sidecar(container) or not any(container is init for init in pod.spec.init_containers)


def _is_resize_infeasible(pod: Pod) -> bool:
    pending = [condition for condition in pod.status.conditions if condition.type == "PodResizePending"]
    return bool(pending) and pending[0].reason == "Infeasible"
