"""Whose policy holds: the most specific, then the first by name, and nobody's if it is broken."""

from __future__ import annotations

import msgspec
import pytest

from builders import a_pod
from policies import a_cluster_policy, a_policy
from wukong.api.meta import LabelSelector
from wukong.api.resources import Key
from wukong.placement.compile import Plan, Policy
from wukong.placement.matching import Match, Policies
from wukong.placement.rules import BUILT_IN

BUILT = Plan(name="no policy")
NAMESPACES = {"shop": {"team": "a", "env": "prod"}, "lab": {"team": "b"}}


def find(*policies: Policy, namespace: str = "shop", **labels: str) -> Match:
    return Policies(policies, BUILT_IN, BUILT, NAMESPACES).find(a_pod(namespace=namespace, app=None, labels=labels))


def winner(*policies: Policy, namespace: str = "shop", **labels: str) -> str:
    name = find(*policies, namespace=namespace, **labels).plan.name
    assert find(*reversed(policies), namespace=namespace, **labels).plan.name == name
    return name.rpartition(" ")[2]


def ours(name: str, /, **labels: str) -> Policy:
    return a_policy(name, namespace="shop", selects=labels)


def everybodys(name: str, /, namespaces: dict[str, str] | None = None, **labels: str) -> Policy:
    return a_cluster_policy(name, namespaces=namespaces, selects=labels)


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        ([], "policy"),
        ([ours("web", app="web")], "shop/web"),
        ([ours("db", app="db")], "policy"),
        ([ours("all")], "shop/all"),
        ([a_policy("all", namespace="lab")], "policy"),
        ([ours("all"), ours("web", app="web")], "shop/web"),
        ([ours("a", app="web"), ours("b", app="web", tier="front")], "shop/b"),
        ([ours("b", app="web"), ours("a", app="web")], "shop/a"),
        ([ours("z"), everybodys("a", app="web", tier="front")], "shop/z"),  # one's own namespace is nearer
        ([everybodys("a"), everybodys("b", app="web")], "b"),
        ([everybodys("a", app="web"), everybodys("b", {"team": "a", "env": "prod"})], "b"),
        ([everybodys("a", {"team": "b"}, app="web")], "policy"),
        ([a_cluster_policy("default"), everybodys("z")], "z"),
        ([a_cluster_policy("default")], "default"),
        ([a_cluster_policy("default"), ours("db", app="db")], "default"),
        ([a_cluster_policy("default", strategy="nonsense")], "policy"),
        ([ours("web", app="web"), a_policy("a", namespace="shop", selects={"app": "web"}, strategy="x")], "shop/web"),
        ([a_policy("web", namespace="shop", rules=[{"name": "absent", "type": "score"}]), ours("z")], "shop/z"),
    ],
)
def test_the_most_specific_policy_holds_then_the_first_by_name(policies: list[Policy], expected: str) -> None:
    assert winner(*policies, app="web", tier="front") == expected


def test_policies_just_as_specific_are_told_in_order() -> None:
    match = find(
        ours("c", app="web"), ours("b", tier="front"), ours("a"), ours("d", app="web"), app="web", tier="front"
    )
    assert match.plan.name == "PlacementPolicy shop/b"
    assert match.others == ("PlacementPolicy shop/c", "PlacementPolicy shop/d")


def test_there_is_nothing_ambiguous_about_one_policy_the_default_or_another_namespace() -> None:
    assert find(ours("a", app="web"), everybodys("b", app="web"), app="web").others == ()
    assert find(a_cluster_policy("default"), app="web").others == ()
    assert find(ours("a"), a_policy("a", namespace="lab")).others == ()


def test_a_namespace_nobody_knows_has_no_labels() -> None:
    assert winner(everybodys("a", {"team": "a"}), namespace="new") == "policy"
    assert winner(everybodys("a"), namespace="new") == "a"


def test_a_selector_may_ask_with_expressions() -> None:
    policy = a_policy("not-db", namespace="shop")
    policy.spec.selector = expressing("app", "NotIn", "db")
    assert winner(policy, app="web") == "shop/not-db"
    assert winner(policy, app="db") == "policy"


def expressing(key: str, operator: str, *values: str) -> LabelSelector:
    return msgspec.convert({"matchExpressions": [{"key": key, "operator": operator, "values": values}]}, LabelSelector)


def test_the_same_question_gives_the_same_plan() -> None:
    policies = Policies([ours("web", app="web")], BUILT_IN, BUILT, NAMESPACES)
    pods = [a_pod(f"web-{number}", namespace="shop", app="web", labels={"n": str(number)}) for number in range(5000)]
    assert len({id(policies.find(pod).plan) for pod in pods}) == 1
    assert policies.find(pods[0]) is policies.find(pods[0])


def test_of_many_just_as_specific_three_are_named_and_the_others_counted() -> None:
    policies = [ours(f"p{number:03}", app="web") for number in range(500)]
    match = find(*policies, app="web")
    assert match.others == tuple(f"PlacementPolicy shop/p{number:03}" for number in (1, 2, 3))
    assert match.more == 496
    assert match.describe_others().endswith("PlacementPolicy shop/p003 and 496 more")
    compiled = Policies(policies, BUILT_IN, BUILT, NAMESPACES)
    assert len(compiled.list_others(a_pod(namespace="shop", app="web"))) == 499


def test_a_question_about_many_policies_is_answered_in_slices() -> None:
    policies = Policies([ours(f"p{number}", app="db") for number in range(1000)], BUILT_IN, BUILT, NAMESPACES)
    slices = list(policies.find_in_slices(a_pod(namespace="shop", app="web")))
    assert len(slices) == 1000 // 64


def test_what_is_known_about_pods_is_bounded_by_number_and_by_size() -> None:
    labels = {f"l{number}": "" for number in range(40)}
    asking = [ours("web", app="web"), everybodys("numbers", n="0"), *(ours(label, **{label: "x"}) for label in labels)]
    policies = Policies(asking, BUILT_IN, BUILT, NAMESPACES)
    for number in range(10_000):
        policies.find(a_pod(namespace=f"space-{number % 50}", app="web", labels={"n": str(number)}))
    assert 1000 < policies.count_known() <= 4096
    known = policies.count_known()
    policies.find(a_pod(namespace="shop", app="web", labels=labels))
    assert policies.count_known() == known
    for number in range(50):
        policies.put_namespace(f"space-{number}", None)
    assert policies.count_known() == 0


def test_labels_that_no_policy_asks_about_do_not_matter_until_one_does() -> None:
    policies = Policies([ours("web", app="web")], BUILT_IN, BUILT, NAMESPACES)
    pods = [a_pod(namespace="shop", app="web", labels={"pod-name": f"web-{number}"}) for number in range(100)]
    assert {policies.find(pod).plan.name for pod in pods} == {"PlacementPolicy shop/web"}
    assert policies.count_known() == 1
    policies.put(ours("first", app="web", **{"pod-name": "web-0"}))
    names = [policies.find(pod).plan.name for pod in pods]
    assert names == ["PlacementPolicy shop/first"] + ["PlacementPolicy shop/web"] * 99
    policies.remove(Key("shop", "first"), is_of_cluster=False)
    assert {policies.find(pod).plan.name for pod in pods} == {"PlacementPolicy shop/web"}
    assert policies.count_known() == 1
