"""The pods that checkers know of a budget change by change are those that a walk over all pods finds."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedded.actors.random_pods import pods, take_in
from embedded.actors.test_covered_pods import STEPS, Budget, take_in_budget
from wukong.api.apps import PodDisruptionBudget
from wukong.api.core import Pod
from wukong.api.meta import controller_of
from wukong.embedded.checkers.covered_pods import CoveredPodsIndex
from wukong.embedded.checkers.pods import is_ready
from wukong.embedded.checkers.uid_sets import UidSet
from wukong.ports import Document
from wukong.rules.selectors import requirements, selects
from wukong.state import State

Histories = list[tuple[list[tuple[str, list[Document]]], Budget]]


def check_budgets(state: State) -> None:
    for budget in state.all(PodDisruptionBudget):
        covered = state.index_of(CoveredPodsIndex).of(budget, state)
        selector = requirements(budget.spec.selector)
        expected = [
            pod
            for pod in state.all(Pod)
            if pod.metadata.namespace == "shop" and not pod.is_finished and selects(selector, pod.metadata.labels)
        ]
        healthy = {pod.metadata.uid for pod in expected if is_ready(pod) and not pod.is_terminating}
        controllers = [owner.uid for pod in expected if (owner := controller_of(pod.metadata)) is not None]
        assert {key.name for key in covered.pods} == {pod.metadata.name for pod in expected}
        assert (set(covered.healthy), len(covered.healthy)) == (healthy, len(healthy))
        assert Counter({uid: count for (*_, uid), count in covered.controllers.items()}) == Counter(controllers)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(STEPS, st.lists(pods(), max_size=3))
def test_a_checker_knows_the_pods_of_every_budget(steps: Histories, last: list[Document]) -> None:
    state, version = State(), 0
    state.index_of(CoveredPodsIndex)
    for history, budget in steps:
        version += 1
        take_in_budget(state, budget, version)
        for step in history:
            version += 1
            take_in(state, step, version)
            check_budgets(state)
    fork = state.fork()
    for document in last:  # what happens on one side is nothing to the other
        version += 1
        take_in(fork, ("MODIFIED", [document]), version)
        check_budgets(fork)
        check_budgets(state)


@given(st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, 200), max_size=90)), max_size=12))
def test_a_set_of_uids_stays_what_it_was_when_another_is_made_of_it(steps: list[tuple[bool, list[int]]]) -> None:
    current, expected, past = UidSet(), set[str](), list[tuple[UidSet, set[str]]]()
    for is_added, numbers in steps:
        uids = [str(number) for number in numbers]
        if is_added:
            for uid in uids:
                current = current.union(uid)
            expected = expected | {*uids}
        else:
            current, expected = current.without(uids), expected - {*uids}
        past.append((current, expected))
        for uid_set, uids_then in past:
            assert (set(uid_set), len(uid_set)) == (uids_then, len(uids_then))
            assert [str(number) in uid_set for number in range(201)] == [str(n) in uids_then for n in range(201)]
