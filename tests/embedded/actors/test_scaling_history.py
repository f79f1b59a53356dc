"""What an autoscaler makes of what it recommended and did lately: windows, policies and bounds, as horizontal.go."""

from __future__ import annotations

import pytest

from wukong.api.autoscaling import ScalingPolicy, ScalingRules
from wukong.embedded.actors.horizontal_autoscaler.scaling_history import Bounds, Recommendation, ScalingHistory

NOW = 10_000.0
WIDE = Bounds(1, 1000)


def a_history(
    recommendations: list[tuple[float, int]] | None = None,
    increases: list[tuple[float, int]] | None = None,
    decreases: list[tuple[float, int]] | None = None,
) -> ScalingHistory:
    history = ScalingHistory()
    history.recommendations = recommendations or []
    history.increases, history.decreases = increases or [], decreases or []
    return history


def words(sized: Recommendation) -> tuple[int, str, str, bool]:
    return sized.replicas, sized.able_to_scale[0], sized.limited[0], sized.is_limited


def rules(*policies: tuple[str, int, int], select: str = "Max", window: int | None = 0) -> ScalingRules:
    """Of policies by type, value and period."""
    return ScalingRules(
        stabilization_window_seconds=window,
        select_policy=select,
        policies=[ScalingPolicy(type=name, value=value, period_seconds=period) for name, value, period in policies],
    )


ANY_UP, ANY_DOWN = rules(("Percent", 10_000, 15)), rules(("Percent", 100, 15))


# Without a behavior ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("current", "wanted", "bounds", "expected"),
    [
        (4, 6, WIDE, (6, "ReadyForNewScale", "DesiredWithinRange", False)),
        (4, 8, WIDE, (8, "ReadyForNewScale", "DesiredWithinRange", False)),
        (4, 9, WIDE, (8, "ReadyForNewScale", "ScaleUpLimit", True)),
        (1, 9, WIDE, (4, "ReadyForNewScale", "ScaleUpLimit", True)),
        (4, 9, Bounds(1, 8), (8, "ReadyForNewScale", "TooManyReplicas", True)),
        (4, 9, Bounds(1, 6), (6, "ReadyForNewScale", "TooManyReplicas", True)),
        (4, 2, Bounds(2, 9), (2, "ReadyForNewScale", "DesiredWithinRange", False)),
        (4, 1, Bounds(2, 9), (2, "ReadyForNewScale", "TooFewReplicas", True)),
    ],
)
def test_it_grows_at_most_twofold_or_to_four_and_stays_within_bounds(
    current: int, wanted: int, bounds: Bounds, expected: tuple[int, str, str, bool]
) -> None:
    assert words(a_history().size(current, wanted, bounds, NOW)) == expected


def test_it_shrinks_to_the_highest_recommendation_of_the_last_five_minutes() -> None:
    late = "ScaleDownStabilized"
    history = a_history([(NOW - 301, 9), (NOW - 300, 7), (NOW - 10, 6)])
    assert words(history.size(8, 3, WIDE, NOW)) == (7, late, "DesiredWithinRange", False)
    assert history.recommendations == [(NOW - 300, 7), (NOW - 10, 6), (NOW, 3)]
    assert words(history.size(7, 3, WIDE, NOW + 1)) == (6, late, "DesiredWithinRange", False)
    assert words(history.size(6, 3, WIDE, NOW + 291)) == (3, "ReadyForNewScale", "DesiredWithinRange", False)


# With a behavior ---------------------------------------------------------------------------------------------------


def test_windows_hold_back_both_ways() -> None:
    up, down = rules(("Pods", 100, 15), window=60), rules(("Pods", 100, 15), window=120)
    history = a_history([(NOW - 60, 1), (NOW - 59, 6)])
    assert words(history.size_by_behavior(5, 9, WIDE, up, down, NOW)) == (
        *(6, "ScaleUpStabilized", "DesiredWithinRange"),
        False,
    )
    history = a_history([(NOW - 120, 9), (NOW - 119, 4)])
    assert words(history.size_by_behavior(5, 2, WIDE, up, down, NOW)) == (
        *(4, "ScaleDownStabilized", "DesiredWithinRange"),
        False,
    )
    assert history.recommendations == [(NOW - 120, 9), (NOW - 119, 4), (NOW, 2)]
    assert words(a_history().size_by_behavior(5, 5, WIDE, up, down, NOW))[1] == "ReadyForNewScale"


def test_who_names_no_window_waits_five_minutes_to_shrink_and_not_to_grow() -> None:
    silent = rules(("Pods", 100, 15), window=None)
    history = a_history([(NOW - 300, 9), (NOW - 299, 7)])
    assert history.size_by_behavior(8, 3, WIDE, silent, silent, NOW).replicas == 7
    assert a_history([(NOW - 1, 3)]).size_by_behavior(3, 8, WIDE, silent, silent, NOW).replicas == 8


@pytest.mark.parametrize(
    ("up", "expected"),
    [
        (rules(("Pods", 4, 60)), 14),
        (rules(("Percent", 25, 60)), 13),  # rounded up: it must be able to grow at all
        (rules(("Pods", 4, 60), ("Percent", 25, 60)), 14),
        (rules(("Pods", 4, 60), ("Percent", 25, 60), select="Min"), 13),
        (rules(("Pods", 4, 60), select="Disabled"), 10),
    ],
)
def test_policies_bound_how_fast_it_grows(up: ScalingRules, expected: int) -> None:
    sized = a_history().size_by_behavior(10, 50, WIDE, up, ANY_DOWN, NOW)
    assert words(sized) == (expected, "ReadyForNewScale", "ScaleUpLimit", True)


@pytest.mark.parametrize(
    ("down", "expected"),
    [
        (rules(("Pods", 4, 60)), 6),
        (rules(("Percent", 25, 60)), 7),  # 7.5, rounded down
        (rules(("Pods", 4, 60), ("Percent", 25, 60)), 6),
        (rules(("Pods", 4, 60), ("Percent", 25, 60), select="Min"), 7),
        (rules(("Pods", 4, 60), select="Disabled"), 10),
    ],
)
def test_policies_bound_how_fast_it_shrinks(down: ScalingRules, expected: int) -> None:
    sized = a_history().size_by_behavior(10, 1, WIDE, ANY_UP, down, NOW)
    assert words(sized) == (expected, "ReadyForNewScale", "ScaleDownLimit", True)


def test_what_came_and_went_within_the_period_counts() -> None:
    up, down = rules(("Pods", 4, 60)), rules(("Pods", 4, 60))
    entries = [(NOW - 60, 100), (NOW - 59, 3)]
    assert a_history(increases=entries).size_by_behavior(10, 50, WIDE, up, down, NOW).replicas == 11
    assert a_history(decreases=entries).size_by_behavior(10, 50, WIDE, up, down, NOW).replicas == 17
    assert a_history(decreases=entries).size_by_behavior(10, 1, WIDE, up, down, NOW).replicas == 9
    assert a_history(increases=entries).size_by_behavior(10, 1, WIDE, up, down, NOW).replicas == 3
    used_up = [(NOW - 59, 9)]
    assert a_history(increases=used_up).size_by_behavior(10, 50, WIDE, up, down, NOW).replicas == 10
    assert a_history(decreases=used_up).size_by_behavior(10, 1, WIDE, up, down, NOW).replicas == 10


def test_bounds_hold_where_policies_would_let_it_go_further() -> None:
    assert words(a_history().size_by_behavior(4, 50, Bounds(2, 6), ANY_UP, ANY_DOWN, NOW)) == (
        *(6, "ReadyForNewScale", "TooManyReplicas"),
        True,
    )
    assert words(a_history().size_by_behavior(4, 1, Bounds(2, 6), ANY_UP, ANY_DOWN, NOW)) == (
        *(2, "ReadyForNewScale", "TooFewReplicas"),
        True,
    )
    for wanted in (2, 6):
        sized = a_history().size_by_behavior(4, wanted, Bounds(2, 6), ANY_UP, ANY_DOWN, NOW)
        assert words(sized) == (wanted, "ReadyForNewScale", "DesiredWithinRange", False)


def test_a_percentage_is_of_what_was_there_when_the_period_began() -> None:
    half = rules(("Percent", 50, 60))
    assert a_history().size_by_behavior(500, 1000, Bounds(1, 1000), half, half, NOW).replicas == 750
    assert a_history().size_by_behavior(500, 1, Bounds(1, 1000), half, half, NOW).replicas == 250


def test_without_policies_a_side_goes_nowhere_but_for_the_least_change() -> None:
    up, down = rules(), rules()
    assert a_history().size_by_behavior(10, 50, WIDE, up, down, NOW).replicas == 10
    assert a_history().size_by_behavior(10, 1, WIDE, up, down, NOW).replicas == 10
    up, down = rules(select="Min"), rules(select="Min")
    assert a_history().size_by_behavior(10, 50, WIDE, up, down, NOW).replicas == 50
    assert a_history().size_by_behavior(10, 1, WIDE, up, down, NOW).replicas == 1


# What is kept ------------------------------------------------------------------------------------------------------


def test_only_the_first_look_counts_as_a_recommendation() -> None:
    history = a_history()
    history.repeat_last(NOW)
    assert history.recommendations == []
    history.begin(3, NOW)
    history.begin(5, NOW + 1)
    assert history.recommendations == [(NOW, 3)]
    history.recommendations.append((NOW + 1, 4))
    history.repeat_last(NOW + 9)
    assert history.recommendations == [(NOW, 3), (NOW + 9, 4)]


def test_scaling_is_kept_by_its_direction_for_half_an_hour() -> None:
    history = a_history([], [(NOW - 1800, 1), (NOW - 1799, 2)], [(NOW - 1800, 3)])
    history.note_scaling(4, 9, NOW)
    assert (history.increases, history.decreases) == ([(NOW - 1799, 2), (NOW, 5)], [(NOW - 1800, 3)])
    history.note_scaling(9, 7, NOW)
    assert (history.increases, history.decreases) == ([(NOW - 1799, 2), (NOW, 5)], [(NOW, 2)])


def test_a_copy_goes_its_own_way() -> None:
    history = a_history([(NOW, 1)], [(NOW, 2)], [(NOW, 3)])
    copy = history.fork()
    kept = (copy.recommendations, copy.increases, copy.decreases)
    assert kept == (history.recommendations, history.increases, history.decreases)
    for entries in kept:
        entries.append((NOW, 9))
    assert (len(history.recommendations), len(history.increases), len(history.decreases)) == (1, 1, 1)


def test_it_is_steady_when_time_alone_changes_nothing() -> None:
    up, down = rules(("Pods", 4, 60), window=600), rules(("Pods", 4, 30), window=0)
    assert a_history().is_steady(None, None, NOW)
    assert a_history([(NOW - 301, 9), (NOW - 300, 4), (NOW, 4)]).is_steady(None, None, NOW)
    assert not a_history([(NOW - 300, 9), (NOW, 4)]).is_steady(None, None, NOW)
    assert not a_history([(NOW - 600, 9), (NOW, 4)]).is_steady(up, down, NOW)
    assert a_history([(NOW - 601, 9), (NOW, 4)]).is_steady(up, down, NOW)
    for is_increase in (True, False):
        for ago, is_steady in ((59, False), (60, True)):
            entries = [(NOW - ago, 1)]
            history = a_history([], entries) if is_increase else a_history([], [], entries)
            assert history.is_steady(up, down, NOW) is is_steady
            assert history.is_steady(None, None, NOW)


def test_a_size_is_for_now_where_a_window_or_a_policy_made_it() -> None:
    def sized(able: str, limited: str) -> bool:
        ready = a_history().size(4, 4, WIDE, NOW).able_to_scale
        return Recommendation(1, ready if able == ready[0] else (able, ""), (limited, ""), True).is_for_now

    assert not sized("ReadyForNewScale", "DesiredWithinRange")
    assert not sized("ReadyForNewScale", "TooManyReplicas")
    assert sized("ScaleDownStabilized", "DesiredWithinRange")
    assert sized("ReadyForNewScale", "ScaleUpLimit")
    assert sized("ReadyForNewScale", "ScaleDownLimit")
