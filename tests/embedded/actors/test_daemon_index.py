"""What a DaemonSet does and says by the marks of its nodes is what a walk over all nodes and pods makes of them."""

from __future__ import annotations

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from embedded.actors.availability_walk import seconds_to_next_available
from embedded.actors.daemon_walk import DaemonWalk
from embedded.actors.random_pods import START, TIMES
from wukong.embedded.actors.daemon_set.daemon_index import DaemonIndex, Daemons
from wukong.embedded.actors.daemon_set.sync import DaemonSetSync
from wukong.embedded.world.objects import DaemonSet, Pod, read
from wukong.ports import Document
from wukong.state import State

NODES, REVISIONS = ("n1", "n2", "n3", "n4"), ("old", "new")
Step = tuple[str, str, Document]  # what a watch brings: event, kind, document


def a_daemon_set(**spec: object) -> Document:
    meta = {"name": "web", "namespace": "shop", "uid": "ds"}
    return {"metadata": meta, "spec": {"selector": {"matchLabels": {}}, "template": {"spec": {}}, **spec}}


STRATEGIES: st.SearchStrategy[Document] = st.sampled_from([
    {},
    {"updateStrategy": {"type": "OnDelete"}},
    {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}},
    {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}},
    {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": "50%"}}},
])  # fmt: skip
TEMPLATES: st.SearchStrategy[Document] = st.sampled_from([{}, {"template": {"spec": {"nodeSelector": {"pool": "a"}}}}])


@st.composite
def daemon_sets(draw: st.DrawFn) -> Document:
    spec = {**draw(STRATEGIES), **draw(TEMPLATES), "minReadySeconds": draw(st.sampled_from((0, 0, 6)))}
    return a_daemon_set(**spec)


@st.composite
def nodes(draw: st.DrawFn) -> Document:
    taints = [{"key": "x", "effect": draw(st.sampled_from(("NoSchedule", "NoExecute", "PreferNoSchedule")))}]
    meta = {"name": draw(st.sampled_from(NODES)), "labels": {"pool": draw(st.sampled_from("ab"))}}
    return {"metadata": meta, "spec": {"taints": taints} if draw(st.booleans()) else {}}


@st.composite
def daemon_pods(draw: st.DrawFn) -> Document:
    name, node = draw(st.sampled_from("abcdef")), draw(st.sampled_from(NODES))
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "web", "uid": "ds", "controller": True}
    meta: Document = {
        "name": name,
        "namespace": "shop",
        "uid": f"{name}-{draw(st.integers(1, 2))}",
        "creationTimestamp": draw(st.sampled_from(TIMES)),
        "labels": {"controller-revision-hash": draw(st.sampled_from(REVISIONS))},
        "ownerReferences": [owner] if draw(st.integers(0, 6)) else [],
    }
    if draw(st.integers(0, 3)) == 0:
        meta["deletionTimestamp"] = TIMES[-1]
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [field]}]}}
    spec = {"nodeName": node} if draw(st.integers(0, 2)) else {"affinity": {"nodeAffinity": required}}
    ready = {"type": "Ready", "status": draw(st.sampled_from(("True", "True", "False")))}
    ready |= {"lastTransitionTime": draw(st.sampled_from(TIMES))} if draw(st.integers(0, 4)) else {}
    phase = draw(st.sampled_from(("Pending", "Running", "Running", "Running", "Failed")))
    return {"metadata": meta, "spec": spec, "status": {"phase": phase, "conditions": [ready]}}


EVENTS = st.sampled_from(("ADDED", "MODIFIED", "MODIFIED", "DELETED"))
STEPS = st.one_of(
    st.tuples(EVENTS, st.just("Pod"), daemon_pods()),
    st.tuples(EVENTS, st.just("Pod"), daemon_pods()),
    st.tuples(EVENTS, st.just("Node"), nodes()),
    st.tuples(st.just("MODIFIED"), st.just("DaemonSet.apps"), daemon_sets()),
)


def take_in(state: State, step: Step, version: int) -> None:
    event_type, group_kind, document = step
    meta = {**document["metadata"], "resourceVersion": str(version), "generation": version}
    state.apply(event_type, read(group_kind, {**document, "metadata": meta}))  # type: ignore[arg-type]


def draw_number(node: str) -> float:
    return -float(node[1:])  # another order than that of the names


def check_sync(state: State, revision: str, now: float) -> None:
    for daemon_set in state.all(DaemonSet):
        daemons = state.index_of(DaemonIndex).of(daemon_set)
        sync = DaemonSetSync(daemon_set, revision, daemons, state, now, draw_number)
        walk = DaemonWalk(daemon_set, revision, state, now, draw_number)
        assert sync.build_status() == walk.build_status()
        plan, expected = sync.plan(), walk.plan()
        event(f"{bool(expected.pods_to_delete)} {bool(expected.nodes_to_fill)}")
        assert [pod.metadata.uid for pod in plan.pods_to_delete] == [
            pod.metadata.uid for pod in expected.pods_to_delete
        ]
        assert list(plan.nodes_to_fill) == expected.nodes_to_fill
        least = daemon_set.spec.min_ready_seconds
        waits = seconds_to_next_available(walk.owned, least, now)
        assert daemons.seconds_to_next_available(least, now) == waits


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(daemon_sets(), st.lists(st.tuples(STEPS, st.sampled_from(REVISIONS), st.integers(0, 9)), max_size=25), STEPS)
def test_marks_kept_change_by_change_lead_to_what_a_walk_finds(
    daemon_set: Document, steps: list[tuple[Step, str, int]], last: Step
) -> None:
    state, now = State(), START + 1.0
    state.index_of(DaemonIndex)
    take_in(state, ("ADDED", "DaemonSet.apps", daemon_set), 0)
    for version, (step, revision, seconds) in enumerate(steps, 1):
        take_in(state, step, version)
        now += seconds
        if seconds % 3:  # not at every change: what happened meanwhile is looked at together
            check_sync(state, revision, now)
    fork = state.fork()
    take_in(fork, last, len(steps) + 1)  # what happens on one side is nothing to the other
    for revision in REVISIONS:
        check_sync(fork, revision, now)
        check_sync(state, revision, now)


def a_daemon(name: str, node: str, revision: str = "old") -> Document:
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "web", "uid": "ds", "controller": True}
    labels = {"controller-revision-hash": revision}
    meta = {"name": name, "namespace": "shop", "uid": name, "labels": labels, "ownerReferences": [owner]}
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": TIMES[0]}
    status = {"phase": "Running", "conditions": [ready]}
    return {"metadata": {**meta, "creationTimestamp": TIMES[0]}, "spec": {"nodeName": node}, "status": status}


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    ("rolling", "deleted_alone", "filled_alone"),
    [
        ({"maxUnavailable": 1}, ["a"], []),
        ({"maxUnavailable": 0, "maxSurge": 1}, [], ["n1"]),
    ],
    ids=["without surge", "with surge"],
)
def test_two_daemons_of_one_revision_on_a_node_use_up_what_an_update_may_do(
    rolling: Document, deleted_alone: list[str], filled_alone: list[str], revision: str
) -> None:
    """kube-controller-manager's daemon/update.go counts such a node as surging, or as unavailable. It is met where a
    node is gone: elsewhere the second pod is deleted before an update goes on."""
    state = State()
    update_strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    take_in(state, ("ADDED", "DaemonSet.apps", a_daemon_set(updateStrategy=update_strategy)), 1)
    take_in(state, ("ADDED", "Node", {"metadata": {"name": "n1"}}), 2)
    take_in(state, ("ADDED", "Pod", a_daemon("a", "n1")), 3)

    def plan() -> tuple[list[str], list[str]]:
        (daemon_set,) = state.all(DaemonSet)
        daemons = state.index_of(DaemonIndex).of(daemon_set)
        plan = DaemonSetSync(daemon_set, "new", daemons, state, START + 60.0, draw_number).plan()
        return [pod.metadata.name for pod in plan.pods_to_delete], list(plan.nodes_to_fill)

    assert plan() == (deleted_alone, filled_alone)
    take_in(state, ("ADDED", "Pod", a_daemon("b", "gone", revision)), 4)
    take_in(state, ("ADDED", "Pod", a_daemon("c", "gone", revision)), 5)
    assert plan() == ([], [])


def test_a_ready_pod_that_is_gone_is_waited_for_no_longer() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "web", "uid": "ds", "controller": True}
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": TIMES[0]}

    def a_pod(name: str) -> Pod:
        meta = {"name": name, "namespace": "shop", "uid": name, "ownerReferences": [owner]}
        pod = read("Pod", {"metadata": meta, "spec": {"nodeName": "n1"}, "status": {"conditions": [ready]}})
        assert isinstance(pod, Pod)
        return pod

    daemons, now = Daemons(), float(START)
    first, second = a_pod("a"), a_pod("b")
    daemons.add(first)
    daemons.add(second)
    assert daemons.seconds_to_next_available(6, now + 1) == 5
    daemons.remove(first)
    assert daemons.seconds_to_next_available(6, now + 1) == 5
    daemons.remove(second)
    assert daemons.seconds_to_next_available(6, now + 1) is None
    assert daemons.pod_count == 0
