"""What is wrong with node groups that somebody wrote: every problem, with place, expectation and fix. Pure.

Called for scenarios and for files of node groups. Nothing that passes here makes the embedded cluster refuse a node.
"""

from __future__ import annotations

import math
import re
from collections import Counter as Tally
from collections.abc import Iterator, Sequence

from wukong.api.node_groups import NodeGroup
from wukong.api.quantity import parse_quantity
from wukong.errors import InputError

MOST_NODES = 100_000  # of one group: many times what Kubernetes supports
_LONGEST_NAME, _LONGEST_BOOT = 50, 86_400.0
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_LABEL_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def check_groups(groups: Sequence[NodeGroup], place: str) -> Iterator[str]:
    for index, group in enumerate(groups):
        yield from (f"{place}[{index}]{problem}" for problem in check_group(group))
    yield from find_double_names(groups, place)


def find_double_names(groups: Sequence[NodeGroup], place: str) -> Iterator[str]:
    names = Tally(group.name for group in groups)
    for name in sorted(name for name, times in names.items() if times > 1):
        yield f'{place}: the name "{name}" is there twice. Rename one of the two.'


def check_group(group: NodeGroup) -> Iterator[str]:
    if len(group.name) > _LONGEST_NAME or not _NAME.fullmatch(group.name):
        yield f".name: expected at most {_LONGEST_NAME} lower-case letters, digits and -, got {group.name!r:.100}."
    if not 0 <= group.min <= group.max:
        yield f".min: expected a number from 0 to max, which is {group.max}, got {group.min}."
    if group.max > MOST_NODES:
        yield f".max: expected at most {MOST_NODES:,} nodes, got {group.max:,}. Have fewer."
    if not 0 <= group.boot_seconds <= _LONGEST_BOOT:
        yield f".bootSeconds: expected seconds from 0 to {_LONGEST_BOOT:g}, got {group.boot_seconds:g}."
    price = group.price_per_hour
    if price is not None and not (price >= 0 and math.isfinite(price)):
        yield f".pricePerHour: expected a number from 0, got {price:g}."
    yield from _check_labels(group.match_labels, ".matchLabels")
    yield from _check_labels(group.template.labels, ".template.labels")
    for index, taint in enumerate(group.template.taints):
        if not _LABEL_KEY.fullmatch(taint.key) or not _LABEL_VALUE.fullmatch(taint.value):
            yield f".template.taints[{index}]: expected key and value as of a label, got {taint.key!r}={taint.value!r}."
        if taint.effect not in _EFFECTS:
            yield f".template.taints[{index}].effect: expected {', '.join(_EFFECTS)}, got {taint.effect!r}."
    if len(group.node_pool) > 253:
        yield f".nodePool: expected a name of at most 253 characters, got {group.node_pool!r:.100}."
    if group.pool_limits and not group.node_pool:
        yield ".poolLimits: expected only together with nodePool. Name the pool, or leave the limits out."
    yield from _check_amounts(group)


def _check_labels(labels: dict[str, str], place: str) -> Iterator[str]:
    for key, value in labels.items():
        if not _LABEL_KEY.fullmatch(key) or not _LABEL_VALUE.fullmatch(value):
            yield f"{place}: expected a label that Kubernetes takes, got {key!r:.100}: {value!r:.100}."


def _check_amounts(group: NodeGroup) -> Iterator[str]:
    template = group.template
    for place, amounts in (
        (".template.capacity", template.capacity),
        (".template.allocatable", template.allocatable),
        (".poolLimits", group.pool_limits),
    ):
        for resource, amount in amounts.items():
            try:
                if parse_quantity(amount) < 0:
                    yield f"{place}.{resource}: expected 0 or more, got {amount}."
            except InputError as error:
                yield f"{place}.{resource}: {error}"
