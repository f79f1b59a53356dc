"""What the API server would refuse in a pod, as far as placement goes: every problem at once, each with its place.

Meant for manifests as people write them, before admit: the selectors must not be merged with matchLabelKeys yet. A few
findings are stricter than the API server, where it stores what kube-scheduler then cannot read (see
validate_affinity.py). Never raises.
"""

from __future__ import annotations

from collections.abc import Iterator

from wukong.api.core import Container, Pod, Toleration, TopologySpreadConstraint
from wukong.errors import nearest
from wukong.rules.findings import finding, one_of
from wukong.rules.labels import is_label_value
from wukong.rules.taints import HARD_EFFECTS
from wukong.rules.validate_affinity import (
    affinity_problems,
    key_problems,
    label_keys_problems,
    label_selector_problems,
    labels_problems,
    repeated_keys_problems,
)
from wukong.rules.validate_resources import resource_problems

EFFECTS = (*HARD_EFFECTS, "PreferNoSchedule")
OPERATORS = ("Equal", "Exists")
PROTOCOLS = ("TCP", "UDP", "SCTP")
POLICIES = ("PreemptLowerPriority", "Never")


def problems(pod: Pod) -> list[str]:
    """One sentence per problem; empty if the pod would be accepted."""
    return [
        *labels_problems(pod.metadata.labels, "$.metadata.labels"),
        *_container_problems(pod),
        *resource_problems(pod),
        *affinity_problems(pod),
        *_toleration_problems(pod),
        *_spread_problems(pod),
        *_policy_problems(pod),
    ]


def _container_problems(pod: Pod) -> Iterator[str]:
    if not pod.spec.containers:
        yield finding("$.spec.containers", "at least one container", None, "Add one with a name and an image.")
    for place, containers in (("initContainers", pod.spec.init_containers), ("containers", pod.spec.containers)):
        for index, container in enumerate(containers):
            yield from _port_problems(container, f"$.spec.{place}[{index}]", pod.spec.host_network)


def _port_problems(container: Container, path: str, host_network: bool) -> Iterator[str]:
    for index, port in enumerate(container.ports):
        here = f"{path}.ports[{index}]"
        if not 1 <= port.container_port <= 65535:
            yield finding(f"{here}.containerPort", "1 to 65535", port.container_port, "Give the port a number.")
        if not 0 <= port.host_port <= 65535:
            yield finding(f"{here}.hostPort", "1 to 65535", port.host_port, "Mend it, or leave it out.")
        elif host_network and port.host_port not in (0, port.container_port):
            fix = "Leave hostPort out: with hostNetwork both are the same."
            yield finding(f"{here}.hostPort", f"the containerPort, {port.container_port}", port.host_port, fix)
        if port.protocol not in ("", *PROTOCOLS):
            fix = f"Use one of them.{nearest(port.protocol, PROTOCOLS)}"
            yield finding(f"{here}.protocol", one_of(PROTOCOLS), port.protocol, fix)


def _toleration_problems(pod: Pod) -> Iterator[str]:
    for index, toleration in enumerate(pod.spec.tolerations):
        path = f"$.spec.tolerations[{index}]"
        yield from _operator_problems(toleration, path)
        if toleration.effect not in ("", *EFFECTS):
            fix = f"Use one of them, or none for all.{nearest(toleration.effect, EFFECTS)}"
            yield finding(f"{path}.effect", one_of(EFFECTS), toleration.effect, fix)
        elif toleration.toleration_seconds is not None and toleration.effect != "NoExecute":
            fix = "Set the effect, or remove tolerationSeconds."
            yield finding(f"{path}.effect", "NoExecute, for tolerationSeconds is set", toleration.effect, fix)


def _operator_problems(toleration: Toleration, path: str) -> Iterator[str]:
    operator, value = toleration.operator or "Equal", toleration.value
    if operator not in OPERATORS:
        fix = f"Use one of them.{nearest(operator, OPERATORS)}"
        yield finding(f"{path}.operator", one_of(OPERATORS), operator, fix)
    elif operator == "Exists" and value:
        yield finding(f"{path}.value", "no value for Exists", value, "Remove it, or use the operator Equal.")
    elif operator == "Equal" and not is_label_value(value):
        yield finding(f"{path}.value", "a taint value", value, "Use letters, digits, '-', '_' and '.'.")
    if toleration.key:
        yield from key_problems(toleration.key, f"{path}.key")
    elif operator == "Equal":
        fix = "Name the key, or use Exists to tolerate every taint."
        yield finding(f"{path}.operator", "Exists, for there is no key", operator, fix)


def _spread_problems(pod: Pod) -> Iterator[str]:
    seen: dict[tuple[str, str], int] = {}
    for index, constraint in enumerate(pod.spec.topology_spread_constraints):
        path = f"$.spec.topologySpreadConstraints[{index}]"
        yield from _constraint_problems(constraint, path)
        kind = (constraint.topology_key, constraint.when_unsatisfiable)
        if kind in seen:
            found = f"the same as [{seen[kind]}], {{{', '.join(kind)}}}"
            yield f"{path}: expected another topologyKey or whenUnsatisfiable, got {found}. Merge the two."
        seen.setdefault(kind, index)


def _constraint_problems(constraint: TopologySpreadConstraint, path: str) -> Iterator[str]:
    if constraint.max_skew < 1:
        yield finding(f"{path}.maxSkew", "1 or more", constraint.max_skew, "Set it to 1 for the evenest spread.")
    if constraint.topology_key == "":
        fix = 'Name one such as "topology.kubernetes.io/zone".'
        yield finding(f"{path}.topologyKey", "a node label key", constraint.topology_key, fix)
    if constraint.min_domains is not None:
        if constraint.min_domains < 1:
            yield finding(f"{path}.minDomains", "1 or more", constraint.min_domains, "Raise it, or leave it out.")
        if constraint.when_unsatisfiable != "DoNotSchedule":
            fix = "Remove minDomains, or make the constraint a hard one."
            expected = "DoNotSchedule, for minDomains is set"
            yield finding(f"{path}.whenUnsatisfiable", expected, constraint.when_unsatisfiable, fix)
    yield from label_selector_problems(constraint.label_selector, f"{path}.labelSelector")
    yield from label_keys_problems(constraint.match_label_keys, "matchLabelKeys", constraint.label_selector, path)
    yield from repeated_keys_problems(constraint.match_label_keys, constraint.label_selector, path)


def _policy_problems(pod: Pod) -> Iterator[str]:
    policy = pod.spec.preemption_policy
    if policy not in (None, *POLICIES):
        fix = f"Use one of them.{nearest(str(policy), POLICIES)}"
        yield finding("$.spec.preemptionPolicy", one_of(POLICIES), policy, fix)
