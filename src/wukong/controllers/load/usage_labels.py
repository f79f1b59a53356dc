"""What the usage labels of a node should be: integers in percent, moved only by a step, rarely, and gone when stale.

    usage.novasphere.dev/cpu: "35"   usage.novasphere.dev/memory: "60"   usage.novasphere.dev/storage: "10"

Pods then say "prefer nodes below 70" with plain node affinity (Lt). A stale label is removed, not kept: node affinity
must not decide by numbers nobody stands behind. Called by the load controller; pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from wukong.api.core import Node
from wukong.api.meta import ObjectMeta
from wukong.api.usage import NodeUsage

KINDS = ("cpu", "memory", "storage")


class Settings(msgspec.Struct, frozen=True):
    prefix: str = "usage.novasphere.dev"
    step: int = 5  # percent: labels are multiples of it
    slack: float = 1.0  # percent beyond a step's edge before the label follows, so that it does not flutter
    quiet_seconds: float = 30.0  # a node's labels change at most so often; removal of stale ones does not wait
    stale_seconds: float = 180.0  # a measurement older than this says nothing

    def key(self, kind: str) -> str:
        return f"{self.prefix}/{kind}"


class LabelPlan(msgspec.Struct, frozen=True):
    """Labels to set (None: to remove), and when to look again."""

    labels: dict[str, str | None] = {}
    again_after: float | None = None


def plan_labels(
    current: dict[str, str], usage: NodeUsage | None, changed_at: float | None, settings: Settings, now: float
) -> LabelPlan:
    """What to change on a node that has the labels `current`, last changed by us at `changed_at`."""
    if usage is None or is_stale(usage, settings.stale_seconds, now):
        return LabelPlan({settings.key(kind): None for kind in KINDS if settings.key(kind) in current})
    until_stale = None if usage.measured_at is None else usage.measured_at + settings.stale_seconds - now
    labels = {
        settings.key(kind): _choose_label(current.get(settings.key(kind)), getattr(usage, kind), settings)
        for kind in KINDS
    }
    changes = {key: value for key, value in labels.items() if value != current.get(key)}
    wait = 0.0 if changed_at is None else changed_at + settings.quiet_seconds - now
    if changes and wait > 0:
        return LabelPlan(again_after=wait if until_stale is None else min(wait, until_stale))
    return LabelPlan(changes, again_after=until_stale)


def is_stale(usage: NodeUsage, stale_seconds: float, now: float) -> bool:
    """Whether it was measured too long ago to count. What has no time holds until it is replaced."""
    return usage.measured_at is not None and now - usage.measured_at >= stale_seconds


def _choose_label(current: str | None, percent: float | None, settings: Settings) -> str | None:
    """The step the measurement lies in; the one we are at while the measurement is near its edges."""
    if percent is None or math.isnan(percent):
        return None
    bounded = min(max(percent, 0.0), 100.0)
    target = int(bounded // settings.step) * settings.step
    if current is not None and _is_percent(current) and int(current) % settings.step == 0:
        low, high = int(current) - settings.slack, int(current) + settings.step + settings.slack
        if low <= bounded < high:
            return current
    return str(target)


def usage_of_labels(nodes: Iterable[Node], now: float) -> list[NodeUsage]:
    """What was written on these nodes, taken as if it had been measured just now."""
    percents = ((node.metadata.name, _percents(node)) for node in nodes)
    return [
        NodeUsage(
            metadata=ObjectMeta(name=name),
            measured_at=now,
            cpu=known.get("cpu"),
            memory=known.get("memory"),
            storage=known.get("storage"),
        )
        for name, known in percents
        if known
    ]


def _percents(node: Node) -> dict[str, float]:
    labels = {kind: node.metadata.labels.get(Settings().key(kind), "") for kind in KINDS}
    return {kind: float(text) for kind, text in labels.items() if _is_percent(text)}


def _is_percent(label: str) -> bool:
    """Whether it is a whole number up to 100. Not by isdigit alone: that holds of ² as well."""
    return label.isascii() and label.isdigit() and len(label) <= 3 and int(label) <= 100
