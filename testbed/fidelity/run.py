"""Plays scenarios embedded and on a test bed, many at a time, and says where the stories differ.

Called by `python -m testbed fidelity` and by tests/live/test_fidelity.py. Embedded, each is played with several seeds:
where these stories differ from each other Kubernetes draws, too.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import msgspec

from testbed.fidelity.compare import find_differences, is_drawn
from wukong.app.embedded import play_scenario
from wukong.app.sim_live import Options, play_live
from wukong.cluster.credentials import load
from wukong.cluster.kube import Kube
from wukong.embedded.scenario import Scenario, Story, read_scenario
from wukong.embedded.store.documents import value_at
from wukong.ports import Document

EMBEDDED_SEEDS, MORE_SEEDS = 6, 30
REFUSED = "TooManyRequests"


class Comparison(msgspec.Struct, kw_only=True):
    """One scenario and its stories, embedded and real."""

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
        return is_bound_by_budget(self.embedded[0])


def is_bound_by_budget(story: Story) -> bool:
    """Whether a budget refused an eviction."""
    return any(REFUSED in event.text for event in story.events)


def play_embedded(document: Document, seeds: range) -> list[Story]:
    scenario = read_scenario(msgspec.json.encode(document))
    return [play_scenario(scenario, seed) for seed in seeds]


def _start_pool() -> ProcessPoolExecutor:
    """Embedded stories are played in a process of their own that gives way: real ones are a matter of time."""
    return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), initializer=os.nice, initargs=(15,))


async def compare_all(
    kubeconfig: Path, scenarios: Mapping[str, Document], at_once: int, seconds_between: float = 0.3
) -> AsyncIterator[Comparison]:
    """In the order in which they end."""
    logging.getLogger("wukong").addHandler(logging.NullHandler())  # refused evictions are part of the story
    slots, loop, pool = asyncio.Semaphore(at_once), asyncio.get_running_loop(), _start_pool()

    async def compare(index: int, name: str, document: Document) -> Comparison:
        scenario = read_scenario(msgspec.json.encode(document))
        playing = loop.run_in_executor(pool, play_embedded, document, range(EMBEDDED_SEEDS))
        await asyncio.sleep(min(index, at_once) * seconds_between)  # not all their nodes in the same instant
        async with slots, Kube(load(str(kubeconfig))) as cluster:
            real = await play_live(cluster, scenario, Options(create_nodes=True), _ignore)
        embedded, with_spread = await playing, is_spread_decided(scenario)
        differences = find_differences(embedded, real, with_spread=with_spread)
        if differences:  # look for all that chance may bring: some endings are rare
            embedded += await loop.run_in_executor(pool, play_embedded, document, range(EMBEDDED_SEEDS, MORE_SEEDS))
            differences = find_differences(embedded, real, with_spread=with_spread)
        return Comparison(name=name, scenario=scenario, embedded=embedded, real=real, differences=differences)

    tasks = [asyncio.create_task(compare(index, *entry)) for index, entry in enumerate(scenarios.items())]
    try:
        for completed in asyncio.as_completed(tasks):
            yield await completed
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        pool.shutdown(cancel_futures=True)


def is_spread_decided(scenario: Scenario) -> bool:
    """Whether pods per node are a question of rules. While two versions come and go it depends on milliseconds what a
    scheduler sees, and so does which pods of a StatefulSet came to share a node: unless they must keep apart.
    """
    patches = [entry.patch for entry in scenario.timeline if entry.patch]
    scales = [entry.scale for entry in scenario.timeline if entry.scale]
    changed = {(patch.kind, patch.name) for patch in patches if "template" in str(patch.patch)}
    changed |= {(scale.kind, scale.name) for scale in scales if scale.kind == "StatefulSet"}
    return all(
        _keeps_apart(document)
        for document in scenario.manifests
        if (document["kind"], document["metadata"]["name"]) in changed and document["kind"] != "DaemonSet"
    )


def _keeps_apart(document: Document) -> bool:
    required = "affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    terms = value_at(document, f"spec.template.spec.{required}") or ()
    return any("mismatchLabelKeys" not in term for term in terms)


def _ignore(_: str) -> None:
    return


def describe(comparison: Comparison) -> Iterable[str]:
    """What differs, and both stories, for a person who looks for the reason."""
    yield f"{comparison.name}: they differ"
    yield from (f"  {difference}" for difference in comparison.differences)
    for title, story in (("embedded", comparison.embedded[0]), ("real", comparison.real)):
        yield f"  {title}: {msgspec.json.encode(story.document()).decode()}"


def summarize(comparisons: Sequence[Comparison]) -> str:
    agreed = sum(not comparison.differences for comparison in comparisons)
    settled = sum(comparison.is_settled for comparison in comparisons)
    bound = sum(comparison.is_bound for comparison in comparisons)
    drawn = sum(comparison.is_drawn for comparison in comparisons)
    counts = f"{settled} complete, {len(comparisons) - settled} stuck, {bound} bound by a budget"
    return f"{agreed} of {len(comparisons)} agree: {counts}; in {drawn} chance decides"
