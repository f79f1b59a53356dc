"""What is drawn: when a controller hears of a change, and how long it writes."""

from __future__ import annotations

import pytest

from wukong.embedded.world.latencies import ANY, LATENCIES, PASSING_SECONDS, Latency, Spread
from wukong.embedded.world.timing import Timing, draw

MOMENTS = [round(1_767_225_600 + number / 50, 3) for number in range(400)]


def hearing_delays(timing: Timing, controller: str) -> list[float]:
    return [timing.hearing_time(controller, moment) - moment for moment in MOMENTS]


@pytest.mark.parametrize(
    ("share", "milliseconds"), [(0.0, 1), (0.25, 2), (0.5, 3), (0.7, 8), (0.9, 13), (0.99, 40), (0.999999, 90)]
)
def test_a_share_of_all_draws_stays_below_each_number_of_a_spread(share: float, milliseconds: int) -> None:
    assert draw(Spread(1, 3, 13, 40, 90), share) == milliseconds


@pytest.mark.parametrize("name", [*LATENCIES, "another"])
def test_delays_are_whole_milliseconds_within_the_spread(name: str) -> None:
    delays = [round(delay * 1000, 3) for delay in hearing_delays(Timing(1), name)]
    hearing = Timing(1).latency_of(name).hearing
    assert all(delay == round(delay) for delay in delays)
    assert min(delays) >= hearing.least >= 1  # nothing is heard of in no time
    assert name not in ("kubelet", "drain") or max(delays) <= hearing.most  # one program waits for what came before


def test_half_of_the_delays_are_no_longer_than_the_median() -> None:
    delays = hearing_delays(Timing(1), "kubelet")
    median = LATENCIES["kubelet"].hearing.median
    share = sum(delay * 1000 <= median + 0.5 for delay in delays) / len(delays)
    assert 0.4 < share < 0.65


@pytest.mark.parametrize("latency", [ANY, *LATENCIES.values()])
def test_what_half_of_the_draws_undercut_is_no_more_than_what_most_do(latency: Latency) -> None:
    for spread in (latency.hearing, latency.writing):
        assert list(spread) == sorted(spread)
    assert latency.hearing.most + latency.writing.most <= PASSING_SECONDS * 1000


def test_the_same_seed_draws_the_same_and_another_seed_another() -> None:
    assert hearing_delays(Timing(1), "job") == hearing_delays(Timing(1), "job")
    assert hearing_delays(Timing(1), "job") != hearing_delays(Timing(2), "job")
    assert hearing_delays(Timing(1), "job") != hearing_delays(Timing(1), "deployment")


def test_what_one_controller_draws_depends_on_no_other() -> None:
    alone, together = Timing(1), Timing(1)
    hearing_delays(together, "deployment")
    assert hearing_delays(alone, "job") == hearing_delays(together, "job")


def test_all_that_changes_in_one_moment_is_heard_of_together() -> None:
    timing = Timing(1)
    assert len({timing.hearing_time("kubelet", MOMENTS[0]) for _ in range(100)}) == 1


def test_one_program_hears_of_changes_in_their_order_and_many_need_not() -> None:
    milliseconds = [round(1_767_225_600 + number / 1000, 3) for number in range(400)]
    timing = Timing(1)
    in_order = [timing.hearing_time("deployment", moment) for moment in milliseconds]
    apart = [timing.hearing_time("kubelet", moment) for moment in milliseconds]
    assert in_order == sorted(in_order)
    assert apart != sorted(apart)


def test_a_copy_draws_what_the_original_would_have_drawn() -> None:
    timing = Timing(1)
    timing.hearing_time("job", MOMENTS[0])
    copy = timing.fork()
    assert hearing_delays(copy, "job") == hearing_delays(timing, "job")


def test_writes_take_time_too() -> None:
    timing = Timing(1)
    times = {round((timing.writing_time("job", MOMENTS[0]) - MOMENTS[0]) * 1000) for _ in range(200)}
    assert min(times) >= ANY.writing.least
    assert len(times) > 5
