"""What the API server does to a manifest before the scheduler sees it, as far as it decides placement.

Defaults, priority, tolerations, and the selectors merged from matchLabelKeys; in the API server's order. Gives a new
pod and leaves the given one as it is. RuntimeClasses and other admission plugins are not modelled: overhead must be
written out.
"""

from __future__ import annotations

from copy import deepcopy

from wukong.admission.priority import set_priority
from wukong.admission.resource_defaults import set_default_resources
from wukong.api.core import Affinity, Pod, PodAffinityTerm, Toleration
from wukong.api.meta import LabelSelector, LabelSelectorRequirement, SelectorOperator
from wukong.api.objects import Objects

_EVICTING_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def admit(pod: Pod, objects: Objects) -> Pod:
    """The pod as it would be stored. Raises InputError where its priority cannot be what it says."""
    admitted = run_plugins(pod, objects)
    merge_label_keys(admitted)
    return admitted


def run_plugins(pod: Pod, objects: Objects) -> Pod:
    """The pod as mutating webhooks see it: all of `admit` but the last step, which looks at the labels they leave."""
    admitted = deepcopy(pod)
    admitted.metadata.namespace = admitted.metadata.namespace or "default"
    admitted.spec.scheduler_name = admitted.spec.scheduler_name or "default-scheduler"
    set_default_amounts(admitted)
    set_priority(admitted, objects.priority_classes)
    tolerate_failing_nodes(admitted)
    return admitted


def set_default_amounts(pod: Pod) -> None:
    """In place: requests and host ports that follow from what the pod says. The API server does so on every write."""
    set_default_resources(pod)
    _set_default_ports(pod)


def _set_default_ports(pod: Pod) -> None:
    """In place: on the host's network a container's ports are the host's."""
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        for port in container.ports:
            port.protocol = port.protocol or "TCP"
            if pod.spec.host_network and port.host_port == 0:
                port.host_port = port.container_port


def tolerate_failing_nodes(pod: Pod) -> None:
    """In place: pods stay 300 s on a node that is not ready or unreachable, unless they name that taint themselves."""
    for taint in _EVICTING_TAINTS:
        if not any(entry.key in ("", taint) and entry.effect in ("", "NoExecute") for entry in pod.spec.tolerations):
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
    affinities = [entry for entry in (affinity.pod_affinity, affinity.pod_anti_affinity) if entry is not None]
    preferred = [weighted.pod_affinity_term for entry in affinities for weighted in entry.preferred]
    return [*(term for entry in affinities for term in entry.required), *preferred]
