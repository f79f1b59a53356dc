"""The text of a FailedScheduling event: how many nodes were rejected for which reason, and why nobody is evicted.

    0/5 nodes are available: 2 Insufficient cpu, 3 Too many pods. preemption: 0/5 nodes are available: …

Only puts words together; what they say was decided elsewhere. The text is whole, as in the pod's condition; the event
is cut at 1024 characters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

NO_NODES = "no nodes available to schedule pods"
NO_CLAIMS = "no new claims to deallocate"
NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"
NEVER = "not eligible due to preemptionPolicy=Never."
TERMINATING = "not eligible due to a terminating pod on the nominated node."


def format_fit_error(number_of_nodes: int, reasons_by_node: Iterable[tuple[str, ...]]) -> str:
    """One node may give several reasons. Sorted as text, so that "10 …" comes before "2 …"."""
    counts = Counter(reason for reasons in reasons_by_node for reason in reasons)
    histogram = sorted(f"{count} {reason}" for reason, count in counts.items())
    return format_prefilter_error(number_of_nodes, ", ".join(histogram))


def format_prefilter_error(number_of_nodes: int, reason: str) -> str:
    """When no node was looked at, because the pod contradicts itself."""
    return f"0/{number_of_nodes} nodes are available: {reason}."


def format_placement(node: str, victims: int) -> str:
    """What a scheduler that announces its preemptions adds."""
    return f"preemption: found a potential placement for pod on node {node}, preempting {victims} victims"


def add_post_filter(message: str, reasons: Iterable[str]) -> str:
    added = ", ".join(reason for reason in reasons if reason)
    return f"{message} {added}" if added else message
