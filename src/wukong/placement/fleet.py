"""All nodes as columns: what rules and judge.py read. Built by replies, which has the mirror; never changes once built.

    is_spot[node], leaving[node], price[node], usage[resource, node]   NaN: not known

Row -1 of what judge.py derives stands for a node that the mirror does not show yet; rules never see it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from wukong.api.core import Node
from wukong.api.quantity import parse_quantity, scheduler_amount
from wukong.engine.arrays import Floats, Index, Ints, Mask
from wukong.errors import InputError
from wukong.placement.capacity import is_spot
from wukong.placement.leaving_nodes import find_leaving_reason
from wukong.placement.prices import Prices, instance_type_of
from wukong.semantics.selectors import Selector, holds

USED = ("cpu", "memory", "storage")  # what a meter measures, in the order of `usage`
Labels = Mapping[str, str]
Latencies = Mapping[str, Mapping[str, float]]  # from domain → to domain → milliseconds
Free = Callable[[str], Ints | None]  # resource → free by requests, per node; None: no node has it


class NodeFacts(NamedTuple):
    """What follows from one node alone: computed when the node changes."""

    node: Node
    is_spot: bool
    leaving: str
    price: float  # per hour
    cores: float


class LabelCodes(NamedTuple):
    """One label over all nodes, as numbers."""

    of_nodes: Index  # [node] 0: it does not have the label; else the number of its value
    numbers: dict[str, int]  # value → its number

    def find_fitting(self, operator: str, values: frozenset[str]) -> Mask:
        """[number] whether a requirement holds for this value, or for absence."""
        if operator in ("In", "NotIn"):
            present = [self.numbers[value] for value in self.numbers.keys() & values]
            fitting: Mask = np.full(len(self.numbers) + 1, operator == "NotIn")
            fitting[present] = operator == "In"
            return fitting
        labels = (None, *self.numbers)
        return np.array([holds(operator, values, label) for label in labels], dtype=np.bool_)


class Nodes:
    """The part of a fleet that changes only when a node does."""

    def __init__(self, facts: Sequence[NodeFacts]) -> None:
        self.facts = facts
        self.names = [entry.node.metadata.name for entry in facts]
        self.row_of = {name: row for row, name in enumerate(self.names)}
        self.is_spot: Mask = np.array([entry.is_spot for entry in facts], dtype=np.bool_)
        self.leaving = [entry.leaving for entry in facts]
        self.price: Floats = np.array([entry.price for entry in facts], dtype=np.float64)
        cores = np.array([entry.cores or np.nan for entry in facts], dtype=np.float64)
        self.price_per_core: Floats = self.price / cores
        self.leaving_reasons = tuple(dict.fromkeys(reason for reason in self.leaving if reason))  # each reason once
        numbers = {reason: number for number, reason in enumerate(("", *self.leaving_reasons))}
        # [node] 0: stays; else 1 + the position of its reason
        self.leaving_codes: Ints = np.array([numbers[reason] for reason in self.leaving], dtype=np.int64)
        _seal(self.is_spot, self.price, self.price_per_core, self.leaving_codes)
        # By label, only of those that nodes have: which others policies ask for is up to whoever writes policies.
        self._columns: dict[str, list[str | None]] = {}
        self._label_codes: dict[str, LabelCodes] = {}
        self._absent: list[str | None] = [None] * len(facts)
        self._allocatable: dict[str, Ints] = {}  # by resource, only of those that nodes have

    @cached_property
    def label_keys(self) -> frozenset[str]:
        """Every label that some node has."""
        return frozenset().union(*(entry.node.metadata.labels for entry in self.facts))

    @cached_property
    def instance_types(self) -> list[str]:
        return [instance_type_of(entry.node.metadata.labels) for entry in self.facts]

    @cached_property
    def resources(self) -> tuple[str, ...]:
        """Every resource that some node has, by the API's names, sorted."""
        return tuple(sorted(set().union(*(entry.node.status.allocatable for entry in self.facts))))

    def allocatable(self, resource: str) -> Ints:
        """[node] what it has of a resource, in the scheduler's unit; 0 where it has none."""
        amounts = self._allocatable.get(resource)
        if amounts is None:
            amounts = np.array([_read_allocatable(entry.node, resource) for entry in self.facts], dtype=np.int64)
            _seal(amounts)
            if resource in self.resources:
                self._allocatable[resource] = amounts
        return amounts

    def column(self, label: str) -> list[str | None]:
        """One label over all nodes."""
        if label not in self.label_keys:
            return self._absent
        column = self._columns.get(label)
        if column is None:
            column = self._columns[label] = [entry.node.metadata.labels.get(label) for entry in self.facts]
        return column

    def select(self, selector: Selector | None) -> Mask:
        """[node] whether it has the labels a selector asks for: asked once per value of a label, not once per node."""
        selected: Mask = np.full(len(self.facts), selector is not None)
        for key, operator, values in selector or ():
            if key not in self.label_keys:
                if not holds(operator, values, None):
                    return np.zeros_like(selected)
                continue
            codes = self._label_codes.get(key)
            if codes is None:
                codes = self._label_codes[key] = _encode_column(self.column(key))
            fitting = codes.find_fitting(operator, values)
            if fitting.all():
                continue
            selected &= fitting[codes.of_nodes]
            if not selected.any():
                break
        return selected


def read_facts(node: Node, prices: Prices) -> NodeFacts:
    labels = node.metadata.labels
    spot = is_spot(labels)
    try:
        cores = parse_quantity(node.status.allocatable.get("cpu", 0)) / 10**9
    except InputError:
        cores = 0.0
    return NodeFacts(node, spot, find_leaving_reason(node), prices.price_of(node.metadata.name, labels, spot), cores)


class Fleet:
    def __init__(
        self,
        nodes: Nodes,
        usage: Floats | None = None,
        free: Free | None = None,
        latencies: Latencies | None = None,
    ) -> None:
        self.nodes = nodes
        self.names, self.row_of = nodes.names, nodes.row_of
        self.size = len(nodes.names)
        self.is_spot, self.leaving = nodes.is_spot, nodes.leaving
        self.price, self.price_per_core = nodes.price, nodes.price_per_core
        # percent of allocatable, as measured and raised by what was bound since; NaN where unknown or stale
        self.usage: Floats = np.full((len(USED), self.size), np.nan) if usage is None else usage
        _seal(self.usage)
        self.free: Free = free or (lambda name: None)
        self.latencies: Latencies = latencies or {}

    def used(self, resource: str) -> Floats:
        """Percent in use of cpu, memory or storage, per node."""
        percent: Floats = self.usage[USED.index(resource)]
        return percent

    def column(self, label: str) -> list[str | None]:
        return self.nodes.column(label)

    def select(self, selector: Selector | None) -> Mask:
        """[node] whether it has the labels that a compiled selector (semantics.selectors) asks for."""
        return self.nodes.select(selector)

    def numbers(self, label: str) -> Floats:
        """A label that holds a number, per node; NaN where it is absent or no number."""
        return np.array([_parse_number(text) for text in self.column(label)], dtype=np.float64)

    def labels(self, row: int) -> Labels:
        return self.nodes.facts[row].node.metadata.labels

    def node(self, row: int) -> Node:
        return self.nodes.facts[row].node


def _read_allocatable(node: Node, resource: str) -> int:
    try:
        return scheduler_amount(resource, parse_quantity(node.status.allocatable.get(resource, 0)))
    except InputError:
        return 0


def _encode_column(column: Sequence[str | None]) -> LabelCodes:
    distinct = dict.fromkeys(value for value in column if value is not None)
    numbers = {value: number for number, value in enumerate(distinct, 1)}
    of_nodes = np.array([0 if value is None else numbers[value] for value in column], dtype=np.intp)
    return LabelCodes(of_nodes, numbers)


def _seal(*columns: Floats | Ints | Mask) -> None:
    """All rules read the same arrays: one that writes to them fails, and only it."""
    for column in columns:
        column.setflags(write=False)


def _parse_number(text: str | None) -> float:
    try:
        return float(text) if text is not None else np.nan
    except ValueError:
        return np.nan
