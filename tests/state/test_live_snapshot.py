"""After any sequence of events the live snapshot decides as one built from scratch, and so do the indexes answer."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from builders import a_node, a_pod, apart_from, selecting
from random_clusters import APPS, NAMESPACES, clusters, nodes, one_in, pods
from wukong.api.apps import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from wukong.api.core import (
    Container,
    ContainerStatus,
    Namespace,
    Pod,
    PodStatus,
    ResourceRequirements,
    Service,
    ServiceSpec,
)
from wukong.api.kinds import PODS, SERVICES
from wukong.api.meta import LabelSelector, Object, ObjectMeta, OwnerReference
from wukong.api.objects import Objects
from wukong.api.resources import Key
from wukong.engine import Decision, Scheduler, Snapshot
from wukong.state import State
from wukong.state.indexes import label_class

NODES = ("n0", "n1", "n2", "n3", "n9")
TTL = 30.0


class Story:
    """Feeds a State random events and keeps what a fresh build needs to know."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.state = State()
        self.now = 0.0
        self.version = 0
        self.last: tuple[Any, Object] | None = None

    def begin(self) -> None:
        objects = self.draw(clusters())
        for kind in ("Namespace", "Node", "Pod", "PodDisruptionBudget.policy", "ReplicaSet.apps", "Service"):
            self.state.replace(kind, [self.stamped(found) for found in objects.of(kind)])
        for found in (*objects.persistent_volumes, *objects.persistent_volume_claims):
            self.apply("ADDED", found)

    def stamped(self, found: Object) -> Object:
        self.version += 1
        found.metadata.resource_version = str(self.version)
        found.metadata.uid = found.metadata.uid or "1"
        return found

    def apply(self, event_type: Any, found: Object) -> None:
        self.last = (event_type, self.stamped(found))
        self.state.apply(*self.last)

    def step(self) -> None:
        kind = self.draw(st.sampled_from(STEPS))
        getattr(self, f"step_{kind}")()

    def a_random_pod(self) -> Pod:
        pod = self.draw(pods(f"run-{self.draw(st.integers(0, 5))}"))
        pod.spec.node_name = self.draw(st.sampled_from(["", "", *NODES]))
        pod.metadata.uid = self.draw(st.sampled_from("112"))
        pod.metadata.deletion_timestamp = "2026-02-01T00:00:00Z" if one_in(self.draw, 5) else None
        pod.status.phase = "Succeeded" if one_in(self.draw, 6) else "Running"
        pod.status.start_time = self.draw(st.sampled_from([None, "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"]))
        return pod

    def step_pod(self) -> None:
        self.apply(self.draw(st.sampled_from(["ADDED", "MODIFIED"])), self.a_random_pod())

    def step_terminate(self) -> None:
        if pod := self.a_known("Pod"):
            assert isinstance(pod, Pod)
            meta = replace(pod.metadata, deletion_timestamp="2026-02-01T00:00:00Z")
            self.apply("MODIFIED", replace(pod, metadata=meta))

    def step_delete(self) -> None:
        if found := self.a_known(self.draw(st.sampled_from(["Pod", "Pod", "Node", "Service", "Namespace"]))):
            uid = self.draw(st.sampled_from([found.metadata.uid, found.metadata.uid, "old"]))
            self.apply("DELETED", replace(found, metadata=replace(found.metadata, uid=uid)))

    def step_node(self) -> None:
        self.apply("MODIFIED", self.draw(nodes(self.draw(st.sampled_from(NODES)))))

    def step_facts(self) -> None:
        meta = ObjectMeta(name="one", namespace="default")
        app = self.draw(st.sampled_from(APPS))
        status = PodDisruptionBudgetStatus(disruptions_allowed=self.draw(st.integers(0, 2)))
        found: list[Object] = [
            Service(metadata=meta, spec=ServiceSpec(selector={"app": app})),
            Namespace(metadata=ObjectMeta(name=self.draw(st.sampled_from(NAMESPACES)), labels={"env": app[0]})),
            PodDisruptionBudget(
                metadata=meta, spec=PodDisruptionBudgetSpec(selector=selecting(app=app)), status=status
            ),
        ]
        self.apply("MODIFIED", self.draw(st.sampled_from(found)))

    def step_again(self) -> None:
        if self.last is not None:
            self.state.apply(*self.last)

    def step_relist(self) -> None:
        kind = self.draw(st.sampled_from(["Pod", "Node", "Service"]))
        kept = [found for found in self.state.objects.get(kind, {}).values() if not one_in(self.draw, 3)]
        more: list[Object] = [self.a_random_pod()] if kind == "Pod" else []
        self.state.replace(kind, [*(found for found in kept), *(self.stamped(found) for found in more)])

    def step_assume(self) -> None:
        if pod := self.a_known("Pod"):
            self.state.assume(key_of(pod), self.draw(st.sampled_from(NODES)), self.now, TTL)

    def step_time(self) -> None:
        self.now += self.draw(st.sampled_from([1.0, 20.0]))
        self.state.expire(self.now)

    def step_look(self) -> None:
        Scheduler(self.state.snapshot).decide(a_pod("looker", affinity=apart_from("web")))

    def a_known(self, kind: str) -> Object | None:
        known = self.state.objects.get(kind, {})
        return known[self.draw(st.sampled_from(sorted(known)))] if known else None


STEPS = ("pod", "pod", "pod", "terminate", "delete", "node", "facts", "again", "relist", "assume", "time", "look")


@st.composite
def stories(draw: st.DrawFn) -> Story:
    story = Story(draw)
    if draw(st.booleans()):
        story.begin()
    for _ in range(draw(st.integers(1, 25))):
        story.step()
    return story


def key_of(found: Object) -> Key:
    return Key(found.metadata.namespace, found.metadata.name)


def fresh(state: State) -> Snapshot:
    """Built from the objects alone, with assumed pods where they are assumed, in the order they came to a node."""
    order = [key for keys in state.snapshot.on_row.values() for key in keys]
    objects: Objects = state.list_objects()
    objects.pods = sorted(
        (on_its_node(state, pod) for pod in objects.pods),
        key=lambda pod: order.index(pod.key) if pod.key in order else 99,
    )
    return Snapshot.of(objects)


def on_its_node(state: State, pod: Pod) -> Pod:
    assumed = state.placements.get(key_of(pod))
    return replace(pod, spec=replace(pod.spec, node_name=assumed.node)) if assumed else pod


def told(decision: Decision) -> dict[str, Any]:
    return {
        "feasible": decision.feasible,
        "scores": {name: points.tolist() for name, points in decision.scores.items()},
        "final": decision.final,
        "refusals": decision.refusals,
        "message": decision.message,
        "preemption": decision.preemption,
        "error": decision.error,
    }


def counted(snapshot: Snapshot) -> dict[str, Any]:
    snapshot.ensure_lines(())  # a fork may have met another resource
    return {
        "pods": {key: (snapshot.rows[placed.row].name, placed.start) for key, placed in snapshot.pods.items()},
        "pending": sorted(snapshot.pending),
        "stray": {key: (pod.status.start_time, node) for key, (pod, node) in snapshot.stray.items()},
        "ports": {row: sorted(ports) for row, ports in snapshot.ports.items()},
        "load": loads_of(snapshot),
    }


def loads_of(snapshot: Snapshot) -> dict[str, list[int]]:
    """By resource; those that no node has room for count together, whether one ever had or not."""
    loads: dict[str, Any] = {}
    for name, line in snapshot.lines.items():
        if snapshot.load[line].any():
            offered = name if snapshot.room[line].any() else ""
            loads[offered] = loads.get(offered, 0) + snapshot.load[line]
    return {name: load.tolist() for name, load in loads.items()}


@pytest.mark.slow
@settings(max_examples=150)
@given(stories(), st.lists(pods("probe"), min_size=1, max_size=3))
def test_the_live_snapshot_decides_as_one_built_from_scratch(story: Story, probes: list[Pod]) -> None:
    live, built = story.state.snapshot, fresh(story.state)
    assert counted(live) == counted(built)
    for probe in probes:
        assert told(Scheduler(live).decide(probe)) == told(Scheduler(built).decide(probe))


@pytest.mark.slow
@settings(max_examples=60)
@given(stories())
def test_indexes_equal_those_computed_from_scratch(story: Story) -> None:
    state = story.state
    known = [found for found in state.objects.get("Pod", {}).values() if isinstance(found, Pod)]
    for node in NODES:
        expected = sorted(key_of(pod) for pod in known if pod.spec.node_name == node)
        assert state.pods.on_node(node) == expected == [key_of(pod) for pod in state.pods_on(node)]
    for namespace in NAMESPACES:
        here = [pod for pod in known if pod.metadata.namespace == namespace]
        assert state.pods.list_matching(namespace, LabelSelector()) == sorted(map(key_of, here))
        assert set(state.pods.classes.get(namespace, ())) == {label_class(pod) for pod in here}
        web = [key_of(pod) for pod in here if pod.metadata.labels.get("app") == "web"]
        assert state.pods.list_matching(namespace, selecting(app="web")) == sorted(web)


@pytest.mark.slow
@settings(max_examples=60)
@given(st.data())
def test_a_fork_goes_its_own_way(data: st.DataObject) -> None:
    story = data.draw(stories())
    before = counted(story.state.snapshot)
    fork = story.state.fork()
    assert counted(fork.snapshot) == before
    original, story.state, story.draw = story.state, fork, cast(st.DrawFn, data.draw)
    for _ in range(6):
        story.step()
    assert counted(fork.snapshot) == counted(fresh(fork))
    assert counted(original.snapshot) == before == counted(fresh(original))


def test_a_host_port_stays_taken_while_one_of_two_holders_remains() -> None:
    state = State()
    state.replace("Node", [a_node("n0")])
    state.replace("Pod", [a_pod(name, node="n0", host_port=80) for name in ("a", "b")])
    assert Scheduler(state.snapshot).decide(a_pod("c", host_port=80)).feasible == ()
    state.apply("DELETED", a_pod("a", node="n0", host_port=80))
    assert Scheduler(state.snapshot).decide(a_pod("c", host_port=80)).feasible == ()
    state.apply("DELETED", a_pod("b", node="n0", host_port=80))
    assert Scheduler(state.snapshot).decide(a_pod("c", host_port=80)).feasible == ("n0",)


def test_a_change_no_decision_reads_compiles_nothing_anew() -> None:
    state = State()
    state.replace("Node", [a_node("n0")])
    state.replace("Namespace", [Namespace(metadata=ObjectMeta(name="default"))])
    epoch = state.snapshot.epoch
    state.apply("MODIFIED", Namespace(metadata=ObjectMeta(name="default", annotations={"seen": "today"})))
    state.apply("MODIFIED", a_node("n0"))
    state.apply("ADDED", a_pod("a", node="n0"))
    assert state.snapshot.epoch is epoch


def test_owners_are_found_whatever_they_own() -> None:
    state = State()
    pod = a_pod("a")
    pod.metadata.owner_references = [OwnerReference(name="web", kind="ReplicaSet", uid="7", controller=True)]
    state.apply("ADDED", pod)
    assert state.owners.owned_by("7", PODS) == [Key("default", "a")]
    assert state.owners.owned_by("7", SERVICES) == []
    state.apply("DELETED", pod)
    assert state.owners.owned_by("7", PODS) == []
    assert state.owners.by_owner == {}


def test_templates_nobody_uses_any_more_are_dropped_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wukong.state.live_snapshot._SPARE_TEMPLATES", 10)
    state = State()
    state.replace("Node", [a_node("n0", pods="3")])
    state.apply("ADDED", a_pod("waiting"))
    state.assume(Key("default", "waiting"), "n0", 0.0, TTL)
    for number in range(40):
        state.apply("ADDED", a_pod("a", labels={"build": str(number)}, node="n0"))
        assert len(state.snapshot.table) <= 10 + 2 * 2 + 1
    assert counted(state.snapshot) == counted(fresh(state))
    assert sorted(state.snapshot.pods) == ["default/a", "default/waiting"]


def test_a_pod_keeps_its_own_start_while_its_node_is_away() -> None:
    """Look-alikes share a template; what is not part of it must not be shared with it."""
    state = State()
    state.replace("Node", [a_node("n0"), a_node("n1")])
    state.replace("Pod", [a_pod("a", node="n0", start="2026-01-01T00:00:00Z"), a_pod("b", node="n1")])
    before = counted(state.snapshot)
    state.apply("DELETED", a_node("n1"))
    assert "default/b" in state.snapshot.stray
    state.apply("ADDED", a_node("n1"))
    assert counted(state.snapshot) == before


def a_resized_pod(container: str, cpu: str) -> Pod:
    """A pod on n0 whose container and sidecar ask for a cpu each. One of them has `cpu` by the status, if that says."""
    pod = a_pod("a", node="n0", cpu="1")
    asking = ResourceRequirements(requests={"cpu": "1"})
    pod.spec.init_containers = [Container(name="sidecar", resources=asking, restart_policy="Always")]
    statuses = [ContainerStatus(name=container, resources=ResourceRequirements(requests={"cpu": cpu}))] if cpu else []
    of_sidecar = container == "sidecar"
    pod.status = PodStatus(
        container_statuses=[] if of_sidecar else statuses, init_container_statuses=statuses if of_sidecar else []
    )
    return pod


@pytest.mark.parametrize("container", ["main", "sidecar"])
def test_a_resize_in_place_that_only_the_status_shows_is_counted(container: str) -> None:
    """While a container is made smaller it has more than its spec asks for; nothing but its status says so."""
    state = State()
    state.replace("Node", [a_node("n0", cpu="4")])
    waiting = a_pod("b", cpu="2")
    fits = []
    for cpu in ("", "3", "2", "1", "3", ""):
        state.apply("MODIFIED", a_resized_pod(container, cpu))
        fits.append(bool(Scheduler(state.snapshot).decide(waiting).feasible))
        assert counted(state.snapshot) == counted(fresh(state))
    assert fits == [True, False, False, True, False, True]
