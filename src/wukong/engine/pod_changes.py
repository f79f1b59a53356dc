"""Changes of a pod that may make it fit: rules softened or dropped, taints tolerated, host ports given up.

Called by fixes.py, which tries each of them. Never changes the pod it is given.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from wukong.api.core import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    Pod,
    PodAffinity,
    PodSpec,
    Toleration,
    WeightedPodAffinityTerm,
)
from wukong.engine.nodes import NodeRow
from wukong.engine.plugins.taint_toleration import is_tolerated
from wukong.engine.refusal_detail import describe_pod_term, describe_requirement, describe_taint
from wukong.semantics.tolerations import HARD_EFFECTS

replace = msgspec.structs.replace
_MOST_TAINTS = 16
# A taint of Kubernetes' own says that something is wrong with the node: mend that, or take another node, first.
_CONDITION_PREFIX = "node.kubernetes.io/"
_TOLERATE, _TOLERATE_CONDITION = 2.0, 5.5


class PodChange(NamedTuple):
    kind: str  # soften, drop, tolerate
    sentence: str
    size: float  # how much it changes
    pod: Pod  # with the change made


def list_pod_changes(pod: Pod, rows: list[NodeRow]) -> Iterator[PodChange]:
    """Every change worth trying. `rows` are the nodes, for the taints they have."""
    yield from _list_inter_pod_changes(pod)
    yield from _list_spread_changes(pod)
    yield from _list_taint_changes(pod, rows)
    yield from _list_node_changes(pod)
    yield from _list_port_changes(pod)


def _with_spec(pod: Pod, **changes: object) -> Pod:
    spec: PodSpec = replace(pod.spec, **changes)
    return replace(pod, spec=spec)


def _list_inter_pod_changes(pod: Pod) -> Iterator[PodChange]:
    affinity = pod.spec.affinity or Affinity()
    for side, word in (("pod_affinity", "podAffinity"), ("pod_anti_affinity", "podAntiAffinity")):
        rules: PodAffinity | None = getattr(affinity, side)
        for number, term in enumerate(rules.required if rules else []):
            assert rules is not None
            rest = [*rules.required[:number], *rules.required[number + 1 :]]
            label = f"required {word}[{number}] ({describe_pod_term(term)})"
            soft = [*rules.preferred, WeightedPodAffinityTerm(weight=100, pod_affinity_term=term)]
            softened = replace(affinity, **{side: replace(rules, required=rest, preferred=soft)})
            yield PodChange(
                "soften", f"make {label} preferred instead of required", 1.0, _with_spec(pod, affinity=softened)
            )
            dropped = replace(affinity, **{side: replace(rules, required=rest)})
            yield PodChange("drop", f"drop {label}", 3.0, _with_spec(pod, affinity=dropped))


def _list_spread_changes(pod: Pod) -> Iterator[PodChange]:
    constraints = pod.spec.topology_spread_constraints
    for number, entry in enumerate(constraints):
        if entry.when_unsatisfiable != "DoNotSchedule":
            continue
        soft = [*constraints[:number], replace(entry, when_unsatisfiable="ScheduleAnyway"), *constraints[number + 1 :]]
        sentence = (
            f"set whenUnsatisfiable: ScheduleAnyway on topologySpreadConstraints[{number}] ({entry.topology_key})"
        )
        yield PodChange("soften", sentence, 1.0, _with_spec(pod, topology_spread_constraints=soft))


def _list_taint_changes(pod: Pod, rows: list[NodeRow]) -> Iterator[PodChange]:
    taints = {
        taint: None
        for row in rows
        for taint in row.taints
        if taint[2] in HARD_EFFECTS and not is_tolerated(taint, pod.spec.tolerations)
    }
    for key, value, effect in list(taints)[:_MOST_TAINTS]:
        extra = Toleration(key=key, operator="Equal" if value else "Exists", value=value, effect=effect)
        tolerating = _with_spec(pod, tolerations=[*pod.spec.tolerations, extra])
        size = _TOLERATE_CONDITION if key.startswith(_CONDITION_PREFIX) else _TOLERATE
        yield PodChange("tolerate", f"tolerate the taint {describe_taint(key, value, effect)}", size, tolerating)


def _list_node_changes(pod: Pod) -> Iterator[PodChange]:
    for key, value in sorted(pod.spec.node_selector.items()):
        rest = {name: label for name, label in pod.spec.node_selector.items() if name != key}
        yield PodChange("drop", f"drop {key}={value} from nodeSelector", 3.0, _with_spec(pod, node_selector=rest))
    affinity = pod.spec.affinity or Affinity()
    required = affinity.node_affinity.required if affinity.node_affinity else None
    if required is None:
        return
    for number, term in enumerate(required.node_selector_terms):
        for index, entry in enumerate(term.match_expressions):
            less = replace(
                term, match_expressions=[*term.match_expressions[:index], *term.match_expressions[index + 1 :]]
            )
            if not less.match_expressions and not less.match_fields:
                continue  # an empty term matches nothing
            terms = [*required.node_selector_terms[:number], less, *required.node_selector_terms[number + 1 :]]
            requirement = describe_requirement(entry.key, entry.operator, entry.values)
            sentence = f"drop {requirement} from required nodeAffinity term {number}"
            yield PodChange(
                "drop", sentence, 3.0, _with_node_affinity(pod, affinity, NodeSelector(node_selector_terms=terms))
            )
    yield PodChange("drop", "drop the required nodeAffinity", 3.5, _with_node_affinity(pod, affinity, None))


def _with_node_affinity(pod: Pod, affinity: Affinity, required: NodeSelector | None) -> Pod:
    node_affinity = replace(affinity.node_affinity or NodeAffinity(), required=required)
    return _with_spec(pod, affinity=replace(affinity, node_affinity=node_affinity))


def _list_port_changes(pod: Pod) -> Iterator[PodChange]:
    for index, container in enumerate(pod.spec.containers):
        for port in container.ports:
            if port.host_port:
                ports = [entry for entry in container.ports if entry is not port]
                changed = [
                    *pod.spec.containers[:index],
                    replace(container, ports=ports),
                    *pod.spec.containers[index + 1 :],
                ]
                sentence = f"give up host port {port.host_port} of container {container.name}"
                yield PodChange("drop", sentence, 3.0, _with_spec(pod, containers=changed))
