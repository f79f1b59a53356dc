"""Nodes as rows: what a decision reads from each, and label columns over all of them.

Rows are always sorted by node name, so "the first of the best" is simply the lowest row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np

from wukong.api.core import Node, Taint
from wukong.api.quantity import parse_quantity, scheduler_amount
from wukong.engine.arrays import Index, Mask
from wukong.engine.requests import is_counted

HOSTNAME = "kubernetes.io/hostname"
TaintKey = tuple[str, str, str]  # key, value, effect


class NodeRow:
    """The part of a Node that decides placement."""

    __slots__ = ("allocatable", "allowed_pods", "images", "is_unschedulable", "labels", "name", "taints")

    def __init__(self, node: Node) -> None:
        self.name = node.metadata.name
        self.labels = node.metadata.labels
        self.is_unschedulable = node.spec.unschedulable
        self.taints: tuple[TaintKey, ...] = tuple(_taint_key(taint) for taint in node.spec.taints)
        amounts = {name: scheduler_amount(name, parse_quantity(text)) for name, text in node.status.allocatable.items()}
        self.allowed_pods = amounts.pop("pods", 0)
        self.allocatable = {
            name: amount
            for name, amount in amounts.items()
            if name in ("cpu", "memory", "ephemeral-storage") or is_counted(name)
        }
        self.images = {name: image.size_bytes for image in reversed(node.status.images) for name in image.names}

    def copy(self, name: str = "") -> NodeRow:
        """A row like this one; with a name of its own it is another node, on a host of that name."""
        copy: NodeRow = object.__new__(NodeRow)
        for slot in self.__slots__:
            setattr(copy, slot, getattr(self, slot))
        if name:
            copy.name = name
            copy.labels = {key: name if key == HOSTNAME else value for key, value in self.labels.items()}
        return copy

    def shape(self) -> tuple[object, ...]:
        """Equal for nodes that differ only in name and host."""
        labels = tuple(sorted((key, value) for key, value in self.labels.items() if key != HOSTNAME))
        return labels, self.taints, tuple(sorted(self.allocatable.items())), self.allowed_pods

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeRow) and all(
            getattr(self, slot) == getattr(other, slot) for slot in self.__slots__
        )

    __hash__ = None  # type: ignore[assignment]


class NodeRows(list[NodeRow]):
    """All rows of a snapshot. A change makes another list, so that what is found by looking at all of them is kept."""

    @cached_property
    def taints_by_row(self) -> list[tuple[int, tuple[TaintKey, ...]]]:
        """The taints of the few rows that have some."""
        return [(number, row.taints) for number, row in enumerate(self) if row.taints]

    @cached_property
    def cordon_mask(self) -> Mask:
        """[node] whether it takes no pods."""
        return np.array([row.is_unschedulable for row in self], dtype=np.bool_)


def _taint_key(taint: Taint) -> TaintKey:
    return taint.key, taint.value, taint.effect


class Column:
    """One label over all nodes: equal values share a domain number, -1 where the label is absent."""

    __slots__ = ("domains", "first", "ids", "is_everywhere", "is_unique", "numbers", "size")

    def __init__(self, values: Iterable[str | None]) -> None:
        self.domains: dict[str, int] = {}
        self.numbers: list[int] = [
            -1 if value is None else self.domains.setdefault(value, len(self.domains)) for value in values
        ]
        self.ids: Index = np.array(self.numbers, dtype=np.intp)
        self.size = len(self.domains)
        self.first: list[int] = [-1] * self.size  # domain → its first node
        for row, number in enumerate(self.numbers):
            if number >= 0 and self.first[number] < 0:
                self.first[number] = row
        self.is_everywhere = -1 not in self.numbers
        # Each domain is a single node (kubernetes.io/hostname): a change there touches one row only.
        self.is_unique = self.size == sum(1 for number in self.numbers if number >= 0)


def label_column(rows: Sequence[NodeRow], key: str) -> Column:
    return Column(row.labels.get(key) for row in rows)


def row_column(rows: Sequence[NodeRow]) -> Column:
    """Every node its own domain, whatever its labels."""
    return Column(row.name for row in rows)
