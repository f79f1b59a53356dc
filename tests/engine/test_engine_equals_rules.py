"""The engine and the rules read the same semantics in two ways, written apart: here they are made to agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from random_clusters import Case, cases
from wukong.api.profile import FILTERS, SCORES, Profile, default_profile
from wukong.api.scheduler_config import read_scheduler_config
from wukong.api.versions import VERSIONS
from wukong.engine import Decision, Scheduler, Snapshot
from wukong.rules.cluster import Cluster
from wukong.rules.decide import Decision as PlainDecision
from wukong.rules.decide import decide

EXAMPLES = 400
LEAST_PERCENT = 5
ELSEWHERE = ("VolumeRestrictions", "NodeVolumeLimits", "VolumeZone")  # in test_volumes_equal_rules.py
OTHER_PROFILE = b"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {score: {disabled: [{name: ImageLocality}]}}
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 3}, {name: example.com/gpu, weight: 2}]}
  - name: NodeResourcesBalancedAllocation
    args: {resources: [{name: cpu}, {name: memory}, {name: example.com/gpu}]}
  - name: InterPodAffinity
    args: {hardPodAffinityWeight: 20}
  - name: PodTopologySpread
    args:
      defaultingType: List
      defaultConstraints: [{maxSkew: 1, topologyKey: rack, whenUnsatisfiable: DoNotSchedule}]
"""
PROFILES: list[Profile] = [
    *(default_profile(version) for version in VERSIONS.values()),
    read_scheduler_config(OTHER_PROFILE, VERSIONS["1.35"]),
]


@pytest.mark.slow
def test_the_engine_decides_as_the_rules_do(record_property: Callable[[str, object], None]) -> None:
    passed: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    told_apart: Counter[str] = Counter()
    seen = 0

    @settings(max_examples=EXAMPLES, derandomize=True)  # the same clusters every time: the shares below hold or do not
    @given(cases(), st.sampled_from(PROFILES))
    def check(case: Case, profile: Profile) -> None:
        nonlocal seen
        seen += 1
        fast = Scheduler(Snapshot.of(case.objects), profile).decide(case.pod)
        plain = decide(Cluster(case.objects), case.pod, profile)
        assert_equal(fast, plain)
        count(fast, profile, passed, failed, told_apart)

    check()
    rows = [
        f"{name:32} passed {percent(passed, name, seen):3}%  failed {percent(failed, name, seen):3}%"
        for name in FILTERS
    ]
    rows += [f"{name:32} told nodes apart {percent(told_apart, name, seen):3}%" for name, _ in SCORES]
    record_property("figure", "\n".join([f"engine = rules in {seen} random clusters:", *rows]))
    filters = [name for name in FILTERS if name not in ELSEWHERE]
    assert all(percent(table, name, seen) >= LEAST_PERCENT for table in (passed, failed) for name in filters)
    assert all(percent(told_apart, name, seen) >= LEAST_PERCENT for name, _ in SCORES)


@pytest.mark.slow
@settings(max_examples=100)
@given(cases(), st.sampled_from(PROFILES))
def test_the_engine_decides_as_the_rules_do_on_clusters_never_seen_before(case: Case, profile: Profile) -> None:
    fast = Scheduler(Snapshot.of(case.objects), profile).decide(case.pod)
    assert_equal(fast, decide(Cluster(case.objects), case.pod, profile))


def assert_equal(fast: Decision, plain: PlainDecision) -> None:
    assert list(fast.feasible) == plain.feasible
    verdicts = {node: (entry.plugin, sorted(entry.reasons), entry.is_final) for node, entry in fast.refusals.items()}
    assert verdicts == {
        node: (entry.plugin, sorted(entry.reasons), entry.unresolvable) for node, entry in plain.verdicts.items()
    }
    scores = {name: dict(zip(fast.feasible, points.tolist(), strict=True)) for name, points in fast.scores.items()}
    assert scores == plain.scores
    assert dict(zip(fast.feasible, fast.final, strict=False)) == plain.final
    if fast.error:
        assert plain.message is not None
        return
    assert (fast.message or None) == plain.message
    assert (fast.preemption is None) == (plain.preemption is None)
    if fast.preemption is not None and plain.preemption is not None:
        candidates = {node: tuple(victims) for node, victims in plain.preemption.candidates.items()}
        assert fast.preemption.candidates == candidates
        assert fast.preemption.node == plain.preemption.node


def count(
    decision: Decision, profile: Profile, passed: Counter[str], failed: Counter[str], told_apart: Counter[str]
) -> None:
    """A filter passed if some node got beyond it, failed if some node was stopped by it."""
    stopped_by = [entry.plugin for entry in decision.refusals.values()]
    for number, name in enumerate(profile.filters):
        failed[name] += name in stopped_by
        later = set(profile.filters[number + 1 :])
        passed[name] += bool(decision.feasible) or any(plugin in later for plugin in stopped_by)
    for name, points in decision.scores.items():
        told_apart[name] += len(set(points.tolist())) > 1


def percent(table: Counter[str], name: str, seen: int) -> int:
    return 100 * table[name] // max(seen, 1)
