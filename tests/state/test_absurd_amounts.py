"""What anybody may ask for: amounts saturate, sums of them too, and no object leaves the mirror half changed."""

from __future__ import annotations

import random

import msgspec
import pytest

from builders import a_node, a_pod
from wukong.api.core import Node, Pod
from wukong.api.objects import Objects
from wukong.api.quantity import LARGEST_AMOUNT, parse_quantity, scheduler_amount
from wukong.api.resources import Key
from wukong.api.unreadable import Unreadable
from wukong.engine import Snapshot
from wukong.engine.requests import read_requests
from wukong.state import State

ABSURD = ("9E", "8Ei", "7Ei", "1e60", "99999999999999999999")


def free_of(snapshot: Snapshot, node: str, resource: str) -> int:
    line, row = snapshot.lines[resource], snapshot.row_of[node]
    return int(snapshot.room[line, row] - snapshot.load[line, row])


def exact_free(pods: list[Pod], room: int, resource: str) -> int:
    """What is left by whole numbers of any size, capped at the end."""
    taken = sum(read_requests(pod).taken.get(resource, 0) for pod in pods)
    return room - min(taken, LARGEST_AMOUNT)


def absurd_pod(name: str, cpu: str, memory: str = "1Gi", node: str = "n0") -> Pod:
    return a_pod(name, node=node, cpu=cpu, memory=memory)


@pytest.mark.parametrize("cpu", ABSURD)
def test_a_bound_pod_that_asks_for_absurd_amounts_fills_its_node_and_no_other(cpu: str) -> None:
    state = State()
    state.replace("Node", [a_node("n0", memory="16Gi"), a_node("n1", memory="16Gi")])
    state.apply("ADDED", a_pod("usual", node="n0", memory="12Gi"))
    state.apply("ADDED", absurd_pod("absurd", cpu))
    assert free_of(state.snapshot, "n0", "cpu") < 0
    assert free_of(state.snapshot, "n0", "memory") == 3 << 30
    assert free_of(state.snapshot, "n1", "memory") == 16 << 30
    state.apply("DELETED", absurd_pod("absurd", cpu))
    assert free_of(state.snapshot, "n0", "memory") == 4 << 30
    assert state.snapshot.load.min() >= 0


def test_an_absurd_pod_that_is_there_at_the_start_hides_no_other() -> None:
    """In whatever order kinds are listed."""
    nodes = [a_node("n0", memory="16Gi")]
    pods = [absurd_pod("absurd", "9E"), a_pod("usual", node="n0", memory="12Gi")]
    for first, second in ((nodes, pods), (pods, nodes)):
        state = State()
        for listed in (first, second):
            state.replace(type(listed[0]).__name__, listed)
        assert free_of(state.snapshot, "n0", "memory") == 3 << 30
        assert len(state.snapshot.pods) == 2
    assert free_of(Snapshot.of(Objects(nodes=nodes, pods=pods)), "n0", "memory") == 3 << 30


def test_sums_of_absurd_amounts_saturate_and_come_apart_again() -> None:
    chance = random.Random(7)
    for _ in range(2):
        state, placed = State(), dict[str, Pod]()
        state.replace("Node", [a_node("n0", cpu="4", memory="16Gi", pods="10000"), a_node("n1")])
        for step in range(120):
            name = f"p{chance.randrange(30)}"
            if name in placed and chance.random() < 0.5:
                state.apply("DELETED", placed.pop(name))
            elif name not in placed:
                cpu, memory = chance.choice([*ABSURD, "1", "500m"]), chance.choice([*ABSURD, "1Gi", "40Ti"])
                placed[name] = absurd_pod(name, cpu, memory)
                state.apply("ADDED", placed[name])
            if step == 60:
                state.apply("ADDED", a_node("m9"))  # rows move
                state = state.fork()
            pods = list(placed.values())
            snapshot = state.snapshot
            for resource, room in (("cpu", 4_000), ("memory", 16 << 30)):
                assert free_of(snapshot, "n0", resource) == exact_free(pods, room, resource)
            whole = Snapshot.of(Objects(nodes=[a_node("n0", cpu="4", memory="16Gi", pods="10000")], pods=pods))
            assert free_of(whole, "n0", "memory") == free_of(snapshot, "n0", "memory")


def test_hundreds_of_absurd_pods_on_one_node_do_not_wrap() -> None:
    state = State()
    state.replace("Node", [a_node("n0")])
    state.replace("Pod", [absurd_pod(f"p{number}", "9E", "8Ei") for number in range(600)])
    for resource in ("cpu", "memory"):
        assert free_of(state.snapshot, "n0", resource) < 0
    state.replace("Pod", [])
    assert state.snapshot.load.max() == 0


def test_amounts_saturate_in_both_directions() -> None:
    for text in ABSURD:
        nanos = parse_quantity(text)
        assert scheduler_amount("cpu", nanos) == scheduler_amount("memory", nanos) == LARGEST_AMOUNT
        assert scheduler_amount("memory", -nanos) == -LARGEST_AMOUNT


@pytest.mark.parametrize("quantity", ["abc", "", "1" * 5_000, "1e", "0x10"])
def test_an_object_that_the_engine_cannot_count_is_left_out_and_the_others_are_counted(quantity: str) -> None:
    state = State()
    state.replace("Node", [a_node("n0", memory="16Gi"), a_node("n1", memory="16Gi")])
    bad = msgspec.convert(msgspec.to_builtins(absurd_pod("bad", "1")), Pod)
    bad.spec.containers[0].resources.requests["cpu"] = quantity
    changes = state.replace("Pod", [a_pod("a", node="n0", memory="1Gi"), bad, a_pod("b", node="n0", memory="1Gi")])
    assert [change.key.name for change in changes] == ["a", "b"]
    assert free_of(state.snapshot, "n0", "memory") == 14 << 30
    unreadable = state.get_unreadable(Pod, Key("default", "bad"))
    assert unreadable is not None
    assert "expected a quantity" in unreadable.problem
    assert [subject.key for _, subject in state.take_unreported()] == ["default/bad"]
    assert state.take_unreported() == []

    node = a_node("n0", memory="16Gi")
    node.status.allocatable["memory"] = quantity
    (gone,) = state.apply("MODIFIED", node)
    assert gone.type == "DELETED"
    assert list(state.snapshot.row_of) == ["n1"]
    assert isinstance(state.get_unreadable(Node, Key("", "n0")), Unreadable)
    state.apply("MODIFIED", a_node("n0", memory="16Gi"))
    assert free_of(state.snapshot, "n0", "memory") == 14 << 30


def test_the_largest_amount_fits_into_64_bits_after_what_scores_do_with_it() -> None:
    """They multiply by 100 before they divide, and add what is asked for to what is taken."""
    assert LARGEST_AMOUNT * 100 < 2**63
    assert LARGEST_AMOUNT >= 2**56, "a node may have 64 PiB"
