"""Judging read plainly: one node at a time, exact fractions, no arrays. What Judge does is compared with this."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

HALF = Fraction(50)


@dataclass(frozen=True)
class PlainNode:
    """All that is known of one node. Percents and prices are whole numbers, or None."""

    name: str
    is_spot: bool = False
    is_leaving: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    cores: int = 4
    price: int | None = None
    cpu: int | None = None
    memory: int | None = None
    storage: int | None = None
    free: Mapping[str, int] = field(default_factory=dict)

    def used(self, resource: str) -> int | None:
        value = getattr(self, resource)
        assert value is None or isinstance(value, int)
        return value


@dataclass(frozen=True)
class Wanted:
    """A policy, as its author thinks of it. Rules are (name, type, weight, config)."""

    strategy: str = ""
    preferences: Sequence[tuple[str, int, int]] = ()  # resource, weight, threshold
    floors: Sequence[tuple[Sequence[str], int]] = ()  # any of these resources, how much
    rules: Sequence[tuple[str, str, int, Mapping[str, Any]]] = ()


def list_kept(wanted: Wanted, offered: Sequence[PlainNode | None], needed: Mapping[str, int]) -> list[bool]:
    """None stands for a node nobody has heard of."""
    fits = [node is None or _fits(wanted, node, needed) for node in offered]
    first, _, how = wanted.strategy.rpartition("-")
    if how not in ("only", "first"):
        return fits
    is_wanted = [node is not None and node.is_spot == (first == "spot") for node in offered]
    both = [one and other for one, other in zip(fits, is_wanted, strict=True)]
    return fits if how == "first" and not any(both) else both


def _fits(wanted: Wanted, node: PlainNode, needed: Mapping[str, int]) -> bool:
    if node.is_leaving:
        return False
    for name, type_, _, config in wanted.rules:
        if type_ == "filter" and _refuses(name, config, node):
            return False
    return all(
        any(node.free.get(resource, 0) >= max(least, needed.get(resource, 0)) for resource in resources)
        for resources, least in wanted.floors
    )


def _refuses(name: str, config: Mapping[str, Any], node: PlainNode) -> bool:
    if name == "cost-aware":
        return node.price is not None and node.price > int(config["maxPerHour"])
    if name == "load-aware":
        limit = int(config["threshold"].rstrip("%"))
        used = [node.used(resource) for resource in ("cpu", "memory", "storage") if config[resource] > 0]
        return any(percent is not None and percent > limit for percent in used)
    if name == "spot-risk":
        return _risk(config, node) > int(config["worst"])
    if name == "latency":
        millis = _millis(config, node)
        return millis is not None and millis > int(config["maxMillis"])
    assert name == "label-match"
    return not _matches(config, node)


def scores(wanted: Wanted, fleet: Sequence[PlainNode], offered: Sequence[PlainNode | None]) -> list[int]:
    scores = [_score(wanted, fleet, node) for node in offered]
    ranks = [rule for rule in wanted.rules if rule[1] == "prioritize"]
    if not scores or not ranks:
        return scores
    best = max(scores)
    leaders = [number for number, score in enumerate(scores) if score == best]
    tied = leaders
    for name, _, _, config in ranks:
        points = {number: _points(name, config, fleet, offered[number]) for number in tied}
        tied = [number for number in tied if points[number] == max(points.values())]
    if best > 0:
        return [best - 1 if number in leaders and number not in tied else score for number, score in enumerate(scores)]
    return [1 if number in tied and len(tied) < len(scores) else score for number, score in enumerate(scores)]


def _score(wanted: Wanted, fleet: Sequence[PlainNode], node: PlainNode | None) -> int:
    terms = [(weight, _preferred(resource, threshold, node)) for resource, weight, threshold in wanted.preferences]
    for name, type_, weight, config in wanted.rules:
        if type_ == "score":
            terms.append((weight, _points(name, config, fleet, node)))
    if wanted.strategy == "spot-preferred":
        terms.append((100, HALF if node is None else Fraction(100 if node.is_spot else 0)))
    if not terms:
        return 0
    points = sum((weight * value for weight, value in terms), Fraction(0)) / sum(weight for weight, _ in terms)
    return int((points / 10 + Fraction(1, 2)) // 1)


def _preferred(resource: str, threshold: int, node: PlainNode | None) -> Fraction:
    used = None if node is None else node.used(resource)
    if used is None:
        return HALF
    used = min(max(used, 0), 100)
    if used < threshold:
        return 100 - Fraction(50 * used, threshold)
    return Fraction(25 * (100 - used), 100 - threshold) if threshold < 100 else Fraction(0)


def _points(name: str, config: Mapping[str, Any], fleet: Sequence[PlainNode], node: PlainNode | None) -> Fraction:
    if node is None:
        return HALF
    if name == "cost-aware":
        factor = Fraction(config["costFactor"])
        return 100 * ((1 - factor) * _quietness(node) + factor * _cheapness(fleet, node))
    if name == "load-aware":
        return _free_share(config, node)
    if name == "spot-risk":
        return 100 * (1 - min(Fraction(_risk(config, node), config["worst"]), Fraction(1)))
    if name == "latency":
        millis = _millis(config, node)
        return HALF if millis is None else 100 * (1 - min(Fraction(millis, config["maxMillis"]), Fraction(1)))
    assert name == "label-match"
    return Fraction(100 if _matches(config, node) else 0)


def _quietness(node: PlainNode) -> Fraction:
    known = [percent for percent in (node.cpu, node.memory) if percent is not None]
    return 1 - min(Fraction(sum(known), 100 * len(known)), Fraction(1)) if known else Fraction(1, 2)


def _cheapness(fleet: Sequence[PlainNode], node: PlainNode) -> Fraction:
    prices = [Fraction(other.price, other.cores) for other in fleet if other.price is not None]
    if node.price is None:
        return Fraction(1, 2)
    low, high = min(prices), max(prices)
    return Fraction(1) if low == high else (high - Fraction(node.price, node.cores)) / (high - low)


def _free_share(config: Mapping[str, Any], node: PlainNode) -> Fraction:
    known = [(config[name], used) for name in ("cpu", "memory", "storage") if (used := node.used(name)) is not None]
    total = sum(weight for weight, _ in known)
    return 100 - min(Fraction(sum(weight * used for weight, used in known), total), Fraction(100)) if total else HALF


def _risk(config: Mapping[str, Any], node: PlainNode) -> int:
    if not node.is_spot:
        return 0
    said = node.labels.get("placement.novasphere.dev/interruption-percent")
    if said is not None:
        return int(said)
    percent = config["byInstanceType"].get(node.labels.get("node.kubernetes.io/instance-type", ""), config["percent"])
    assert isinstance(percent, int)
    return percent


def _millis(config: Mapping[str, Any], node: PlainNode) -> int | None:
    if "label" in config:
        said = node.labels.get(config["label"])
        return None if said is None else int(said)
    millis = config["matrix"].get(config["from"], {}).get(node.labels.get("topology.kubernetes.io/zone", ""))
    assert millis is None or isinstance(millis, int)
    return millis


def _matches(config: Mapping[str, Any], node: PlainNode) -> bool:
    return all(node.labels.get(key) == value for key, value in config["matchLabels"].items())
