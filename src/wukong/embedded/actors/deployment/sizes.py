"""The arithmetic of a Deployment: how many pods each version has. Numbers in, numbers out; no objects.

Called by sync.py; daemon_set/ and disruption/ resolve percentages with it. Follows kube-controller-manager's
deploymentutil: percentages of `replicas`, surge rounded up, unavailable rounded down, both zero means one unavailable.
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
    max_before: int = 0  # its annotation max-replicas: the Deployment's `max_total` when it was last scaled


class Limits(msgspec.Struct, frozen=True):
    replicas: int
    surge: int = 0
    unavailable: int = 0

    @property
    def min_available(self) -> int:
        return self.replicas - self.unavailable

    @property
    def max_total(self) -> int:
        return self.replicas + self.surge


def resolve_percent(value: int | str | None, total: int, *, up: bool) -> int:
    """The number that an int-or-percent stands for, percentages rounded `up` or down. None stands for 0."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    exact = int(value.removesuffix("%")) * total / 100
    return ceil(exact) if up else floor(exact)


def resolve_limits(replicas: int, max_surge: int | str | None, max_unavailable: int | str | None) -> Limits:
    surge = resolve_percent(max_surge, replicas, up=True)
    unavailable = resolve_percent(max_unavailable, replicas, up=False)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return Limits(replicas, surge, min(unavailable, replicas))


def grow_new(limits: Limits, new: int, total: int) -> int:
    """The size that the new version may have. `total` counts the pods of all versions without terminating ones."""
    if total >= limits.max_total:
        return new
    return new + min(limits.max_total - total, limits.replicas - new)


def shrink_old(limits: Limits, new: Version, old: Sequence[Version]) -> dict[str, int]:
    """The new sizes of old versions, where they change: first unavailable pods go, then as many as are not needed.

    A version with more available pods than it may have was shrunk a moment ago, and its status does not show it yet.
    Kubernetes stops there (cleanupUnhealthyReplicas fails): else those pods would count as available once more.
    """
    sizes = {version.name: version.replicas for version in old}
    total = new.replicas + sum(sizes.values())
    budget = total - limits.min_available - (new.replicas - new.available)
    if budget <= 0 or not any(sizes.values()):
        return {}
    is_current = _remove_unavailable(sizes, old, budget)
    spare = new.available + sum(version.available for version in old) - limits.min_available
    for version in old if is_current else ():
        surplus = min(sizes[version.name], max(0, spare))
        sizes[version.name] -= surplus
        spare -= surplus
    return {version.name: sizes[version.name] for version in old if sizes[version.name] != version.replicas}


def _remove_unavailable(sizes: dict[str, int], old: Sequence[Version], budget: int) -> bool:
    """Take unavailable pods from the sizes, within the budget. Returns False where a status is behind its size."""
    for version in old:
        if budget <= 0:
            break
        if version.replicas and version.available > version.replicas:
            return False
        unavailable = min(budget, version.replicas - version.available)
        sizes[version.name] -= max(0, unavailable)
        budget -= max(0, unavailable)
    return True


def scale_in_proportion(limits: Limits, versions: Sequence[Version], total_before: int) -> dict[str, int]:
    """Every active version's size after `replicas` changed in the middle of a rollout. The largest takes the rest."""
    total = sum(version.replicas for version in versions)
    to_add = (limits.max_total if limits.replicas > 0 else 0) - total
    ordered = sorted(enumerate(versions), key=lambda entry: (-entry[1].replicas, -entry[0] if to_add > 0 else entry[0]))
    sizes, added = {}, 0
    for _, version in ordered:
        share = _compute_share(limits, version, to_add, added, total_before)
        sizes[version.name] = version.replicas + share
        added += share
    if ordered and to_add:
        largest = ordered[0][1].name
        sizes[largest] = max(0, sizes[largest] + to_add - added)
    return sizes


def _compute_share(limits: Limits, version: Version, to_add: int, added: int, total_before: int) -> int:
    if version.replicas == 0 or to_add in (0, added):
        return 0
    if limits.replicas == 0:
        share = -version.replicas
    else:
        before = version.max_before or total_before
        share = (_round(version.replicas * limits.max_total / before) if before else 0) - version.replicas
    left = to_add - added
    return min(share, left) if to_add > 0 else max(share, left)


def _round(value: float) -> int:
    """Half away from zero, as Go rounds."""
    return int(value + 0.5) if value >= 0 else -int(-value + 0.5)
