"""Two stories held against each other: one embedded, one real. Pure.

Names that hashes are part of are made alike. The message of a pod that no node takes counts all nodes of the cluster,
those of scenarios beside it too; they are there as nodes that the pod's node selector does not take, are cordoned or
tainted. So of these three reasons the real cluster may have more; all other counts must be equal.
"""

from __future__ import annotations

import re
from collections import Counter as Tally
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from wukong.embedded.scenario.record.story import Story, WorkloadSummary

FOREIGN = ("affinity/selector", "unschedulable", "untolerated taint")
_REASON = re.compile(r"(\d+) ([^,.]+(?:\.[^,. ]+)*)")
_PENDING = re.compile(r"pending: 0/(\d+) nodes are available: (.*?)\. (?:no new claims|preemption)")
_MADE = re.compile(r'"(?P<name>[a-z0-9.-]+?)-[a-z0-9]{6,10}"')
_POD = re.compile(r"drain: pod (\S+): (\w+): .*")


class PolicyReport(NamedTuple):
    """What is compared of a story, workload by workload."""

    settled: bool
    numbers: tuple[tuple[str, int, int, int, int], ...]  # name, replicas, available, minAvailable, maxPods
    stuck: tuple[str, ...]  # without scheduler's messages
    restarts: tuple[int, ...]
    spread: tuple[tuple[int, ...], ...]  # pods per node, sorted


def told(story: Story) -> PolicyReport:
    fates = sorted(story.workloads.items())
    return PolicyReport(
        story.settled,
        tuple((name, it.replicas, it.available, it.min_available, it.max_pods) for name, it in fates),
        tuple(sorted({_plain(reason) for reason in story.stuck})),
        tuple(it.restarts for _, it in fates),
        tuple(_spread(it) for _, it in fates),
    )


def differences(embedded: Sequence[Story], real: Story, *, with_spread: bool) -> list[str]:
    """What the real story has otherwise. `embedded` are the stories of several seeds: where they differ from each
    other Kubernetes draws, too, and the real one must be like one of them.
    """
    found = told(real)
    lines = []
    for field in PolicyReport._fields if with_spread else PolicyReport._fields[:-1]:
        wanted = {getattr(told(it), field) for it in embedded}
        value = getattr(found, field)
        if value not in wanted:
            lines.append(f"{field}: embedded {' or '.join(map(str, sorted(wanted)))}, real {value}")
    if not lines and not any(_agree(pending(it), pending(real)) for it in embedded):
        lines.append(f"pending: embedded {pending(embedded[0])}, real {pending(real)}")
    return lines


def is_drawn(embedded: Sequence[Story]) -> bool:
    """Whether chance decides something of what is compared."""
    return len({(told(it)[:-1], str(pending(it))) for it in embedded}) > 1


def pending(story: Story) -> list[Tally[str]]:
    """The scheduler's reasons with their counts, one tally for each kind of pod that waits."""
    found = (_PENDING.search(reason) for reason in story.stuck)
    return [Tally(dict(_reasons(each[2]))) for each in found if each]


def _reasons(text: str) -> Iterator[tuple[str, int]]:
    for count, reason in _REASON.findall(text):
        yield next((word for word in FOREIGN if word in reason), reason.strip()), int(count)


def _agree(embedded: list[Tally[str]], real: list[Tally[str]]) -> bool:
    """Whether the same reasons are named, and each tally has one like it on the real cluster. There may be more of them
    there, for pods that were looked at when there were more or fewer nodes of others.
    """

    def own(tallies: list[Tally[str]]) -> set[str]:
        return {reason for tally in tallies for reason in tally if reason not in FOREIGN}

    if own(embedded) != own(real):
        return False
    return all(any(_covers(it, each) for it in real) for each in embedded)


def _covers(real: Tally[str], embedded: Tally[str]) -> bool:
    names = set(real) | set(embedded)
    return all(real[name] >= embedded[name] if name in FOREIGN else real[name] == embedded[name] for name in names)


def _plain(reason: str) -> str:
    reason = _MADE.sub(r'"\g<name>"', reason)
    refused = _POD.search(reason)
    if refused:
        return f"drain: {refused[2]}"  # which of two nodes' pods is asked for first is a matter of luck
    return reason.partition(": pending: ")[0] + ": pending" if ": pending: " in reason else reason


def _spread(fate: WorkloadSummary) -> tuple[int, ...]:
    return tuple(sorted(fate.per_node.values()))
