"""Random changes planned from a snapshot of a real cluster, then really made there: is it as the plan said?

    nodes, workload ─► at rest ─► snapshot ─► the change is made ─► at rest, or stuck
                                     └─► planned with every seed ─► one of the plays must be like what happened
    stuck, or short ─► every piece of advice that the plan offers ─► followed from a fresh start: it must complete

Called by `python -m plan_comparison`. Compared are whether it completes, how many pods are available in the end
and at the worst, and why pods wait. Each change has nodes and a namespace of its own, so many are made side by side.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import msgspec

from plan_comparison.advice import follow, offer_advice, plan_change, rename
from plan_comparison.changes import CASE, RandomChange
from testbed.client import Client
from testbed.fidelity.compare import FOREIGN, pending_reasons
from wukong.app.many_seeds import ProcessExecutor
from wukong.app.sim_live import LivePlayer, Options, play_live
from wukong.app.sim_live.plan import Plan
from wukong.app.sim_live.real_cluster import RealCluster
from wukong.app.snapshots import load as load_snapshot
from wukong.app.snapshots import make_baseline
from wukong.cluster.credentials import load
from wukong.cluster.kube import Kube
from wukong.embedded.scenario import Scenario, Story
from wukong.embedded.scenario.format.fields import TimelineEntry
from wukong.forecast import PlanOptions
from wukong.forecast.fields import Advice, Play
from wukong.forecast.plan import play_all
from wukong.ports import Document

RUN = "sim.novasphere.dev/run"
SEEDS = range(1, 17)
FIRST_SEEDS = 4  # where one of them is like what happened, the others are not played
ADVICE_SEEDS = 8  # with each of which what is advised completes
REST_SECONDS = 240  # at most until the workload rests: it has started, or is past its deadline
LOOK_SECONDS = 0.5
END_SECONDS, LONG_SECONDS = 75, 420  # after the change; kube-scheduler looks again at some pods after five minutes only
_KINDS = {  # plural → apiVersion and kind of what a snapshot of a namespace holds
    "/apis/apps/v1/namespaces/{}/deployments": ("apps/v1", "Deployment"),
    "/apis/apps/v1/namespaces/{}/replicasets": ("apps/v1", "ReplicaSet"),
    "/apis/apps/v1/namespaces/{}/statefulsets": ("apps/v1", "StatefulSet"),
    "/apis/apps/v1/namespaces/{}/controllerrevisions": ("apps/v1", "ControllerRevision"),
    "/apis/policy/v1/namespaces/{}/poddisruptionbudgets": ("policy/v1", "PodDisruptionBudget"),
    "/api/v1/namespaces/{}/pods": ("v1", "Pod"),
}


class Ending(msgspec.Struct, frozen=True):
    """What is compared. `least` is None where not all were available before: then nothing was promised."""

    replicas: int
    available: int
    up_to_date: int
    least: int | None
    is_drained: bool
    reasons: frozenset[str]

    @property
    def is_complete(self) -> bool:
        return self.is_drained and self.available == self.up_to_date == self.replicas and not self.reasons


class FollowedAdvice(msgspec.Struct, frozen=True):
    """What was advised, and what became of the change of somebody who followed it."""

    title: str
    ending: Ending


class Comparison(msgspec.Struct, kw_only=True):
    """One change, what became of it, and what each play of its plan said. `advice` is that of one that is stuck."""

    change: RandomChange
    real: Ending
    planned: list[Ending]
    advice: list[FollowedAdvice] = []

    @property
    def is_equal(self) -> bool:
        return self.real in self.planned

    @property
    def is_right(self) -> bool:
        """As planned, and whoever followed the advice came through."""
        return self.is_equal and all(followed.ending.is_complete for followed in self.advice)

    @property
    def is_drawn(self) -> bool:
        return len(set(self.planned)) > 1

    @property
    def is_complete(self) -> bool:
        return self.real.is_complete


def plan_endings(change: RandomChange, snapshot: Sequence[Document], seeds: Sequence[int] = SEEDS) -> list[Play]:
    """What each seed says of the change to the cluster of the snapshot."""
    baseline = make_baseline(load_snapshot(snapshot), Scenario())
    return play_all(baseline, plan_change(change), seeds, ProcessExecutor(1), PlanOptions())


def build_scenario(change: RandomChange, end_seconds: int) -> Scenario:
    """The same as something that is played in real time."""
    manifests = [document for document in (*change.nodes, *change.before) if document["kind"] != "Namespace"]
    begin = "1s"  # and when the workload rests: PlayerAtRest
    timeline = []
    if documents := [*change.more_nodes, *change.documents]:
        timeline.append(TimelineEntry(at=begin, apply=documents))
    if change.drained:
        timeline.append(TimelineEntry(at=begin, drain=change.drained))
    return Scenario(manifests=manifests, timeline=timeline, until=f"{REST_SECONDS + end_seconds}s")


async def take_snapshot(client: Client, change: RandomChange) -> list[Document]:
    """The objects of one change, as the API server has them."""
    listed = await client.get(f"/api/v1/nodes?labelSelector={CASE.replace('/', '%2F')}%3D{change.namespace}")
    documents = [{"apiVersion": "v1", "kind": "Node", **item} for item in listed["items"]]
    namespace = await client.get(f"/api/v1/namespaces/{change.namespace}")
    documents.append({**namespace, "apiVersion": "v1", "kind": "Namespace"})
    for path, (api_version, kind) in _KINDS.items():
        items = (await client.get(path.format(change.namespace)))["items"]
        documents += [{"apiVersion": api_version, "kind": kind, **item} for item in items]
    return [_without_mark(document) for document in documents]


def _without_mark(value: Any) -> Any:
    """Without the label by which a scenario on a real cluster knows its objects: no manifest of a change has it."""
    if isinstance(value, list):
        return [_without_mark(entry) for entry in value]
    if isinstance(value, dict):
        return {name: _without_mark(entry) for name, entry in value.items() if name != RUN}
    return value


class PlayerAtRest(LivePlayer):
    """Lets the change happen when the workload rests, however long that takes, and takes a snapshot right before it."""

    def __init__(self, real: RealCluster, plan: Plan, scenario: Scenario, take: Callable[[], Awaitable[None]]) -> None:
        super().__init__(real, plan, scenario)
        self._take, self._has_rested = take, False

    async def wait_until(self, time: float) -> None:
        await super().wait_until(time)
        if self._has_rested:
            return
        self._has_rested = True
        end = self.real.clock.now() + REST_SECONDS
        while not self.is_at_rest() and self.real.clock.now() < end:
            await self.real.wait_for_change(LOOK_SECONDS)
        await self._take()


async def _take_nothing() -> None:
    """Advice was planned from the snapshot of the change that it is about."""


class Comparer:
    """Makes changes on one cluster. They are planned in a process that gives way: real ones take real time."""

    def __init__(self, kubeconfig: Path, pool: ProcessPoolExecutor, slots: asyncio.Semaphore) -> None:
        """So many `slots` changes are made at the same time."""
        self.kubeconfig, self._pool, self._slots = kubeconfig, pool, slots

    async def compare(self, change: RandomChange, *, with_advice: bool) -> Comparison:
        comparison, snapshot = await self._compare(change)
        if with_advice and not comparison.is_complete:
            loop = asyncio.get_running_loop()
            offered = await loop.run_in_executor(self._pool, offer_advice, change, snapshot, SEEDS[:ADVICE_SEEDS])
            comparison.advice = await asyncio.gather(
                *(self._follow(change, advice, number) for number, advice in enumerate(offered, 1))
            )
        return comparison

    async def _follow(self, change: RandomChange, advice: Advice, number: int) -> FollowedAdvice:
        followed = rename(follow(change, advice), f"-advice-{number}")
        seconds = LONG_SECONDS if advice.seconds > END_SECONDS / 2 else END_SECONDS
        async with self._slots, Kube(load(str(self.kubeconfig))) as cluster:
            scenario = build_scenario(followed, seconds)
            at_rest = partial(PlayerAtRest, take=_take_nothing)
            story = await play_live(cluster, scenario, Options(create_nodes=True), _ignore, at_rest)
        return FollowedAdvice(advice.title, _read_story(story, followed, was_complete=False))

    async def _compare(self, change: RandomChange) -> tuple[Comparison, list[Document]]:
        async with self._slots:
            return await self._make_and_compare(change)

    async def _make_and_compare(self, change: RandomChange) -> tuple[Comparison, list[Document]]:
        expected = await self._plan(change, [*change.nodes, *change.before], SEEDS[:2])
        is_long = any(play.seconds > END_SECONDS / 2 for play in expected)
        scenario = build_scenario(change, LONG_SECONDS if is_long else END_SECONDS)
        async with Kube(load(str(self.kubeconfig))) as cluster, Client.of(self.kubeconfig) as client:
            snapshot: list[Document] = []

            async def take() -> None:
                snapshot.extend(await take_snapshot(client, change))

            make_player = partial(PlayerAtRest, take=take)
            story = await play_live(cluster, scenario, Options(create_nodes=True), _ignore, make_player)
        plays = await self._plan(change, snapshot, SEEDS[:FIRST_SEEDS])
        comparison = build_comparison(change, story, snapshot, plays)
        if not comparison.is_equal:
            comparison = build_comparison(change, story, snapshot, await self._plan(change, snapshot, SEEDS))
        return comparison, snapshot

    async def _plan(self, change: RandomChange, snapshot: Sequence[Document], seeds: Sequence[int]) -> list[Play]:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, plan_endings, change, list(snapshot), seeds)


def build_comparison(
    change: RandomChange, story: Story, snapshot: Sequence[Document], plays: Sequence[Play]
) -> Comparison:
    workloads = [play.workloads[_name(change)] for play in plays if _name(change) in play.workloads]
    was_complete = all(workload.available_before == workload.replicas_before for workload in workloads)
    return Comparison(
        change=change,
        real=_read_story(story, change, was_complete=was_complete),
        planned=[_read_play(play, change, snapshot, was_complete=was_complete) for play in plays],
    )


async def compare_all(
    kubeconfig: Path, changes: Sequence[RandomChange], at_once: int, *, with_advice: bool = False
) -> AsyncIterator[Comparison]:
    """In the order in which they end."""
    logging.getLogger("wukong").addHandler(logging.NullHandler())  # refused evictions are part of the story
    slots = asyncio.Semaphore(at_once)
    with ProcessPoolExecutor(1, get_context("spawn"), initializer=os.nice, initargs=(7,)) as pool:
        comparer = Comparer(kubeconfig, pool, slots)
        tasks = [asyncio.create_task(comparer.compare(change, with_advice=with_advice)) for change in changes]
        for task in asyncio.as_completed(tasks):
            yield await task


def _name(change: RandomChange) -> str:
    return f"{change.namespace}/web"


def _read_story(story: Story, change: RandomChange, *, was_complete: bool) -> Ending:
    summary = story.workloads[_name(change)]
    return Ending(
        summary.replicas,
        summary.available,
        summary.up_to_date,
        summary.min_available if was_complete else None,
        not any(line.startswith("node ") for line in story.stuck),
        _read_reasons(story),
    )


def _read_play(play: Play, change: RandomChange, snapshot: Sequence[Document], *, was_complete: bool) -> Ending:
    stuck = [*play.stuck, *play.stuck_before]
    story = msgspec.convert({"stuck": stuck}, _Stuck)
    workload = play.workloads.get(_name(change))
    is_drained = not any(line.startswith("node ") for line in stuck)
    if workload is None:  # nothing happened to it
        return _read_snapshot(change, snapshot, is_drained=is_drained, reasons=_read_reasons(story))
    least = workload.min_available if was_complete else None
    return Ending(workload.replicas, workload.available, workload.up_to_date, least, is_drained, _read_reasons(story))


def _read_snapshot(
    change: RandomChange, snapshot: Sequence[Document], *, is_drained: bool, reasons: frozenset[str]
) -> Ending:
    """The workload as it is in the snapshot."""
    kind = change.before[-1]["kind"]
    (workload,) = [it for it in snapshot if it["kind"] == kind and it["metadata"]["name"] == "web"]
    replicas, status = workload["spec"]["replicas"], workload.get("status") or {}
    available, up_to_date = status.get("availableReplicas", 0), status.get("updatedReplicas", 0)
    least = available if available == replicas else None
    return Ending(replicas, available, up_to_date, least, is_drained, reasons)


class _Stuck(msgspec.Struct):
    stuck: list[str]


def _read_reasons(story: Story | _Stuck) -> frozenset[str]:
    """Why pods wait, without those reasons of which a cluster that others use has more."""
    tallies = pending_reasons(story)  # type: ignore[arg-type]  # reads nothing else of it
    return frozenset(reason for tally in tallies for reason in tally if reason not in FOREIGN)


def _ignore(_: str) -> None:
    return
