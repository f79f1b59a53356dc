"""Whatever a pod and a policy say: a pod is built, or stays as it was, and nothing is raised."""

from __future__ import annotations

import random
from copy import deepcopy
from typing import Any

import msgspec
import pytest

from hostile.grammar import SEED, Grammar, read_back
from random_pods import random_pod_policy
from wukong.api.core import PriorityClass
from wukong.api.kinds import KINDS
from wukong.api.placement import PlacementPolicy
from wukong.placement.compile import Plan, compile_policy, find_policy_problems
from wukong.placement.pods import build_pod
from wukong.placement.pods.mark import MARK
from wukong.placement.rules import BUILT_IN

COUNT = 1500
CLASSES = {"high": PriorityClass(value=5), "placement-1000": PriorityClass(value=1000)}
MARKS: list[Any] = ["{}", "[", 5, None, '{"policy":"x","capacity":"spot"}', "\ud800", {"a": 1}]


def hostile_document(kind: str, seed: int) -> Any:
    grammar = Grammar(random.Random(f"{SEED} {kind} {seed}"))
    return read_back(grammar.build_document(KINDS[kind], "evil"))


def plan_of(seed: int) -> Plan:
    return compile_policy(msgspec.convert(random_pod_policy(seed), PlacementPolicy), BUILT_IN)


@pytest.mark.parametrize("start", range(0, COUNT, 300))
def test_a_hostile_pod_is_built_or_stays_as_it_was(start: int) -> None:
    changed = 0
    for seed in range(start, start + 300):
        pod = hostile_document("Pod", seed)
        if not isinstance(pod, dict):
            continue
        rng = random.Random(seed)
        if rng.random() < 0.2 and isinstance(pod.get("metadata"), dict):
            pod["metadata"]["annotations"] = {MARK: rng.choice(MARKS)}
        before, plan = deepcopy(pod), plan_of(seed)
        change = build_pod(pod, plan, rng.choice(("", "spot", "on-demand")), CLASSES)
        assert pod == before, seed
        assert change.document is pod or change.document != pod, seed
        again = build_pod(change.document, plan, "", CLASSES)
        changed += change.document is not pod
        assert change.document is pod or again.document == change.document, seed
    assert changed


def test_a_hostile_policy_is_compiled_or_its_problems_are_told() -> None:
    compiled = 0
    for seed in range(COUNT):
        try:
            policy = msgspec.convert(
                hostile_document("PlacementPolicy.placement.novasphere.dev", seed), PlacementPolicy
            )
        except (msgspec.ValidationError, ValueError):
            continue
        if find_policy_problems(policy, BUILT_IN):
            continue
        compiled += 1
        change = build_pod({"spec": {"containers": [{"name": "main"}]}}, compile_policy(policy, BUILT_IN), "spot", {})
        assert not any(reason.startswith("the pod would be refused") for reason in change.skipped), seed
    assert compiled
