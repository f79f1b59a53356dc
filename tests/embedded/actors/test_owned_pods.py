"""Counts kept as pods come, change and go are what counting them all would give; and who leaves first."""

from __future__ import annotations

from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedded.actors.availability_walk import seconds_to_next_available
from embedded.actors.random_pods import NAMES, START, histories, pods, take_in
from wukong.api.meta import LabelSelector, LabelSelectorRequirement, Object, ObjectMeta
from wukong.api.resources import key_of
from wukong.embedded.actors import pods as podlike
from wukong.embedded.actors.owned_pods import OwnedPods, OwnedPodsIndex
from wukong.embedded.actors.replica_set.ranking import DeletionRanking, deletion_cost_of
from wukong.embedded.store.documents import parse_time
from wukong.embedded.world.objects import Pod, read
from wukong.ports import Document
from wukong.rules.selectors import requirements, selects
from wukong.state import State

Steps = list[tuple[str, list[Document]]]
NOW = START + 45.0
SELECTORS = (
    None,
    LabelSelector(match_labels={"app": "web"}),
    LabelSelector(match_expressions=[LabelSelectorRequirement(key="tier", operator="Exists")]),
)


def owner_of(uid: str) -> Object:
    return Object(metadata=ObjectMeta(name=f"set-{uid}", uid=uid))


def read_pod(document: Document) -> Pod:
    pod = read("Pod", document)
    assert isinstance(pod, Pod)
    return pod


def count(owned: OwnedPods) -> tuple[object, ...]:
    label_sets: list[dict[str, str]] = [{}, {"app": "web"}, {"app": "web", "tier": "1"}]
    return (
        *(owned.active, owned.ready, owned.terminating, dict(owned.nodes)),
        *(owned.count_labelled(labels) for labels in label_sets),
        *(owned.count_available(least, NOW) for least in (0, 6)),
        *(owned.seconds_to_next_available(least, NOW) for least in (0, 40)),
        *(owned.find_unselected(selector) for selector in SELECTORS),
    )


def count_by_walking(state: State, uid: str) -> tuple[object, ...]:
    owned = podlike.list_owned(state, owner_of(uid))
    active = [pod for pod in owned if podlike.is_active(pod)]
    nodes = [pod.spec.node_name for pod in active]
    labels = [pod.metadata.labels.items() for pod in active]
    return (
        *(len(active), sum(map(podlike.is_ready, active))),
        sum(pod.is_terminating and not pod.is_finished for pod in owned),
        {node: nodes.count(node) for node in nodes},
        len(active),
        sum({"app": "web"}.items() <= pod_labels for pod_labels in labels),
        sum({"app": "web", "tier": "1"}.items() <= pod_labels for pod_labels in labels),
        *(sum(podlike.is_available(pod, least, NOW) for pod in active) for least in (0, 6)),
        *(seconds_to_next_available(active, least, NOW) for least in (0, 40)),
        *(
            [key_of(pod) for pod in active if not selects(requirements(selector), pod.metadata.labels)]
            for selector in SELECTORS
        ),
    )


@given(histories())
def test_what_is_counted_change_by_change_is_what_a_walk_counts(steps: Steps) -> None:
    state = State()
    index = state.index_of(OwnedPodsIndex)
    for number, step in enumerate(steps):
        take_in(state, step, number)
        for uid in ("u1", "u2"):
            expected = count_by_walking(state, uid)
            assert count(index.of(owner_of(uid))) == expected
            assert count(state.fork().index_of(OwnedPodsIndex).of(owner_of(uid))) == expected


@given(histories(), st.integers(0, 13))
def test_pods_that_came_since_are_known_though_all_others_went(steps: Steps, cut: int) -> None:
    state = State()
    index = state.index_of(OwnedPodsIndex)
    arrived, uids_before = 0, set[str]()
    for number, step in enumerate(steps):
        take_in(state, step, number)
        if number == cut:
            arrived = index.arrived
            uids_before = {pod.metadata.uid for pod in state.all(Pod)}
        for uid in ("u1", "u2"):
            owned = podlike.list_owned(state, owner_of(uid))
            new = {key_of(pod) for pod in owned if pod.metadata.uid not in uids_before}
            came = index.of(owner_of(uid)).list_arrived_since(arrived)
            assert came == state.fork().index_of(OwnedPodsIndex).of(owner_of(uid)).list_arrived_since(arrived)
            assert number != cut or came == []
            assert new <= {*came}  # and those that were there and got this owner, or went and came back, meanwhile


@pytest.mark.slow
@given(histories())
def test_a_ranking_kept_change_by_change_is_like_one_made_anew(steps: Steps) -> None:
    state = State()
    index = state.index_of(OwnedPodsIndex)
    for number, step in enumerate(steps):
        take_in(state, step, number)
        for uid in ("u1", "u2"):
            current, rebuilt = index.of(owner_of(uid)), state.fork().index_of(OwnedPodsIndex).of(owner_of(uid))
            number_of_pods = len(rebuilt.pods)
            order = current.ranking.choose_pods(number_of_pods, [current.nodes], NOW)
            assert order == rebuilt.ranking.choose_pods(number_of_pods, [rebuilt.nodes], NOW)


@given(st.lists(st.sampled_from(NAMES), unique=True, min_size=1).flatmap(lambda names: st.tuples(*map(pods, names))))
def test_the_first_to_leave_are_the_beginning_of_the_order(documents: tuple[Document, ...]) -> None:
    whole_order = rank(*map(read_pod, documents))
    for count in range(len(documents)):
        assert rank(*map(read_pod, documents), count=count) == whole_order[:count]
    assert len(whole_order) == len(documents)


@given(pods("a"), pods("b"), st.integers(0, 2), st.integers(0, 2))
def test_of_two_pods_the_one_kubernetes_would_take_goes_first(
    first_document: Document, second_document: Document, m: int, n: int
) -> None:
    first, second = read_pod(first_document), read_pod(second_document)
    related = {"": 0, "n1": m, "n2": n}
    expected = compare(first, second, related)
    order = rank(first, second, related=related)
    assert order == ([first, second] if expected <= 0 else [second, first])


def rank(*all_pods: Pod, count: int | None = None, related: dict[str, int] | None = None) -> list[Pod]:
    ranking = DeletionRanking()
    for pod in all_pods:
        ranking.put(key_of(pod), pod)
    return ranking.choose_pods(len(all_pods) if count is None else count, [related or {}], NOW)


def compare(first: Pod, second: Pod, related: dict[str, int]) -> int:
    """ActivePodsWithRanks.Less, line by line. 0: it leaves the order open; then uids decide."""

    def criteria_of(pod: Pod) -> tuple[object, ...]:
        phase = {"Pending": 0, "Unknown": 1, "Running": 2}.get(pod.status.phase, 0)
        cost, node = deletion_cost_of(pod), pod.spec.node_name
        return (bool(node), phase, podlike.is_ready(pod), cost, -related[node])

    if criteria_of(first) != criteria_of(second):
        return -1 if criteria_of(first) < criteria_of(second) else 1
    first_ready, second_ready = podlike.ready_since(first), podlike.ready_since(second)
    if podlike.is_ready(first) and first_ready != second_ready:
        return compare_ages(first_ready, second_ready, first, second)
    restarts = [pod.document["status"]["containerStatuses"][0]["restartCount"] for pod in (first, second)]
    if restarts[0] != restarts[1]:
        return int(restarts[1] - restarts[0])
    first_created, second_created = (parse_time(pod.metadata.creation_timestamp or "") for pod in (first, second))
    if first_created != second_created:
        return compare_ages(first_created, second_created, first, second)
    return -1 if first.metadata.uid < second.metadata.uid else 1


def compare_ages(first_time: float, second_time: float, first: Pod, second: Pod) -> int:
    if not first_time or not second_time:
        return -1 if not first_time else 1
    ages = [int(log2((NOW - at) * 1e9)) for at in (first_time, second_time)]
    if ages[0] != ages[1]:
        return ages[0] - ages[1]
    return -1 if first.metadata.uid < second.metadata.uid else 1
