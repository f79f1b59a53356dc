"""onDemandBase and spotPercent: how many pods of an owner are on demand, whoever comes and goes in which order."""

from __future__ import annotations

from math import ceil, floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies import policy_of
from wukong.placement.compile import Plan, compile_policy
from wukong.placement.pods.split import ON_DEMAND, SPOT, CapacityCounts, divide, find_misplaced, split
from wukong.placement.rules import BUILT_IN

bases = st.none() | st.integers(0, 40) | st.integers(0, 100).map(lambda percent: f"{percent}%")
shares = st.none() | st.integers(0, 100)
sizes = st.integers(0, 300)


def a_split_plan(base: int | str | None = None, share: int | None = None) -> Plan:
    numbers = {"onDemandBase": base, "spotPercent": share}
    capacity = {"strategy": "spot-first", **{name: value for name, value in numbers.items() if value is not None}}
    return compile_policy(policy_of({"capacity": capacity}), BUILT_IN)


def base_of(base: int | str | None, total: int) -> int:
    """As the field is documented, without Share."""
    if isinstance(base, str):
        return ceil(total * int(base[:-1]) / 100 - 1e-9)
    return min(base or 0, total)


def count(capacities: list[str]) -> CapacityCounts:
    return CapacityCounts(capacities.count(ON_DEMAND), capacities.count(SPOT))


@pytest.mark.parametrize(
    ("base", "share", "expected"),
    [
        (0, None, "ssssssssss"),
        (2, None, "oossssssss"),
        (None, 50, "ososososos"),
        (None, 70, "ossossosss"),
        (None, 0, "oooooooooo"),
        (None, 100, "ssssssssss"),
        (2, 50, "oossososos"),
        (100, 50, "oooooooooo"),
        ("30%", None, "ossossosss"),
        ("100%", None, "oooooooooo"),
        ("30%", 50, "ososososos"),  # the larger of the two: 50 % are on demand
    ],
)
def test_ten_pods_one_after_the_other(base: int | str | None, share: int | None, expected: str) -> None:
    plan, capacities = a_split_plan(base, share), list[str]()
    for _ in range(10):
        capacities.append(split(plan, count(capacities)))
    assert "".join(capacity[0] for capacity in capacities) == expected


def test_a_plan_without_numbers_decides_nothing() -> None:
    assert split(a_split_plan(), CapacityCounts(3, 4)) == ""
    assert find_misplaced(a_split_plan(), [SPOT, ON_DEMAND]) == []


@given(bases.filter(lambda base: base is not None), shares, sizes)
def test_there_are_never_fewer_on_demand_than_the_base(base: int | str, share: int | None, total: int) -> None:
    rule = a_split_plan(base, share).split
    assert rule is not None
    assert divide(rule, total).on_demand >= base_of(base, total)


@given(shares.filter(lambda share: share is not None), sizes)
def test_without_a_base_the_share_is_met_within_one_pod_and_never_exceeded(share: int, total: int) -> None:
    rule = a_split_plan(None, share).split
    assert rule is not None
    spot = divide(rule, total).spot
    assert spot == floor(total * share / 100 + 1e-9)
    assert 0 <= total * share / 100 - spot < 1


@given(bases, shares, sizes)
def test_one_pod_more_is_one_more_on_one_side(base: int | str | None, share: int | None, total: int) -> None:
    rule = a_split_plan(base, share).split
    if rule is None:
        return
    before, after = divide(rule, total), divide(rule, total + 1)
    assert sorted((after.on_demand - before.on_demand, after.spot - before.spot)) == [0, 1]
    assert before.total == total


@given(bases, shares, sizes, sizes)
def test_a_pod_never_makes_a_group_worse_and_a_deficit_is_filled_first(
    base: int | str | None, share: int | None, on_demand: int, spot: int
) -> None:
    """However the group came to be as it is: pods of any side may have gone."""
    plan, counts = a_split_plan(base, share), CapacityCounts(on_demand, spot)
    if plan.split is None:
        return
    is_spot = split(plan, counts) == SPOT
    after = CapacityCounts(on_demand + (not is_spot), spot + is_spot)
    wanted, wanted_after = divide(plan.split, counts.total), divide(plan.split, after.total)
    assert abs(after.on_demand - wanted_after.on_demand) <= abs(on_demand - wanted.on_demand)
    if on_demand < wanted.on_demand:
        assert not is_spot
    if spot < wanted.spot:
        assert is_spot


@given(bases, shares, sizes)
def test_any_number_of_arrivals_comes_out_exact(base: int | str | None, share: int | None, total: int) -> None:
    plan = a_split_plan(base, share)
    if plan.split is None:
        return
    counts = CapacityCounts()
    for _ in range(total):
        is_spot = split(plan, counts) == SPOT
        counts = CapacityCounts(counts.on_demand + (not is_spot), counts.spot + is_spot)
        assert counts == divide(plan.split, counts.total)


@given(bases, shares, st.lists(st.sampled_from([SPOT, ON_DEMAND]), max_size=60))
def test_moving_the_misplaced_makes_a_group_right_and_moves_no_more(
    base: int | str | None, share: int | None, capacities: list[str]
) -> None:
    plan = a_split_plan(base, share)
    if plan.split is None:
        return
    wrong = find_misplaced(plan, capacities)
    wanted = divide(plan.split, len(capacities))
    assert len(wrong) == abs(count(capacities).on_demand - wanted.on_demand)
    sides = {capacities[position] for position in wrong}
    assert len(sides) <= 1
    moved = [
        (SPOT if capacity == ON_DEMAND else ON_DEMAND) if position in wrong else capacity
        for position, capacity in enumerate(capacities)
    ]
    assert count(moved) == wanted
    assert find_misplaced(plan, moved) == []


@given(bases, shares, st.lists(st.sampled_from([SPOT, ON_DEMAND]), max_size=60))
def test_the_first_pods_stay(base: int | str | None, share: int | None, capacities: list[str]) -> None:
    wrong = find_misplaced(a_split_plan(base, share), capacities)
    if wrong:
        side = capacities[wrong[0]]
        of_side = [position for position, capacity in enumerate(capacities) if capacity == side]
        assert wrong == of_side[-len(wrong) :]
