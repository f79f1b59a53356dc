"""The engine with our extender decides as the rules do on the nodes that a plainly read policy leaves."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import a_pod
from policies import a_cluster_policy, spot, steady
from random_clusters import Case, cases
from wukong.api.core import Node, Pod
from wukong.api.meta import ObjectMeta
from wukong.api.objects import Objects
from wukong.api.placement import ClusterPlacementPolicy, ClusterPlacementPolicySpec
from wukong.api.policy_parts import Capacity
from wukong.api.profile import Profile, default_profile
from wukong.api.versions import VERSIONS
from wukong.engine import Decision, Scheduler, Snapshot
from wukong.engine.fixes import find_fixes
from wukong.placement.leaving_nodes import NOTICE
from wukong.replies.extender.plugin import DEFAULT_ENTRY, NAME, add_extender
from wukong.replies.extender.verbs import Extender, Settings
from wukong.rules import scores as scoring
from wukong.rules.cluster import Cluster
from wukong.rules.decide import decide
from wukong.rules.node_affinity import UnreadablePreferenceError
from wukong.state import State

CAPACITY = "node.kubernetes.io/capacity"
PROFILES = [default_profile(version) for version in VERSIONS.values()]
STRATEGIES = ["spot-first", "on-demand-first", "spot-only", "on-demand-only", "spot-preferred"]


@pytest.mark.slow
@settings(max_examples=150)
@given(cases(), st.sampled_from(PROFILES), st.sampled_from(STRATEGIES), st.integers(0, 2**10))
def test_the_extender_is_asked_after_the_filters_and_scores_are_those_among_the_rest(
    case: Case, profile: Profile, strategy: str, spots: int
) -> None:
    for number, node in enumerate(case.objects.nodes):
        node.metadata.labels[CAPACITY] = "spot" if spots >> number & 1 else "on-demand"
    fast = ask(case, profile, strategy)
    cluster = Cluster(case.objects)
    fitting = decide(cluster, case.pod, profile).feasible
    spot = [node.metadata.name for node in case.objects.nodes if node.metadata.labels[CAPACITY] == "spot"]
    kept = plainly(fitting, spot, strategy)
    assert list(fast.feasible) == kept
    assert {node for node, refusal in fast.refusals.items() if refusal.plugin == NAME} == set(fitting) - set(kept)
    if len(kept) < 2:
        assert not fast.final
        return
    try:
        scores = scoring.score(cluster, case.pod, profile, [cluster.nodes[name] for name in kept])
    except UnreadablePreferenceError:
        assert fast.error
        return
    bonus = DEFAULT_ENTRY.weight * 100 if strategy == "spot-preferred" else 0
    scores[NAME] = {name: bonus if name in spot else 0 for name in kept}
    assert {name: dict(zip(kept, points.tolist(), strict=True)) for name, points in fast.scores.items()} == scores
    assert fast.final == tuple(sum(points[name] for points in scores.values()) for name in kept)


def ask(case: Case, profile: Profile, strategy: str) -> Decision:
    spec = ClusterPlacementPolicySpec(capacity=Capacity(strategy=strategy))
    state = State()
    state.replace("Node", case.objects.nodes)
    state.replace("Pod", case.objects.pods)
    default = ClusterPlacementPolicy(metadata=ObjectMeta(name="default"), spec=spec)
    state.replace("ClusterPlacementPolicy.placement.novasphere.dev", [default])
    extender = Extender(state, Settings(critical_priority=2**31))
    scheduler, _ = add_extender(Scheduler(Snapshot.of(case.objects), profile), extender, DEFAULT_ENTRY, 0.0)
    return scheduler.decide(case.pod)


def plainly(fitting: list[str], spot: list[str], strategy: str) -> list[str]:
    wanted, how = strategy.rsplit("-", 1)
    mine = [name for name in fitting if (name in spot) == (wanted == "spot")]
    if how == "preferred" or (how == "first" and not mine):
        return fitting
    return mine


def list_nodes_to_add(pod: Pod, strategy: str, *objects: Node | Pod) -> list[str]:
    """The nodes of which one more would help, as `explain` says."""
    snapshot, state = Objects(), State()
    for subject in objects:
        snapshot.add(subject)
        state.apply("ADDED", subject)
    state.apply("ADDED", a_cluster_policy("default", strategy=strategy))
    scheduler, _ = add_extender(Scheduler(Snapshot.of(snapshot)), Extender(state), DEFAULT_ENTRY, 0.0)
    return [fix.sentence.removeprefix("add one node like ") for fix in find_fixes(scheduler, pod) if fix.kind == "node"]


@pytest.mark.parametrize(
    ("strategy", "expected"), [("spot-only", ["s1"]), ("on-demand-only", ["d1"]), ("spot-preferred", ["d1", "s1"])]
)
def test_a_node_that_is_not_there_yet_is_judged_as_the_one_it_is_like(strategy: str, expected: list[str]) -> None:
    taken = [a_pod(f"on-{node}", cpu="4", node=node) for node in ("d1", "d2", "s1")]
    nodes = [steady("d1"), steady("d2"), spot("s1")]
    assert list_nodes_to_add(a_pod("web", cpu="4"), strategy, *nodes, *taken) == expected


def test_of_several_nodes_alike_the_first_stands_for_one_that_is_not_there_yet() -> None:
    """A notice that the second of them is about to go says nothing of a new one."""
    first, second = spot("s1"), spot("s2")
    second.metadata.annotations[NOTICE] = "2026-11-16T02:00:00Z"
    taken = [a_pod(f"on-{node}", cpu="4", node=node) for node in ("s1", "s2")]
    assert list_nodes_to_add(a_pod("web", cpu="4"), "spot-only", first, second, *taken) == ["s1"]
