"""What the API server does to a manifest before the scheduler sees it, as far as it decides placement.

Defaults, priority, tolerations, and the selectors merged from matchLabelKeys; in the API server's order. Gives a new
pod and leaves the given one as it is. RuntimeClasses and other admission plugins are not modelled: overhead must be
written out.
"""

from __future__ import annotations

from copy import deepcopy

from wukong.api.core import Affinity, Container, Pod, PodAffinityTerm, PriorityClass, Quantities, Toleration
from wukong.api.meta import LabelSelector, LabelSelectorRequirement, SelectorOperator
from wukong.api.objects import Objects
from wukong.api.quantity import NANO, milli, parse_quantity
from wukong.errors import InputError, nearest
from wukong.rules.findings import finding
from wukong.rules.resources import Amounts, aggregate, container_requests, exact, is_huge_pages, is_pod_level

BUILT_IN_CLASSES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
DEFAULT_POLICY = "PreemptLowerPriority"
_EVICTING_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_MILLI_NANOS = 10**6


def admit(pod: Pod, objects: Objects) -> Pod:
    """The pod as it would be stored. Raises InputError where its priority cannot be what it says."""
    admitted = plugged_in(pod, objects)
    merge_label_keys(admitted)
    return admitted


def plugged_in(pod: Pod, objects: Objects) -> Pod:
    """The pod as mutating webhooks see it: all of `admit` but the last step, which looks at the labels they leave."""
    admitted = deepcopy(pod)
    admitted.metadata.namespace = admitted.metadata.namespace or "default"
    admitted.spec.scheduler_name = admitted.spec.scheduler_name or "default-scheduler"
    _default_resources(admitted)
    _default_ports(admitted)
    _set_priority(admitted, objects.priority_classes)
    tolerate_failing_nodes(admitted)
    return admitted


# Resources -------------------------------------------------------------------------------------------------------


def _default_resources(pod: Pod) -> None:
    """Requests default to limits, for each container and then for the pod as a whole, if that sets any limit."""
    for container in _containers(pod):
        container.resources.requests = rounded(container.resources.requests)
        container.resources.limits = rounded(container.resources.limits)
        container.resources.requests = {**container.resources.limits, **container.resources.requests}
    pod.spec.overhead = rounded(pod.spec.overhead)
    own = pod.spec.resources
    if own is not None:
        own.requests, own.limits = rounded(own.requests), rounded(own.limits)
        own.limits = _pod_limits(pod, own.requests, own.limits)
        own.requests = _pod_requests(pod, own.requests, own.limits)


def rounded(quantities: Quantities) -> Quantities:
    """The API server stores no quantity finer than a thousandth: it rounds each up, before anything is added."""
    return {
        name: quantity if parse_quantity(quantity) % _MILLI_NANOS == 0 else f"{milli(parse_quantity(quantity))}m"
        for name, quantity in quantities.items()
    }


def _pod_limits(pod: Pod, requests: Quantities, limits: Quantities) -> Quantities:
    """Huge pages that only the containers limit are limited for the pod too."""
    if not requests and not limits:
        return limits
    together = aggregate(pod, lambda container: exact(container.resources.limits))
    pages = {name: amount for name, amount in together.items() if is_huge_pages(name) and name not in requests}
    return {**_written(pages), **limits}


def _pod_requests(pod: Pod, requests: Quantities, limits: Quantities) -> Quantities:
    """With limits set, missing requests are what the containers ask for together; what none asks for is the limit."""
    if not limits:
        return requests
    together = {name: amount for name, amount in container_requests(pod).items() if name in ("cpu", "memory")}
    own_limits = {name: quantity for name, quantity in limits.items() if is_pod_level(name)}
    return {**own_limits, **_written(together), **requests}


def _written(amounts: Amounts) -> Quantities:
    return {name: amount // NANO if amount % NANO == 0 else f"{milli(amount)}m" for name, amount in amounts.items()}


def _default_ports(pod: Pod) -> None:
    """On the host's network a container's ports are the host's."""
    for container in _containers(pod):
        for port in container.ports:
            port.protocol = port.protocol or "TCP"
            if pod.spec.host_network and port.host_port == 0:
                port.host_port = port.container_port


def _containers(pod: Pod) -> list[Container]:
    return [*pod.spec.init_containers, *pod.spec.containers]


# Priority --------------------------------------------------------------------------------------------------------


def _set_priority(pod: Pod, classes: list[PriorityClass]) -> None:
    """From the named class, or the global default. A pod may repeat what its class says, but not contradict it."""
    chosen = _priority_class(pod.spec.priority_class_name, classes)
    policy = chosen.preemption_policy or DEFAULT_POLICY
    complaints = []
    if pod.spec.priority not in (None, chosen.value):
        fix = "Leave it out, or name another priorityClassName."
        complaints.append(finding("$.spec.priority", f"what the class says, {chosen.value}", pod.spec.priority, fix))
    if pod.spec.preemption_policy not in (None, policy):
        fix = "Leave it out, or name a PriorityClass that has this policy."
        expected = f"what the class says, {policy}"
        complaints.append(finding("$.spec.preemptionPolicy", expected, pod.spec.preemption_policy, fix))
    if complaints:
        raise InputError(*complaints)
    pod.spec.priority_class_name = chosen.metadata.name
    pod.spec.priority, pod.spec.preemption_policy = chosen.value, policy


def _priority_class(name: str, classes: list[PriorityClass]) -> PriorityClass:
    if not name:
        defaults = [each for each in classes if each.global_default]
        return min(defaults, key=lambda each: each.value, default=PriorityClass())
    known = {each.metadata.name: each for each in classes}
    if name in known:
        return known[name]
    if name in BUILT_IN_CLASSES:
        built_in = PriorityClass(value=BUILT_IN_CLASSES[name])
        built_in.metadata.name = name
        return built_in
    path = "$.spec.priorityClassName"
    if not classes:
        fix = "Add them to the snapshot (kubectl get priorityclasses -o yaml), or leave the name out."
        raise InputError(f'{path}: "{name}" is unknown, for the snapshot has no PriorityClasses. {fix}')
    names = sorted({*known, *BUILT_IN_CLASSES})
    raise InputError(
        finding(path, "a PriorityClass of the snapshot", name, f"Use {', '.join(names)}.{nearest(name, names)}")
    )


# Tolerations and label keys --------------------------------------------------------------------------------------


def tolerate_failing_nodes(pod: Pod) -> None:
    """In place: pods stay 300 s on a node that is not ready or unreachable, unless they name that taint themselves."""
    for taint in _EVICTING_TAINTS:
        said = [each for each in pod.spec.tolerations if each.key in ("", taint) and each.effect in ("", "NoExecute")]
        if not said:
            added = Toleration(key=taint, operator="Exists", effect="NoExecute", toleration_seconds=300)
            pod.spec.tolerations.append(added)


def merge_label_keys(pod: Pod) -> None:
    """In place: the keys join the selectors. A term without a selector selects nobody, with or without them."""
    labels = pod.metadata.labels
    for term in _affinity_terms(pod):
        _merge(term.label_selector, term.match_label_keys, "In", labels)
        _merge(term.label_selector, term.mismatch_label_keys, "NotIn", labels)
    for constraint in pod.spec.topology_spread_constraints:
        _merge(constraint.label_selector, constraint.match_label_keys, "In", labels)


def _merge(selector: LabelSelector | None, keys: list[str], operator: SelectorOperator, labels: dict[str, str]) -> None:
    if selector is None:
        return
    for key in keys:
        if key in labels:
            added = LabelSelectorRequirement(key=key, operator=operator, values=[labels[key]])
            selector.match_expressions.append(added)


def _affinity_terms(pod: Pod) -> list[PodAffinityTerm]:
    affinity = pod.spec.affinity or Affinity()
    both = [each for each in (affinity.pod_affinity, affinity.pod_anti_affinity) if each is not None]
    preferred = [weighted.pod_affinity_term for each in both for weighted in each.preferred]
    return [*(term for each in both for term in each.required), *preferred]
