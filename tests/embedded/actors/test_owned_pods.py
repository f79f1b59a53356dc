"""Counts kept as pods come, change and go are what counting them all would give; and who leaves first."""

from __future__ import annotations

from math import log2

from hypothesis import given
from hypothesis import strategies as st

from embedded.actors.random_pods import NAMES, START, histories, pods, take_in
from wukong.api.meta import Object, ObjectMeta
from wukong.api.resources import key_of
from wukong.embedded.actors import pods as podlike
from wukong.embedded.actors.owned_pods import OwnedPods, OwnedPodsIndex
from wukong.embedded.actors.replica_set.ranking import Ranks, deletion_cost
from wukong.embedded.store.documents import parse_time
from wukong.embedded.world.objects import Pod, read
from wukong.ports import Document
from wukong.state import State

Steps = list[tuple[str, list[Document]]]
NOW = START + 45.0


def owner(uid: str) -> Object:
    return Object(metadata=ObjectMeta(name=f"set-{uid}", uid=uid))


def read_pod(document: Document) -> Pod:
    found = read("Pod", document)
    assert isinstance(found, Pod)
    return found


def counted(crew: OwnedPods) -> tuple[object, ...]:
    return (
        *(crew.active, crew.ready, crew.terminating, dict(crew.nodes)),
        *(crew.labelled({}), crew.labelled({"app": "web"}), crew.labelled({"app": "web", "tier": "1"})),
        *(crew.available(0, NOW), crew.available(6, NOW), crew.next_available(0, NOW), crew.next_available(40, NOW)),
    )


def counted_by_walking(state: State, uid: str) -> tuple[object, ...]:
    owned = podlike.owned_pods(state, owner(uid))
    active = [pod for pod in owned if podlike.is_active(pod)]
    nodes = [pod.spec.node_name for pod in active]
    labels = [pod.metadata.labels.items() for pod in active]
    return (
        *(len(active), sum(map(podlike.is_ready, active))),
        sum(pod.is_terminating and not pod.is_finished for pod in owned),
        {node: nodes.count(node) for node in nodes},
        len(active),
        sum({"app": "web"}.items() <= each for each in labels),
        sum({"app": "web", "tier": "1"}.items() <= each for each in labels),
        *(sum(podlike.is_available(pod, least, NOW) for pod in active) for least in (0, 6)),
        *(podlike.next_available(active, least, NOW) for least in (0, 40)),
    )


@given(histories())
def test_what_is_counted_change_by_change_is_what_a_walk_counts(steps: Steps) -> None:
    state = State()
    crews = state.derived(OwnedPodsIndex)
    for number, step in enumerate(steps):
        take_in(state, step, number)
        for uid in ("u1", "u2"):
            expected = counted_by_walking(state, uid)
            assert counted(crews.of(owner(uid))) == expected
            assert counted(state.fork().derived(OwnedPodsIndex).of(owner(uid))) == expected


@given(histories())
def test_a_crew_that_was_asked_before_ranks_like_one_made_anew(steps: Steps) -> None:
    state = State()
    crews = state.derived(OwnedPodsIndex)
    for number, step in enumerate(steps):
        take_in(state, step, number)
        for uid in ("u1", "u2"):
            kept, anew = crews.of(owner(uid)), state.fork().derived(OwnedPodsIndex).of(owner(uid))
            everyone = len(anew.members)
            assert kept.ranks.leaving(everyone, [kept.nodes], NOW) == anew.ranks.leaving(everyone, [anew.nodes], NOW)


@given(st.lists(st.sampled_from(NAMES), unique=True, min_size=1).flatmap(lambda it: st.tuples(*map(pods, it))))
def test_the_first_to_leave_are_the_beginning_of_the_order(documents: tuple[Document, ...]) -> None:
    everyone = ranked(*map(read_pod, documents))
    for count in range(len(documents)):
        assert ranked(*map(read_pod, documents), count=count) == everyone[:count]
    assert len(everyone) == len(documents)


@given(pods("a"), pods("b"), st.integers(0, 2), st.integers(0, 2))
def test_of_two_pods_the_one_kubernetes_would_take_goes_first(one: Document, other: Document, m: int, n: int) -> None:
    first, second = read_pod(one), read_pod(other)
    crowd = {"": 0, "n1": m, "n2": n}
    expected = compare(first, second, crowd)
    order = ranked(first, second, crowd=crowd)
    assert order == ([first, second] if expected <= 0 else [second, first])


def ranked(*found: Pod, count: int | None = None, crowd: dict[str, int] | None = None) -> list[Pod]:
    ranks = Ranks()
    for pod in found:
        ranks.put(key_of(pod), pod)
    return ranks.leaving(len(found) if count is None else count, [crowd or {}], NOW)


def compare(one: Pod, other: Pod, crowd: dict[str, int]) -> int:
    """ActivePodsWithRanks.Less, line by line. 0: it leaves the order open; then uids decide."""

    def plain(pod: Pod) -> tuple[object, ...]:
        phase = {"Pending": 0, "Unknown": 1, "Running": 2}.get(pod.status.phase, 0)
        cost, node = deletion_cost(pod), pod.spec.node_name
        return (bool(node), phase, podlike.is_ready(pod), cost, -crowd[node])

    if plain(one) != plain(other):
        return -1 if plain(one) < plain(other) else 1
    first, second = podlike.ready_since(one), podlike.ready_since(other)
    if podlike.is_ready(one) and first != second:
        return by_age(first, second, one, other)
    restarts = [each.document["status"]["containerStatuses"][0]["restartCount"] for each in (one, other)]
    if restarts[0] != restarts[1]:
        return int(restarts[1] - restarts[0])
    born, later = (parse_time(each.metadata.creation_timestamp or "") for each in (one, other))
    if born != later:
        return by_age(born, later, one, other)
    return -1 if one.metadata.uid < other.metadata.uid else 1


def by_age(first: float, second: float, one: Pod, other: Pod) -> int:
    if not first or not second:
        return -1 if not first else 1
    ages = [int(log2((NOW - at) * 1e9)) for at in (first, second)]
    if ages[0] != ages[1]:
        return ages[0] - ages[1]
    return -1 if one.metadata.uid < other.metadata.uid else 1
