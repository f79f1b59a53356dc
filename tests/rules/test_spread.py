"""PodTopologySpread: hard constraints, soft constraints, and the ones a profile brings."""

from typing import Any

import pytest
from msgspec.structs import replace

from rules.samples import Manifest, a_cluster, a_node, a_pod, expression, node_affinity, zone
from wukong.api.core import Pod, TopologySpreadConstraint
from wukong.api.profile import Profile, default_profile
from wukong.rules.cluster import Cluster
from wukong.rules.spread import NO_LABEL, SKEWED, SpreadFilter, find_default_selector
from wukong.rules.spread_score import score

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
PROFILE = default_profile()
WEB = {"app": "web"}
WEB_SELECTOR = {"matchLabels": WEB}


def constraint(key: str = ZONE, skew: int = 1, **fields: Any) -> Manifest:
    return {
        "topologyKey": key,
        "maxSkew": skew,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": WEB_SELECTOR,
        **fields,
    }


def soft(key: str = ZONE, skew: int = 1, **fields: Any) -> Manifest:
    return constraint(key, skew, whenUnsatisfiable="ScheduleAnyway", **fields)


def web(*constraints: Manifest, name: str = "new", **fields: Any) -> Pod:
    return a_pod(name, labels=WEB, topologySpreadConstraints=list(constraints), **fields)


def webs(number: int, prefix: str, **fields: Any) -> list[Pod]:
    return [web(name=f"{prefix}{index}", **fields) for index in range(number)]


def three_zones(**pods: list[Pod]) -> Cluster:
    """Nodes a, b, c, each the only one of its zone."""
    return a_cluster(*(a_node(name, labels=zone(name)) for name in "abc"), pods=pods)


def find_rejections(cluster: Cluster, pod: Pod) -> dict[str, str]:
    filters = SpreadFilter(cluster, pod, PROFILE)
    rejections = {info.name: filters.reject(info.node) for info in cluster.nodes.values()}
    return {name: rejection.reasons[0] for name, rejection in rejections.items() if rejection is not None}


def test_a_domain_may_not_run_ahead_by_more_than_max_skew() -> None:
    cluster = three_zones(a=webs(2, "a"), b=webs(1, "b"), c=webs(1, "c"))
    assert find_rejections(cluster, web(constraint())) == {"a": SKEWED}
    assert find_rejections(cluster, web(constraint(skew=2))) == {}


def test_a_pod_that_its_selector_does_not_select_adds_nothing() -> None:
    cluster = three_zones(a=webs(1, "a"))
    other = a_pod(labels={"app": "api"}, topologySpreadConstraints=[constraint()])
    assert find_rejections(cluster, other) == {}
    assert find_rejections(cluster, web(constraint())) == {"a": SKEWED}


def test_a_node_without_the_label_is_rejected_for_good_and_counts_for_no_constraint() -> None:
    cluster = a_cluster(a_node("a", labels=zone("a")), a_node("bare"), pods={"bare": webs(3, "x")})
    pod = web(constraint(HOST), constraint(ZONE))
    assert find_rejections(cluster, pod) == {"bare": NO_LABEL}
    verdict = SpreadFilter(cluster, pod, PROFILE).reject(cluster.nodes["bare"].node)
    assert verdict == ((NO_LABEL,), True)


def test_all_hard_keys_are_needed_to_count_at_all() -> None:
    bare = a_node("bare", labels={"rack": "r1"})
    cluster = a_cluster(a_node("a", labels={**zone("a"), "rack": "r1"}), bare, pods={"bare": webs(3, "x")})
    assert find_rejections(cluster, web(constraint("rack"), constraint(ZONE))) == {"bare": NO_LABEL}


@pytest.mark.parametrize(("wanted", "expected"), [(3, {}), (4, {"a": SKEWED, "b": SKEWED, "c": SKEWED})])
def test_fewer_domains_than_wanted_count_as_one_more_empty_domain(wanted: int, expected: dict[str, str]) -> None:
    cluster = three_zones(a=webs(1, "a"), b=webs(1, "b"), c=webs(1, "c"))
    assert find_rejections(cluster, web(constraint(minDomains=wanted))) == expected


def test_terminating_pods_and_other_namespaces_do_not_count() -> None:
    cluster = three_zones(a=[*webs(2, "a", deleted=True), *webs(2, "x", namespace="other")])
    assert find_rejections(cluster, web(constraint())) == {}


@pytest.mark.parametrize("selector", [{}, None])
def test_an_empty_or_absent_selector_counts_nobody(selector: Manifest | None) -> None:
    assert find_rejections(three_zones(a=webs(3, "a")), web(constraint(labelSelector=selector))) == {}


def test_an_empty_selector_still_selects_the_pod_itself() -> None:
    cluster = a_cluster(a_node("a", labels=zone("a")))
    assert find_rejections(cluster, web(constraint(labelSelector={}, minDomains=2))) == {}
    assert find_rejections(cluster, web(constraint(labelSelector={}, skew=0))) == {"a": SKEWED}
    assert find_rejections(cluster, web(constraint(labelSelector=None, skew=0))) == {}


def test_nodes_the_pod_may_not_go_to_are_no_domains_unless_the_policy_ignores_affinity() -> None:
    cluster = three_zones(a=webs(1, "a"), b=webs(1, "b"))
    only_ab = node_affinity([expression(ZONE, "In", "a", "b")])
    assert find_rejections(cluster, web(constraint(), affinity=only_ab)) == {}
    ignoring = web(constraint(nodeAffinityPolicy="Ignore"), affinity=only_ab)
    assert find_rejections(cluster, ignoring) == {"a": SKEWED, "b": SKEWED}


def test_tainted_nodes_are_domains_unless_the_policy_honors_taints() -> None:
    nodes = [
        a_node("a", labels=zone("a")),
        a_node("b", labels=zone("b"), taints=[{"key": "x", "effect": "NoSchedule"}]),
    ]
    cluster = a_cluster(*nodes, pods={"a": webs(1, "a")})
    assert find_rejections(cluster, web(constraint())) == {"a": SKEWED}
    assert find_rejections(cluster, web(constraint(nodeTaintsPolicy="Honor"))) == {}


def test_match_label_keys_ask_for_the_pods_own_value_merged_or_not() -> None:
    cluster = three_zones(a=[a_pod("old", labels={**WEB, "rev": "1"})])
    fields: Manifest = {"matchLabelKeys": ["rev", "absent"]}
    new = a_pod(labels={**WEB, "rev": "2"}, topologySpreadConstraints=[constraint(**fields)])
    same = a_pod(labels={**WEB, "rev": "1"}, topologySpreadConstraints=[constraint(**fields)])
    merged = constraint(labelSelector={**WEB_SELECTOR, "matchExpressions": [expression("rev", "In", "1")]}, **fields)
    twice = a_pod(labels={**WEB, "rev": "1"}, topologySpreadConstraints=[merged])
    assert find_rejections(cluster, new) == {}
    assert find_rejections(cluster, same) == find_rejections(cluster, twice) == {"a": SKEWED}


def test_trying_out_victims_counts_terminating_pods_although_they_were_never_counted() -> None:
    leaving = web(name="leaving", deleted=True)
    cluster = three_zones(a=[leaving, *webs(1, "a")])
    filters = SpreadFilter(cluster, web(constraint()), PROFILE)
    node = cluster.nodes["a"].node
    assert filters.reject(node) is not None
    trial = filters.copy()
    trial.remove_pod(leaving, node)
    assert trial.reject(node) is None
    trial.add_pod(leaving, node)
    assert trial.reject(node) is not None
    assert filters.counts[0]["a"] == 1


# Scores -----------------------------------------------------------------------------------------------------------


def scores(cluster: Cluster, pod: Pod, profile: Profile = PROFILE) -> dict[str, int] | None:
    return score(cluster, pod, profile, list(cluster.nodes.values()))


def test_emptier_domains_score_higher() -> None:
    # ln(5) per pod: 3 → 4.83 ≈ 5, 1 → 1.61 ≈ 2, 0 → 0; then 100·(5 + 0 − s)/5
    assert scores(three_zones(a=webs(3, "a"), b=webs(1, "b")), web(soft())) == {"a": 0, "b": 60, "c": 100}


def test_max_skew_waters_differences_down() -> None:
    # one more than before on each: 6, 3, 1 → 100·(7 − s)/6
    assert scores(three_zones(a=webs(3, "a"), b=webs(1, "b")), web(soft(skew=2))) == {"a": 16, "b": 66, "c": 100}


def test_where_nobody_has_such_pods_all_score_100() -> None:
    assert scores(three_zones(), web(soft())) == {"a": 100, "b": 100, "c": 100}


def test_without_soft_constraints_the_plugin_is_skipped() -> None:
    assert scores(three_zones(), web(constraint())) is None
    assert scores(three_zones(), web()) is None


def test_a_feasible_node_without_the_label_scores_zero() -> None:
    cluster = a_cluster(a_node("a", labels=zone("a")), a_node("bare"), pods={"bare": webs(2, "x")})
    assert scores(cluster, web(soft())) == {"a": 100, "bare": 0}


def test_hostnames_are_counted_per_node_whatever_the_label_says() -> None:
    twins = [a_node("a", labels={HOST: "same"}), a_node("b", labels={HOST: "same"})]
    cluster = a_cluster(*twins, pods={"a": webs(2, "a")})
    assert scores(cluster, web(soft(HOST))) == {"a": 0, "b": 100}


def test_pods_on_infeasible_nodes_of_a_feasible_domain_count() -> None:
    nodes = [a_node("a1", labels=zone("a")), a_node("a2", labels=zone("a")), a_node("b", labels=zone("b"))]
    cluster = a_cluster(*nodes, pods={"a2": webs(2, "x")})
    feasible = [cluster.nodes["a1"], cluster.nodes["b"]]
    assert score(cluster, web(soft()), PROFILE, feasible) == {"a1": 0, "b": 100}


def test_system_defaults_apply_to_pods_of_a_service_and_do_not_need_the_labels() -> None:
    service = {"kind": "Service", "metadata": {"name": "web", "namespace": "default"}, "spec": {"selector": WEB}}
    nodes = [a_node("a", labels=zone("a")), a_node("bare")]
    cluster = a_cluster(*nodes, pods={"a": webs(3, "a")}, others=[service])
    # hostname ln(4)·n + 2, zone (2 domains: "a" and none) ln(4)·n + 4: a = 4.16+2+4.16+4 ≈ 14, bare = 2
    assert scores(cluster, web()) == {"a": 100 * 2 // 14, "bare": 100}
    assert scores(cluster, a_pod(labels={"app": "api"})) is None


def test_defaults_of_ones_own_need_the_labels_and_yield_to_constraints_of_the_pod() -> None:
    own = (TopologySpreadConstraint(max_skew=1, topology_key=ZONE, when_unsatisfiable="ScheduleAnyway"),)
    profile = replace(PROFILE, default_constraints=own, has_system_default_constraints=False)
    service = {"kind": "Service", "metadata": {"name": "web", "namespace": "default"}, "spec": {"selector": WEB}}
    cluster = a_cluster(a_node("a", labels=zone("a")), a_node("bare"), others=[service])
    assert scores(cluster, web(), profile) == {"a": 100, "bare": 0}
    assert scores(cluster, web(constraint(HOST)), profile) is None


@pytest.mark.parametrize(
    ("api_version", "kind", "expected"),
    [
        ("v1", "ReplicationController", True),
        ("apps/v1", "ReplicaSet", True),
        ("apps/v1", "StatefulSet", True),
        ("extensions/v1beta1", "ReplicaSet", False),
        ("batch/v1", "Job", False),
    ],
)
def test_the_owner_of_a_pod_tells_its_selector(api_version: str, kind: str, expected: bool) -> None:
    owner = {"apiVersion": api_version, "kind": kind, "name": "web", "uid": "u", "controller": True}
    selector = WEB if kind == "ReplicationController" else WEB_SELECTOR
    known = {"ReplicationController", "ReplicaSet", "StatefulSet"}
    metadata = {"name": "web", "namespace": "default"}
    workloads = [{"kind": kind, "metadata": metadata, "spec": {"selector": selector}}] if kind in known else []
    assert bool(find_default_selector(a_cluster(a_node(), others=workloads), a_pod(owner=owner))) is expected
