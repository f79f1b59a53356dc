"""Plays scenarios embedded and on test beds, many at a time, and says where the stories differ.

Called by `python -m testbed fidelity` and by tests/live/test_fidelity.py. Embedded, each is played with several seeds:
where these stories differ from each other Kubernetes draws, too.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import multiprocessing
import os
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import msgspec

from testbed.client import Client
from testbed.fidelity.compare import Verdict, find_closest, is_drawn
from testbed.fidelity.scenarios import HOSTNAME
from testbed.provisioner import provisioner
from wukong.app.embedded import play_scenario
from wukong.app.sim_live import Options, play_live
from wukong.cluster.credentials import load
from wukong.cluster.kube import Kube
from wukong.embedded.scenario import Scenario, Story, read_scenario
from wukong.embedded.scenario.play.steps import key_of
from wukong.embedded.store.documents import value_at
from wukong.ports import Document

EMBEDDED_SEEDS, MORE_SEEDS = 6, 120  # some of what chance brings it brings to one of thirty
REFUSED = "TooManyRequests"
WORKLOADS = ("Deployment", "StatefulSet", "ReplicaSet", "DaemonSet", "Job")


class Comparison(msgspec.Struct, kw_only=True):
    """One scenario and its stories, embedded and real."""

    name: str
    scenario: Scenario
    embedded: list[Story]
    real: Story
    verdict: Verdict

    @property
    def differences(self) -> list[str]:
        return self.verdict.differences

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
    return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), initializer=os.nice, initargs=(7,))


async def compare_all(
    kubeconfigs: Sequence[Path],
    scenarios: Mapping[str, Document],
    at_once: int = 1,
    seconds_between: float = 0.3,
    first_seeds: int = EMBEDDED_SEEDS,
) -> AsyncIterator[Comparison]:
    """Play each on one of these clusters, `at_once` side by side on each. In the order in which they end.

    Embedded, each is played with `first_seeds` whatever happens, by which `is_drawn` goes.
    """
    logging.getLogger("wukong").addHandler(logging.NullHandler())  # refused evictions are part of the story
    loop, pool = asyncio.get_running_loop(), _start_pool()
    slots: asyncio.Queue[Path] = asyncio.Queue()
    for kubeconfig in [*kubeconfigs] * at_once:
        slots.put_nowait(kubeconfig)

    async def play_real(index: int, scenario: Scenario) -> Story:
        await asyncio.sleep(min(index, at_once) * seconds_between)  # not all their nodes in the same instant
        kubeconfig = await slots.get()
        try:
            async with Kube(load(str(kubeconfig))) as cluster:
                return await play_live(cluster, scenario, Options(create_nodes=True), _ignore)
        finally:
            slots.put_nowait(kubeconfig)

    async def compare(index: int, name: str, document: Document) -> Comparison:
        """Where the first seeds do not show the real story, look for all that chance may bring."""
        scenario = read_scenario(msgspec.json.encode(document))
        first_stories = loop.run_in_executor(pool, play_embedded, document, range(first_seeds))
        real = await play_real(index, scenario)
        embedded, spreads = await first_stories, find_decided_spreads(scenario)
        while True:
            verdict = find_closest(embedded, real, decided_spreads=spreads, is_alone=at_once == 1)
            if not verdict.differences or len(embedded) >= MORE_SEEDS:
                return Comparison(name=name, scenario=scenario, embedded=embedded, real=real, verdict=verdict)
            seeds = range(len(embedded), len(embedded) + min(len(embedded), EMBEDDED_SEEDS))
            embedded = [*embedded, *await loop.run_in_executor(pool, play_embedded, document, seeds)]

    provisioners = contextlib.AsyncExitStack()
    for kubeconfig in kubeconfigs:
        client = await provisioners.enter_async_context(Client.of(kubeconfig))
        await provisioners.enter_async_context(provisioner(client))
    tasks = [asyncio.create_task(compare(index, *entry)) for index, entry in enumerate(scenarios.items())]
    try:
        for completed in asyncio.as_completed(tasks):
            yield await completed
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await provisioners.aclose()
        pool.shutdown(cancel_futures=True)


def find_decided_spreads(scenario: Scenario) -> frozenset[str]:
    """The workloads of which pods per node are a question of rules.

    While two versions come and go it depends on milliseconds what a scheduler sees, and so does which pods of a
    StatefulSet came to share a node, or which of two workloads that are made together comes first: unless pods must
    keep apart, or are a DaemonSet's.
    """
    workloads = [document for document in scenario.documents if document["kind"] in WORKLOADS]
    patches = [entry.patch for entry in scenario.timeline if entry.patch]
    scales = [entry.scale for entry in scenario.timeline if entry.scale]
    changed = {(patch.kind, patch.name) for patch in patches if "template" in str(patch.patch)}
    changed |= {(scale.kind, scale.name) for scale in scales if scale.kind == "StatefulSet"}
    is_company = len([document for document in workloads if document["kind"] != "DaemonSet"]) > 1
    return frozenset(
        str(key_of(document))
        for document in workloads
        if document["kind"] == "DaemonSet"
        or _keeps_apart(document)
        or not (is_company or (document["kind"], document["metadata"]["name"]) in changed)
    )


def _keeps_apart(document: Document) -> bool:
    required = "affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    terms = value_at(document, f"spec.template.spec.{required}") or ()
    return any("mismatchLabelKeys" not in term and term["topologyKey"] == HOSTNAME for term in terms)


def _ignore(_: str) -> None:
    return


def describe(comparison: Comparison) -> Iterable[str]:
    """What differs, and both stories, for a person who looks for the reason."""
    yield f"{comparison.name}: they differ"
    yield from (f"  {difference}" for difference in comparison.differences)
    for title, story in (("embedded", comparison.verdict.closest), ("real", comparison.real)):
        yield f"  {title}: {msgspec.json.encode(story.document()).decode()}"


def summarize(comparisons: Sequence[Comparison]) -> str:
    agreed = sum(not comparison.differences for comparison in comparisons)
    settled = sum(comparison.is_settled for comparison in comparisons)
    bound = sum(comparison.is_bound for comparison in comparisons)
    drawn = sum(comparison.is_drawn for comparison in comparisons)
    counts = f"{settled} complete, {len(comparisons) - settled} stuck, {bound} bound by a budget"
    return f"{agreed} of {len(comparisons)} agree: {counts}; in {drawn} chance decides"
