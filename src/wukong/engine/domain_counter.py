"""Domain counters: how much the placed pods weigh in each domain of a topology, kept current by assume and forget.

A rule such as "not beside pods of app web" becomes a counter over its topology key to which every placed pod of app web
adds 1. A counter serves one rule of one compiled pod (see view.py), which alone drains `changed_domains`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from wukong.engine.arrays import Ints, Mask
from wukong.engine.nodes import Column
from wukong.engine.template import Template

Weigh = Callable[[Template], tuple[int, int]]  # a pod of this template weighs so much, by so many rules


class DomainCounter:
    __slots__ = ("changed_domains", "column", "counted_nodes", "counts", "hits", "namespace", "weigh")

    def __init__(
        self, column: Column, weigh: Weigh, counted_nodes: Mask | None = None, namespace: str | None = None
    ) -> None:
        self.column = column
        self.weigh = weigh
        self.namespace = namespace  # pods of all others weigh nothing; None: those of any may count
        self.counted_nodes = counted_nodes  # only pods on these nodes count; None: on all
        self.counts: Ints = np.zeros(column.size + 1, dtype=np.int64)  # [domain]; the last is "no such label", always 0
        self.hits = 0  # how many (pod, rule) pairs contributed, whatever their weights sum to
        self.changed_domains: list[int] = []  # domains changed since the owner last looked

    def add(self, row: int, weight: int, hits: int) -> None:
        domain = self.column.numbers[row]
        if domain < 0 or (self.counted_nodes is not None and not self.counted_nodes[row]):
            return
        self.counts[domain] += weight
        self.hits += hits
        self.changed_domains.append(domain)

    def count_at(self, row: int) -> int:
        """The count in the domain of this node; 0 where the node has no such label."""
        return int(self.counts[self.column.numbers[row]])
