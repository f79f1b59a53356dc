"""What kube-scheduler does differently from minor to minor. The only place that knows.

Each `Version` is a set of named behaviours; the engine and the rules ask for a behaviour, never for a number.
To add the next minor: compare its source with the newest one here, add a row, name what changed.
"""

from __future__ import annotations

import re

import msgspec


class Version(msgspec.Struct, frozen=True):
    """How one minor of kube-scheduler decides."""

    minor: str
    # BalancedAllocation scores the change a pod makes to a node's balance, not the balance afterwards.
    balance_rewards_improvement: bool = False
    # The incoming pod's namespaceSelector also accepts every namespace when it accepts an empty label set
    # (kube-scheduler matched it against nil labels although it had been resolved to names: 1.34 to 1.36).
    own_namespace_selector_sees_no_labels: bool = True
    # NodeName is asked before NodeUnschedulable: decides under which reason a node is counted.
    node_name_first: bool = False
    # ImageLocality adds the images of image volumes ...
    image_volumes_score: bool = False
    # ... and counts those volumes among the images the sum is divided by.
    image_volumes_divide: bool = False
    # Plugins that score 0 for every pod without resource claims and unbound volumes, yet appear among the scores.
    zero_scores: tuple[str, ...] = ("DynamicResources",)
    # DynamicResources adds its own word to the message of a pod that fits nowhere.
    claims_message: bool = True
    # A refused node's taint is named in the reason.
    taint_named_in_reason: bool = False
    # A node whose allocatable is less than the pod asks for is no candidate of preemption.
    too_small_is_final: bool = True
    # Host ports of restartable init containers are taken like those of containers.
    sidecars_hold_ports: bool = True
    # A victim is charged to its budgets only up to the first one it breaks.
    budgets_stop_at_first_broken: bool = False
    # A pod that can be placed by preemption says so, and where, in its message.
    preemption_message: bool = False
    # A pod that goes wakes the pods which its own anti-affinity kept away, too (kubernetes#134393) ...
    leaving_pods_wake_by_their_terms: bool = False
    # ... and one anti-affinity term that matches is enough; before, all of a pod's terms had to.
    one_term_wakes: bool = False

    # VolumeBinding scores how much of the storage at hand the claims would use (gate StorageCapacityScoring) ...
    storage_capacity_scores: bool = False
    # ... and a node without a CSI driver that asks for it is refused (gate VolumeLimitScaling).
    missing_drivers_refuse: bool = False
    # What is said of a ReadWriteOncePod claim that another pod uses.
    one_pod_claim_reason: str = (
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another "
        "pod"
    )


VERSIONS: dict[str, Version] = {
    "1.33": Version(
        minor="1.33",
        own_namespace_selector_sees_no_labels=False,
        zero_scores=(),
        claims_message=False,
        taint_named_in_reason=True,
        too_small_is_final=False,
        sidecars_hold_ports=False,
        one_pod_claim_reason=(
            "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"
        ),
    ),
    "1.34": Version(minor="1.34", zero_scores=()),
    "1.35": Version(minor="1.35"),
    "1.36": Version(
        minor="1.36", balance_rewards_improvement=True, image_volumes_score=True, leaving_pods_wake_by_their_terms=True
    ),
    "1.37": Version(
        minor="1.37",
        balance_rewards_improvement=True,
        image_volumes_score=True,
        image_volumes_divide=True,
        own_namespace_selector_sees_no_labels=False,
        node_name_first=True,
        zero_scores=("DynamicResources", "VolumeBinding"),
        storage_capacity_scores=True,
        missing_drivers_refuse=True,
        claims_message=False,
        budgets_stop_at_first_broken=True,
        preemption_message=True,
        leaving_pods_wake_by_their_terms=True,
        one_term_wakes=True,
    ),
}
DEFAULT = "1.35"


def find_version(text: str) -> tuple[Version, bool]:
    """Return the behaviour of a version such as "v1.35.8", and whether it is that very minor (else: the nearest)."""
    match = re.match(r"v?(\d+)\.(\d+)", text)
    if match is None:
        return VERSIONS[DEFAULT], False
    wanted = (int(match[1]), int(match[2]))
    nearest = min(VERSIONS, key=lambda minor: (_distance(minor, wanted), minor))
    return VERSIONS[nearest], _pair(nearest) == wanted


def _pair(minor: str) -> tuple[int, int]:
    major, _, rest = minor.partition(".")
    return int(major), int(rest)


def _distance(minor: str, wanted: tuple[int, int]) -> int:
    pair = _pair(minor)
    return abs((pair[0] - wanted[0]) * 1000 + pair[1] - wanted[1])
