"""Policies are compiled when they come and when their specs change, and never for anybody else's sake."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import a_pod
from policies import a_cluster_policy, a_policy
from wukong.api.core import Namespace, Pod
from wukong.api.meta import Object, ObjectMeta
from wukong.api.policy_status import Condition, PlacementPolicyStatus
from wukong.api.resources import Key
from wukong.placement import matching
from wukong.placement.compile import Plan, Policy, compile_policy
from wukong.placement.matching import Policies
from wukong.placement.rules import BUILT_IN
from wukong.placement.slices import finish
from wukong.replies.extender import policy_cache
from wukong.replies.extender.policy_cache import PolicyCache, PolicyChanges
from wukong.state import State

BUILT = Plan(name="no policy")
NAMES = ("a", "b", "default")
SPACES = ("shop", "lab")


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of policies, each as often as it was compiled."""
    names: list[str] = []

    def count(policy: Policy, *others: Any) -> Plan:
        names.append(policy.metadata.name)
        return compile_policy(policy, *others)

    monkeypatch.setattr(matching, "compile_policy", count)
    return names


class Mirror:
    def __init__(self, *objects: Object) -> None:
        self.state, self.version = State(), 0
        for subject in objects:
            self.put(subject)
        self.cache = PolicyCache(self.state, BUILT_IN, BUILT)

    def put(self, subject: Object) -> None:
        self.version += 1
        subject.metadata.resource_version = str(self.version)
        self.state.apply("MODIFIED", subject)

    def remove(self, subject: Object) -> None:
        self.state.apply("DELETED", subject)

    def find(self, pod: Pod) -> str:
        return finish(self.cache.read_in_slices()).find(pod).plan.name


def with_status(policy: Policy) -> Policy:
    """The same after the `policy` controller wrote to it."""
    condition = Condition(type="Accepted", status="True", observed_generation=1)
    status = PlacementPolicyStatus(observed_generation=1, conditions=[condition])
    return msgspec.structs.replace(policy, status=status, metadata=msgspec.structs.replace(policy.metadata))


def a_namespace(name: str, **labels: str) -> Namespace:
    return Namespace(kind="Namespace", metadata=ObjectMeta(name=name, labels=labels))


WEB = a_pod("web-1", namespace="shop", app="web")


def test_a_change_of_one_of_many_policies_compiles_that_one(compiled: list[str]) -> None:
    mirror = Mirror(*(a_policy(f"p{number}", namespace="shop", selects={"app": "web"}) for number in range(1000)))
    assert mirror.find(WEB) == "PlacementPolicy shop/p0"
    assert len(compiled) == 1000
    mirror.put(a_policy("p7", namespace="shop", selects={"app": "web"}, strategy="spot-only"))
    assert mirror.find(WEB) == "PlacementPolicy shop/p0"
    mirror.put(a_policy("p0", namespace="shop", selects={"app": "db"}))
    assert mirror.find(WEB) == "PlacementPolicy shop/p1"
    mirror.remove(a_policy("p1", namespace="shop"))
    assert mirror.find(WEB) == "PlacementPolicy shop/p10"
    assert compiled[1000:] == ["p7", "p0"]


def test_statuses_and_namespaces_compile_nothing(compiled: list[str]) -> None:
    policy = a_cluster_policy("web", namespaces={"team": "a"})
    mirror = Mirror(policy, a_namespace("shop"), a_namespace("lab"))
    assert mirror.find(WEB) == "no policy"
    mirror.put(with_status(policy))
    mirror.put(a_namespace("lab", team="a"))
    assert mirror.find(WEB) == "no policy"
    mirror.put(a_namespace("shop", team="a"))
    assert mirror.find(WEB) == "ClusterPlacementPolicy web"
    mirror.remove(a_namespace("shop"))
    assert mirror.find(WEB) == "no policy"
    assert compiled == ["web"]


def test_a_policy_that_another_tenant_writes_leaves_the_answers_about_our_pods_as_they_are() -> None:
    mirror = Mirror(a_policy("web", namespace="shop"))
    policies = finish(mirror.cache.read_in_slices())
    match = policies.find(WEB)
    mirror.put(a_policy("theirs", namespace="lab"))
    assert finish(mirror.cache.read_in_slices()).find(WEB) is match
    mirror.put(a_policy("ours", namespace="shop"))
    assert finish(mirror.cache.read_in_slices()).find(WEB) is not match


def test_a_reader_that_comes_late_finds_out_all_the_same(compiled: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """More has changed than is kept: what is as it was is still not compiled again."""
    monkeypatch.setattr(policy_cache, "_LONGEST_LOG", 8)
    gone = a_policy("gone", namespace="shop", selects={"app": "web"})
    mirror = Mirror(gone, a_policy("stays", namespace="shop"), a_namespace("old", team="a"))
    assert mirror.find(WEB) == "PlacementPolicy shop/gone"
    mirror.remove(gone)
    mirror.remove(a_namespace("old"))
    for number in range(100):
        mirror.put(a_namespace(f"n{number}"))
    assert len(mirror.state.index_of(PolicyChanges)._log) <= 8
    assert mirror.find(WEB) == "PlacementPolicy shop/stays"
    assert compiled == ["gone", "stays"]
    mirror.put(a_cluster_policy("z", namespaces={"team": "a"}))
    assert mirror.find(a_pod(namespace="old")) == "no policy"


def test_of_ever_so_many_changes_the_latest_are_remembered() -> None:
    changes = PolicyChanges()
    for number in range(40_000):
        changes.note("Namespace", Key("", f"n{number}"), None, a_namespace(f"n{number}"))
    assert changes.version == 40_000
    assert changes.changed_since(40_000 - (1 << 14)) is None
    latest = changes.changed_since(40_000 - (1 << 13))
    assert latest is not None
    assert [change.key.name for change in latest] == [f"n{number}" for number in range(40_000 - (1 << 13), 40_000)]


def test_what_changes_between_two_slices_counts() -> None:
    mirror = Mirror(*(a_policy(f"p{number}", namespace="shop") for number in range(10)))
    slices = mirror.cache.read_in_slices()
    for _ in range(5):
        next(slices)
    mirror.put(a_policy("a", namespace="shop"))
    other = mirror.cache.read_in_slices()  # another question, asked meanwhile
    next(other)
    assert finish(slices).find(WEB).plan.name == "PlacementPolicy shop/a"
    assert finish(other).find(WEB).plan.name == "PlacementPolicy shop/a"


SPECS = st.fixed_dictionaries(
    {}, optional={"selects": st.sampled_from([{"app": "web"}, {}]), "strategy": st.sampled_from(["spot-only", "none"])}
)
POLICIES = st.builds(
    lambda name, space, spec: a_policy(name, namespace=space, **spec),
    st.sampled_from(NAMES),
    st.sampled_from(SPACES),
    SPECS,
) | st.builds(
    lambda name, team, spec: a_cluster_policy(
        name, namespaces=None if name == "default" else team, **({} if name == "default" else spec)
    ),
    st.sampled_from(NAMES),
    st.sampled_from([None, {"team": "a"}]),
    SPECS,
)
OBJECTS = POLICIES | st.builds(
    lambda name, labels: a_namespace(name, **labels), st.sampled_from(SPACES), st.sampled_from([{}, {"team": "a"}])
)


@given(st.lists(st.tuples(st.booleans(), OBJECTS), max_size=30))
def test_at_any_time_the_policies_are_what_they_would_be_made_anew(steps: list[tuple[bool, Object]]) -> None:
    mirror = Mirror()
    pods = [a_pod(namespace=space, app=app) for space in SPACES for app in ("web", "db")]
    for is_gone, subject in steps:
        (mirror.remove if is_gone else mirror.put)(subject)
        fresh = PolicyCache(mirror.state, BUILT_IN, BUILT)
        ours, anew = finish(mirror.cache.read_in_slices()), finish(fresh.read_in_slices())
        for pod in pods:
            assert describe(ours, pod) == describe(anew, pod)


def describe(policies: Policies, pod: Pod) -> tuple[str, str, tuple[str, ...], int]:
    match = policies.find(pod)
    return match.plan.name, match.plan.strategy, match.others, match.more
