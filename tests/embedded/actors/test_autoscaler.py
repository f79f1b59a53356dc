"""The cluster autoscaler: nodes come when pods wait, and go when nobody needs them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wukong.actions import Patch
from wukong.api.core import Taint
from wukong.api.kinds import DEPLOYMENTS, NODES, POD_DISRUPTION_BUDGETS, PODS
from wukong.api.node_groups import NODE_GROUP_LABEL, NodeGroup, NodeTemplate
from wukong.api.resources import Key, Resource
from wukong.app.embedded import EmbeddedCluster, Settings, build_cluster, play_scenario
from wukong.embedded.actors.autoscaler.controller import LOOP, Autoscaler
from wukong.embedded.actors.autoscaler.new_node import build_node, make_new_node
from wukong.embedded.actors.autoscaler.pod_rules import find_blocker, list_waiting
from wukong.embedded.actors.autoscaler.scale_up import Candidate, Estimate
from wukong.embedded.actors.autoscaler.taints import CANDIDATE, TO_BE_DELETED
from wukong.embedded.checkers import Checkers
from wukong.embedded.scenario import Scenario, Story
from wukong.embedded.scenario.format.fields import NodeEntry, PatchTarget, TimelineEntry
from wukong.embedded.scenario.play.steps import Drains
from wukong.embedded.world import objects
from wukong.embedded.world.world import World
from wukong.engine.view import View
from wukong.placement.prices import PRICE_LABEL, Prices
from wukong.ports import Document, PatchBody
from wukong.state import State

WORKERS = NodeGroup(
    name="workers", min=2, max=10, boot_seconds=60, template=NodeTemplate(capacity={"cpu": 6, "memory": "24Gi"})
)
TERM = {
    "topologyKey": "kubernetes.io/hostname",
    "labelSelector": {"matchLabels": {"app": "web"}},
    "mismatchLabelKeys": ["pod-template-hash"],
}
REQUIRED = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}}
WEIGHTED = {"weight": 100, "podAffinityTerm": TERM}
PREFERRED = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [WEIGHTED]}}


def a_group(name: str = "workers", cpu: object = 6, *, least: int = 0, most: int = 10, **more: Any) -> NodeGroup:
    template = NodeTemplate(capacity={"cpu": str(cpu), "memory": "24Gi"}, **more.pop("template", {}))
    return NodeGroup(name=name, min=least, max=most, template=template, **{"boot_seconds": 30.0, **more})


def a_deployment(name: str = "web", replicas: int = 1, cpu: object = 1, **spec: Any) -> Document:
    meta = {"labels": {"app": name}, "annotations": {"sim.novasphere.dev/ready-seconds": "15"}}
    container = {"name": "main", "image": f"{name}:1", "resources": {"requests": {"cpu": str(cpu)}}}
    template = {"metadata": meta, "spec": {"containers": [container], **spec.pop("pod", {})}}
    body = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": body}


def strategy(surge: str, unavailable: object) -> Document:
    return {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}


# ---- what was recorded with cluster-autoscaler 1.35.2: eight pods of 1 cpu as 4+4 on two nodes of 6, then an update


@pytest.mark.parametrize(
    ("affinity", "surge", "unavailable", "peaks", "fewest"),
    [
        (REQUIRED, "100%", 0, {4}, 8),
        # Recorded: 4. Chance decides which old pods go first: where that empties a node, it takes the last two.
        (REQUIRED, "25%", "25%", {3, 4}, 6),
        (None, "100%", 0, {3}, 8),
        (PREFERRED, "100%", 0, {3}, 8),
    ],
)
def test_an_update_buys_and_gives_back_as_many_nodes_as_recorded(
    affinity: Document | None, surge: str, unavailable: object, peaks: set[int], fewest: int
) -> None:
    pod = {"affinity": affinity} if affinity else {}
    update = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "web:2"}]}}}}
    scenario = Scenario(
        node_groups=[WORKERS],
        nodes=[NodeEntry(name_prefix="workers-", count=2, group="workers")],
        manifests=[a_deployment(replicas=8, pod=pod, strategy=strategy(surge, unavailable))],
        timeline=[TimelineEntry(at="60s", patch=PatchTarget(kind="Deployment", name="web", patch=update))],
    )
    stories = [play_scenario(scenario, seed) for seed in (0, 1)]
    assert {story.nodes.max for story in stories} == peaks
    for story in stories:
        web = story.workloads["default/web"]
        assert (story.nodes.start, story.nodes.end) == (2, 2)
        assert (web.available, web.up_to_date, web.min_available, web.restarts) == (8, 8, fewest, 0)
        assert story.settled
        assert story.findings == []


# ---- up


def play(groups: list[NodeGroup], *manifests: Document, seed: int = 0, nodes: list[NodeEntry] | None = None) -> Story:
    scenario = Scenario(node_groups=groups, nodes=nodes or [], manifests=list(manifests), until="3h")
    story = play_scenario(scenario, seed)
    assert story.findings == []
    return story


def requested(story: Story) -> list[str]:
    return [event.text.removeprefix("asks for node ") for event in story.events if event.subject.startswith("node gro")]


def refusals(story: Story) -> list[str]:
    return [event.text for event in story.events if "didn't trigger" in event.text]


def test_only_as_many_nodes_come_as_the_group_may_have() -> None:
    story = play([a_group(most=2)], a_deployment(replicas=20))
    assert requested(story) == ["workers-1", "workers-2"]
    assert story.workloads["default/web"].available == 12
    assert not story.settled
    assert set(refusals(story)) == {"pod didn't trigger scale-up: 1 max node group size reached"}


def test_no_node_is_asked_for_that_would_not_help() -> None:
    tainted = a_group(template={"taints": [Taint(key="gpu", effect="NoSchedule")]})
    for group, pod, reason in (
        (a_group(cpu=2), {}, "1 Insufficient cpu"),
        (tainted, {}, "1 node(s) had untolerated taint(s)"),
        (a_group(cpu=8), {"nodeSelector": {"disk": "ssd"}}, "1 node(s) didn't match Pod's node affinity/selector"),
    ):
        story = play([group], a_deployment(cpu=4, pod=pod))
        assert requested(story) == []
        assert refusals(story) == [f"pod didn't trigger scale-up: {reason}"]


def test_daemons_that_come_with_a_node_take_their_part_of_it() -> None:
    container = {"name": "agent", "image": "agent:1", "resources": {"requests": {"cpu": "2"}}}
    template = {"metadata": {"labels": {"app": "agent"}}, "spec": {"containers": [container]}}
    spec = {"selector": {"matchLabels": {"app": "agent"}}, "template": template}
    agent = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent"}, "spec": spec}
    assert len(requested(play([a_group()], a_deployment(replicas=8), agent))) == 2  # 4 of 6 cpu are left on each
    assert requested(play([a_group()], a_deployment(cpu=5), agent)) == []


def test_the_group_that_wastes_the_least_is_taken_unless_another_has_more_weight() -> None:
    small, large = a_group("small", 4), a_group("large", 16)
    assert requested(play([large, small], a_deployment(replicas=3))) == ["small-1"]
    assert requested(play([large, small], a_deployment(replicas=5, cpu=3))) == ["large-1"]
    weighty = a_group("large", 16, weight=1)
    assert requested(play([weighty, small], a_deployment(replicas=3))) == ["large-1"]


def test_chance_decides_between_groups_that_are_alike() -> None:
    chosen = {requested(play([a_group("a"), a_group("b")], a_deployment(), seed=seed))[0] for seed in range(6)}
    assert chosen == {"a-1", "b-1"}


def test_pods_that_a_booting_node_will_take_buy_no_other_one() -> None:
    group = a_group(boot_seconds=300.0)
    scenario = Scenario(node_groups=[group], manifests=[a_deployment("one", 3)])
    scenario.timeline = [TimelineEntry(at="60s", apply=a_deployment("two", 3))]
    assert requested(play_scenario(scenario)) == ["workers-1"]


def test_a_pod_whose_binding_nobody_has_heard_of_yet_waits_no_more() -> None:
    state, key = State(), Key("default", "web")
    state.apply("ADDED", objects.read("Node", {**build_node(WORKERS, "workers-1"), "kind": "Node"}))
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    pod = {"metadata": {"name": "web", "namespace": "default"}, "status": {"conditions": [condition]}}
    state.apply("ADDED", objects.read("Pod", {**pod, "spec": {"containers": [{"name": "main", "image": "web:1"}]}}))
    assert [waiting.metadata.name for waiting in list_waiting(state)] == ["web"]
    state.assume(key, "workers-1", now=0.0, ttl=30.0)
    assert list_waiting(state) == []


# ---- down


class Cluster:
    """An embedded cluster with node groups in which controllers take no time, judged by all checkers."""

    def __init__(self, *groups: NodeGroup, nodes: int = 0, seed: int = 0) -> None:
        self.groups = groups
        self.embedded = build_cluster(Settings(seed, takes_time=False, node_groups=groups), Drains())
        self.checkers = Checkers(self.world)
        for number in range(1, nodes + 1):
            self.add_node(f"{groups[0].name}-{number}")

    @property
    def world(self) -> World:
        return self.embedded.world

    def add_node(self, name: str, **annotations: str) -> None:
        node = build_node(self.groups[0], name)
        node["metadata"]["annotations"] = annotations
        self.world.server.create(NODES, node)

    def create(self, resource: Resource, document: Document) -> None:
        self.world.server.create(resource, document, "" if resource == NODES else "default")

    def run(self, seconds: float) -> None:
        self.world.run(seconds=seconds)
        assert [str(finding) for finding in self.checkers.finish(is_at_rest=False)] == []

    def nodes(self) -> list[str]:
        return [node["metadata"]["name"] for node in self.world.server.list(NODES).items]

    def leaving(self) -> list[str]:
        return self.tainted(TO_BE_DELETED)

    def tainted(self, key: str) -> list[str]:
        nodes = self.world.server.list(NODES).items
        return [
            node["metadata"]["name"]
            for node in nodes
            if any(taint["key"] == key for taint in node["spec"].get("taints") or ())
        ]


def a_pod(name: str, node: str, cpu: object = 1, **meta: Any) -> Document:
    container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": str(cpu)}}}
    return {"metadata": {"name": name, **meta}, "spec": {"containers": [container], "nodeName": node}}


SAFE = {"annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"}}


@pytest.mark.parametrize(("cpu", "goes"), [("3", True), ("3001m", False)])
def test_a_node_goes_when_at_most_half_of_it_is_in_use(cpu: str, goes: bool) -> None:
    cluster = Cluster(a_group(), nodes=2)
    cluster.create(PODS, a_pod("a", "workers-1", cpu, **SAFE))
    cluster.create(PODS, a_pod("b", "workers-2", cpu, **SAFE))
    cluster.run(700)
    assert len(cluster.nodes()) == (1 if goes else 2)


def test_a_node_goes_only_after_ten_minutes_without_need() -> None:
    cluster = Cluster(a_group(), nodes=1)
    cluster.run(590)
    assert cluster.nodes() == ["workers-1"]
    cluster.run(60)
    assert cluster.nodes() == []


def test_need_in_between_begins_the_ten_minutes_anew() -> None:
    cluster = Cluster(a_group(), nodes=2)
    cluster.run(300)
    for node in ("workers-1", "workers-2"):
        cluster.create(PODS, a_pod(f"on-{node}", node, 4, **SAFE))
    cluster.run(20)
    cluster.world.server.delete(PODS, Key("default", "on-workers-1"))
    cluster.run(580)
    assert len(cluster.nodes()) == 2
    cluster.run(60)
    assert cluster.nodes() == ["workers-2"]


def test_pods_rather_go_to_nodes_that_are_needed_as_long_as_these_have_room() -> None:
    cluster = Cluster(a_group(), nodes=2)
    cluster.create(PODS, a_pod("busy", "workers-1", 4, **SAFE))
    cluster.run(20)
    assert cluster.tainted(CANDIDATE) == ["workers-2"]
    cluster.create(DEPLOYMENTS, a_deployment("small", 2, 1))
    cluster.run(20)
    nodes = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in cluster.world.server.list(PODS).items}
    assert set(nodes.values()) == {"workers-1"}
    cluster.create(DEPLOYMENTS, a_deployment("large", 1, 4))
    cluster.run(20)
    assert cluster.tainted(CANDIDATE) == []


def test_at_most_ten_nodes_get_the_soft_taint_in_a_round() -> None:
    cluster = Cluster(a_group(most=30), nodes=25)
    counts = []
    for _ in range(4):
        cluster.run(10)
        counts.append(len(cluster.tainted(CANDIDATE)))
    assert counts == [10, 20, 25, 25]


def test_nodes_of_a_node_pool_get_no_soft_taint() -> None:
    """Karpenter has none."""
    cluster = Cluster(a_group(node_pool="pool"), nodes=2)
    cluster.run(500)
    assert cluster.tainted(CANDIDATE) == []


def test_no_node_goes_in_the_ten_minutes_after_one_was_asked_for() -> None:
    cluster = Cluster(a_group(cpu=2), a_group("large", 8), nodes=1)
    cluster.run(500)
    cluster.create(DEPLOYMENTS, a_deployment(cpu=6))
    cluster.run(570)
    assert cluster.nodes() == ["large-1", "workers-1"]
    cluster.run(70)
    assert cluster.nodes() == ["large-1"]


def test_a_group_keeps_its_minimum_and_nodes_that_are_annotated_so() -> None:
    cluster = Cluster(a_group(least=2), nodes=4)
    cluster.run(4000)
    assert len(cluster.nodes()) == 2
    kept = Cluster(a_group())
    kept.add_node("workers-1", **{"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"})
    kept.add_node("workers-2")
    kept.run(4000)
    assert kept.nodes() == ["workers-1"]


def test_empty_nodes_go_together_and_others_one_at_a_time() -> None:
    cluster = Cluster(a_group(), nodes=5)
    document = a_deployment("slow", 3, 3, pod={"terminationGracePeriodSeconds": 60})
    document["spec"]["template"]["metadata"]["annotations"]["sim.novasphere.dev/stop-seconds"] = "60"
    document["spec"]["template"]["spec"]["topologySpreadConstraints"] = [
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"app": "slow"}},
        }
    ]
    cluster.create(DEPLOYMENTS, document)
    cluster.run(30)
    most_leaving = most_draining = 0
    for _ in range(130):
        cluster.run(10)
        leaving = cluster.leaving()
        most_leaving = max(most_leaving, len(leaving))
        occupied = {pod["spec"].get("nodeName") for pod in cluster.world.server.list(PODS).items}
        most_draining = max(most_draining, len(occupied.intersection(leaving)))
    assert most_draining == 1
    assert most_leaving >= 2
    assert len(cluster.nodes()) == 2


def test_a_drain_that_a_budget_forbids_is_given_up_after_two_minutes() -> None:
    cluster = Cluster(a_group(least=1), nodes=2)
    cluster.create(DEPLOYMENTS, a_deployment(replicas=2, cpu=1))
    cluster.world.run(lambda state: bool(cluster.leaving()), seconds=2000)
    (leaving,) = cluster.leaving()
    spec = {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}}
    cluster.create(POD_DISRUPTION_BUDGETS, {"metadata": {"name": "web"}, "spec": spec})
    cluster.run(100)
    assert cluster.leaving() == [leaving]
    cluster.run(40)
    assert cluster.leaving() == []
    cluster.run(4000)  # it allows none, so nobody tries again
    assert len(cluster.nodes()) == 2


def test_who_does_not_know_of_a_removal_takes_its_taint_back() -> None:
    node = build_node(WORKERS, "workers-1")
    node["spec"]["taints"] = [{"key": TO_BE_DELETED, "value": "1", "effect": "NoSchedule"}]
    state = State()
    state.apply("ADDED", objects.read("Node", {**node, "kind": "Node", "apiVersion": "v1"}))
    autoscaler, now = Autoscaler([WORKERS]), 1000.0
    for _ in range(2):
        outcome = autoscaler.reconcile(LOOP, state, now)
        now += outcome.requeue_after or 0.0
        if outcome.actions:
            break
    (patch,) = outcome.actions
    assert isinstance(patch, Patch)
    assert patch.patch.body["spec"] == {"taints": None}


def a_budget(state: State) -> None:
    spec = {"selector": {"matchLabels": {"app": "dns"}}}
    budget = {"metadata": {"name": "b", "namespace": "kube-system"}, "spec": spec}
    state.apply("ADDED", objects.read("PodDisruptionBudget.policy", budget))


OWNED = {"ownerReferences": [{"kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}]}
KEY = "cluster-autoscaler.kubernetes.io/safe-to-evict"
SYSTEM = {"namespace": "kube-system", "labels": {"app": "dns"}}


@pytest.mark.parametrize(
    ("meta", "volumes", "has_budget", "reason"),
    [
        (OWNED, [], False, ""),
        ({}, [], False, "no controller"),
        ({"annotations": {KEY: "true"}}, [{"name": "v", "hostPath": {"path": "/"}}], False, ""),
        (OWNED | {"annotations": {KEY: "false"}}, [], False, "not safe to evict"),
        (OWNED | SYSTEM, [], False, "kube-system"),
        (OWNED | SYSTEM, [], True, ""),
        (OWNED, [{"name": "v", "emptyDir": {}}], False, "local storage"),
        (OWNED, [{"name": "v", "hostPath": {"path": "/"}}], False, "local storage"),
        (OWNED, [{"name": "v", "emptyDir": {"medium": "Memory"}}], False, ""),
        (OWNED, [{"name": "v", "configMap": {"name": "c"}}], False, ""),
        (OWNED | {"annotations": {f"{KEY}-local-volumes": "v, w"}}, [{"name": "v", "emptyDir": {}}], False, ""),
    ],
)
def test_some_pods_keep_their_node(meta: Document, volumes: list[Document], has_budget: bool, reason: str) -> None:
    state = State()
    if has_budget:
        a_budget(state)
    document = {"metadata": {"name": "p", "namespace": "default", **meta}, "spec": {"volumes": volumes}}
    pod = objects.read("Pod", document)
    assert isinstance(pod, objects.Pod)
    text = find_blocker(pod, state)
    assert reason in text
    assert bool(reason) == bool(text)


# ---- forks, seeds, properties


def test_a_fork_goes_on_as_the_world_it_was_made_of() -> None:
    cluster = Cluster(a_group(least=1), nodes=1)
    cluster.create(DEPLOYMENTS, a_deployment(replicas=14))
    cluster.run(200)
    cluster.world.server.patch(DEPLOYMENTS, Key("default", "web"), PatchBody("merge", {"spec": {"replicas": 2}}))
    cluster.run(400)
    copy: EmbeddedCluster = cluster.embedded.fork()
    endings = []
    for world in (cluster.world, copy.world):
        world.run(seconds=2000)
        endings.append([(step.at, str(step)) for step in world.trace])
    assert endings[0][-len(endings[1]) :] == endings[1]
    assert len(copy.world.server.list(NODES).items) == 1


@settings(max_examples=8, deadline=None)
@given(
    sizes=st.lists(st.tuples(st.sampled_from(["500m", "1", "2500m", "7"]), st.integers(1, 6)), min_size=1, max_size=3),
    shapes=st.lists(
        st.tuples(st.sampled_from([2, 4, 6]), st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=2
    ),
    seed=st.integers(0, 99),
)
def test_groups_keep_their_limits_and_nobody_waits_whom_a_node_would_help(
    sizes: list[tuple[str, int]], shapes: list[tuple[int, int, int]], seed: int
) -> None:
    groups = [
        a_group(f"g{number}", cpu, least=least, most=least + more) for number, (cpu, least, more) in enumerate(shapes)
    ]
    nodes = [
        NodeEntry(name_prefix=f"{group.name}-", count=group.min, group=group.name) for group in groups if group.min
    ]
    deployments = [a_deployment(f"d{number}", count, cpu) for number, (cpu, count) in enumerate(sizes)]
    scenario = Scenario(node_groups=groups, nodes=nodes, manifests=deployments, until="3h")
    story = play_scenario(scenario, seed)
    assert story.findings == []
    assert story.at_rest
    names = {name for summary in story.workloads.values() for name in summary.per_node}
    for group in groups:
        assert sum(name.startswith(f"{group.name}-") for name in names) <= group.max
    largest = {group.name: int(group.template.capacity["cpu"]) * 1000 for group in groups}
    asked = [name.rpartition("-")[0] for name in requested(story)]
    grown = {group.name: group.min + asked.count(group.name) for group in groups}
    for number, (cpu, count) in enumerate(sizes):
        milli = int(cpu[:-1]) if cpu.endswith("m") else int(cpu) * 1000
        is_short = story.workloads[f"default/d{number}"].available < count
        helps = [group.name for group in groups if largest[group.name] >= milli and grown[group.name] < group.max]
        assert not (is_short and helps), (number, helps)


class OneByOne(Estimate):
    """Opens a node only when the one before is full."""

    def may_open_many(self, view: View) -> bool:
        return False


@settings(max_examples=25, deadline=None)
@given(
    sorts=st.lists(
        st.tuples(
            st.sampled_from([100, 700, 1000, 2300, 5000]), st.integers(1, 30), st.sampled_from(["", "apart", "spread"])
        ),
        min_size=1,
        max_size=4,
    ),
    most=st.integers(1, 40),
)
def test_nodes_that_are_opened_in_one_go_are_as_many_as_one_by_one(
    sorts: list[tuple[int, int, str]], most: int
) -> None:
    group, state = a_group(cpu=4), State()
    waiting = []
    for number, (cpu_milli, count, rule) in enumerate(sorts):
        for index in range(count):
            spec: Document = {"containers": [{"name": "c", "resources": {"requests": {"cpu": f"{cpu_milli}m"}}}]}
            term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": f"a{number}"}}}
            if rule == "apart":
                spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
            elif rule:
                spec["topologySpreadConstraints"] = [{**term, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]
            meta = {"name": f"p{number}-{index}", "namespace": "default", "labels": {"app": f"a{number}"}}
            pod = objects.read("Pod", {"metadata": meta, "spec": spec})
            assert isinstance(pod, objects.Pod)
            waiting.append(pod)
    new_node = make_new_node(group, state, state.snapshot)
    results = []
    for make in (Estimate, OneByOne):
        estimate = make(state.snapshot, Candidate(group, new_node, most), 0)
        option = estimate.run(waiting)
        loads = [len(estimate.snapshot.on_row.get(row, ())) for row in estimate.opened]
        results.append((option and (option.nodes, [pod.key for pod in option.pods], option.waste), loads))
    assert results[0] == results[1]


def test_the_same_seed_tells_the_same_story() -> None:
    scenario = Scenario(node_groups=[a_group("a"), a_group("b")], manifests=[a_deployment(replicas=9)])
    assert play_scenario(scenario, 3).digest == play_scenario(scenario, 3).digest


def test_the_label_of_a_group_tells_its_nodes() -> None:
    assert WORKERS.has_node({NODE_GROUP_LABEL: "workers", "a": "b"})
    assert not WORKERS.has_node({NODE_GROUP_LABEL: "others"})
    assert build_node(WORKERS, "x")["metadata"]["labels"][NODE_GROUP_LABEL] == "workers"


def test_what_a_node_of_a_group_costs_is_known_by_its_label() -> None:
    labels = build_node(a_group(price_per_hour=0.192), "x")["metadata"]["labels"]
    assert Prices().price_of("x", labels, is_spot=False) == 0.192
    assert PRICE_LABEL not in build_node(WORKERS, "x")["metadata"]["labels"]
