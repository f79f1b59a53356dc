"""Labels of what nodes have free: only what is asked for, never more than there is, and seldom moved."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import a_node, a_pod, a_usage, measure
from policies import a_cluster_policy, a_policy, a_spec, a_wukong, needs, policy_of, rows_of
from random_clusters import clusters
from wukong.actions import Patch
from wukong.api.core import Node, NodeSelector, Pod
from wukong.api.kinds import NODES, WUKONGS
from wukong.api.meta import Object
from wukong.api.objects import Objects
from wukong.api.quantity import parse_quantity, scheduler_amount
from wukong.api.resources import Key
from wukong.api.vm import NAME_LABEL, Wukong
from wukong.controllers.load.controller import Load
from wukong.controllers.load.floor_demand import FloorDemand, largest_met
from wukong.controllers.load.free_labels import MOST_LABELS, FreeSettings, plan_free_labels
from wukong.controllers.load.usage_labels import LabelPlan
from wukong.placement.compile import GPU_NAMES, RESOURCES
from wukong.placement.free_labels import free_label_of
from wukong.placement.vm.node_affinity import build_node_affinity
from wukong.placement.vm.settings import VmSettings
from wukong.replies.extender.verbs import Extender
from wukong.replies.extender.verbs import Settings as ExtenderSettings
from wukong.rules.resources import placed_requests_of
from wukong.rules.selectors import node_selector_selects
from wukong.state import State

QUIET = 30.0
FREE = FreeSettings(quiet_seconds=QUIET)
CPU, MEMORY, GPU = (free_label_of(name) for name in ("cpu", "memory", "gpu"))


# ---- one decision


@pytest.mark.parametrize(
    ("current", "value", "free", "expected"),
    [
        (None, 4096, 5000, LabelPlan({MEMORY: "4096"})),  # missing: to node affinity nothing is known
        (None, 0, 5000, LabelPlan({MEMORY: "0"})),
        ("4096", 4096, 5000, LabelPlan()),
        ("8192", 4096, 5000, LabelPlan({MEMORY: "4096"})),  # more than there is: at once
        ("lots", 4096, 5000, LabelPlan({MEMORY: "4096"})),
        ("-1", 4096, 5000, LabelPlan({MEMORY: "4096"})),
        ("²", 4096, 5000, LabelPlan({MEMORY: "4096"})),
        ("9" * 60, 4096, 5000, LabelPlan({MEMORY: "4096"})),
        ("0", 4096, 5000, LabelPlan(again_after=20.0)),  # more may be promised: in a while
        ("5000", 4096, 5000, LabelPlan(again_after=20.0)),  # a floor that is no longer asked for, and is there
    ],
)
def test_a_label_is_lowered_at_once_and_raised_in_a_while(
    current: str | None, value: int, free: int, expected: LabelPlan
) -> None:
    labels = {} if current is None else {MEMORY: current}
    assert plan_free_labels(labels, {MEMORY: (value, free)}, 90.0, FREE, now=100.0) == expected


def test_a_label_is_raised_when_it_has_been_quiet() -> None:
    labels, wanted = {MEMORY: "0", CPU: "500"}, {MEMORY: (4096, 5000)}
    assert plan_free_labels(labels, wanted, 90.0, FREE, now=120.0) == LabelPlan({MEMORY: "4096", CPU: None})
    assert plan_free_labels(labels, wanted, None, FREE, now=0.0) == LabelPlan({MEMORY: "4096", CPU: None})


def test_what_may_wait_does_not_come_along_with_what_may_not() -> None:
    """Else two resources that take turns would move both labels each time."""
    plan = plan_free_labels({MEMORY: "0", CPU: "500"}, {MEMORY: (9, 9), CPU: (100, 100)}, None, FREE, now=0.0)
    assert plan == LabelPlan({CPU: "100"}, again_after=QUIET)


@pytest.mark.parametrize(
    ("amounts", "free", "expected"), [([], 5, 0), ([4, 8], 3, 0), ([4, 8], 4, 4), ([4, 8], 7, 4), ([4, 8], 99, 8)]
)
def test_the_largest_floor_that_is_met(amounts: list[int], free: int, expected: int) -> None:
    assert largest_met(amounts, free) == expected


# ---- a controller on a mirror


class Cluster:
    """The load controller and what it hears of: every change is dispatched, decided and written at once."""

    def __init__(self, *objects: Object, load: Load | None = None) -> None:
        self.state, self.load = State(), load or Load(free=FREE)
        self.now, self.version = 1000.0, 0
        self.decisions = 0
        self.writes: list[tuple[float, str, dict[str, str | None]]] = []
        self.due: dict[str, float] = {}  # node → when to look again
        for subject in objects:
            self.put(subject)

    def put(self, subject: Object) -> None:
        self.version += 1
        meta = msgspec.structs.replace(subject.metadata, resource_version=str(self.version))
        self._hear(self.state.apply("MODIFIED", msgspec.structs.replace(subject, metadata=meta)))

    def remove(self, subject: Object) -> None:
        self._hear(self.state.apply("DELETED", subject))

    def wait(self, seconds: float) -> None:
        self.now += seconds
        for name in sorted(name for name, at in self.due.items() if at <= self.now):
            self._reconcile(Key("", name))

    def labels(self, node: str) -> dict[str, str]:
        found = self.state.get(Node, Key("", node))
        assert found is not None
        return {
            key.removeprefix(f"{FREE.prefix}/"): value
            for key, value in found.metadata.labels.items()
            if key.startswith(FREE.prefix)
        }

    def _hear(self, changes: list[Any]) -> None:
        for change in changes:
            for watch in self.load.watches:
                if watch.resource.group_kind == change.group_kind:
                    for key in watch.keys(change, self.state):
                        self._reconcile(key)

    def _reconcile(self, key: Key) -> None:
        self.decisions += 1
        outcome = self.load.reconcile(key, self.state, self.now)
        self.due.pop(key.name, None)
        if outcome.requeue_after is not None:
            self.due[key.name] = self.now + outcome.requeue_after
        for action in outcome.actions:
            assert isinstance(action, Patch)
            assert action.resource is NODES
            changes = action.patch.body["metadata"]["labels"]
            self.writes.append((self.now, key.name, changes))
            node = self.state.get(Node, key)
            assert node is not None
            merged = {**node.metadata.labels, **changes}
            labels = {name: value for name, value in merged.items() if value is not None}
            self.put(msgspec.structs.replace(node, metadata=msgspec.structs.replace(node.metadata, labels=labels)))


def test_a_node_has_labels_of_what_is_asked_for_and_of_nothing_else() -> None:
    cluster = Cluster(a_node("n1", cpu="4", memory="16Gi"), a_pod("a", cpu="1500m", memory="1Gi", node="n1"))
    assert cluster.labels("n1") == {}
    cluster.put(a_policy(floors=[needs("cpu", "500m"), needs("cpu", 2), needs("cpu", 4)]))
    assert cluster.labels("n1") == {"cpu": "2000"}
    cluster.put(a_wukong(floors=[needs("memory", "8Gi"), needs("gpu", 1)]))
    assert cluster.labels("n1") == {"cpu": "2000", "memory": "8192", "gpu": "0"}
    cluster.put(a_cluster_policy("other", floors=[needs("example.com/fpga", 1), needs("storage", "1Gi")]))
    assert cluster.labels("n1") == {
        "cpu": "2000", "memory": "8192", "gpu": "0", "storage": "0", "example.com_fpga": "0",
    }  # fmt: skip


def test_labels_go_when_nobody_asks_any_more() -> None:
    cluster = Cluster(a_node("n1"), a_policy(floors=[needs("cpu", 1)]), a_wukong(floors=[needs("cpu", 1)]))
    cluster.remove(a_policy())
    cluster.wait(QUIET)
    assert cluster.labels("n1") == {"cpu": "1000"}
    cluster.remove(a_wukong())
    cluster.wait(QUIET)
    assert cluster.labels("n1") == {}
    assert cluster.due == {}


def test_a_wukong_that_can_no_longer_be_read_asks_for_nothing() -> None:
    cluster = Cluster(a_node("n1"), a_wukong(floors=[needs("cpu", 1)]))
    cluster._hear(cluster.state.replace(WUKONGS.group_kind, []))
    cluster.wait(QUIET)
    assert cluster.labels("n1") == {}


def test_a_pod_lowers_the_label_at_once_and_its_end_raises_it_in_a_while() -> None:
    pod = a_pod("a", cpu="3", node="n1")
    cluster = Cluster(a_node("n1", cpu="4"), a_policy(floors=[needs("cpu", 2), needs("cpu", 4)]))
    cluster.put(pod)
    assert cluster.labels("n1") == {"cpu": "0"}
    ended = msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, phase="Succeeded"))
    cluster.put(ended)
    assert cluster.labels("n1") == {"cpu": "0"}
    cluster.wait(QUIET)
    assert cluster.labels("n1") == {"cpu": "4000"}


def test_pods_that_cross_no_floor_cost_no_write() -> None:
    cluster = Cluster(a_node("n1", cpu="64", memory="64Gi"), a_policy(floors=[needs("cpu", 2)]))
    before = len(cluster.writes)
    for number in range(100):
        cluster.put(a_pod(f"p{number}", cpu="500m", memory=None, node="n1"))
    assert cluster.writes[before:] == []


def test_a_node_where_pods_come_and_go_does_not_flutter() -> None:
    cluster = Cluster(a_node("n1", cpu="4"), a_policy(floors=[needs("cpu", 2)]))
    before = len(cluster.writes)
    for _ in range(60):  # five minutes
        cluster.put(a_pod("a", cpu="3", node="n1"))
        cluster.wait(2.0)
        cluster.remove(a_pod("a", node="n1"))
        cluster.wait(3.0)
    assert len(cluster.writes) - before <= 2 * 300 / QUIET


def test_usage_and_free_labels_do_not_hold_each_other_up() -> None:
    cluster = Cluster(a_node("n1", cpu="4"), a_policy(floors=[needs("cpu", 2)]))
    cluster.put(a_pod("a", cpu="3", node="n1"))
    measure(cluster.state, a_usage("n1", cluster.now, cpu=42.0))
    cluster._reconcile(Key("", "n1"))
    node = cluster.state.get(Node, Key("", "n1"))
    assert node is not None
    assert node.metadata.labels["usage.novasphere.dev/cpu"] == "40"


def test_the_health_of_a_pod_concerns_no_node() -> None:
    pod = a_pod("a", node="n1")
    cluster = Cluster(a_node("n1"), pod, a_policy(floors=[needs("cpu", 1)]))
    ready = msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, phase="Running"))
    before = cluster.decisions
    cluster.put(ready)
    assert cluster.decisions == before


def test_a_thousand_wukongs_that_ask_alike_have_the_nodes_looked_at_once() -> None:
    cluster = Cluster(*(a_node(f"n{number}") for number in range(20)))
    for number in range(1000):
        cluster.put(a_wukong(f"w{number}", floors=[needs("cpu", 2)]))
    assert cluster.decisions == 60  # each when it came, when the floor came, and when the label showed
    assert len(cluster.writes) == 20


def test_without_free_labels_neither_pods_nor_policies_are_watched() -> None:
    assert {watch.resource.kind for watch in Load().watches} == {"Node", "NodeUsage"}
    cluster = Cluster(a_node("n1"), a_policy(floors=[needs("cpu", 1)]), load=Load())
    assert cluster.writes == []


def test_a_copy_of_the_controller_remembers_when_it_changed_what() -> None:
    cluster = Cluster(a_node("n1", cpu="4"), a_policy(floors=[needs("cpu", 2)]))
    copy = Load(free=FREE)
    copy.copy_memory(cluster.load, cluster.state)
    assert vars(copy)["_free_changed_at"] == vars(cluster.load)["_free_changed_at"] != {}
    change = cluster.state.apply("MODIFIED", a_policy("web", floors=[needs("cpu", 2)], priority=3))[0]
    assert copy._keys_of_demand(change, cluster.state) == ()


# ---- what makes no sense


@pytest.mark.parametrize(
    "subject",
    [
        a_policy("bad", floors=[needs("cpus", 1)]),
        a_policy("bad", floors=[needs("cpu", "lots"), needs("cpu", "-1"), needs("cpu", 0)]),
        a_policy("bad", floors=[needs("a/b/c", 1), needs("ä/b", 1), needs("/", 1), needs("", 1)]),
        a_policy("bad", floors=[needs(f"example.com/r{number}", 1) for number in range(10_000)]),
        a_wukong("bad", floors=[needs("gpu", 1)], gpus=[f"example.com/r{number}" for number in range(10_000)]),
        a_wukong("bad", floors=[needs("gpu", 1)], gpus=["x" * 100_000]),
        policy_of({**a_spec(), "scheduling": {}}, "bad"),
    ],
)
def test_what_makes_no_sense_asks_for_nothing(subject: Object) -> None:
    cluster = Cluster(a_node("n1"), subject, a_policy("good", floors=[needs("cpu", 1)]))
    assert cluster.labels("n1") == {"cpu": "1000"}


def test_absurd_floors_are_met_by_nobody() -> None:
    cluster = Cluster(a_node("n1", cpu="4"), a_wukong(floors=[needs("cpu", "1e999999"), needs("cpu", 1)]))
    assert cluster.labels("n1") == {"cpu": "1000"}


def test_thousands_of_resources_make_a_bounded_number_of_labels() -> None:
    flood = [
        a_policy(f"p{first}", floors=[needs(f"a.example.com/r{first + number}", 1) for number in range(16)])
        for first in range(0, 800, 16)
    ]
    node = a_node("n1", extra={"vendor.example.com/card": "3"})
    asking = a_wukong(floors=[needs("memory", "1Gi"), needs("vendor.example.com/card", 2)])
    cluster = Cluster(*flood, asking, node)
    labels = cluster.labels("n1")
    assert len(labels) == MOST_LABELS
    assert (labels["memory"], labels["vendor.example.com_card"]) == ("1024", "2")


# ---- properties

FLOORS = st.sampled_from(
    [
        needs("cpu", "500m"), needs("cpu", 2), needs("cpu", 3), needs("memory", "1Gi"), needs("memory", "6Gi"),
        needs("memory", 1), needs("gpu", 1), needs("gpu", 2), needs("example.com/fpga", 1), needs("storage", "10Gi"),
    ]
)  # fmt: skip


def free_by_oracle(objects: Objects, node: Node, resource_type: str) -> int:
    """Allocatable less the requests of the node's pods, in the scheduler's unit, read plainly."""
    names = GPU_NAMES if resource_type == "gpu" else (RESOURCES.get(resource_type, resource_type),)
    here = [pod for pod in objects.pods if pod.spec.node_name == node.metadata.name and not pod.is_finished]
    amounts = [
        scheduler_amount(name, parse_quantity(node.status.allocatable.get(name, 0)))
        - sum(placed_requests_of(pod).get(name, 0) for pod in here)
        for name in names
    ]
    return max(amounts)


@pytest.mark.slow
@given(clusters(), st.lists(FLOORS, min_size=1, max_size=6), st.data())
@settings(max_examples=60, deadline=None)
def test_a_label_never_promises_more_than_is_free_and_ends_at_the_floor_that_is_met(
    objects: Objects, floors: list[dict[str, Any]], data: st.DataObject
) -> None:
    cluster = Cluster(a_policy(floors=floors[: len(floors) // 2]), a_wukong(floors=floors[len(floors) // 2 :]))
    for node in objects.nodes:
        cluster.put(node)
    present = Objects(nodes=objects.nodes)
    for pod in data.draw(st.permutations(objects.pods)):
        cluster.put(pod)
        present.pods.append(pod)
        if data.draw(st.booleans()) and present.pods:
            cluster.remove(present.pods.pop(data.draw(st.integers(0, len(present.pods) - 1))))
        if data.draw(st.booleans()):
            cluster.wait(data.draw(st.sampled_from([1.0, 10.0, QUIET])))
        check_promises(cluster, present, floors)
    for _ in range(2):
        cluster.wait(QUIET)
    assert cluster.due == {}
    for node in objects.nodes:
        for resource_type, value in read_labels(cluster, node).items():
            unit = unit_of(resource_type)
            free = max(free_by_oracle(present, node, resource_type), 0) // unit
            asked = [amount for amount in amounts_of(floors, resource_type) if amount <= free]
            assert value == max(asked, default=0)


def check_promises(cluster: Cluster, present: Objects, floors: list[dict[str, Any]]) -> None:
    for node in present.nodes:
        labels = read_labels(cluster, node)
        assert set(labels) == {entry["resourceType"] for entry in floors}
        for resource_type, value in labels.items():
            free = max(free_by_oracle(present, node, resource_type), 0)
            assert value * unit_of(resource_type) <= free, f"{node.metadata.name} {resource_type}"


def read_labels(cluster: Cluster, node: Node) -> dict[str, int]:
    return {key.replace("_", "/"): int(value) for key, value in cluster.labels(node.metadata.name).items()}


def unit_of(resource_type: str) -> int:
    return 1 << 20 if resource_type in ("memory", "storage") else 1


def amounts_of(floors: list[dict[str, Any]], resource_type: str) -> list[int]:
    """What is asked, in the label's unit, rounded up."""
    name = RESOURCES.get(resource_type, resource_type)
    entries = [entry for entry in floors if entry["resourceType"] == resource_type]
    unit = unit_of(resource_type)
    return [-(-scheduler_amount(name, parse_quantity(entry["minAvailable"])) // unit) for entry in entries]


WHOLE_FLOORS = FLOORS.filter(lambda entry: entry != needs("memory", 1))  # a byte is less than the unit of the label


@pytest.mark.slow
@given(clusters(), st.lists(WHOLE_FLOORS, max_size=4))
@settings(max_examples=60, deadline=None)
def test_labels_and_the_extender_answer_a_floor_alike(objects: Objects, floors: list[dict[str, Any]]) -> None:
    wukong = a_wukong(floors=floors)
    cluster = Cluster(wukong, *objects.nodes, *objects.pods)
    for _ in range(2):
        cluster.wait(QUIET)
    by_labels = list_fitting_by_labels(cluster, wukong)
    pod = a_pod("virt-launcher", cpu=None, memory=None, labels={NAME_LABEL: "db"})
    assert list_kept_by_extender(cluster.state, pod) == by_labels


def list_fitting_by_labels(cluster: Cluster, wukong: Wukong) -> list[str]:
    """The nodes that meet the required terms which a virtual machine of this Wukong gets."""
    required = build_node_affinity(wukong, VmSettings()).get("requiredDuringSchedulingIgnoredDuringExecution")
    nodes = cluster.state.all(Node)
    if required is None:
        return [node.metadata.name for node in nodes]
    selector = msgspec.convert(required, NodeSelector)
    return [
        node.metadata.name
        for node in nodes
        if node_selector_selects(selector, node.metadata.labels, node.metadata.name)
    ]


def list_kept_by_extender(state: State, pod: Pod) -> list[str]:
    extender = Extender(state, ExtenderSettings(strategy="", judges_wukong_resources=True))
    fleet = extender.fleet(0.0)
    judged = extender.filter(pod, fleet, rows_of(fleet, *fleet.names), 0.0)
    assert {refusal.kind for refusal in judged.refusals} <= {"resources"}
    return [name for name, is_kept in zip(fleet.names, judged.kept.tolist(), strict=True) if is_kept]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.lists(FLOORS, max_size=3)), max_size=12))
@settings(max_examples=40, deadline=None)
def test_the_index_is_what_it_would_be_made_anew_and_so_is_its_fork(
    changes: list[tuple[str, list[dict[str, Any]]]],
) -> None:
    cluster = Cluster()
    index = cluster.state.index_of(FloorDemand)
    for name, floors in changes:
        before = (index.version, {key: list(value) for key, value in index.amounts.items()})
        if floors:
            cluster.put(a_wukong(name, floors=floors))
        else:
            cluster.remove(a_wukong(name))
        assert (index.version != before[0]) == (dict(index.amounts) != before[1])
    anew = FloorDemand()
    for key, subject in cluster.state.objects.get(WUKONGS.group_kind, {}).items():
        anew.note(WUKONGS.group_kind, key, None, subject)
    assert index.amounts == anew.amounts == index.fork().amounts
    assert index._counts == anew._counts
    index.fork().note(WUKONGS.group_kind, Key("default", "z"), None, a_wukong("z", floors=[needs("cpu", 77)]))
    assert index.amounts == anew.amounts
