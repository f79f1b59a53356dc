"""`make_plan`: a change played with many seeds on forks of a cluster at rest, and what is to be said of it.

Called by `wukong plan`, and by advice for every candidate. The cluster comes to rest once (app/snapshots.py); each play
is a fork, in whatever processes the executor has. The same arguments give the same plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import msgspec

from wukong.api.kinds import KINDS
from wukong.api.resources import Key
from wukong.app.snapshots import Baseline
from wukong.embedded.actors.kubelet.durations import PodDurations, Workload
from wukong.errors import InputError
from wukong.forecast.changes import find_changes
from wukong.forecast.cost import compare_costs
from wukong.forecast.fields import Plan, Play
from wukong.forecast.planned_change import PlannedChange
from wukong.forecast.play import PlayOptions, play_change
from wukong.forecast.start_times import StartTimes, find_start_time
from wukong.forecast.stop_times import StopTimes, find_stop_time
from wukong.forecast.verdict import Limits, choose_shown, gather_outcomes, reach_verdict
from wukong.placement.prices import Prices
from wukong.ports import Executor

ReportProgress = Callable[[int, int], object]


class PlanOptions(msgspec.Struct, frozen=True):
    """What is asked of a plan besides the change."""

    until: str = "4h"  # in virtual time, if it does not come to rest before
    limits: Limits = msgspec.field(default_factory=Limits)
    prices: Prices = msgspec.field(default_factory=Prices)
    start_times: StartTimes = {}  # what was learnt
    stop_times: StopTimes = {}
    given_durations: PodDurations = PodDurations()


def make_plan(
    baseline: Baseline,
    change: PlannedChange,
    seeds: Sequence[int],
    executor: Executor,
    options: PlanOptions | None = None,
    report_progress: ReportProgress = lambda done, total: None,
) -> Plan:
    """Play the change with every seed. Raises InputError for a change that the API server refuses."""
    options = options or PlanOptions()
    changes = find_changes(baseline, change)
    plays = play_all(baseline, change, seeds, executor, options, report_progress)
    outcomes = gather_outcomes(plays)
    shown = choose_shown(plays, outcomes[0])
    places = dict(_list_places(shown))
    start_times = {
        name: find_start_time(place, options.start_times, options.given_durations) for name, place in places.items()
    }
    stop_times = {
        name: find_stop_time(place, options.stop_times, options.given_durations) for name, place in places.items()
    }
    own = [name for name, workload in shown.workloads.items() if workload.course] or list(start_times)
    are_times_known = all(start_times[name].source != "unknown" for name in own if name in start_times)
    new_nodes = max(0, shown.nodes.most - shown.nodes.before - len(change.nodes))
    verdict = reach_verdict(outcomes, are_times_known=are_times_known, new_nodes=new_nodes)
    if verdict.is_safe and all(change.action == "none" for change in changes):
        verdict.text = "Nothing changes"
    return Plan(
        verdict=verdict,
        changes=changes,
        outcomes=outcomes,
        shown=shown,
        start_times=start_times,
        stop_times=stop_times,
        cost=compare_costs(baseline.state, shown.nodes, options.prices),
    )


def _list_places(play: Play) -> Iterator[tuple[str, Workload]]:
    """Name and place of the workloads that pods are made for."""
    for name, workload in play.workloads.items():
        entry = next((entry for entry in KINDS.workloads() if entry.resource.kind == workload.kind), None)
        if entry is not None:
            namespace, _, object_name = workload.key.partition("/")
            yield name, (entry.resource.group_kind, Key(namespace, object_name))


def play_all(
    baseline: Baseline,
    change: PlannedChange,
    seeds: Sequence[int],
    executor: Executor,
    options: PlanOptions,
    report_progress: ReportProgress = lambda done, total: None,
) -> list[Play]:
    """The plays of all seeds, in the order of these; without what a plan says besides, which advice does not need."""
    if not seeds:
        raise InputError("expected at least one seed, got none.")
    work = partial(play_change, baseline, change, PlayOptions(options.until, options.limits))
    plays: list[Play] = []
    for play in executor.run(work, seeds):
        plays.append(play)
        report_progress(len(plays), len(seeds))
    return sorted(plays, key=lambda play: play.seed)
