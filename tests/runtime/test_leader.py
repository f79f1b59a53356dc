"""Leader election: the rule as a table, the shell in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from runtime.tiny import TinyCluster
from runtime.virtual import LoopClock, play
from wukong.api.kinds import LEASES
from wukong.api.resources import Key
from wukong.errors import Denied, OutcomeUnknown, ServerFailed
from wukong.runtime.leader import Leader, Lease, LeaseTimes, decide_lease, read_lease

KEY = Key("wukong", "leader")
TIMES = LeaseTimes()
OTHERS = Lease("other", 15.0, 3, "t")


@pytest.mark.parametrize(
    ("observed", "unchanged_for", "act", "transitions"),
    [
        (None, 0.0, "create", 0),
        (OTHERS, 14.9, "wait", None),
        (OTHERS, 15.0, "take", 4),
        (OTHERS._replace(duration=60.0), 15.0, "wait", None),  # its own duration counts, not ours
        (OTHERS._replace(holder=""), 0.0, "take", 4),
        (OTHERS._replace(holder="", transitions=2**31 - 1), 0.0, "take", 2**31 - 1),  # more would be refused for ever
        (OTHERS._replace(holder="me"), 0.0, "renew", None),
        (OTHERS._replace(holder="me"), 99.0, "renew", None),
    ],
)
def test_who_may_hold_the_lease(
    observed: Lease | None, unchanged_for: float, act: str, transitions: int | None
) -> None:
    claim = decide_lease(observed, "me", 100.0, 100.0 + unchanged_for, "now", TIMES)
    assert claim.act == act
    assert claim.spec.get("leaseTransitions") == transitions
    assert claim.spec.get("holderIdentity") == (None if act == "wait" else "me")


def test_times_that_would_let_two_lead_are_refused() -> None:
    with pytest.raises(ValueError, match="duration > renew > retry"):
        LeaseTimes(duration=10, renew=10.0)


class Watched:
    """A Leader and the story of its leading: (second, is_leading)."""

    def __init__(self, cluster: TinyCluster, identity: str, offset: float = 0.0) -> None:
        self.story: list[tuple[float, bool]] = []
        self.leader = Leader(cluster, KEY, identity, clock=LoopClock(offset), on_change=self._tell)

    def _tell(self, is_leading: bool) -> None:
        self.story.append((asyncio.get_running_loop().time(), is_leading))


@asynccontextmanager
async def running(*leaders: Watched) -> AsyncIterator[list[asyncio.Task[None]]]:
    tasks = [asyncio.create_task(one.leader.run()) for one in leaders]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def holder(cluster: TinyCluster) -> str:
    return read_lease(cluster.objects[LEASES.kind, KEY]).holder


def test_one_leads_and_the_other_takes_over_when_it_falls_silent() -> None:
    async def story() -> None:
        cluster = TinyCluster()
        one, two = Watched(cluster, "one"), Watched(cluster, "two", offset=-3600.0)  # its clock is an hour late
        async with running(one, two) as (first, _):
            await asyncio.sleep(60)
            assert (one.leader.is_leading, two.leader.is_leading, holder(cluster)) == (True, False, "one")
            first.cancel()
            await asyncio.sleep(30)
            assert (one.leader.is_leading, two.leader.is_leading, holder(cluster)) == (False, True, "two")
        (_, (stopped, _)), ((began, _), *_) = one.story, two.story
        assert stopped <= 70
        assert 75 - 2 <= began <= 75 + 2
        assert began - stopped >= 5 - 2  # duration - renew: nobody leads, rather than two

    play(story())


@pytest.mark.parametrize("error", [ServerFailed("etcd"), OutcomeUnknown("lost"), Denied("rbac")])
def test_it_steps_down_at_once_when_it_cannot_renew(error: Exception) -> None:
    async def story() -> None:
        cluster = TinyCluster()
        one = Watched(cluster, "one")
        async with running(one):
            await asyncio.sleep(5)
            cluster.before = [error] * 99  # type: ignore[list-item]
            await asyncio.sleep(60)
        assert one.story == [(0.0, True), (14.0, False)]  # renewed at 4 for the last time

    play(story())


@pytest.mark.parametrize(
    "spec",
    [
        ["x"],
        "x",
        {"holderIdentity": "o", "leaseDurationSeconds": "x"},
        {"leaseTransitions": [1]},
        {"leaseTransitions": "x"},
    ],
)
def test_a_lease_that_makes_no_sense_is_left_alone_and_told_once(spec: Any, caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        cluster = TinyCluster()
        one = Watched(cluster, "one")
        async with running(one) as (task,):
            await asyncio.sleep(5)
            good = cluster.objects[LEASES.kind, KEY]
            cluster.objects[LEASES.kind, KEY] = {**good, "spec": spec}
            await asyncio.sleep(60)
            assert not task.done()
            assert not one.leader.is_leading
            cluster.objects[LEASES.kind, KEY] = good
            await asyncio.sleep(30)
            assert one.leader.is_leading

    play(story())
    assert caplog.text.count("the lease cannot be read") == 1


def test_an_answer_that_never_comes_is_no_renewal() -> None:
    async def story() -> None:
        cluster = TinyCluster()
        one = Watched(cluster, "one")
        async with running(one):
            await asyncio.sleep(1)
            cluster.seconds = 1000.0
            await asyncio.sleep(60)
        assert one.story == [(0.0, True), (10.0, False)]

    play(story())


def test_a_write_whose_answer_got_lost_is_found_out_at_the_next_look() -> None:
    async def story() -> None:
        cluster = TinyCluster()
        cluster.after = [OutcomeUnknown("lost")]
        one = Watched(cluster, "one")
        async with running(one):
            await asyncio.sleep(5)
        assert one.story == [(2.0, True)]

    play(story())


def test_it_steps_down_when_somebody_else_holds_the_lease() -> None:
    async def story() -> None:
        cluster = TinyCluster()
        one = Watched(cluster, "one")
        async with running(one):
            await asyncio.sleep(3)
            cluster.objects[LEASES.kind, KEY]["spec"]["holderIdentity"] = "thief"
            await asyncio.sleep(2)
        assert one.story == [(0.0, True), (4.0, False)]

    play(story())


def test_a_released_lease_is_taken_without_waiting() -> None:
    async def story() -> None:
        cluster = TinyCluster()
        one, two = Watched(cluster, "one"), Watched(cluster, "two")
        async with running(one, two) as (first, _):
            await asyncio.sleep(9)
            first.cancel()
            await one.leader.release()
            assert holder(cluster) == ""
            assert cluster.objects[LEASES.kind, KEY]["spec"]["leaseDurationSeconds"] == 1, "0 is refused"
            await asyncio.sleep(2)
            assert (one.leader.is_leading, two.leader.is_leading) == (False, True)
            await one.leader.release()  # no longer ours: nothing happens
            assert holder(cluster) == "two"

    play(story())


def test_of_two_that_claim_a_free_lease_at_once_one_gets_it() -> None:
    async def story() -> None:
        cluster = TinyCluster()
        one, two = Watched(cluster, "one"), Watched(cluster, "two")
        async with running(one) as (first,):
            await asyncio.sleep(1)
            first.cancel()
            await one.leader.release()
        cluster.seconds = 0.5  # both have read the lease before either writes
        async with running(one, two):
            await asyncio.sleep(1)
            assert [one.leader.is_leading, two.leader.is_leading] == [True, False]
            assert holder(cluster) == "one"

    play(story())


def test_the_time_to_lead_counts_from_before_the_renewal_was_sent() -> None:
    async def story() -> None:
        cluster = TinyCluster()
        cluster.seconds = 3.0
        one = Watched(cluster, "one")
        async with running(one):
            await asyncio.sleep(4)
            cluster.before = [ServerFailed("etcd")] * 99
            await asyncio.sleep(60)
        assert one.story == [(3.0, True), (10.0, False)]

    play(story())
