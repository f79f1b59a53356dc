"""The snapshot keeps every index current: what goes in comes out, forks are apart, updates equal a fresh build."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import a_node, a_pod, apart_from, rather_near, spread_over
from random_clusters import Case, cases, nodes, pods
from wukong.api.core import Pod
from wukong.api.objects import Objects
from wukong.engine import Scheduler, Snapshot
from wukong.engine.facts import Facts
from wukong.engine.nodes import NodeRow


def fingerprint(snapshot: Snapshot) -> dict[str, Any]:
    """Everything the snapshot knows, in a form that compares bit for bit."""
    snapshot.ensure_lines(())
    return {
        "nodes": [row.name for row in snapshot.rows],
        "load": snapshot.load.tobytes(),
        "room": snapshot.room.tobytes(),
        "pods": {key: (placed.template.number, placed.row, placed.start) for key, placed in snapshot.pods.items()},
        "on_row": {row: list(keys) for row, keys in sorted(snapshot.on_row.items())},
        "ports": {row: sorted(ports) for row, ports in sorted(snapshot.ports.items())},
        "placed": {number: dict(sorted(rows.items())) for number, rows in sorted(snapshot.placed.items())},
        "placed_in": {namespace: sorted(numbers) for namespace, numbers in sorted(snapshot._placed_in.items())},
        "stray": sorted(snapshot.stray),
    }


def decide_about(snapshot: Snapshot, pod: Pod) -> tuple[Any, ...]:
    """What a view of this pod says about every node."""
    view = Scheduler(snapshot).view_of(pod)
    view.sync()
    return view.feasible.tolist(), np.where(view.feasible, view.total, 0).tolist()


@pytest.mark.slow
@settings(max_examples=60)
@given(cases(), st.lists(pods("extra"), min_size=1, max_size=4))
def test_assume_then_forget_restores_the_snapshot_bit_for_bit(case: Case, newcomers: list[Pod]) -> None:
    snapshot = Snapshot.of(case.objects)
    scheduler = Scheduler(snapshot)
    for pod in (case.pod, *newcomers):
        snapshot.vector_of(snapshot.table.intern(pod))  # a resource never heard of adds a line, whoever asks first
        decide_about(snapshot, pod)
    before, verdicts = fingerprint(snapshot), [decide_about(snapshot, pod) for pod in (case.pod, *newcomers)]
    placed = [f"x/{i}" for i, pod in enumerate(newcomers) if scheduler.place(pod, f"x/{i}") is not None]
    for key in reversed(placed):
        snapshot.forget(key)
    assert fingerprint(snapshot) == before
    assert [decide_about(snapshot, pod) for pod in (case.pod, *newcomers)] == verdicts


@pytest.mark.slow
@settings(max_examples=60)
@given(cases(), st.lists(pods("extra"), min_size=1, max_size=3))
def test_a_fork_is_independent_both_ways(case: Case, newcomers: list[Pod]) -> None:
    snapshot = Snapshot.of(case.objects)
    for pod in newcomers:
        snapshot.vector_of(snapshot.table.intern(pod))
    before = fingerprint(snapshot)
    fork = snapshot.fork()
    assert fingerprint(fork) == before
    for number, pod in enumerate(newcomers):
        Scheduler(fork).place(pod, f"x/{number}")
    for key in list(fork.pods)[:2]:
        fork.forget(key)
    fork.add_nodes(a_node("zz-new"))
    assert fingerprint(snapshot) == before
    changed = fingerprint(fork)
    Scheduler(snapshot).place(newcomers[0], "y/0")
    for key in list(snapshot.pods):
        snapshot.forget(key)
    assert fingerprint(fork) == changed


@pytest.mark.slow
@settings(max_examples=60)
@given(cases(), st.data())
def test_an_incrementally_updated_snapshot_equals_one_built_afresh(case: Case, data: st.DataObject) -> None:
    """Pods come and go, nodes appear, change and vanish; a view compiled at the start is asked all along."""
    give_each_port_once(case.objects)
    snapshot = Snapshot.of(case.objects)
    alive = {node.metadata.name: node for node in case.objects.nodes}
    kept = {pod.key: pod for pod in case.objects.pods}
    for step in range(data.draw(st.integers(1, 6))):
        kind = data.draw(st.sampled_from(["place", "forget", "add node", "change node", "remove node"]))
        if kind == "place":
            pod = data.draw(pods(f"step-{step}"))
            pod.spec.node_name = Scheduler(snapshot).place(pod) or ""
            if pod.spec.node_name:
                kept[pod.key] = pod
        elif kind == "forget" and snapshot.pods:
            key = data.draw(st.sampled_from(sorted(snapshot.pods)))
            snapshot.forget(key)
            del kept[key]
        elif kind in ("add node", "change node"):
            name = data.draw(st.sampled_from(sorted(alive))) if kind == "change node" and alive else f"m{step}"
            alive[name] = data.draw(nodes(name))
            snapshot.add_nodes(alive[name])
        elif kind == "remove node" and alive:
            name = data.draw(st.sampled_from(sorted(alive)))
            del alive[name]
            snapshot.remove_node(name)
        decide_about(snapshot, case.pod)
    fresh = Snapshot.of(Objects(nodes=list(alive.values()), pods=list(kept.values())))
    fresh.set_facts(snapshot.facts)
    assert decide_about(snapshot, case.pod) == decide_about(fresh, case.pod)
    ours, theirs = Scheduler(snapshot).decide(case.pod), Scheduler(fresh).decide(case.pod)
    assert ours.message == theirs.message
    assert loads(snapshot) == loads(fresh)
    assert {key: snapshot.rows[placed.row].name for key, placed in snapshot.pods.items()} == {
        key: fresh.rows[placed.row].name for key, placed in fresh.pods.items()
    }


def give_each_port_once(objects: Objects) -> None:
    """Two holders of one host port on a node are the exception: there kube-scheduler's cache forgets, and so do we."""
    taken: set[tuple[str, int]] = set()
    for pod in objects.pods:
        for container in pod.spec.containers:
            container.ports = [port for port in container.ports if (pod.spec.node_name, port.host_port) not in taken]
            taken |= {(pod.spec.node_name, port.host_port) for port in container.ports}


def test_when_one_of_two_holders_of_a_host_port_goes_the_port_counts_as_free() -> None:
    snapshot = Snapshot([a_node("n1")])
    for name in ("one", "two"):
        snapshot.assume(f"default/{name}", a_pod(name, host_port=80), "n1")
    assert Scheduler(snapshot).decide(a_pod("three", host_port=80)).feasible == ()
    snapshot.forget("default/one")
    assert Scheduler(snapshot).decide(a_pod("three", host_port=80)).feasible == ("n1",)


def test_a_pod_that_starts_leaves_the_snapshot_as_if_it_had_been_taken_away_and_put_back() -> None:
    snapshots = [Snapshot([a_node("n1")]) for _ in range(2)]
    for snapshot in snapshots:
        for name in ("one", "two", "three"):
            snapshot.assume(f"default/{name}", a_pod(name, cpu="1", host_port=80), "n1")
    started, replaced = snapshots
    started.set_start("default/one", "2026-05-01T08:00:00Z")
    before = replaced.forget("default/one")
    replaced.assume_template("default/one", before.template, before.row, "2026-05-01T08:00:00Z")
    assert fingerprint(started) == fingerprint(replaced)
    assert list(started.pods) == list(replaced.pods)


def test_no_view_is_brought_up_to_date_because_a_pod_starts() -> None:
    snapshot = Snapshot([a_node("n1")])
    snapshot.assume("default/one", a_pod("one"), "n1")
    changes = len(snapshot.log)
    snapshot.set_start("default/one", "2026-05-01T08:00:00Z")
    assert len(snapshot.log) == changes


def loads(snapshot: Snapshot) -> dict[str, list[int]]:
    """Per resource, what each node holds. Lines that are all zero say nothing; what no node has room for is counted
    together, whether a node once had or not."""
    held: dict[str, Any] = {}
    for name, line in {"pods": 0, **snapshot.lines}.items():
        if snapshot.load[line].any():
            offered = name if snapshot.room[line].any() else ""
            held[offered] = held.get(offered, 0) + snapshot.load[line]
    return {name: load.tolist() for name, load in held.items()}


def test_finished_pods_hold_nothing_and_pods_without_a_node_wait() -> None:
    done = a_pod("done", node="n1")
    done.status.phase = "Succeeded"
    objects = Objects(nodes=[a_node("n1")], pods=[done, a_pod("waiting"), a_pod("lost", node="n9")])
    snapshot = Snapshot.of(objects)
    assert snapshot.pods == {}
    assert list(snapshot.pending) == ["default/waiting"]
    assert list(snapshot.stray) == ["default/lost"]


def test_a_pod_on_an_unknown_node_counts_once_the_node_appears() -> None:
    snapshot = Snapshot.of(Objects(nodes=[a_node("n1")], pods=[a_pod("early", node="n0", cpu="3")]))
    snapshot.add_nodes(a_node("n0", cpu="4"))
    assert Scheduler(snapshot).place(a_pod("next", cpu="2")) == "n1"
    assert not snapshot.stray


def test_placing_the_same_pod_twice_is_refused() -> None:
    snapshot = Snapshot([a_node()])
    snapshot.assume("default/web-1", a_pod(), "node-a")
    with pytest.raises(KeyError, match="already placed"):
        snapshot.assume("default/web-1", a_pod(), "node-a")


def test_changing_the_facts_is_seen_by_pods_compiled_before() -> None:
    snapshot = Snapshot([a_node("n1", zone="a"), a_node("n2", zone="b")])
    pod = a_pod(affinity=apart_from("db", "topology.kubernetes.io/zone"))
    assert pod.spec.affinity is not None
    assert pod.spec.affinity.pod_anti_affinity is not None
    pod.spec.affinity.pod_anti_affinity.required[0].namespace_selector = None
    pod.spec.affinity.pod_anti_affinity.required[0].namespaces = ["other"]
    snapshot.assume("other/db-0", a_pod("db-0", namespace="other", app="db"), "n1")
    assert Scheduler(snapshot).decide(pod).feasible == ("n2",)
    snapshot.set_facts(Facts(namespaces={"other": {}}))
    assert Scheduler(snapshot).decide(pod).feasible == ("n2",)


def test_many_compiled_pods_are_kept_current_or_compiled_again() -> None:
    snapshot = Snapshot([a_node(f"n{i}", zone="ab"[i % 2]) for i in range(4)])
    scheduler = Scheduler(snapshot)
    variants = [
        a_pod(f"p{i}", app=f"app-{i}", affinity=rather_near(f"app-{i - 1}"), spread=[spread_over(app=f"app-{i}")])
        for i in range(600)
    ]
    for pod in variants:
        decide_about(snapshot, pod)
    scheduler.place(variants[0])
    assert len(snapshot.views) <= 512
    assert decide_about(snapshot, variants[1]) == decide_about(snapshot.fork(), variants[1])


def test_a_pod_may_bring_a_resource_no_node_has() -> None:
    snapshot = Snapshot([a_node("n0")])
    snapshot.assume("default/a", a_pod("a", requests={"example.com/gpu": "1"}), "n0")
    assert snapshot.load[snapshot.line_of("example.com/gpu")].tolist() == [1]
    assert Scheduler(snapshot).place_many(a_pod("b", requests={"example.com/tpu": "1"}), 1) == []
    snapshot.fork().forget("default/a")


def test_what_no_node_offers_costs_no_line_and_is_counted_once_one_does() -> None:
    snapshot = Snapshot([a_node("n0")])
    for number in range(100):
        requests = {f"example.com/r{number}-{name}": "2" for name in range(50)}
        snapshot.assume(f"default/p{number}", a_pod(f"p{number}", requests={"cpu": "1m", **requests}), "n0")
    lines, fork = len(snapshot.lines), snapshot.fork()
    assert snapshot.load.shape[0] < 12
    for other in (snapshot, fork):
        node = a_node("n0")
        node.status.allocatable["example.com/r7-7"] = "3"
        other.put_row(NodeRow(node))
        assert len(other.lines) == lines + 1
        assert other.load[other.line_of("example.com/r7-7")].tolist() == [2]
        decision = Scheduler(other).decide(a_pod("next", requests={"example.com/r7-7": "2"}))
        assert (decision.feasible, decision.message) == (
            (),
            "0/1 nodes are available: 1 Insufficient example.com/r7-7. no new claims to deallocate, preemption: "
            "0/1 nodes are available: 1 No preemption victims found for incoming pod.",
        )
        assert Scheduler(other).place(a_pod("last", requests={"example.com/r7-7": "1"})) == "n0"
    snapshot.forget("default/p7")
    assert Scheduler(snapshot).place(a_pod("again", requests={"example.com/r7-7": "2"})) == "n0"


def test_other_facts_leave_what_only_nodes_decide() -> None:
    snapshot = Snapshot([a_node("n1", labels={"zone": "a"}), a_node("n2", labels={"zone": "b"})])
    zones, images, epoch = snapshot.column("zone"), snapshot.index_images(), snapshot.epoch
    snapshot.set_facts(Facts())
    assert snapshot.column("zone") is zones
    assert snapshot.index_images() is images
    assert snapshot.epoch is not epoch
    snapshot.remove_node("n2")
    assert snapshot.column("zone").size == 1


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["n1", "n2"]), st.booleans()), max_size=12))
def test_templates_are_known_by_the_namespaces_of_the_pods_placed(changes: list[tuple[str, str, bool]]) -> None:
    snapshot = Snapshot([a_node("n1"), a_node("n2")])
    for number, (namespace, node, is_forked) in enumerate(changes):
        key = f"{namespace}/{node}"
        if key in snapshot.pods:
            snapshot.forget(key)
        else:
            snapshot.assume(key, a_pod(node, namespace=namespace, cpu=str(number)), node)
        snapshot = snapshot.fork() if is_forked else snapshot
        expected: dict[str, set[int]] = {}
        for template in snapshot.list_placed_templates():
            expected.setdefault(template.namespace, set()).add(template.number)
        assert {name: set(numbers) for name, numbers in snapshot._placed_in.items()} == expected
