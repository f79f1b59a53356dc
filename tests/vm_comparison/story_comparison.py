"""Cases played on both clusters: the real story must be one that the embedded cluster tells, by some seed."""

from __future__ import annotations

from typing import NamedTuple

from testbed.client import Client
from vm_comparison.embedded_cluster import EmbeddedCluster
from vm_comparison.real_cluster import RealCluster
from vm_comparison.story import Story
from vm_comparison.story_case import Case, a_case
from vm_comparison.story_play import play

EMBEDDED_SEEDS = 10  # chance decides which of several machines moves first, and so who waits in the end


class StoryComparison(NamedTuple):
    case: Case
    embedded: list[Story]  # the different ones, the usual one first
    real: Story

    @property
    def is_same(self) -> bool:
        return self.real in self.embedded

    def describe(self) -> str:
        lines = [f"seed {self.case.seed}: {self.case.describe()}", f"  real      {self.real}"]
        return "\n".join([*lines, *(f"  embedded  {story}" for story in self.embedded)])


async def tell_embedded(case: Case, seeds: int = EMBEDDED_SEEDS) -> list[Story]:
    """The different stories of some seeds."""
    stories: list[Story] = []
    for seed in range(seeds):
        story = await play(case, EmbeddedCluster(seed))
        if story not in stories:
            stories.append(story)
    return stories


async def compare_stories(
    client: Client, namespace: str, seed: int, embedded_seeds: int = EMBEDDED_SEEDS
) -> StoryComparison:
    case = a_case(seed)
    embedded = await tell_embedded(case, embedded_seeds)
    async with RealCluster(client, namespace).watched() as cluster:
        real = await play(case, cluster, embedded)
    return StoryComparison(case, embedded, real)
