"""InterPodAffinity: who wants whom nearby, who does not, and across which namespaces."""

from typing import Any

import pytest
from msgspec.structs import replace

from rules.samples import Manifest, a_cluster, a_node, a_pod, expression, zone
from wukong.api.core import Pod
from wukong.api.profile import Profile, default_profile
from wukong.api.versions import VERSIONS
from wukong.rules.cluster import Cluster
from wukong.rules.inter_pod import ANTI_AFFINITY, EXISTING_ANTI_AFFINITY, NO_AFFINITY, InterPodFilter
from wukong.rules.inter_pod_score import score

ZONE = "topology.kubernetes.io/zone"
PROFILE, NEWER = default_profile(VERSIONS["1.35"]), default_profile(VERSIONS["1.37"])
NAMESPACES: list[Manifest] = [
    {"kind": "Namespace", "metadata": {"name": "default", "labels": {"team": "a"}}},
    {"kind": "Namespace", "metadata": {"name": "other", "labels": {"team": "b", "env": "prod"}}},
]


def term(app: str = "db", key: str = ZONE, **fields: Any) -> Manifest:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **fields}


def required(kind: str, *terms: Manifest) -> Manifest:
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def preferred(kind: str, *weighted: tuple[int, Manifest]) -> Manifest:
    terms = [{"weight": weight, "podAffinityTerm": each} for weight, each in weighted]
    return {kind: {"preferredDuringSchedulingIgnoredDuringExecution": terms}}


def a_pod_near(*terms: Manifest) -> Pod:
    return a_pod(affinity=required("podAffinity", *terms))


def far(*terms: Manifest) -> Pod:
    return a_pod(affinity=required("podAntiAffinity", *terms))


def app(label: str, name: str = "old", **fields: Any) -> Pod:
    return a_pod(name, labels={"app": label}, **fields)


def cluster_with(**pods: list[Pod]) -> Cluster:
    """Nodes a1 and a2 in zone a, b in zone b, bare without a zone."""
    nodes = [a_node("a1", labels=zone("a")), a_node("a2", labels=zone("a")), a_node("b", labels=zone("b"))]
    return a_cluster(*nodes, a_node("bare"), pods=pods, others=NAMESPACES)


def find_rejections(cluster: Cluster, pod: Pod, profile: Profile = PROFILE) -> dict[str, str]:
    filters = InterPodFilter(cluster, pod, profile)
    rejections = {info.name: filters.reject(info.node) for info in cluster.nodes.values()}
    return {name: rejection.reasons[0] for name, rejection in rejections.items() if rejection is not None}


def test_affinity_wants_a_matching_pod_in_the_same_domain() -> None:
    cluster = cluster_with(a1=[app("db")])
    assert find_rejections(cluster, a_pod_near(term())) == {"b": NO_AFFINITY, "bare": NO_AFFINITY}
    assert find_rejections(cluster, a_pod_near(term(key="kubernetes.io/hostname"))) == dict.fromkeys(
        ("a2", "b", "bare"), NO_AFFINITY
    )


def test_missing_company_is_for_good_and_unwanted_company_is_not() -> None:
    cluster = cluster_with(a1=[app("db")])
    node = cluster.nodes["b"].node
    assert InterPodFilter(cluster, a_pod_near(term()), PROFILE).reject(node) == ((NO_AFFINITY,), True)
    node = cluster.nodes["a1"].node
    assert InterPodFilter(cluster, far(term()), PROFILE).reject(node) == ((ANTI_AFFINITY,), False)


def test_one_pod_must_match_all_affinity_terms() -> None:
    both = a_pod("old", labels={"app": "db", "tier": "x"})
    tier = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"tier": "x"}}}
    assert "a1" not in find_rejections(cluster_with(a1=[both]), a_pod_near(term(), tier))
    apart = [app("db"), a_pod("more", labels={"tier": "x"})]
    assert "a1" in find_rejections(cluster_with(a1=apart), a_pod_near(term(), tier))


def test_the_first_pod_of_a_group_that_wants_itself_may_start_it_where_the_label_is() -> None:
    alone = app("db", "new", affinity=required("podAffinity", term()))
    assert find_rejections(cluster_with(), alone) == {"bare": NO_AFFINITY}
    assert find_rejections(cluster_with(), a_pod_near(term())) == dict.fromkeys(("a1", "a2", "b", "bare"), NO_AFFINITY)
    assert find_rejections(cluster_with(b=[app("db")]), alone) == dict.fromkeys(("a1", "a2", "bare"), NO_AFFINITY)


def test_company_on_a_node_without_the_label_does_not_count_as_a_start() -> None:
    alone = app("db", "new", affinity=required("podAffinity", term()))
    assert find_rejections(cluster_with(bare=[app("db")]), alone) == {"bare": NO_AFFINITY}


def test_anti_affinity_of_the_newcomer() -> None:
    cluster = cluster_with(a1=[app("db")], bare=[app("db", "x")])
    assert find_rejections(cluster, far(term())) == {"a1": ANTI_AFFINITY, "a2": ANTI_AFFINITY}


def test_anti_affinity_of_placed_pods_is_respected_too() -> None:
    guard = app("x", affinity=required("podAntiAffinity", term("web")))
    cluster = cluster_with(a1=[guard])
    assert find_rejections(cluster, app("web", "new")) == dict.fromkeys(("a1", "a2"), EXISTING_ANTI_AFFINITY)
    assert find_rejections(cluster, app("api", "new")) == {}


def test_terminating_pods_still_count() -> None:
    assert "a1" in find_rejections(cluster_with(a1=[app("db", deleted=True)]), far(term()))


def test_a_term_without_selector_matches_nobody_and_an_empty_one_everybody() -> None:
    cluster = cluster_with(a1=[app("db")])
    assert find_rejections(cluster, far({"topologyKey": ZONE})) == {}
    assert "a1" in find_rejections(cluster, far({"topologyKey": ZONE, "labelSelector": {}}))


@pytest.mark.parametrize(
    ("fields", "matches"),
    [
        ({}, False),  # the newcomer's own namespace
        ({"namespaces": ["other"]}, True),
        ({"namespaces": ["third"]}, False),
        ({"namespaceSelector": {}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "b"}}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "a"}}}, False),
        ({"namespaceSelector": {"matchLabels": {"team": "a"}}, "namespaces": ["other"]}, True),
    ],
)
def test_terms_reach_into_the_namespaces_they_name(fields: Manifest, matches: bool) -> None:
    cluster = cluster_with(a1=[app("db", namespace="other")])
    assert ("a1" in find_rejections(cluster, far(term(**fields)))) is matches


NOT_PROD: Manifest = {"namespaceSelector": {"matchExpressions": [expression("env", "DoesNotExist")]}}


def test_up_to_1_36_a_namespace_selector_that_accepts_no_labels_accepts_every_namespace() -> None:
    cluster = cluster_with(a1=[app("db", namespace="other")])
    assert "a1" in find_rejections(cluster, far(term(**NOT_PROD)), PROFILE)
    assert find_rejections(cluster, far(term(**NOT_PROD)), NEWER) == {}


def test_terms_of_placed_pods_read_the_namespace_labels_of_the_newcomer() -> None:
    guard = app("x", affinity=required("podAntiAffinity", term("web", **NOT_PROD)))
    cluster = cluster_with(a1=[guard])
    assert "a1" in find_rejections(cluster, app("web", "new"))
    assert find_rejections(cluster, app("web", "new", namespace="other")) == {}
    assert "a1" in find_rejections(cluster, app("web", "new", namespace="unknown"))


def test_trying_out_victims_updates_all_three_counts() -> None:
    guard = app("db", affinity=required("podAntiAffinity", term("web")))
    cluster = cluster_with(a1=[guard])
    newcomer = app("web", "new", affinity=required("podAntiAffinity", term()))
    filters = InterPodFilter(cluster, newcomer, PROFILE)
    node = cluster.nodes["a1"].node
    trial = filters.copy()
    trial.remove_pod(guard, node)
    assert trial.reject(node) is None
    trial.add_pod(guard, node)
    assert trial.reject(node) is not None
    assert filters.reject(node) is not None


# Scores -----------------------------------------------------------------------------------------------------------


def scores(cluster: Cluster, pod: Pod, profile: Profile = PROFILE) -> dict[str, int] | None:
    return score(cluster, pod, profile, [info.node for info in cluster.nodes.values()])


def test_preferred_terms_pull_and_push() -> None:
    cluster = cluster_with(a1=[app("db")], b=[app("cache", "c")])
    pull = a_pod(affinity=preferred("podAffinity", (10, term())))
    push = a_pod(affinity=preferred("podAntiAffinity", (10, term())))
    both = a_pod(affinity=preferred("podAffinity", (10, term()), (5, term("cache"))))
    assert scores(cluster, pull) == {"a1": 100, "a2": 100, "b": 0, "bare": 0}
    assert scores(cluster, push) == {"a1": 0, "a2": 0, "b": 100, "bare": 100}
    assert scores(cluster, both) == {"a1": 100, "a2": 100, "b": 50, "bare": 0}


def test_preferred_terms_of_placed_pods_count_too() -> None:
    fan = app("x", affinity=preferred("podAffinity", (10, term("web"))))
    assert scores(cluster_with(a1=[fan]), app("web", "new")) == {"a1": 100, "a2": 100, "b": 0, "bare": 0}


@pytest.mark.parametrize(("weight", "expected"), [(1, 20), (5, 100), (0, None)])
def test_required_affinity_of_placed_pods_weighs_what_the_profile_says(weight: int, expected: int | None) -> None:
    fan = app("x", affinity=required("podAffinity", term("web")))
    liked = app("y", "y", affinity=preferred("podAffinity", (5, term("web"))))
    scores_given = scores(
        cluster_with(a1=[fan], b=[liked]), app("web", "new"), replace(PROFILE, hard_pod_affinity_weight=weight)
    )
    assert scores_given is not None
    assert scores_given["a1"] == (expected or 0)


def test_no_matching_term_at_all_skips_the_plugin() -> None:
    fan = app("x", affinity=preferred("podAffinity", (10, term("web"))))
    assert scores(cluster_with(a1=[fan]), app("api", "new")) is None
    assert scores(cluster_with(bare=[fan]), app("web", "new")) is None  # matched, but on no domain
    assert scores(cluster_with(), a_pod(affinity=preferred("podAffinity", (10, term())))) is None


def test_weights_that_cancel_out_score_zero_and_do_not_skip() -> None:
    pod = a_pod(affinity=preferred("podAffinity", (10, term())) | preferred("podAntiAffinity", (10, term())))
    assert scores(cluster_with(a1=[app("db")]), pod) == {"a1": 0, "a2": 0, "b": 0, "bare": 0}


def test_preferences_of_placed_pods_can_be_ignored_for_pods_that_have_none() -> None:
    profile = replace(PROFILE, ignore_preferred_terms_of_existing_pods=True)
    fan = app("x", affinity=preferred("podAffinity", (10, term("web"))))
    assert scores(cluster_with(a1=[fan]), app("web", "new"), profile) is None
    own = app("web", "new", affinity=preferred("podAffinity", (10, term("none"))))
    assert scores(cluster_with(a1=[fan]), own, profile) == {"a1": 100, "a2": 100, "b": 0, "bare": 0}


def test_scores_are_divided_before_they_are_multiplied() -> None:
    cluster = cluster_with(a1=[app("db")], b=[app("cache", "c")])
    pod = a_pod(affinity=preferred("podAffinity", (50, term()), (29, term("cache"))))
    scores_given = scores(cluster, pod)
    assert scores_given is not None
    assert scores_given["b"] == 57  # 100 · 0.58 falls just short of 58
