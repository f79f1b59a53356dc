"""What the API server would refuse in a pod, as far as placement goes: every problem at once, each with its place.

Meant for manifests as people write them, before admit: the selectors must not be merged with matchLabelKeys yet. A few
findings are stricter than the API server, where it stores what kube-scheduler then cannot read (see
affinity_validation.py). Never raises.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wukong.admission.affinity_validation import (
    find_affinity_problems,
    find_key_problems,
    find_label_keys_problems,
    find_label_problems,
    find_repeated_keys_problems,
    find_selector_problems,
)
from wukong.admission.problem_text import describe_problem, format_choices
from wukong.admission.resource_validation import find_resource_problems
from wukong.api.core import Container, Pod, Toleration, TopologySpreadConstraint
from wukong.errors import nearest
from wukong.semantics.label_syntax import is_label_key, is_label_value
from wukong.semantics.tolerations import HARD_EFFECTS

EFFECTS = (*HARD_EFFECTS, "PreferNoSchedule")
OPERATORS = ("Equal", "Exists")
PROTOCOLS = ("TCP", "UDP", "SCTP")
POLICIES = ("PreemptLowerPriority", "Never")


def find_pod_problems(pod: Pod) -> list[str]:
    """One sentence per problem; empty if the pod would be accepted."""
    return [
        *find_label_problems(pod.metadata.labels, "$.metadata.labels"),
        *_find_container_problems(pod),
        *find_resource_problems(pod),
        *find_affinity_problems(pod),
        *find_toleration_problems(pod.spec.tolerations, "$.spec.tolerations"),
        *find_spread_problems(pod.spec.topology_spread_constraints, "$.spec.topologySpreadConstraints"),
        *_find_policy_problems(pod),
    ]


def _find_container_problems(pod: Pod) -> Iterator[str]:
    if not pod.spec.containers:
        yield describe_problem("$.spec.containers", "at least one container", None, "Add one with a name and an image.")
    for place, containers in (("initContainers", pod.spec.init_containers), ("containers", pod.spec.containers)):
        for index, container in enumerate(containers):
            if container.ports:
                yield from _find_port_problems(container, f"$.spec.{place}[{index}]", pod.spec.host_network)


def _find_port_problems(container: Container, path: str, host_network: bool) -> Iterator[str]:
    for index, port in enumerate(container.ports):
        here = f"{path}.ports[{index}]"
        if not 1 <= port.container_port <= 65535:
            yield describe_problem(
                f"{here}.containerPort", "1 to 65535", port.container_port, "Give the port a number."
            )
        if not 0 <= port.host_port <= 65535:
            yield describe_problem(f"{here}.hostPort", "1 to 65535", port.host_port, "Mend it, or leave it out.")
        elif host_network and port.host_port not in (0, port.container_port):
            fix = "Leave hostPort out: with hostNetwork both are the same."
            yield describe_problem(f"{here}.hostPort", f"the containerPort, {port.container_port}", port.host_port, fix)
        if port.protocol not in ("", *PROTOCOLS):
            fix = f"Use one of them.{nearest(port.protocol, PROTOCOLS)}"
            yield describe_problem(f"{here}.protocol", format_choices(PROTOCOLS), port.protocol, fix)


def find_toleration_problems(tolerations: Sequence[Toleration], parent: str) -> Iterator[str]:
    for index, toleration in enumerate(tolerations):
        path = f"{parent}[{index}]"
        yield from _find_operator_problems(toleration, path)
        if toleration.effect not in ("", *EFFECTS):
            fix = f"Use one of them, or none for all.{nearest(toleration.effect, EFFECTS)}"
            yield describe_problem(f"{path}.effect", format_choices(EFFECTS), toleration.effect, fix)
        elif toleration.toleration_seconds is not None and toleration.effect != "NoExecute":
            fix = "Set the effect, or remove tolerationSeconds."
            yield describe_problem(f"{path}.effect", "NoExecute, for tolerationSeconds is set", toleration.effect, fix)


def _find_operator_problems(toleration: Toleration, path: str) -> Iterator[str]:
    operator, value = toleration.operator or "Equal", toleration.value
    if operator not in OPERATORS:
        fix = f"Use one of them.{nearest(operator, OPERATORS)}"
        yield describe_problem(f"{path}.operator", format_choices(OPERATORS), operator, fix)
    elif operator == "Exists" and value:
        yield describe_problem(f"{path}.value", "no value for Exists", value, "Remove it, or use the operator Equal.")
    elif operator == "Equal" and not is_label_value(value):
        yield describe_problem(f"{path}.value", "a taint value", value, "Use letters, digits, '-', '_' and '.'.")
    if toleration.key:
        if not is_label_key(toleration.key):
            yield from find_key_problems(toleration.key, f"{path}.key")
    elif operator == "Equal":
        fix = "Name the key, or use Exists to tolerate every taint."
        yield describe_problem(f"{path}.operator", "Exists, for there is no key", operator, fix)


def find_spread_problems(constraints: Sequence[TopologySpreadConstraint], parent: str) -> Iterator[str]:
    seen: dict[tuple[str, str], int] = {}
    for index, constraint in enumerate(constraints):
        path = f"{parent}[{index}]"
        yield from _find_constraint_problems(constraint, path)
        kind = (constraint.topology_key, constraint.when_unsatisfiable)
        if kind in seen:
            duplicate = f"the same as [{seen[kind]}], {{{', '.join(kind)}}}"
            yield f"{path}: expected another topologyKey or whenUnsatisfiable, got {duplicate}. Merge the two."
        seen.setdefault(kind, index)


def _find_constraint_problems(constraint: TopologySpreadConstraint, path: str) -> Iterator[str]:
    if constraint.max_skew < 1:
        yield describe_problem(
            f"{path}.maxSkew", "1 or more", constraint.max_skew, "Set it to 1 for the evenest spread."
        )
    if constraint.topology_key == "":
        fix = 'Name one such as "topology.kubernetes.io/zone".'
        yield describe_problem(f"{path}.topologyKey", "a node label key", constraint.topology_key, fix)
    if constraint.min_domains is not None:
        if constraint.min_domains < 1:
            yield describe_problem(
                f"{path}.minDomains", "1 or more", constraint.min_domains, "Raise it, or leave it out."
            )
        if constraint.when_unsatisfiable != "DoNotSchedule":
            fix = "Remove minDomains, or make the constraint a hard one."
            expected = "DoNotSchedule, for minDomains is set"
            yield describe_problem(f"{path}.whenUnsatisfiable", expected, constraint.when_unsatisfiable, fix)
    yield from find_selector_problems(constraint.label_selector, f"{path}.labelSelector")
    yield from find_label_keys_problems(constraint.match_label_keys, "matchLabelKeys", constraint.label_selector, path)
    yield from find_repeated_keys_problems(constraint.match_label_keys, constraint.label_selector, path)


def _find_policy_problems(pod: Pod) -> Iterator[str]:
    policy = pod.spec.preemption_policy
    if policy not in (None, *POLICIES):
        fix = f"Use one of them.{nearest(str(policy), POLICIES)}"
        yield describe_problem("$.spec.preemptionPolicy", format_choices(POLICIES), policy, fix)
