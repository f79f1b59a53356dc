"""What an autoscaler remembers: what it recommended, and how it scaled, lately. And what it makes of that. Pure.

Follows kube-controller-manager's horizontal.go (1.35): stabilisation windows, and policies that bound how many pods
come or go in a period. Kept by controller.py for each HorizontalPodAutoscaler; lost with it, as the real one's is.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from wukong.api.autoscaling import ScalingRules

DOWNSCALE_SECONDS = 300  # the window of who says nothing else
_MOST = 2**31 - 1
_LONGEST_PERIOD = 1800  # seconds that a policy may count
_WITHIN_RANGE = ("DesiredWithinRange", "the desired count is within the acceptable range")
_TOO_FAST = "the desired replica count is {} faster than the maximum scale rate"
_TOO_MANY = ("TooManyReplicas", "the desired replica count is more than the maximum replica count")
_TOO_FEW = ("TooFewReplicas", "the desired replica count is less than the minimum replica count")
READY = ("ReadyForNewScale", "recommended size matches current size")
SCALED_DOWN_LATE = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
)
SCALED_UP_LATE = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
)


class Recommendation(NamedTuple):
    """A number of replicas, and what the conditions AbleToScale and ScalingLimited say of it."""

    replicas: int
    able_to_scale: tuple[str, str]
    limited: tuple[str, str]
    is_limited: bool

    @property
    def is_for_now(self) -> bool:
        """Whether it would be another number if only time passed."""
        return self.able_to_scale != READY or self.limited[0] in ("ScaleUpLimit", "ScaleDownLimit")


class Bounds(NamedTuple):
    least: int
    most: int


class ScalingHistory:
    def __init__(self) -> None:
        self.recommendations: list[tuple[float, int]] = []
        self.increases: list[tuple[float, int]] = []
        self.decreases: list[tuple[float, int]] = []

    def fork(self) -> ScalingHistory:
        copy = ScalingHistory()
        copy.recommendations = list(self.recommendations)
        copy.increases, copy.decreases = list(self.increases), list(self.decreases)
        return copy

    def begin(self, replicas: int, now: float) -> None:
        """What is there when it is first looked at counts as a recommendation."""
        if not self.recommendations:
            self.recommendations.append((now, replicas))

    def note_scaling(self, before: int, after: int, now: float) -> None:
        changes = self.increases if after > before else self.decreases
        changes[:] = [entry for entry in changes if entry[0] > now - _LONGEST_PERIOD]
        changes.append((now, abs(after - before)))

    def repeat_last(self, now: float) -> None:
        """It would have recommended the same until now, had it been asked."""
        if self.recommendations:
            self.recommendations[-1] = (now, self.recommendations[-1][1])

    def is_steady(self, up: ScalingRules | None, down: ScalingRules | None, now: float) -> bool:
        """Whether nothing of it will matter less merely because time passes."""
        windows = [DOWNSCALE_SECONDS, *(rules.stabilization_window_seconds or 0 for rules in (up, down) if rules)]
        recent = {count for at, count in self.recommendations if at >= now - max(windows)}
        period = max([0, *(policy.period_seconds for rules in (up, down) if rules for policy in rules.policies)])
        scaled = any(at > now - period for at, _ in (*self.increases, *self.decreases))
        return len(recent) <= 1 and not scaled

    def size(self, current: int, wanted: int, bounds: Bounds, now: float) -> Recommendation:
        """Without a behavior: down after the window, up at most twofold or to four."""
        window = [count for at, count in self.recommendations if at >= now - DOWNSCALE_SECONDS]
        stabilized = max([wanted, *window])
        self._record(wanted, now, DOWNSCALE_SECONDS)
        able = SCALED_DOWN_LATE if stabilized != wanted else READY
        fastest = max(2 * current, 4)
        most, reason = (bounds.most, _TOO_MANY)
        if bounds.most > fastest:
            most, reason = fastest, ("ScaleUpLimit", _TOO_FAST.format("increasing"))
        if stabilized < bounds.least:
            return Recommendation(bounds.least, able, _TOO_FEW, True)
        if stabilized > most:
            return Recommendation(most, able, reason, True)
        return Recommendation(stabilized, able, _WITHIN_RANGE, False)

    def size_by_behavior(
        self, current: int, wanted: int, bounds: Bounds, up: ScalingRules, down: ScalingRules, now: float
    ) -> Recommendation:
        up_window = up.stabilization_window_seconds or 0
        down_window = down.stabilization_window_seconds
        down_window = DOWNSCALE_SECONDS if down_window is None else down_window
        lowest = min([wanted, *(count for at, count in self.recommendations if at > now - up_window)])
        highest = max([wanted, *(count for at, count in self.recommendations if at > now - down_window)])
        stabilized = min(max(current, lowest), highest)
        self._record(wanted, now, max(up_window, down_window))
        able = READY
        if stabilized != wanted:
            able = SCALED_UP_LATE if wanted >= current else SCALED_DOWN_LATE
        replicas, reason = self._limit(current, stabilized, bounds, up, down, now)
        return Recommendation(replicas, able, reason, replicas != stabilized)

    def _record(self, wanted: int, now: float, window: float) -> None:
        """Keep what is recommended now, and what counts still."""
        self.recommendations = [entry for entry in self.recommendations if entry[0] >= now - window]
        self.recommendations.append((now, wanted))

    def _limit(
        self, current: int, wanted: int, bounds: Bounds, up: ScalingRules, down: ScalingRules, now: float
    ) -> tuple[int, tuple[str, str]]:
        if wanted > current:
            fastest = max(current, self._find_limit(current, up, now, sign=1))
            most, reason = bounds.most, _TOO_MANY
            if bounds.most > fastest:
                most, reason = fastest, ("ScaleUpLimit", _TOO_FAST.format("increasing"))
            if wanted > most:
                return most, reason
        elif wanted < current:
            fastest = min(current, self._find_limit(current, down, now, sign=-1))
            least, reason = bounds.least, _TOO_FEW
            if bounds.least < fastest:
                least, reason = fastest, ("ScaleDownLimit", _TOO_FAST.format("decreasing"))
            if wanted < least:
                return least, reason
        return wanted, _WITHIN_RANGE

    def _find_limit(self, current: int, rules: ScalingRules, now: float, *, sign: int) -> int:
        """As far as policies let it go up (`sign` 1) or down (-1)."""
        if rules.select_policy == "Disabled":
            return current
        proposals = []
        for policy in rules.policies:
            since = now - policy.period_seconds
            added = sum(count for at, count in self.increases if at > since)
            removed = sum(count for at, count in self.decreases if at > since)
            start = current - added + removed
            if policy.type == "Pods":
                proposals.append(start + sign * policy.value)
            elif sign > 0:
                proposals.append(ceil(start * (1 + policy.value / 100)))
            else:
                proposals.append(int(start * (1 - policy.value / 100)))
        is_least_change = rules.select_policy == "Min"
        if not proposals:
            return _MOST * (sign if is_least_change else -sign)
        return min(proposals) if is_least_change == (sign > 0) else max(proposals)
