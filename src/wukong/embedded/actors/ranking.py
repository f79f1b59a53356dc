"""Which pods of a ReplicaSet go first when there are too many: kube-controller-manager's ActivePodsWithRanks.

Called by replica_set.py. The criteria, first to go first:

    without a node · Pending, Unknown, Running · not ready · lower pod-deletion-cost · more related pods on its node ·
    ready more recently (by powers of two) · more restarts · newer (by powers of two) · uid
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable
from functools import cmp_to_key
from math import log2

from wukong.embedded.actors.pods import is_ready, ready_since
from wukong.embedded.objects import Pod
from wukong.embedded.store.documents import at, seconds

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def in_order_of_leaving(pods: Iterable[Pod], related: Iterable[Pod], now: float) -> list[Pod]:
    """`related` are the active pods of the same owner, these included: of crowded nodes the pods go first."""
    crowd = Tally(pod.spec.node_name for pod in related)

    def compare(one: Pod, other: Pod) -> int:
        first, second = _plain(one, crowd), _plain(other, crowd)
        if first != second:
            return -1 if first < second else 1
        return _by_times(one, other, now)

    return sorted(pods, key=cmp_to_key(compare))


def _plain(pod: Pod, crowd: Tally[str]) -> tuple[bool, int, bool, int, int]:
    phase = _PHASES.get(pod.status.phase, 0)
    return (bool(pod.spec.node_name), phase, is_ready(pod), deletion_cost(pod), -crowd[pod.spec.node_name])


def deletion_cost(pod: Pod) -> int:
    """What cannot be read counts as nothing said. Kubernetes takes no sign `+` and no leading zeros."""
    text = pod.metadata.annotations.get(DELETION_COST, "0")
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or (digits[0] == "0" and text != "0"):
        return 0
    return int(text) if -(2**31) <= int(text) < 2**31 else 0


def _by_times(one: Pod, other: Pod, now: float) -> int:
    if is_ready(one) and (first := ready_since(one)) != (second := ready_since(other)):
        return _newer_first(first, second, one, other, now)
    if (first_restarts := _restarts(one)) != (second_restarts := _restarts(other)):
        return -1 if first_restarts > second_restarts else 1
    born, later = _created(one), _created(other)
    if born != later:
        return _newer_first(born, later, one, other, now)
    return 0


def _newer_first(first: float, second: float, one: Pod, other: Pod, now: float) -> int:
    """Of times about as long ago, uid decides: otherwise the newest would always go, wherever it is."""
    if not first or not second:
        return -1 if not first else 1
    difference = _magnitude(now - first) - _magnitude(now - second)
    if difference:
        return difference
    return -1 if one.metadata.uid < other.metadata.uid else 1


def _magnitude(age: float) -> int:
    nanoseconds = age * 1e9
    return int(log2(nanoseconds)) if nanoseconds > 0 else -1


def _restarts(pod: Pod) -> int:
    statuses = at(pod.document, "status.containerStatuses") or ()
    return max((each.get("restartCount", 0) for each in statuses), default=0)


def _created(pod: Pod) -> float:
    return seconds(pod.metadata.creation_timestamp) if pod.metadata.creation_timestamp else 0.0
