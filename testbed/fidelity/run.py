"""Plays scenarios embedded and on a test bed, many at a time, and tells where the stories differ.

Called by `python -m testbed fidelity` and by tests/live/test_fidelity.py. Embedded, each is played with several seeds:
where these stories differ from each other Kubernetes draws, too.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import msgspec

from testbed.fidelity.compare import differences, is_drawn
from wukong.app.embedded import play_scenario
from wukong.app.sim_live import Options, play_live
from wukong.cluster.credentials import load
from wukong.cluster.kube import Kube
from wukong.embedded.scenario import Scenario, Story, read_scenario
from wukong.embedded.store.documents import value_at
from wukong.ports import Document

EMBEDDED_SEEDS, MORE_SEEDS = 6, 30
REFUSED = "TooManyRequests"


class Compared(msgspec.Struct, kw_only=True):
    """One scenario, told by both."""

    name: str
    scenario: Scenario
    embedded: list[Story]
    real: Story
    differences: list[str]

    @property
    def is_settled(self) -> bool:
        return self.embedded[0].settled

    @property
    def is_drawn(self) -> bool:
        return is_drawn(self.embedded)

    @property
    def is_bound(self) -> bool:
        return is_bound(self.embedded[0])


def is_bound(story: Story) -> bool:
    """Whether a budget refused an eviction."""
    return any(REFUSED in event.text for event in story.events)


def embedded_stories(document: Document) -> list[Story]:
    scenario = read_scenario(msgspec.json.encode(document))
    first = [play_scenario(scenario, seed) for seed in range(EMBEDDED_SEEDS)]
    more = range(EMBEDDED_SEEDS, MORE_SEEDS) if is_drawn(first) else ()  # then look for all that chance may bring
    return [*first, *(play_scenario(scenario, seed) for seed in more)]


def _aside() -> ProcessPoolExecutor:
    """Embedded stories are played in a process of their own that gives way: real ones are a matter of time."""
    return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), initializer=os.nice, initargs=(15,))


async def compare_all(
    kubeconfig: Path, scenarios: Mapping[str, Document], at_once: int, seconds_between: float = 0.3
) -> AsyncIterator[Compared]:
    """In the order in which they end."""
    logging.getLogger("wukong").addHandler(logging.NullHandler())  # refused evictions are part of the story
    slots, loop, aside = asyncio.Semaphore(at_once), asyncio.get_running_loop(), _aside()

    async def one(index: int, name: str, document: Document) -> Compared:
        scenario = read_scenario(msgspec.json.encode(document))
        told = loop.run_in_executor(aside, embedded_stories, document)
        await asyncio.sleep(min(index, at_once) * seconds_between)  # not all their nodes in the same instant
        async with slots, Kube(load(str(kubeconfig))) as cluster:
            real = await play_live(cluster, scenario, Options(create_nodes=True), _silent)
        embedded = await told
        found = differences(embedded, real, with_spread=is_spread_told(scenario))
        return Compared(name=name, scenario=scenario, embedded=embedded, real=real, differences=found)

    tasks = [asyncio.create_task(one(index, *entry)) for index, entry in enumerate(scenarios.items())]
    try:
        for done in asyncio.as_completed(tasks):
            yield await done
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        aside.shutdown(cancel_futures=True)


def is_spread_told(scenario: Scenario) -> bool:
    """Whether pods per node are a question of rules. While two versions come and go it depends on milliseconds what a
    scheduler sees, and so does which pods of a StatefulSet came to share a node: unless they must keep apart.
    """
    moments = scenario.timeline
    changed = {(it.patch.kind, it.patch.name) for it in moments if it.patch and "template" in str(it.patch.patch)}
    changed |= {(it.scale.kind, it.scale.name) for it in moments if it.scale and it.scale.kind == "StatefulSet"}
    found = [it for it in scenario.manifests if (it["kind"], it["metadata"]["name"]) in changed]
    return all(_keeps_apart(it) for it in found if it["kind"] != "DaemonSet")


def _keeps_apart(document: Document) -> bool:
    required = "affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    terms = value_at(document, f"spec.template.spec.{required}") or ()
    return any("mismatchLabelKeys" not in term for term in terms)


def _silent(_: str) -> None:
    return


def shown(compared: Compared) -> Iterable[str]:
    """Both stories, and the scenario in between, for a person who looks for the reason."""
    yield f"{compared.name}: they differ"
    yield from (f"  {each}" for each in compared.differences)
    for title, story in (("embedded", compared.embedded[0]), ("real", compared.real)):
        yield f"  {title}: {msgspec.json.encode(story.document()).decode()}"


Say = Callable[[str], None]


def summary(results: Sequence[Compared]) -> str:
    agreed = sum(not it.differences for it in results)
    settled, bound = sum(it.is_settled for it in results), sum(it.is_bound for it in results)
    drawn = sum(it.is_drawn for it in results)
    counts = f"{settled} complete, {len(results) - settled} stuck, {bound} bound by a budget"
    return f"{agreed} of {len(results)} agree: {counts}; in {drawn} chance decides"
