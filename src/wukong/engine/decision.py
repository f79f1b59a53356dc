"""What was decided about a pod, and why: a value for reports, messages, replays and tests."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable
from dataclasses import dataclass, field

from wukong.engine.arrays import Ints


@dataclass(frozen=True)
class Refusal:
    """The first plugin that refused a node, with all of its reasons."""

    plugin: str
    reasons: tuple[str, ...]
    is_final: bool  # preemption cannot help


@dataclass(frozen=True)
class Preemption:
    """Who would have to go, where. `candidates` are all nodes that could be freed; `node` is the one chosen."""

    node: str
    victims: tuple[str, ...]
    candidates: dict[str, tuple[str, ...]]
    violations: int  # victims on the chosen node that a budget protects
    budgets: tuple[str, ...] = ()  # namespace/name of the budgets that their loss breaks


@dataclass(frozen=True)
class Decision:
    feasible: tuple[str, ...] = ()  # names, sorted
    scores: dict[str, Ints] = field(default_factory=dict)  # plugin → weighted points, aligned with `feasible`
    final: tuple[int, ...] = ()
    refusals: dict[str, Refusal] = field(default_factory=dict)  # node → why not
    message: str = ""  # the FailedScheduling text; "" if the pod can be placed
    preemption: Preemption | None = None
    error: str = ""  # kube-scheduler could not even decide; the pod is tried again and again

    @property
    def best(self) -> tuple[str, ...]:
        """All nodes that share the highest total, by name."""
        if not self.final:
            return () if self.error else self.feasible[:1]
        top = max(self.final)
        return tuple(name for name, total in zip(self.feasible, self.final, strict=True) if total == top)


def format_histogram(reasons: Iterable[str]) -> str:
    """`3 Insufficient cpu, 5 node(s) were unschedulable`: sorted as text, as kube-scheduler does: 10 before 2."""
    return ", ".join(sorted(f"{count} {reason}" for reason, count in Tally(reasons).items()))
