"""Judges a play, and all plays together: does it complete, does it hurt on the way, does it need nodes. Pure.

    never-ends    something that the change is about is stuck, and would fit if only the way there were free
    needs-nodes   it is stuck, and does not fit on the nodes that are there
    degrades      fewer pods than a strategy promises, a budget asks for or --min-available says; others starve or
                  have an outage, or a pod goes that nobody makes again
    completes     none of these

What was so before the change is not held against it. The worst of the kinds is the verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import median

import msgspec

from wukong.forecast.durations import format_about
from wukong.forecast.fields import (
    VERDICT_KINDS,
    NeededNodes,
    Outcome,
    Play,
    Problem,
    Verdict,
    VerdictKind,
    WorkloadForecast,
)

_LEFT_SHORT = "is left short"


class Limits(msgspec.Struct, frozen=True):
    """What the user says each workload must keep: at least so many available, or such a share of those wanted."""

    min_available: dict[str, int | str] = {}  # by the name of a workload; "" for all that the change is about

    def required_of(self, name: str, wanted: int, *, is_own: bool) -> int | None:
        limit = self.min_available.get(name, self.min_available.get("") if is_own else None)
        if isinstance(limit, str):
            return -(-wanted * int(limit.removesuffix("%")) // 100)
        return limit


def judge_play(
    play: Play, own_workloads: frozenset[str], limits: Limits, *, is_at_rest: bool, moves_nodes: bool
) -> None:
    """Fill in the kind and the problems of a play.

    `own_workloads` are those that the change is about; `moves_nodes`: it takes nodes away, and may be about anybody.
    """
    problems = [
        *_find_stuck(play, own_workloads, moves_nodes=moves_nodes),
        *_find_shortages(play, own_workloads, limits),
        *_find_broken_budgets(play),
        *_find_lost_pods(play),
    ]
    if not is_at_rest and not problems:
        problems.append(Problem(kind="never-ends", subject="", text="has not come to rest when time was up"))
    play.problems = sorted(problems, key=lambda problem: -VERDICT_KINDS.index(problem.kind))
    play.kind = max((problem.kind for problem in problems), key=VERDICT_KINDS.index, default="completes")


def _find_stuck(play: Play, own_workloads: frozenset[str], *, moves_nodes: bool) -> Iterator[Problem]:
    for subject, reasons in _by_subject(play.stuck).items():
        is_own = subject in own_workloads or subject.startswith("node ")
        text = _describe_stuck(play.workloads.get(subject), reasons)
        if play.nodes.needed and (is_own or moves_nodes):
            needs = f"needs {describe_nodes(play.nodes.needed)}"
            yield Problem(kind="needs-nodes", subject=subject, text=f"{needs}: {text}")
        elif is_own:
            yield Problem(kind="never-ends", subject=subject, text=text)
        else:
            yield Problem(kind="degrades", subject=subject, text=f"{_LEFT_SHORT}: {text}")


def _by_subject(stuck: Iterable[str]) -> dict[str, list[str]]:
    by_subject: dict[str, list[str]] = {}
    for line in stuck:
        subject, _, reason = line.partition(": ")
        by_subject.setdefault(subject, []).append(reason)
    return by_subject


def _describe_stuck(workload: WorkloadForecast | None, reasons: Sequence[str]) -> str:
    """The counts and the most telling reason: why a pod waits, rather than that a deadline has passed."""
    reason = next((reason for reason in reasons if reason.startswith("pending: ")), reasons[0])
    reason = reason.removeprefix("pending: ").partition(". ")[0].rstrip(".")
    if workload is None:
        return reason
    if workload.up_to_date < workload.replicas or workload.available < workload.replicas:
        counts = f"{workload.available} of {workload.replicas} available, {workload.up_to_date} up to date"
    else:
        counts = f"{workload.available} of {workload.replicas} available, and old pods stay"
    return f"{counts}; {reason}"


def describe_nodes(needed: Iterable[NeededNodes]) -> str:
    """`2 nodes like od-a1 (m6i.2xlarge)`."""
    return ", ".join(
        f"{nodes.count} {'node' if nodes.count == 1 else 'nodes'} like {nodes.like}"
        + (f" ({nodes.type})" if nodes.type else "")
        for nodes in needed
    )


def _find_shortages(play: Play, own_workloads: frozenset[str], limits: Limits) -> Iterator[Problem]:
    for name, workload in play.workloads.items():
        if workload.available_before is None:
            continue
        required = limits.required_of(name, workload.replicas, is_own=name in own_workloads)
        if required is not None and workload.min_available < required:
            text = f"falls to {workload.min_available} available, below the {required} of --min-available"
            yield Problem(kind="degrades", subject=name, text=text)
        elif (shortage := find_shortage(workload)) is not None:
            available, promised = shortage
            text = f"falls to {available} available, below the {promised} that its strategy promises"
            yield Problem(kind="degrades", subject=name, text=text)
        elif name not in own_workloads and workload.min_available == 0 < min(
            workload.available_before, workload.replicas
        ):
            yield Problem(kind="degrades", subject=name, text="has no pod available for a while")


def find_shortage(workload: WorkloadForecast) -> tuple[int, int] | None:
    """The least available that was below what the strategy promised then, with that; None if it never was.

    Who had fewer to begin with is not held to more than that.
    """
    if workload.unavailable_limit is None or workload.available_before is None:
        return None
    shortages = [
        (available, promised)
        for _, available, wanted in workload.availability
        if available < (promised := min(wanted - workload.unavailable_limit, workload.available_before))
    ]
    return min(shortages, default=None)


def _find_broken_budgets(play: Play) -> Iterator[Problem]:
    for budget in play.touched.budgets:
        if budget.is_broken:
            text = f"asks for {budget.desired_healthy} healthy pods, and has {budget.min_healthy} at the worst"
            yield Problem(kind="degrades", subject=f"budget {budget.name}", text=text)


def _find_lost_pods(play: Play) -> Iterator[Problem]:
    """Pods without a controller: `kubectl drain` refuses to evict them unless it is forced."""
    for pod in play.touched.disrupted:
        if not pod.workload:
            text = f"is {pod.cause}, and nobody makes it again: it has no controller"
            yield Problem(kind="degrades", subject=f"pod {pod.pod}", text=text)


# ---- all plays


def gather_outcomes(plays: Iterable[Play]) -> list[Outcome]:
    """Plays with the same verdict about the same subjects together: the worst first, then the most frequent."""
    alike: dict[tuple[object, ...], list[Play]] = {}
    for play in sorted(plays, key=lambda play: play.seed):
        signature = (play.kind, *sorted((problem.kind, problem.subject) for problem in play.problems))
        alike.setdefault(signature, []).append(play)
    outcomes = [
        Outcome(
            kind=group[0].kind,
            seeds=[play.seed for play in group],
            problems=group[0].problems,
            seconds=round(median(play.seconds for play in group), 1),
            slowest_seconds=max(play.seconds for play in group),
        )
        for group in alike.values()
    ]
    return sorted(
        outcomes, key=lambda outcome: (-VERDICT_KINDS.index(outcome.kind), -len(outcome.seeds), outcome.seeds)
    )


def choose_shown(plays: Sequence[Play], outcome: Outcome) -> Play:
    """Of the outcome the play of median length, the first by seed among equals."""
    group = sorted((play for play in plays if play.seed in outcome.seeds), key=lambda play: (play.seconds, play.seed))
    return group[(len(group) - 1) // 2]


def reach_verdict(outcomes: Sequence[Outcome], *, are_times_known: bool = True, new_nodes: int = 0) -> Verdict:
    """One line: the worst that can happen, and in how many plays. How long it takes only where that is known.

    `new_nodes` come by themselves, because pods wait for them.
    """
    worst = outcomes[0]
    kind: VerdictKind = worst.kind
    total = sum(len(outcome.seeds) for outcome in outcomes)
    number = sum(len(outcome.seeds) for outcome in outcomes if outcome.kind == kind)
    nodes = f" with {new_nodes} more {'node' if new_nodes == 1 else 'nodes'}" if new_nodes else ""
    text = f"{_describe_kind(worst, are_times_known=are_times_known)}{nodes}, in {number} of {total}"
    if number < total:
        text += f" (seed {worst.seeds[0]})"
    return Verdict(kind=kind, is_safe=kind == "completes", text=text, problems=worst.problems)


def _describe_kind(outcome: Outcome, *, are_times_known: bool) -> str:
    completes = f"Completes {format_about(outcome.seconds)}" if are_times_known else "Completes"
    match outcome.kind:
        case "completes":
            return completes
        case "degrades":
            is_short = any(problem.text.startswith(_LEFT_SHORT) for problem in outcome.problems)
            return "Degrades" if is_short else f"{completes} but degrades"
        case "needs-nodes":
            text = next(problem.text for problem in outcome.problems if problem.kind == "needs-nodes")
            return f"N{text.partition(': ')[0].removeprefix('n')}"
    return "Never ends"
