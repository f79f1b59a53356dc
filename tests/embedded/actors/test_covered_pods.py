"""What is counted of a budget's pods change by change is what a walk over all pods counts, in forks, too."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedded.actors.random_pods import histories, pods, take_in
from wukong.api.meta import controller_of
from wukong.api.resources import Key, key_of
from wukong.embedded.actors import pods as podlike
from wukong.embedded.actors.disruption.covered_pods import CoveredPods, CoveredPodsIndex, KeysInOrder
from wukong.embedded.world.objects import Pod, PodDisruptionBudget, read
from wukong.ports import Document
from wukong.rules.selectors import requirements, selects
from wukong.state import State

SELECTORS: list[Document] = [
    {"matchLabels": {"app": "web"}},
    {"matchExpressions": [{"key": "tier", "operator": "Exists"}]},
    {},
]
Budget = tuple[str, str, int]  # what the watch brings, the budget's name, its selector
EVENTS = ("ADDED", "MODIFIED", "DELETED")
BUDGETS = st.tuples(st.sampled_from(EVENTS), st.sampled_from("ab"), st.sampled_from((0, 1, 2)))
STEPS = st.lists(st.tuples(histories(), BUDGETS), min_size=1, max_size=4)


def take_in_budget(state: State, budget: Budget, version: int) -> None:
    event, name, selector = budget
    meta = {"name": name, "namespace": "shop", "uid": name, "resourceVersion": str(version)}
    document = {"metadata": meta, "spec": {"selector": SELECTORS[selector]}}
    state.apply(event, read("PodDisruptionBudget.policy", document))  # type: ignore[arg-type]


def check_counts(state: State) -> None:
    for budget in state.all(PodDisruptionBudget):
        covered = state.index_of(CoveredPodsIndex).of(budget, state)
        expected = count_by_walking(budget, state)
        assert (covered.pods, covered.healthy) == (expected.pods, expected.healthy)
        assert first_keys_of(covered) == first_keys_of(expected)


def count_by_walking(budget: PodDisruptionBudget, state: State) -> CoveredPods:
    """A new count of every pod, by the oracle's reading of selectors."""
    covered, selector = CoveredPods(), requirements(budget.spec.selector)
    for pod in state.all(Pod):
        if pod.metadata.namespace == "shop" and selects(selector, pod.metadata.labels) and not pod.is_finished:
            alone = State()
            alone.apply("ADDED", budget)
            alone.apply("ADDED", pod)
            (counted,) = alone.index_of(CoveredPodsIndex).of(budget, alone).pods.values()
            assert counted.is_healthy == (podlike.is_ready(pod) and not pod.is_terminating)
            assert (counted.owner and counted.owner.uid) == ((owner := controller_of(pod.metadata)) and owner.uid)
            covered.put(key_of(pod), counted)
    return covered


def first_keys_of(covered: CoveredPods) -> dict[object, tuple[int, Key]]:
    return {owner: (len(keys), keys.first()) for owner, keys in covered.by_owner.items()}


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(STEPS, st.lists(pods(), max_size=3))
def test_counts_kept_change_by_change_are_those_of_a_walk(
    steps: list[tuple[list[tuple[str, list[Document]]], Budget]], last: list[Document]
) -> None:
    state, version = State(), 0
    state.index_of(CoveredPodsIndex)
    for history, budget in steps:
        version += 1
        take_in_budget(state, budget, version)
        for step in history:
            version += 1
            take_in(state, step, version)
            check_counts(state)
    fork = state.fork()
    for document in last:  # what happens on one side is nothing to the other
        version += 1
        take_in(fork, ("MODIFIED", [document]), version)
        check_counts(fork)
        check_counts(state)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 40)), max_size=120))
def test_the_first_of_keys_is_the_least_that_is_there(steps: list[tuple[bool, int]]) -> None:
    keys, expected = KeysInOrder(), set[Key]()
    for is_added, number in steps:
        key = Key("shop", f"{number:02}")
        (keys.add if is_added else keys.discard)(key)
        (expected.add if is_added else expected.discard)(key)
        assert len(keys) == len(expected)
        if expected:
            assert keys.first() == keys.fork().first() == min(expected)
