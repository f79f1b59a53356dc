"""Compares two stories: one embedded, one real. Pure.

Names that hashes are part of are made alike. Of a scenario that was played alone on its cluster the scheduler's
messages must be the same, word for word. Beside others the message of a pod that no node takes counts their nodes, too;
they are there as nodes that the pod's node selector does not take, are cordoned or tainted. So of these three reasons
the real cluster may have more then; all other counts must be equal.
"""

from __future__ import annotations

import re
from collections import Counter as Tally
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from wukong.embedded.scenario.record.story import Story, WorkloadSummary

FOREIGN = ("affinity/selector", "unschedulable", "untolerated taint")
_REASON = re.compile(r"(\d+) ([^,.]+(?:\.[^,. ]+)*)")
_PENDING = re.compile(r"pending: 0/(\d+) nodes are available: (.*?)\. (?:no new claims|preemption)")
_GENERATED_NAME = re.compile(r'"(?P<name>[a-z0-9.-]+?)-[a-z0-9]{6,10}"')
_REFUSED_DRAIN = re.compile(r"drain: pod (\S+): (\w+): .*")


class Outcome(NamedTuple):
    """What is compared of a story, workload by workload."""

    settled: bool
    numbers: tuple[tuple[str, int, int, int, int], ...]  # name, replicas, available, minAvailable, maxPods
    stuck: tuple[str, ...]  # without scheduler's messages
    restarts: tuple[int, ...]
    spread: tuple[tuple[int, ...], ...]  # pods per node, sorted


def outcome_of(story: Story, decided_spreads: Collection[str] = ()) -> Outcome:
    """What is compared; pods per node of the workloads whose spread rules decide."""
    workloads = sorted(story.workloads.items())
    return Outcome(
        story.settled,
        tuple(
            (name, summary.replicas, summary.available, summary.min_available, summary.max_pods)
            for name, summary in workloads
        ),
        tuple(sorted({_simplify(reason) for reason in story.stuck})),
        tuple(summary.restarts for _, summary in workloads),
        tuple(_spread_of(summary) for name, summary in workloads if name in decided_spreads),
    )


class Verdict(NamedTuple):
    """The embedded story that is most like the real one, and what the real one has otherwise."""

    closest: Story
    differences: list[str]


def find_closest(
    embedded: Sequence[Story], real: Story, *, decided_spreads: Collection[str] = (), is_alone: bool = False
) -> Verdict:
    """`embedded` are the stories of several seeds: where they differ from each other Kubernetes draws, too, and the
    real one must be like one of them in everything. `is_alone`: no other scenario was played on the real cluster
    meanwhile.
    """
    verdicts = (
        Verdict(story, _find_differences(story, real, decided_spreads=decided_spreads, is_alone=is_alone))
        for story in embedded
    )
    return min(verdicts, key=lambda verdict: len(verdict.differences))


def _find_differences(embedded: Story, real: Story, *, decided_spreads: Collection[str], is_alone: bool) -> list[str]:
    expected, actual = outcome_of(embedded, decided_spreads), outcome_of(real, decided_spreads)
    lines = [
        f"{field}: embedded {expected_value}, real {value}"
        for field, expected_value, value in zip(Outcome._fields, expected, actual, strict=True)
        if expected_value != value
    ]
    if not lines and not _wait_alike(embedded, real, is_alone=is_alone):
        lines.append(f"pending: embedded {pending_messages(embedded)}, real {pending_messages(real)}")
    return lines


def is_drawn(embedded: Sequence[Story]) -> bool:
    """Whether chance decides something of what is compared."""
    return len({(outcome_of(story)[:-1], str(pending_messages(story))) for story in embedded}) > 1


def _wait_alike(embedded: Story, real: Story, *, is_alone: bool) -> bool:
    """Whether the same pods wait for the same reasons."""
    if is_alone:
        return pending_messages(embedded) == pending_messages(real)
    return _agree(pending_reasons(embedded), pending_reasons(real))


def pending_messages(story: Story) -> list[str]:
    """The scheduler's messages, each with the workload whose pods wait."""
    return sorted({reason for reason in story.stuck if ": pending: " in reason})


def pending_reasons(story: Story) -> list[Tally[str]]:
    """The scheduler's reasons with their counts, one tally for each kind of pod that waits."""
    matches = (_PENDING.search(reason) for reason in story.stuck)
    return [Tally(dict(_count_reasons(match[2]))) for match in matches if match]


def _count_reasons(text: str) -> Iterator[tuple[str, int]]:
    for count, reason in _REASON.findall(text):
        yield next((word for word in FOREIGN if word in reason), reason.strip()), int(count)


def _agree(embedded: list[Tally[str]], real: list[Tally[str]]) -> bool:
    """Whether the same reasons are named, and each tally has one like it on the real cluster. There may be more of them
    there, for pods that were looked at when there were more or fewer nodes of others.
    """

    def own_reasons(tallies: list[Tally[str]]) -> set[str]:
        return {reason for tally in tallies for reason in tally if reason not in FOREIGN}

    if own_reasons(embedded) != own_reasons(real):
        return False
    return all(any(_covers(real_tally, tally) for real_tally in real) for tally in embedded)


def _covers(real: Tally[str], embedded: Tally[str]) -> bool:
    names = set(real) | set(embedded)
    return all(real[name] >= embedded[name] if name in FOREIGN else real[name] == embedded[name] for name in names)


def _simplify(reason: str) -> str:
    reason = _GENERATED_NAME.sub(r'"\g<name>"', reason)
    refused = _REFUSED_DRAIN.search(reason)
    if refused:
        return f"drain: {refused[2]}"  # which of two nodes' pods is asked for first is a matter of luck
    return reason.partition(": pending: ")[0] + ": pending" if ": pending: " in reason else reason


def _spread_of(summary: WorkloadSummary) -> tuple[int, ...]:
    return tuple(sorted(summary.per_node.values()))
