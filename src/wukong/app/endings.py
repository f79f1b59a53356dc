"""How a scenario ends with many seeds: which endings there are, how many seeds have each, and one seed that shows it.

Called by `wukong sim run --seeds`. Two stories end alike if the same workloads are available to the same extent, in the
end and at the worst, and the same is stuck for the same reasons; where pods run and when things happened may differ.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import msgspec

from wukong.app.embedded import play_with
from wukong.app.many_seeds import play_seeds
from wukong.app.snapshots import Baseline, make_baseline
from wukong.embedded.scenario import Scenario, Story
from wukong.embedded.scenario.expectations import find_differences, find_differences_under_faults
from wukong.embedded.snapshot.load import LoadedSnapshot
from wukong.errors import InputError

_DRAINED_POD = re.compile(r"(?<=drain: pod )\S+(?=:)")
_MOST_ERROR = 500  # characters


class WorkloadEnding(msgspec.Struct, rename="camel", frozen=True):
    """What became of a workload, in the end and at the worst."""

    replicas: int
    available: int
    min_available: int


class Ending(msgspec.Struct, rename="camel", kw_only=True):
    """One way in which the story ends. `unmet` is what the scenario expected otherwise, in the story of `seeds[0]`."""

    settled: bool
    stuck: list[str]
    workloads: dict[str, WorkloadEnding]
    unmet: list[str] = []
    seeds: list[int] = []


class Endings(msgspec.Struct, rename="camel"):
    """All of them, the most frequent first."""

    endings: list[Ending] = []
    was_interrupted: bool = False

    @property
    def seeds(self) -> int:
        return sum(len(ending.seeds) for ending in self.endings)

    @property
    def has_unmet(self) -> bool:
        return any(ending.unmet for ending in self.endings)

    def add(self, ending: Ending) -> None:
        """Add the ending of one seed to the ones alike."""
        alike = next((known for known in self.endings if _is_alike(known, ending)), None)
        if alike is None:
            self.endings.append(ending)
        elif ending.seeds < alike.seeds:  # the first seed speaks for all, whichever is done first
            self.endings[self.endings.index(alike)] = ending
            ending.seeds = sorted([*ending.seeds, *alike.seeds])
        else:
            alike.seeds = sorted([*alike.seeds, *ending.seeds])
        self.endings.sort(key=lambda known: (-len(known.seeds), known.seeds))


def find_endings(
    play: Callable[[int], Ending], seeds: Iterable[int], jobs: int, tell: Callable[[Endings], None]
) -> Endings:
    """`tell` hears of every seed that is done. An interrupt ends it with what there is by then."""
    endings = Endings()
    try:
        for ending in play_seeds(play, seeds, jobs):
            endings.add(ending)
            tell(endings)
    except KeyboardInterrupt:
        endings.was_interrupted = True
    return endings


def ending_player(scenario: Scenario, start: LoadedSnapshot | None, faults: Sequence[str]) -> Callable[[int], Ending]:
    """What plays one seed: on an empty cluster, or on a fork of a snapshot's cluster, which comes to rest once."""
    baseline = make_baseline(start, scenario) if start is not None else None
    return partial(_play_ending, scenario, baseline, tuple(faults))


def _play_ending(scenario: Scenario, baseline: Baseline | None, faults: tuple[str, ...], seed: int) -> Ending:
    try:
        if baseline is not None:
            story = baseline.play(scenario, seed, lines=_leave_out)
        else:
            story = play_with(scenario, seed, faults, lines=_leave_out)[0]
    except InputError:  # the scenario's mistake, whatever the seed
        raise
    except Exception as error:  # a mistake of ours must not hide how the other seeds end
        text = f"{type(error).__name__}: {error}"[:_MOST_ERROR]
        return Ending(settled=False, stuck=[text], workloads={}, unmet=[text], seeds=[seed])
    find_unmet = find_differences_under_faults if faults else find_differences
    return ending_of(story, seed, find_unmet(scenario.expect, story))


def _leave_out(line: str) -> None:
    """No line of a trace is kept: a replay has them all."""


def ending_of(story: Story, seed: int, unmet: list[str]) -> Ending:
    """The ending of a story. Of a snapshot's workloads, those that something happened to or that are not complete."""
    subjects = {event.subject for event in story.events}
    workloads = {
        name: WorkloadEnding(summary.replicas, summary.available, summary.min_available)
        for name, summary in story.workloads.items()
        if story.before is None or name in subjects or summary.is_short_of_before
    }
    stuck = sorted({_DRAINED_POD.sub("…", reason) for reason in story.stuck})  # names of pods are drawn
    return Ending(settled=story.settled, stuck=stuck, workloads=workloads, unmet=unmet, seeds=[seed])


def _is_alike(ending: Ending, other: Ending) -> bool:
    return _signature_of(ending) == _signature_of(other)


def _signature_of(ending: Ending) -> tuple[object, ...]:
    return ending.settled, ending.stuck, ending.workloads, bool(ending.unmet)
