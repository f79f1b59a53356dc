"""One decision for one pod: where it fits, what each node scores, or why it fits nowhere and whom it could evict.

The whole of a scheduling cycle, read plainly, one pod and one node at a time. Called by tests and by the embedded
cluster's checkers; the engine does the same for many at once. Never changes the cluster: the caller adds and removes
pods.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from wukong.api.core import Pod
from wukong.api.profile import Profile
from wukong.rules import scores as scoring
from wukong.rules.cluster import Cluster, NodeInfo
from wukong.rules.filters import Filters, find_problem
from wukong.rules.message import (
    NO_CLAIMS,
    NO_NODES,
    NOT_HELPFUL,
    add_post_filter,
    format_fit_error,
    format_placement,
    format_prefilter_error,
)
from wukong.rules.node_affinity import NAMES_CONFLICT, UnreadablePreferenceError, find_named_nodes
from wukong.rules.preemption import Preemption, preempt
from wukong.rules.verdict import Verdict


@dataclass(frozen=True)
class Decision:
    """What kube-scheduler would say about a pod."""

    verdicts: dict[str, Verdict] = field(default_factory=dict)  # rejected node → who rejected it and why
    feasible: list[str] = field(default_factory=list)  # by name
    scores: dict[str, dict[str, int]] = field(default_factory=dict)  # plugin → node → weighted points
    final: dict[str, int] = field(default_factory=dict)  # node → sum
    message: str | None = None
    preemption: Preemption | None = None

    @property
    def best(self) -> list[str]:
        """The nodes kube-scheduler picks one of at random: the highest scores, or the only feasible node."""
        if not self.final:
            return self.feasible if self.message is None else []
        highest = max(self.final.values())
        return [name for name in self.feasible if self.final[name] == highest]


def decide(cluster: Cluster, pod: Pod, profile: Profile, nominated: str | None = None) -> Decision:
    """A nominated node, kept for the pod by an earlier preemption, is tried alone first: if it fits, it is taken."""
    if not cluster.nodes:
        return Decision(message=NO_NODES)
    names = find_named_nodes(pod) if "NodeAffinity" in profile.filters else None
    if names == set():
        return _decide_before_nodes(cluster, profile, "NodeAffinity", NAMES_CONFLICT)
    problem = find_problem(cluster, pod, profile)
    if problem is not None:
        return _decide_before_nodes(cluster, profile, *problem)
    filters = Filters(cluster, pod, profile)
    if nominated in cluster.nodes and filters.reject(cluster.nodes[nominated]) is None:
        return Decision(feasible=[nominated])
    verdicts = _collect_verdicts(cluster, filters, names)
    feasible = [cluster.nodes[name] for name in sorted(cluster.nodes) if name not in verdicts]
    if not feasible:
        return _decide_unschedulable(cluster, pod, filters, verdicts, nominated)
    return _decide_feasible(cluster, pod, profile, verdicts, feasible)


def _collect_verdicts(cluster: Cluster, filters: Filters, names: set[str] | None) -> dict[str, Verdict]:
    """Nodes outside the names that every required term gives are not looked at, only counted."""
    unnamed = Verdict("NodeAffinity", ("node(s) didn't satisfy plugin(s) [NodeAffinity]",), unresolvable=True)
    outcomes = {
        name: unnamed if names is not None and name not in names else filters.reject(info)
        for name, info in cluster.nodes.items()
    }
    return {name: verdict for name, verdict in outcomes.items() if verdict is not None}


def _decide_feasible(
    cluster: Cluster, pod: Pod, profile: Profile, verdicts: dict[str, Verdict], feasible: list[NodeInfo]
) -> Decision:
    """A single feasible node is taken without scoring, hence even with a preference nobody can read."""
    names = [info.name for info in feasible]
    if len(feasible) == 1:
        return Decision(verdicts, names)
    try:
        scores = scoring.score(cluster, pod, profile, feasible)
    except UnreadablePreferenceError as error:
        return Decision(verdicts, names, message=f'running PreScore plugin "NodeAffinity": {error}')
    return Decision(verdicts, names, scores, scoring.add_up(scores, feasible))


def _decide_unschedulable(
    cluster: Cluster, pod: Pod, filters: Filters, verdicts: dict[str, Verdict], nominated: str | None
) -> Decision:
    """Nobody takes the pod. If preemption helps, the message leaves out what the PostFilter plugins say."""
    message = format_fit_error(len(cluster.nodes), (verdict.reasons for verdict in verdicts.values()))
    messages = [NO_CLAIMS] if filters.profile.has_claims_message else []
    if not filters.profile.has_preemption:
        return Decision(verdicts, message=add_post_filter(message, messages))
    outcome = preempt(cluster, pod, filters, verdicts, nominated)
    if isinstance(outcome, Preemption):
        placement = (
            format_placement(outcome.node, len(outcome.victims)) if filters.profile.version.preemption_message else ""
        )
        return Decision(verdicts, message=add_post_filter(message, [placement]), preemption=outcome)
    return Decision(verdicts, message=add_post_filter(message, [*messages, f"preemption: {outcome}"]))


def _decide_before_nodes(cluster: Cluster, profile: Profile, plugin: str, problem: str) -> Decision:
    """A PreFilter plugin refused the pod, so no node is looked at and nobody is evicted.

    kube-scheduler's message ends in "not found" then: DynamicResources looks for state that its PreFilter never wrote.
    """
    verdicts = dict.fromkeys(cluster.nodes, Verdict(plugin, (problem,), unresolvable=True))
    message = format_prefilter_error(len(cluster.nodes), problem)
    if profile.has_resource_claims:
        return Decision(verdicts, message=add_post_filter(message, ["not found"]))
    if not profile.has_preemption:
        return Decision(verdicts, message=message)
    unhelpful = format_fit_error(len(cluster.nodes), [(NOT_HELPFUL,)] * len(cluster.nodes))
    return Decision(verdicts, message=add_post_filter(message, [f"preemption: {unhelpful}"]))
