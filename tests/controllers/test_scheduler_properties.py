"""What holds of the scheduler controller in any cluster, whatever happens: above all, nobody is forgotten."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import random_clusters
from scheduler_world import World
from wukong.actions import Action, Bind, Delete, Note, Patch
from wukong.api.core import Node, Pod
from wukong.engine import Scheduler as Engine

LATE = 20.0  # seconds; longer than any backoff, much shorter than five minutes
WAITING = [f"wait-{number}" for number in range(6)]


@st.composite
def histories(draw: st.DrawFn) -> World:
    """A cluster with pods that wait, to which a few things happen, and in which a few actions fail."""
    world = World()
    objects = draw(random_clusters.clusters())
    for kind in ("namespaces", "services", "replica_sets", "persistent_volumes", "persistent_volume_claims", "nodes"):
        world.put(*getattr(objects, kind))
    world.put(*objects.pods, *(draw(random_clusters.pods(name)) for name in WAITING))
    world.fails = draw(st.lists(st.sampled_from([Bind, Patch, Delete]), max_size=3))
    world.settle(draw(st.sampled_from([0.0, 1.0])))
    for number in range(draw(st.integers(0, 5))):
        happen(world, draw, number)
        world.settle(draw(st.sampled_from([0.0, 0.5, 3.0])))
    return world


def happen(world: World, draw: st.DrawFn, number: int) -> None:
    pods = [pod for pod in world.state.all(Pod) if pod.spec.node_name]
    event = draw(st.sampled_from(["node", "new node", "pod gone", "relabelled", "new pod"]))
    if event == "node":
        node = draw(st.sampled_from(world.state.all(Node)))
        other = draw(random_clusters.nodes(node.metadata.name))
        other.metadata.labels = node.metadata.labels  # of others' anti-affinity only pods are asked, as in Kubernetes
        world.put(other)
    elif event == "new node":
        world.put(draw(random_clusters.nodes(f"new-{number}")))
    elif event == "new pod":
        world.put(draw(random_clusters.pods(f"more-{number}")))
    elif pods:
        pod = draw(st.sampled_from(pods))
        if event == "pod gone":
            world.end("Pod", pod.metadata.name, pod.metadata.namespace)
        else:
            labels = {"app": draw(st.sampled_from(random_clusters.APPS))}
            world.put(msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, labels=labels)))


def waiting(world: World) -> list[Pod]:
    return [pod for pod in world.state.all(Pod) if not pod.spec.node_name and not pod.is_terminating]


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(histories())
def test_nobody_waits_who_would_fit_and_who_waits_is_told_why(world: World) -> None:
    world.settle(LATE)
    check_that_who_waits_is_told_why(world)
    if any(pod.status.nominated_node_name for pod in waiting(world)):
        return  # room may be kept
    engine = Engine(world.state.snapshot)
    for pod in waiting(world):
        decision = engine.decide(pod)
        assert decision.error or not decision.feasible, (pod.key, decision.feasible, world.notes())


def check_that_who_waits_is_told_why(world: World) -> None:
    for pod in waiting(world):
        (condition,) = [entry for entry in pod.status.conditions if entry.type == "PodScheduled"]
        assert condition.status == "False"
        last = [note for note in world.notes("FailedScheduling") if note.key.name == pod.metadata.name][-1]
        assert condition.message == last.text or len(condition.message) > 1024


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(histories())
def test_every_pod_is_bound_at_most_once_and_to_a_node_that_is_there(world: World) -> None:
    world.settle(LATE)
    bound = [action.key for action in world.done if isinstance(action, Bind)]
    assert len(bound) == len(set(bound))
    known = {node.metadata.name for node in world.state.all(Node)}
    assert all(action.node in known for action in world.done if isinstance(action, Bind))


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(histories())
def test_who_is_driven_out_was_lower_and_told_so_first(world: World) -> None:
    world.settle(LATE)
    for position, action in enumerate(world.done):
        if isinstance(action, Delete):
            marks = [entry for entry in world.done[:position] if _marks(entry, action)]
            assert marks
    preempted = {note.key for note in world.notes("Preempted")}
    assert {action.key for action in world.done if isinstance(action, Delete)} == preempted


def _marks(action: Action, victim: Delete) -> bool:
    if not isinstance(action, Patch) or action.key != victim.key or isinstance(action, Note):
        return False
    return any(entry["type"] == "DisruptionTarget" for entry in action.patch.body["status"].get("conditions", ()))
