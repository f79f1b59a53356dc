"""The arithmetic of a Deployment: how many pods of which version, at once. Numbers in, numbers out; no objects.

Called by deployment.py. Follows kube-controller-manager's deploymentutil: percentages of `replicas`, surge rounded up,
unavailable rounded down, both zero means one unavailable.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor

import msgspec


class Version(msgspec.Struct):
    """One ReplicaSet of a Deployment, oldest first in every list: its wanted and its available pods."""

    name: str
    replicas: int
    available: int = 0
    most_before: int = 0  # its annotation max-replicas: what the Deployment might have had when it was last scaled


class Limits(msgspec.Struct, frozen=True):
    replicas: int
    surge: int = 0
    unavailable: int = 0

    @property
    def least(self) -> int:
        return self.replicas - self.unavailable

    @property
    def most(self) -> int:
        return self.replicas + self.surge


def percent(value: int | str | None, of: int, *, up: bool) -> int:
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    exact = int(value.removesuffix("%")) * of / 100
    return ceil(exact) if up else floor(exact)


def limits(replicas: int, surge: int | str | None, unavailable: int | str | None) -> Limits:
    more = percent(surge, replicas, up=True)
    fewer = percent(unavailable, replicas, up=False)
    if more == 0 and fewer == 0:
        fewer = 1
    return Limits(replicas, more, min(fewer, replicas))


def grown(limits: Limits, new: int, total: int) -> int:
    """How many pods the new version may have; `total` counts those of all versions, terminating ones left out."""
    if total >= limits.most:
        return new
    return new + min(limits.most - total, limits.replicas - new)


def shrunk(limits: Limits, new: Version, old: Sequence[Version]) -> dict[str, int]:
    """The old versions' new sizes, those that change: first pods that are no use, then as many as nobody misses."""
    sizes = {version.name: version.replicas for version in old}
    total = new.replicas + sum(sizes.values())
    budget = total - limits.least - (new.replicas - new.available)
    if budget <= 0 or not any(sizes.values()):
        return {}
    for version in old:
        useless = min(budget, version.replicas - version.available)
        if useless > 0:
            sizes[version.name] -= useless
            budget -= useless
    spare = new.available + sum(version.available for version in old) - limits.least
    for version in old:
        leaving = min(sizes[version.name], max(0, spare))
        sizes[version.name] -= leaving
        spare -= leaving
    return {version.name: sizes[version.name] for version in old if sizes[version.name] != version.replicas}


def in_proportion(limits: Limits, versions: Sequence[Version], total_before: int) -> dict[str, int]:
    """Every active version's size after `replicas` changed in the middle of a rollout. The largest takes the rest."""
    total = sum(version.replicas for version in versions)
    to_add = (limits.most if limits.replicas > 0 else 0) - total
    ordered = sorted(enumerate(versions), key=lambda it: (-it[1].replicas, -it[0] if to_add > 0 else it[0]))
    sizes, added = {}, 0
    for _, version in ordered:
        part = _part(limits, version, to_add, added, total_before)
        sizes[version.name] = version.replicas + part
        added += part
    if ordered and to_add:
        first = ordered[0][1].name
        sizes[first] = max(0, sizes[first] + to_add - added)
    return sizes


def _part(limits: Limits, version: Version, to_add: int, added: int, total_before: int) -> int:
    if version.replicas == 0 or to_add in (0, added):
        return 0
    if limits.replicas == 0:
        share = -version.replicas
    else:
        before = version.most_before or total_before
        share = (_rounded(version.replicas * limits.most / before) if before else 0) - version.replicas
    left = to_add - added
    return min(share, left) if to_add > 0 else max(share, left)


def _rounded(value: float) -> int:
    """Half away from zero, as Go rounds."""
    return int(value + 0.5) if value >= 0 else -int(-value + 0.5)
