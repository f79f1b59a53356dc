"""The rule packing: a pod goes where it strands least of what is left."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import a_node, a_pod
from policies import a_fleet, a_plan, a_rule, scores
from wukong.api.core import Pod, Quantities
from wukong.placement.fleet import Fleet
from wukong.placement.rules import BUILT_IN

GIB = 1 << 30
GPU = "nvidia.com/gpu"
PACKING = BUILT_IN["packing"]


def nodes_of(*free: tuple[int, int, int], gpus: int = 4) -> Fleet:
    """Nodes a, b, ... of 8 cpus, 32 GiB and so many GPUs, of which this is free: cores, GiB, GPUs."""
    extra: Quantities | None = {GPU: str(gpus)} if gpus else None
    nodes = [a_node(chr(ord("a") + number), cpu="8", memory="32Gi", extra=extra) for number in range(len(free))]
    return a_fleet(
        *nodes,
        free={
            "cpu": [1000 * cores for cores, _, _ in free],
            "memory": [GIB * gib for _, gib, _ in free],
            GPU: [count for _, _, count in free],
        },
    )


def points(fleet: Fleet, pod: Pod, **config: Any) -> list[float | None]:
    answer = PACKING.points(msgspec.convert(config, PACKING.config), fleet, pod)
    return [None if math.isnan(value) else round(value, 3) for value in answer.tolist()]


@pytest.mark.parametrize(
    ("pod", "free", "expected"),
    [
        # needs memory: fills the node whose cpu is nearly gone, and not the one whose memory is
        (a_pod(cpu="1", memory="8Gi"), [(1, 16, 0), (8, 8, 0), (8, 32, 0)], [100, 0, 0]),
        # in balance on either
        (a_pod(cpu="1", memory="4Gi"), [(8, 32, 0), (4, 16, 0)], [100, 100]),
        # no room: no opinion
        (a_pod(cpu="2", memory="1Gi"), [(1, 32, 0), (8, 32, 0)], [None, 100]),
        (a_pod(cpu="16", memory="1Gi"), [(1, 32, 0), (8, 32, 0)], [None, None]),
    ],
)
def test_points_go_where_little_is_stranded(
    pod: Pod, free: list[tuple[int, int, int]], expected: list[float | None]
) -> None:
    assert points(nodes_of(*free, gpus=0), pod) == expected


def test_a_pod_without_a_gpu_is_kept_off_nodes_with_free_ones() -> None:
    fleet = nodes_of((8, 32, 4), (8, 32, 0))
    assert points(fleet, a_pod(cpu="1", memory="4Gi")) == [0, 100]


def test_a_resource_that_nobody_names_does_not_count() -> None:
    fleet = nodes_of((8, 32, 4), (8, 32, 0))
    assert points(fleet, a_pod(cpu="1", memory="4Gi"), resources={"cpu": 1, "memory": 1}) == [100, 100]
    assert points(fleet, a_pod(cpu="1", memory="4Gi"), resources={"cpu": 1, "gpu": 1}) == [0, 100]
    assert points(fleet, a_pod(cpu="1", memory="4Gi"), resources={"cpu": 1, "memory": 1, GPU: 0}) == [100, 100]


def test_nodes_that_have_less_than_nothing_and_pods_that_ask_for_nothing() -> None:
    """Overcommitted nodes, and a pod that may go anywhere."""
    nothing = a_pod(cpu=None, memory=None)
    assert points(nodes_of((-1, -4, 0), (8, 32, 0)), nothing) == [100, 100]
    assert points(a_fleet(), a_pod(cpu="1")) == []
    assert points(a_fleet(a_node("a"), a_node("b")), nothing) == [100, 100]


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"resources": {"cpu": 1}}, "resources: expected at least two above 0. One alone strands nothing."),
        ({"resources": {"cpu": 1, "memory": 0}}, "resources: expected at least two above 0."),
        ({"resources": {"cpu": -1, "memory": 1, "gpu": 1}}, "resources.cpu: expected how much it counts, 0 or more"),
        ({"resources": {"cpu": 1, "memory": 1, "fpga": 1}}, "resources.fpga: expected cpu, memory, storage, gpu or an"),
        ({"resources": {"cpu": 1, "memory": math.nan, "gpu": 1}}, "resources.memory: expected how much it counts"),
    ],
)
def test_what_makes_no_sense_is_told(config: dict[str, Any], problem: str) -> None:
    (found,) = PACKING.problems(msgspec.convert(config, PACKING.config), "score")
    assert found.startswith(problem)


def test_a_filter_refuses_nodes_where_too_much_would_be_stranded_unless_the_pod_makes_it_less() -> None:
    """Stranded with the pod: 12.5 %, where it was 18.75; 43.75 %, where it was 37.5; 6.25 %, where nothing was."""
    fleet, pod = nodes_of((1, 16, 0), (8, 8, 0), (8, 32, 0), gpus=0), a_pod(cpu="1", memory="8Gi")
    for limit, expected in (("50%", []), ("43.75%", []), ("43%", ["b"]), ("5%", ["b", "c"]), ("0%", ["b", "c"])):
        mask = PACKING.refuses(msgspec.convert({"maxStranded": limit}, PACKING.config), fleet, pod)
        assert [name for name, is_refused in zip(fleet.names, mask.tolist(), strict=True) if is_refused] == expected


def test_a_policy_scores_by_it() -> None:
    fleet = nodes_of((1, 16, 0), (8, 8, 0), gpus=0)
    assert scores(a_plan(rules=[a_rule("packing")]), fleet, a_pod(cpu="1", memory="8Gi")) == {"a": 10, "b": 0}


def test_one_plan_answers_for_each_pod_anew() -> None:
    """What is stranded depends on the pod: nothing is kept from one to the other."""
    plan, fleet = a_plan(rules=[a_rule("packing")]), nodes_of((2, 16, 0), (8, 8, 0), gpus=0)
    wide, tall = a_pod(cpu="1", memory="8Gi"), a_pod(cpu="2", memory="1Gi")
    assert [scores(plan, fleet, pod) for pod in (wide, tall)] == [{"a": 10, "b": 0}, {"a": 0, "b": 10}]


def stranded(left: list[float]) -> float:
    return sum(share - min(left) for share in left) / len(left)


rooms = st.tuples(st.integers(0, 8), st.integers(0, 32), st.integers(0, 4))


@given(st.lists(rooms, min_size=1, max_size=8), st.integers(0, 8), st.integers(0, 32), st.integers(0, 4))
def test_the_best_node_is_one_on_which_the_least_is_stranded_in_all(
    free: list[tuple[int, int, int]], cores: int, gib: int, gpus: int
) -> None:
    pod = a_pod(cpu=str(cores), memory=f"{gib}Gi", requests={GPU: str(gpus)})
    wholes, needed = (8, 32, 4), (cores, gib, gpus)

    def total(chosen: int) -> float:
        """What is stranded in the whole cluster with the pod on this node."""
        rooms_left = [
            [left - need for left, need in zip(room, needed, strict=True)] if number == chosen else room
            for number, room in enumerate(free)
        ]
        return sum(stranded([left / whole for left, whole in zip(room, wholes, strict=True)]) for room in rooms_left)

    fits = [number for number, room in enumerate(free) if all(map(int.__ge__, room, needed))]
    answer = points(nodes_of(*free), pod)
    assert [number for number, value in enumerate(answer) if value is not None] == fits
    totals = {number: round(total(number), 6) for number in fits}
    for number in fits:
        assert (answer[number] == 100) == (totals[number] == min(totals.values()))
