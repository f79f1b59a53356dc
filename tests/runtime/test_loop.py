"""The loop in virtual time: only the leader acts, nothing is done twice, and leaving is graceful."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from builders import a_usage
from runtime.tiny import TinyCluster
from runtime.virtual import LoopClock, VirtualLoop, play
from wukong.actions import DONE, Action, Create, Evict, Note, Outcome, Patch
from wukong.api.core import NEVER_MOVE, Pod
from wukong.api.kinds import LEASES, NODE_USAGES, NODES, PODS
from wukong.api.meta import Object
from wukong.api.resources import Key, Resource
from wukong.api.usage import NodeUsage
from wukong.controllers import Watch
from wukong.errors import Conflict, Denied, Invalid, OutcomeUnknown, ServerFailed, WukongError
from wukong.ports import Event, PatchBody, WatchUpdate
from wukong.runtime import Leader, Loop, LoopSettings
from wukong.runtime.gate import Gate, GateSettings
from wukong.runtime.leader import read_lease
from wukong.state import State

LEASE = Key("wukong", "leader")
TWIN = Key("default", "twin")


class Marker:
    """Marks every pod once: a JSON-like patch that would show if it were done twice."""

    name = "marker"
    watches: tuple[Watch, ...] = (Watch(PODS),)

    def __init__(self, *, notes: bool = False) -> None:
        self.notes = notes

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        pod = state.get(Pod, key)
        if pod is None or "marked" in pod.metadata.annotations:
            return DONE
        patch = Patch(PODS, key, PatchBody("merge", {"metadata": {"annotations": {"marked": "yes"}}}))
        note: list[Action] = [Note(PODS, key, "Marking", "soon")] if self.notes else []
        return Outcome((*note, patch))


def a_loop(
    cluster: TinyCluster, controller: Any = None, identity: str = "", gate: Gate | None = None, **settings: Any
) -> Loop:
    leader = Leader(cluster, LEASE, identity, clock=LoopClock()) if identity else None
    return Loop(
        cluster,
        [controller or Marker()],
        cluster.follow,
        clock=LoopClock(),
        random=lambda: 0.0,
        leader=leader,
        identity=identity or "alone",
        settings=LoopSettings(**settings),
        gate=gate,
    )


@asynccontextmanager
async def running(loop: Loop) -> AsyncIterator[asyncio.Event]:
    stop = asyncio.Event()
    task = asyncio.create_task(loop.run(stop))
    try:
        yield stop
    finally:
        stop.set()
        await task


def patches(cluster: TinyCluster) -> Counter[str]:
    return Counter(key for verb, kind, key in cluster.calls if (verb, kind) == ("patch", "Pod"))


def with_pods(number: int) -> TinyCluster:
    cluster = TinyCluster()
    for i in range(number):
        cluster.put("Pod", f"p{i}")
    return cluster


def everyone_once(cluster: TinyCluster) -> bool:
    return patches(cluster) == {str(key): 1 for kind, key in cluster.objects if kind == "Pod"}


def test_every_key_is_acted_on_once_those_that_come_later_too() -> None:
    async def story() -> None:
        cluster = with_pods(20)
        loop = a_loop(cluster)
        async with running(loop):
            await asyncio.sleep(1)
            cluster.put("Pod", "late")
            await asyncio.sleep(1)
        assert loop.is_synced
        assert everyone_once(cluster)
        assert b'wukong_actions_total{action="Patch",result="ok"} 21.0' in loop.metrics.text()
        assert b'wukong_mirror_objects{kind="Pod"} 21.0' in loop.metrics.text()

    play(story())


def test_a_key_changed_during_its_own_act_is_not_decided_on_the_state_before_it() -> None:
    class Late(TinyCluster):
        """The watch shows a write a second after its answer."""

        def _tell(self, event: Any, kind: str, body: Any) -> None:
            told = super()._tell
            asyncio.get_running_loop().call_later(1.0, lambda: told(event, kind, body))

    async def story() -> None:
        cluster = Late()
        cluster.seconds = 0.5
        async with running(a_loop(cluster)):
            await asyncio.sleep(1)
            cluster.put("Pod", "p")  # shown at 2, patched by 2.5, echoed at 3.5
            await asyncio.sleep(1.2)
            cluster.change("Pod", "p", {"metadata": {"labels": {"a": "b"}}})  # shown at 3.2: before the echo
            await asyncio.sleep(10)
        assert everyone_once(cluster)

    play(story())


def test_what_was_made_and_removed_while_the_watch_was_broken_is_made_again_after_a_list() -> None:
    class Broken(TinyCluster):
        """The watch of pods shows nothing for twenty seconds, and then a list."""

        async def follow(self, *arguments: Any) -> AsyncIterator[WatchUpdate[Object]]:
            yield await anext(aiter(super().follow(*arguments)))
            await asyncio.sleep(20.0)
            async for update in super().follow(*arguments):
                yield update

    class Twins:
        """Makes the pod `twin` where there is none."""

        name = "twins"
        watches = (Watch(PODS, keys=lambda change, _: [Key("default", "first")]),)

        def reconcile(self, key: Key, state: State, now: float) -> Outcome:
            if state.get(Pod, TWIN) is not None:
                return DONE
            return Outcome((Create(PODS, {"kind": "Pod", "metadata": {"name": TWIN.name}}, TWIN.namespace),))

    async def story() -> None:
        cluster = Broken()
        cluster.put("Pod", "first")
        async with running(a_loop(cluster, Twins())):
            await asyncio.sleep(10)
            await cluster.delete(PODS, TWIN)
            await asyncio.sleep(20)
            assert ("Pod", TWIN) in cluster.objects

    play(story())


def test_nothing_is_done_before_every_kind_has_been_listed() -> None:
    class Slow(TinyCluster):
        async def follow(self, cluster: object, resource: Resource, *rest: Any) -> AsyncIterator[Any]:
            await asyncio.sleep(5.0 if resource.kind == "Node" else 0.0)
            async for news in super().follow(cluster, resource, *rest):
                yield news

    class Both(Marker):
        watches = (Watch(PODS), Watch(NODES, keys=lambda *_: ()))

    async def story() -> None:
        cluster = Slow()
        cluster.put("Pod", "p")
        loop = a_loop(cluster, Both())
        async with running(loop):
            await asyncio.sleep(4.9)
            assert [loop.is_synced, len(cluster.calls)] == [False, 0]
            await asyncio.sleep(0.2)
            assert [loop.is_synced, len(cluster.calls)] == [True, 1]

    play(story())


def test_a_process_that_stood_still_past_its_lease_does_not_act() -> None:
    class Stalling(Marker):
        def reconcile(self, key: Key, state: State, now: float) -> Outcome:
            virtual = asyncio.get_running_loop()
            assert isinstance(virtual, VirtualLoop)
            virtual.now += 60.0  # a machine put to sleep
            return super().reconcile(key, state, now)

    async def story() -> None:
        cluster = TinyCluster()
        loop = a_loop(cluster, Stalling(), identity="one")
        async with running(loop):
            await asyncio.sleep(1)
            cluster.put("Pod", "p")
            await asyncio.sleep(0.001)
            assert patches(cluster).total() == 0

    play(story())


class Lagging(TinyCluster):
    """Cannot be read for the first second, and its watch is three seconds late."""

    async def get(self, *asked: Any) -> Any:
        if asyncio.get_running_loop().time() < 1.0:
            raise ServerFailed("down")
        return await super().get(*asked)

    async def follow(self, *asked: Any) -> AsyncIterator[WatchUpdate[Object]]:
        async for news in super().follow(*asked):
            await asyncio.sleep(3.0 if isinstance(news, Event) else 0.0)
            yield news


def test_an_act_nobody_knows_the_outcome_of_is_looked_for_before_its_key_is_decided_again() -> None:
    cluster = Lagging()
    cluster.put("Pod", "web")
    cluster.after = [OutcomeUnknown("lost")]

    async def story() -> None:
        loop = a_loop(cluster)
        async with running(loop):
            await asyncio.sleep(20.0)
        assert loop.state.get(Pod, Key("default", "web"))
        assert loop.dispatch.queue.in_flight == len(loop.dispatch.queue) == 0

    play(story())
    assert patches(cluster) == {"default/web": 1}


def test_no_more_keys_than_workers_at_a_time() -> None:
    async def story() -> None:
        cluster = with_pods(10)
        cluster.seconds = 1.0
        async with running(a_loop(cluster, workers=2)):
            await asyncio.sleep(0.5)
            assert len(cluster.calls) == 2
            await asyncio.sleep(5)
        assert everyone_once(cluster)

    play(story())


def test_a_failed_action_is_remembered_and_tried_again() -> None:
    async def story() -> None:
        cluster = with_pods(1)
        cluster.before = [Conflict("changed"), Invalid("no")]
        loop = a_loop(cluster)
        async with running(loop):
            await asyncio.sleep(0.1)
            attempt = loop.state.attempts.get("marker", Key("default", "p0"))
            assert attempt is not None
            assert attempt.error == "Conflict: changed"
            await asyncio.sleep(0.5)
            assert patches(cluster).total() == 2
            await asyncio.sleep(1)
            assert patches(cluster).total() == 3
            assert len(loop.state.attempts) == 0

    play(story())


def test_a_controller_that_raises_stops_nobody_else() -> None:
    class Picky(Marker):
        def reconcile(self, key: Key, state: State, now: float) -> Outcome:
            if key.name == "p0":
                raise ZeroDivisionError("a bug")
            return super().reconcile(key, state, now)

    async def story() -> None:
        cluster = with_pods(3)
        loop = a_loop(cluster, Picky())
        async with running(loop):
            await asyncio.sleep(1)
        assert sorted(patches(cluster)) == ["default/p1", "default/p2"]
        attempt = loop.state.attempts.get("marker", Key("default", "p0"))
        assert attempt is not None
        assert attempt.error == "ZeroDivisionError: a bug"

    play(story())


def test_an_event_that_cannot_be_written_stops_nothing() -> None:
    async def story() -> None:
        cluster = with_pods(1)
        cluster.before = [Denied("no events for you")]
        async with running(a_loop(cluster, Marker(notes=True))):
            await asyncio.sleep(0.1)
        assert everyone_once(cluster)

    play(story())


def test_of_two_only_the_leader_acts_and_the_other_takes_over_when_it_falls_silent() -> None:
    async def story() -> None:
        cluster = with_pods(5)
        one, two = a_loop(cluster, identity="one"), a_loop(cluster, identity="two")
        first = asyncio.create_task(one.run(asyncio.Event()))
        await asyncio.sleep(0)
        async with running(two):
            await asyncio.sleep(5)
            assert everyone_once(cluster)
            assert (one.is_leading, two.is_leading, two.is_synced) == (True, False, True)
            first.cancel()  # killed: its lease is not given back
            one.leader = None
            await asyncio.gather(first, return_exceptions=True)
            cluster.put("Pod", "orphan")
            await asyncio.sleep(10)
            assert "default/orphan" not in patches(cluster)
            await asyncio.sleep(10)
            assert two.is_leading
        assert everyone_once(cluster)

    play(story())


def test_a_leader_that_cannot_renew_stops_in_the_middle_and_nothing_is_done_twice() -> None:
    async def story() -> None:
        cluster = with_pods(2)
        one, two = a_loop(cluster, identity="one"), a_loop(cluster, identity="two")
        cut = Cut(cluster)
        one.cluster = one.performer.cluster = cut
        assert one.leader is not None
        one.leader.cluster = cut
        async with running(one):
            await asyncio.sleep(1)
            async with running(two):
                cut.is_cut = True
                cluster.put("Pod", "late")
                await asyncio.sleep(8.9)
                assert [one.is_leading, two.is_leading] == [True, False]
                await asyncio.sleep(0.2)
                assert [one.is_leading, two.is_leading] == [False, False]
                assert one.dispatch.queue.in_flight == 0
                await asyncio.sleep(15)
                assert two.is_leading
                assert everyone_once(cluster)
                cut.is_cut = False
                await asyncio.sleep(60)
                assert (one.is_leading, two.is_leading) == (False, True)
        assert everyone_once(cluster)

    play(story())


class Cut:
    """A cluster behind a connection that can be cut: requests then hang."""

    def __init__(self, cluster: TinyCluster) -> None:
        self.cluster, self.is_cut = cluster, False

    def __getattr__(self, name: str) -> Any:
        call = getattr(self.cluster, name)

        async def through(*args: Any, **named: Any) -> Any:
            while self.is_cut:
                await asyncio.sleep(1000)
            return await call(*args, **named)

        return through


def test_stopping_finishes_what_is_in_flight_takes_no_more_and_gives_the_lease_back() -> None:
    async def story() -> None:
        cluster = with_pods(6)
        loop = a_loop(cluster, identity="one", workers=2)
        stop = asyncio.Event()
        task = asyncio.create_task(loop.run(stop))
        await asyncio.sleep(0.5)
        cluster.calls.clear()
        for i in range(6):
            cluster.put("Pod", f"more{i}")
        cluster.seconds = 0.9
        await asyncio.sleep(0.1)
        stop.set()
        await task
        assert patches(cluster).total() == 2
        marked = [key.name for (_, key), held in cluster.objects.items() if held["metadata"].get("annotations")]
        assert len(marked) == 6 + 2
        assert read_lease(cluster.objects[LEASES.kind, LEASE]).holder == ""

    play(story())


def test_stopping_waits_no_longer_than_it_may() -> None:
    async def story() -> float:
        cluster = with_pods(1)
        cluster.seconds = 1000.0
        loop = a_loop(cluster, grace_seconds=20.0)
        stop = asyncio.Event()
        task = asyncio.create_task(loop.run(stop))
        await asyncio.sleep(1)
        stop.set()
        await task
        assert loop.dispatch.queue.in_flight == 0
        assert len(loop.dispatch.queue) == 1  # handed over: still to be done by whoever comes next
        return asyncio.get_running_loop().time()

    assert play(story()) == pytest.approx(21.0)


def test_a_follower_that_fails_ends_the_loop_with_its_error() -> None:
    class Broken(TinyCluster):
        async def follow(self, *_: Any) -> AsyncIterator[Any]:
            for news in list[Any]():
                yield news
            raise Denied("pods is forbidden")

    class Ending(TinyCluster):
        async def follow(self, *_: Any) -> AsyncIterator[Any]:
            for news in list[Any]():
                yield news

    with pytest.raises(Denied):
        play(a_loop(Broken()).run(asyncio.Event()))
    with pytest.raises(WukongError, match="following pods has ended"):
        play(a_loop(Ending()).run(asyncio.Event()))


class Evicter:
    """Evicts every pod, and tells that it did."""

    name = "evicter"
    watches: tuple[Watch, ...] = (Watch(PODS),)

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        pod = state.get(Pod, key)
        return DONE if pod is None else Outcome((Evict(key), Note(PODS, key, "Evicted", "it had to go")))


def evictions(cluster: TinyCluster) -> list[str]:
    return [key for verb, kind, key in cluster.calls if (verb, kind) == ("delete", "Pod")]


def test_what_the_gate_holds_comes_back_when_it_says_and_is_nobodys_failure() -> None:
    async def story() -> None:
        cluster = with_pods(5)
        loop = a_loop(cluster, Evicter(), gate=Gate(GateSettings(evictions_per_minute=2)))
        async with running(loop):
            await asyncio.sleep(1)
            assert len(evictions(cluster)) == 2
            assert len(loop.state.attempts) == 3
            await asyncio.sleep(31)
            assert len(evictions(cluster)) == 3
            await asyncio.sleep(120)
        assert len(evictions(cluster)) == 5
        assert len(loop.state.attempts) == 0

    play(story())


def test_what_the_gate_forbids_is_told_once_and_nothing_after_it_is_done(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        cluster = with_pods(2)
        cluster.change("Pod", "p0", {"metadata": {"annotations": {NEVER_MOVE: "true"}}})
        loop = a_loop(cluster, Evicter())
        async with running(loop):
            await asyncio.sleep(600)
        assert evictions(cluster) == ["default/p1"]
        attempt = loop.state.attempts.get("evicter", Key("default", "p0"))
        assert attempt is not None
        assert attempt.count > 5
        assert attempt.error.startswith("GateRefusal: it has the annotation")
        text = loop.metrics.text()
        assert b'wukong_gate_total{act="evict",result="allowed"} 1.0' in text
        assert f'wukong_gate_total{{act="evict",result="forbidden"}} {attempt.count}.0'.encode() in text
        told = [held["reason"] for (kind, _), held in cluster.objects.items() if kind == "Event"]
        assert sorted(told) == ["ActForbidden", "Evicted"]

    play(story())
    assert [record.message for record in caplog.records] == ["the gate forbids"]


class Usages:
    """Remembers of which nodes it was told, and what is known of them."""

    name = "usages"
    watches: tuple[Watch, ...] = (Watch(NODE_USAGES),)

    def __init__(self) -> None:
        self.seen: list[tuple[str, float | None]] = []

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        usage = state.get(NodeUsage, key)
        self.seen.append((key.name, usage.cpu if usage else None))
        return DONE


def test_what_a_source_hands_over_is_watched_like_any_object_and_nobody_follows_it_on_the_cluster() -> None:
    async def story() -> None:
        cluster, controller = with_pods(0), Usages()
        loop = a_loop(cluster, controller)
        async with running(loop):
            await asyncio.sleep(1)
            assert loop.is_synced
            loop.take_in(NODE_USAGES, [a_usage("n1", cpu=10), a_usage("n2", cpu=20)])
            await asyncio.sleep(1)
            loop.take_in(NODE_USAGES, [a_usage("n1", cpu=30)])
            await asyncio.sleep(1)
        assert cluster.watchers == []
        assert sorted(controller.seen[:2]) == [("n1", 10), ("n2", 20)]
        assert sorted(controller.seen[2:]) == [("n1", 30), ("n2", None)]
        assert b'wukong_mirror_objects{kind="NodeUsage"} 1.0' in loop.metrics.text()

    play(story())


def test_others_have_their_turns_between_decisions_that_take_long() -> None:
    class Slow(Marker):
        def reconcile(self, key: Key, state: State, now: float) -> Outcome:
            moments.append(turns)
            until = time.perf_counter() + 0.011
            while time.perf_counter() < until:
                pass
            return DONE

    turns = 0
    moments: list[int] = []

    async def story() -> None:
        nonlocal turns
        async with running(a_loop(with_pods(10), Slow())):
            for _ in range(1000):
                turns += 1
                await asyncio.sleep(0)

    play(story())
    assert len(moments) == 10
    assert len(set(moments)) == 10  # at each decision another number of turns
