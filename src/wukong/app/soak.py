"""A scenario played with many seeds, on all cores: what failed, and which faults struck and had an effect.

Called by `wukong sim soak`. Each seed is a story of its own in a process of its own pool's; the same seed and faults
always give the same digest, here and in `wukong sim run`. A seed fails if its story does not settle though the scenario
expects it to, if a checker finds something, or if somebody raises what he should not.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import msgspec

from wukong.app.embedded import play_with
from wukong.app.many_seeds import play_seeds
from wukong.embedded.scenario import Scenario
from wukong.embedded.scenario.expectations import find_differences, find_differences_under_faults
from wukong.errors import InputError

MOST_REASONS = 3


class SeedResult(msgspec.Struct, rename="camel", kw_only=True):
    """What came of one seed."""

    seed: int
    digest: str = ""
    writes: int = 0
    virtual_seconds: float = 0.0
    reasons: list[str] = []  # why it failed
    injected: dict[str, int] = {}
    effective: dict[str, int] = {}


class SoakResult(msgspec.Struct, rename="camel", kw_only=True):
    """What came of all of them. `ineffective` are types that were asked for and never made a difference."""

    seeds: int = 0
    failures: list[SeedResult] = []
    injected: Tally[str] = msgspec.field(default_factory=Tally)
    effective: Tally[str] = msgspec.field(default_factory=Tally)
    writes: int = 0
    virtual_seconds: float = 0.0
    was_interrupted: bool = False
    faults: list[str] = []

    @property
    def ineffective(self) -> list[str]:
        return [name for name in self.faults if not self.effective[name]] if self.seeds else []

    @property
    def has_failed(self) -> bool:
        return bool(self.failures or self.ineffective or self.was_interrupted)

    def add(self, seed_result: SeedResult) -> None:
        self.seeds += 1
        self.writes += seed_result.writes
        self.virtual_seconds = round(self.virtual_seconds + seed_result.virtual_seconds, 3)
        self.injected.update(seed_result.injected)
        self.effective.update(seed_result.effective)
        if seed_result.reasons:
            self.failures.append(seed_result)
            self.failures.sort(key=lambda failure: failure.seed)


def soak(
    scenario: Scenario, seeds: Iterable[int], faults: Sequence[str], jobs: int, tell: Callable[[SoakResult], None]
) -> SoakResult:
    """`tell` hears of every seed that is done. An interrupt ends it with what there is by then."""
    result = SoakResult(faults=list(faults))
    try:
        for seed_result in play_seeds(partial(play_seed, scenario, faults=tuple(faults)), seeds, jobs):
            result.add(seed_result)
            tell(result)
    except KeyboardInterrupt:
        result.was_interrupted = True
    return result


def play_seed(scenario: Scenario, seed: int, faults: Sequence[str]) -> SeedResult:
    try:
        story, fault_counts = play_with(scenario, seed, faults)
    except InputError:  # the scenario's mistake, whatever the seed
        raise
    except Exception as error:  # a mistake of ours is what is looked for here
        return SeedResult(seed=seed, reasons=[f"{type(error).__name__}: {error}"[:500]])
    wrong = (
        find_differences_under_faults(scenario.expect, story) if faults else find_differences(scenario.expect, story)
    )
    return SeedResult(
        seed=seed,
        digest=story.digest,
        writes=story.writes,
        virtual_seconds=story.virtual_seconds,
        reasons=wrong,
        injected=dict(fault_counts.injected) if fault_counts else {},
        effective=dict(fault_counts.effective) if fault_counts else {},
    )
