"""Karpenter's provisioner: which nodes of which NodePools come for pods that wait."""

from __future__ import annotations

from collections import Counter as Tally
from typing import Any

import pytest

from wukong.api.core import Quantities
from wukong.api.node_groups import NodeGroup, NodeTemplate
from wukong.app.embedded import play_scenario
from wukong.embedded.actors.karpenter.preferences import list_versions
from wukong.embedded.scenario import Scenario, Story
from wukong.embedded.scenario.format.fields import NodeEntry, ScaleTarget, TimelineEntry
from wukong.embedded.world import objects
from wukong.ports import Document

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def an_offering(
    name: str = "m", cpu: int = 8, *, pool: str = "pool", zone: str = "a", gib: int | None = None, **more: Any
) -> NodeGroup:
    labels = {"karpenter.sh/nodepool": pool, "node.kubernetes.io/instance-type": name, ZONE: zone}
    capacity: Quantities = {"cpu": cpu, "memory": f"{gib if gib is not None else 4 * cpu}Gi"}
    return NodeGroup(
        name=f"{pool}-{name}-{zone}",
        max=more.pop("most", 50),
        boot_seconds=10,
        node_pool=pool,
        match_labels=labels,
        template=NodeTemplate(labels={**labels, **more.pop("labels", {})}, capacity=capacity),
        **more,
    )


def a_deployment(name: str, replicas: int, cpu: object = 1, rule: Document | None = None, **more: Any) -> Document:
    requests = {"cpu": str(cpu), **more.pop("requests", {})}
    spec = {"containers": [{"name": "main", "image": "app:1", "resources": {"requests": requests}}], **(rule or {})}
    template = {"metadata": {"labels": {"app": name}}, "spec": spec}
    body = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": body}


def term(app: str, key: str = HOST) -> Document:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}


def apart(app: str, key: str = HOST) -> Document:
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term(app, key)]}}}


def rather_apart(app: str) -> Document:
    weighted = {"weight": 1, "podAffinityTerm": term(app)}
    return {"affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}}}


def spread(app: str, key: str = HOST, skew: int = 1, when: str = "DoNotSchedule") -> Document:
    return {"topologySpreadConstraints": [{**term(app, key), "maxSkew": skew, "whenUnsatisfiable": when}]}


def play(groups: list[NodeGroup], *manifests: Document, seed: int = 0, **more: Any) -> Story:
    story = play_scenario(Scenario(node_groups=groups, manifests=list(manifests), **{"until": "9m", **more}), seed)
    assert story.findings == []
    return story


def requested(story: Story) -> list[str]:
    """The groups of the nodes that were asked for."""
    texts = [event.text for event in story.events if event.subject.startswith("node group")]
    return sorted(text.removeprefix("asks for node ").rpartition("-")[0] for text in texts)


# ---- how many


@pytest.mark.parametrize(
    ("rule", "replicas", "nodes"),
    [
        (None, 8, 1),
        (None, 9, 2),
        (apart("web"), 3, 3),
        # A machine that could be there has no pods: each other one may have maxSkew.
        (spread("web"), 4, 4),
        (spread("web", skew=2), 5, 3),
        # What is preferred is required as long as a new machine grants it.
        (rather_apart("web"), 4, 4),
        (spread("web", when="ScheduleAnyway"), 3, 3),
    ],
)
def test_pods_get_as_many_nodes_as_their_rules_ask_for(rule: Document | None, replicas: int, nodes: int) -> None:
    story = play([an_offering()], a_deployment("web", replicas, rule=rule))
    assert len(requested(story)) == nodes
    assert story.workloads["default/web"].available == replicas


def test_pods_go_to_the_machine_with_the_fewest_pods_not_to_the_fullest() -> None:
    """Five of 3 cpu open three machines of 8; those of 2 go one to each with room, before any gets another."""
    story = play([an_offering()], a_deployment("big", 5, 3), a_deployment("small", 4, 2))
    assert len(requested(story)) == 3
    assert story.workloads["default/small"].available == 4


def test_a_node_that_is_there_is_used_before_one_is_bought() -> None:
    nodes = [NodeEntry(name_prefix="old-", count=1, capacity={"cpu": 4, "memory": "16Gi"})]
    story = play([an_offering()], a_deployment("web", 4), nodes=nodes)
    assert requested(story) == []
    assert len(requested(play([an_offering()], a_deployment("web", 5), nodes=nodes))) == 1


def test_pods_for_which_a_node_boots_buy_no_other_one() -> None:
    grow = TimelineEntry(at="5s", scale=ScaleTarget(kind="Deployment", name="web", replicas=7))
    story = play([an_offering()], a_deployment("web", 2), timeline=[grow])
    assert len(requested(story)) == 1
    assert story.workloads["default/web"].available == 7


# ---- which


def test_a_machine_is_any_offering_that_takes_its_pods_and_the_cheapest_is_bought() -> None:
    small = an_offering("small", 4, price_per_hour=0.2)
    large = an_offering("large", 16, price_per_hour=0.6)
    assert requested(play([small, large], a_deployment("web", 3))) == ["pool-small-a"]
    assert requested(play([small, large], a_deployment("web", 9))) == ["pool-large-a"]  # never three small ones
    # The first machine takes as many as the largest offering does, and only then is another one opened.
    assert requested(play([small, large], a_deployment("web", 18))) == ["pool-large-a", "pool-small-a"]


def test_without_prices_the_smallest_is_bought() -> None:
    offerings = [an_offering("a-large", 16), an_offering("small", 4)]
    assert requested(play(offerings, a_deployment("web", 3))) == ["pool-small-a"]


def test_memory_and_cpu_may_each_rule_an_offering_out() -> None:
    lean, rich = an_offering("lean", 8, gib=8), an_offering("rich", 4, gib=32)
    pods = a_deployment("web", 2, 1, requests={"memory": "10Gi"})
    assert requested(play([lean, rich], pods)) == ["pool-rich-a"]
    both = [a_deployment("eager", 1, 6), pods]
    assert requested(play([lean, rich], *both)) == ["pool-lean-a", "pool-rich-a"]


def test_the_heaviest_pool_is_asked_first_and_of_equal_ones_the_last_by_name() -> None:
    light, heavy = an_offering(pool="z", weight=1), an_offering(pool="b", weight=2)
    assert requested(play([light, heavy], a_deployment("web", 1))) == ["b-m-a"]
    assert requested(play([an_offering(pool="a"), an_offering(pool="c")], a_deployment("web", 1))) == ["c-m-a"]
    taken = {"nodeSelector": {"karpenter.sh/nodepool": "z"}}
    assert requested(play([light, heavy], a_deployment("web", 1, rule=taken))) == ["z-m-a"]


def test_daemons_take_their_part_of_a_new_node() -> None:
    agent = a_deployment("agent", 1, 2)
    del agent["spec"]["replicas"]
    story = play([an_offering()], a_deployment("web", 8), {**agent, "kind": "DaemonSet"})
    assert len(requested(story)) == 2  # six of eight cpu are left on each


def test_a_selected_zone_settles_a_machine_that_was_open_before() -> None:
    zones = [an_offering(zone="a"), an_offering(zone="b")]
    pinned = {"nodeSelector": {ZONE: "b"}}
    story = play(zones, a_deployment("free", 2, 2), a_deployment("pinned", 2, 1, rule=pinned))
    assert requested(story) == ["pool-m-b"]


def test_a_spread_over_zones_buys_in_each() -> None:
    zones = [an_offering(zone=zone) for zone in "abc"]
    story = play(zones, a_deployment("web", 6, rule=spread("web", ZONE)))
    assert requested(story) == ["pool-m-a", "pool-m-b", "pool-m-c"]
    assert Tally(story.workloads["default/web"].per_node.values()) == {2: 3}


# ---- limits


def test_limits_hold_for_all_nodes_of_a_pool_together() -> None:
    limits: Quantities = {"cpu": 20}
    offerings = [an_offering("small", 4, pool_limits=limits), an_offering("large", 8, zone="b", pool_limits=limits)]
    story = play(offerings, a_deployment("web", 40))
    assert sum(4 if name == "pool-small-a" else 8 for name in requested(story)) <= 20
    assert story.workloads["default/web"].available == 20
    assert not story.settled
    counted = play([an_offering(pool_limits={"nodes": 2})], a_deployment("web", 40))
    assert len(requested(counted)) == 2


def test_who_gets_no_node_is_told_why() -> None:
    story = play([an_offering(pool_limits={"cpu": 10})], a_deployment("web", 20))
    assert len(requested(story)) == 1
    texts = [event.text for event in story.events if "didn't trigger" in event.text]
    assert "pod didn't trigger scale-up: 1 max node group size reached" in texts
    huge = play([an_offering()], a_deployment("web", 1, 9))
    assert [event.text for event in huge.events if "didn't trigger" in event.text] == [
        "pod didn't trigger scale-up: 1 Insufficient cpu"
    ]


def test_the_same_seed_tells_the_same_story() -> None:
    groups = [an_offering(zone="a"), an_offering(zone="b")]
    scenario = Scenario(node_groups=groups, manifests=[a_deployment("web", 20)])
    assert play_scenario(scenario, 3).digest == play_scenario(scenario, 3).digest
    chosen = {requested(play(groups, a_deployment("web", 1), seed=seed))[0] for seed in range(8)}
    assert chosen == {"pool-m-a", "pool-m-b"}  # chance decides between offerings of one price


# ---- preferences


def test_wishes_are_given_up_in_order() -> None:
    def prefer(zone: str, weight: int) -> Document:
        expression = {"key": ZONE, "operator": "In", "values": [zone]}
        return {"weight": weight, "preference": {"matchExpressions": [expression]}}

    def require(*zones: str) -> Document:
        expressions = [{"key": ZONE, "operator": "In", "values": [zone]} for zone in zones]
        return {"nodeSelectorTerms": [{"matchExpressions": [expression]} for expression in expressions]}

    nodes = {
        "requiredDuringSchedulingIgnoredDuringExecution": require("a", "b"),
        "preferredDuringSchedulingIgnoredDuringExecution": [prefer("x", 1), prefer("y", 2)],
    }
    rule = {
        "affinity": {"nodeAffinity": nodes, **rather_apart("web")["affinity"]},
        **spread("web", when="ScheduleAnyway"),
    }
    spec = {"containers": [{"name": "main"}], **rule}
    pod = objects.read("Pod", {"metadata": {"name": "web", "namespace": "default"}, "spec": spec})
    assert isinstance(pod, objects.Pod)
    seen = []
    for version in list_versions(pod):
        affinity = version.spec.affinity
        assert affinity is not None
        assert affinity.node_affinity is not None
        assert affinity.node_affinity.required is not None
        (selector,) = affinity.node_affinity.required.node_selector_terms
        zones = "".join(value for expression in selector.match_expressions for value in expression.values)
        seen.append((zones, affinity.pod_anti_affinity is not None, len(version.spec.topology_spread_constraints)))
    assert seen == [
        ("ay", True, 1),
        ("by", True, 1),
        ("by", False, 1),
        ("bx", False, 1),
        ("b", False, 1),
        ("b", False, 0),
    ]
