"""DefaultPreemption: which pods would have to go, on which node, so that a pod that fits nowhere fits.

Every node that could be freed is tried: all pods of lower priority leave, then as many as possible come back, the most
important first, those protected by a budget before the others. Then the least harmful node is chosen. kube-scheduler
stops at a tenth of the nodes or 100, beginning anywhere; here every node is tried. Nothing is evicted here.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from wukong.api.core import Pod
from wukong.api.times import parse_time
from wukong.rules import budgets
from wukong.rules.cluster import Cluster, NodeInfo
from wukong.rules.filters import Filters
from wukong.rules.message import NEVER, NO_VICTIMS, NOT_HELPFUL, TERMINATING, format_fit_error
from wukong.rules.verdict import Verdict

_NOT_STARTED = inf  # kube-scheduler takes the current time: later than everybody's


@dataclass(frozen=True)
class Preemption:
    """The node to be freed and who has to go there, besides all the nodes that could have been freed."""

    node: str
    victims: list[str]  # namespace/name, the most important first
    candidates: dict[str, list[str]]  # node → namespace/name, in the order in which sparing them failed


@dataclass(frozen=True)
class Candidate:
    """A node that could be freed."""

    node: str
    given_up: list[Pod]
    violations: int

    @property
    def victims(self) -> list[Pod]:
        return sorted(self.given_up, key=importance_of)


def preempt(
    cluster: Cluster, pod: Pod, filters: Filters, verdicts: dict[str, Verdict], nominated: str | None
) -> Preemption | str:
    """What would help, or why nothing does."""
    refusal = _find_ineligibility(cluster, pod, verdicts, nominated)
    if refusal is not None:
        return refusal
    promising = [name for name, verdict in verdicts.items() if not verdict.unresolvable]
    outcomes = {name: try_node(cluster, pod, filters, cluster.nodes[name]) for name in promising}
    candidates = [outcome for outcome in outcomes.values() if isinstance(outcome, Candidate)]
    if not candidates:
        hopeless = dict.fromkeys(verdicts, (NOT_HELPFUL,))
        reasons = {name: outcome for name, outcome in outcomes.items() if isinstance(outcome, tuple)}
        return format_fit_error(len(cluster.nodes), (hopeless | reasons).values())
    best = min(candidates, key=_harm_of)
    return Preemption(
        node=best.node,
        victims=[victim.key for victim in best.victims],
        candidates={candidate.node: [victim.key for victim in candidate.given_up] for candidate in candidates},
    )


def try_node(cluster: Cluster, pod: Pod, filters: Filters, info: NodeInfo) -> Candidate | tuple[str, ...]:
    """Who has to leave this node, or the reasons why it stays impossible."""
    info, filters = info.copy(), filters.copy()
    lower = [placed_pod for placed_pod in info.pods if priority_of(placed_pod) < priority_of(pod)]
    if not lower:
        return (NO_VICTIMS,)
    for placed_pod in lower:
        filters.remove_pod(placed_pod, info)
    verdict = filters.reject(info)
    if verdict is not None:
        return verdict.reasons
    breaking, sparing = budgets.split_by_budget(
        sorted(lower, key=importance_of),
        cluster.pod_disruption_budgets,
        stop_at_first=filters.profile.version.budgets_stop_at_first_broken,
    )
    broken = _find_victims(breaking, filters, info)
    return Candidate(info.name, [*broken, *_find_victims(sparing, filters, info)], violations=len(broken))


def importance_of(pod: Pod) -> tuple[int, float]:
    """The smaller, the more important: by priority, then by how long the pod has been running."""
    return -priority_of(pod), start_time_of(pod)


def priority_of(pod: Pod) -> int:
    return pod.spec.priority or 0


def start_time_of(pod: Pod) -> float:
    started = parse_time(pod.status.start_time)
    return _NOT_STARTED if started is None else started


def _find_victims(pods: list[Pod], filters: Filters, info: NodeInfo) -> list[Pod]:
    """Lets each pod return; those who do not fit beside the newcomer are given up."""
    given_up = []
    for pod in pods:
        filters.add_pod(pod, info)
        if filters.reject(info) is not None:
            filters.remove_pod(pod, info)
            given_up.append(pod)
    return given_up


def _find_ineligibility(cluster: Cluster, pod: Pod, verdicts: dict[str, Verdict], nominated: str | None) -> str | None:
    """A pod that must not preempt, or that already has and whose victims are still leaving."""
    if pod.spec.preemption_policy == "Never":
        return NEVER
    if nominated not in cluster.nodes or verdicts[nominated].unresolvable:
        return None
    placed_pods = cluster.nodes[nominated].pods
    is_leaving = any(
        priority_of(placed_pod) < priority_of(pod) and _is_being_preempted(placed_pod) for placed_pod in placed_pods
    )
    return TERMINATING if is_leaving else None


def _is_being_preempted(pod: Pod) -> bool:
    targets = [condition for condition in pod.status.conditions if condition.type == "DisruptionTarget"]
    if not pod.is_terminating or not targets:
        return False
    return targets[0].status == "True" and targets[0].reason == "PreemptionByScheduler"


def _harm_of(candidate: Candidate) -> tuple[int, int, int, int, float, str]:
    """Broken budgets, the highest priority, all priorities, the number of victims, then the youngest go first.

    Priorities are shifted above zero before they are added, so that fewer victims of negative priority harm less.
    """
    victims = candidate.victims
    highest = priority_of(victims[0])
    oldest = min(start_time_of(victim) for victim in victims if priority_of(victim) == highest)
    shifted = sum(priority_of(victim) + 2**31 for victim in victims)
    return candidate.violations, highest, shifted, len(victims), -oldest, candidate.node
