"""What a node says of its own end: which notice it has, how long it has left, who empties it. Pure.

Used by nodes.py, which writes down what it read (records.py). A notice is read from taints, conditions and the
annotation that anybody may write; facts about a machine that only its cloud knows come in by that annotation.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from wukong.api.core import Node
from wukong.api.times import parse_time
from wukong.placement.capacity import is_spot
from wukong.placement.leaving_nodes import CONDITIONS, NOTICE, SHUTTING_DOWN
from wukong.placement.notice_annotation import read_annotation

SILENT_SECONDS = 60.0  # a spot node that is not ready for so long is taken for lost


class Course(Enum):
    """What will become of the node, and so what is done about it."""

    RECLAIM = "Reclaim"  # the machine goes at its deadline: nothing new, everybody moves, evictions where needed
    DRAIN = "Drain"  # somebody else empties it: replacements are prepared, evictions are left to them
    RECOMMEND = "Recommend"  # it may go some day: who can move without loss does
    LOST = "Lost"  # it is dead already: replacements are made at once


class Notice(NamedTuple):
    """`seconds` are those from now until the node goes, where that is known; `deadline` where its moment is."""

    source: str
    course: Course
    seconds: float | None = None
    deadline: float | None = None


_TAINTS: dict[str, tuple[Course, float | None]] = {
    "aws-node-termination-handler/spot-itn": (Course.RECLAIM, 120.0),
    "aws-node-termination-handler/scheduled-maintenance": (Course.RECLAIM, None),
    "aws-node-termination-handler/asg-lifecycle-termination": (Course.RECLAIM, None),
    "aws-node-termination-handler/rebalance-recommendation": (Course.RECOMMEND, None),
    "cloud.google.com/impending-node-termination": (Course.RECLAIM, 30.0),
    "remediator.kubernetes.azure.com/unschedulable": (Course.RECLAIM, 30.0),
    "karpenter.sh/disrupted": (Course.DRAIN, None),
    "ToBeDeletedByClusterAutoscaler": (Course.DRAIN, None),
    "node.cloudprovider.kubernetes.io/shutdown": (Course.LOST, None),
    "node.kubernetes.io/out-of-service": (Course.LOST, None),
}
_CONDITION_SECONDS = 30.0  # AKS gives at least so long
_SHUTDOWN_SECONDS = 30.0  # a kubelet's usual grace for a shutdown
_ORDER = (Course.LOST, Course.RECLAIM, Course.DRAIN, Course.RECOMMEND)


def read_notice(node: Node) -> Notice | None:
    """The gravest notice of a node; None if it stays. A node that merely is not ready has none: see `is_silent`."""
    notices = [
        *_read_annotation(node),
        *(Notice(f"taint {taint.key}", *_TAINTS[taint.key]) for taint in node.spec.taints if taint.key in _TAINTS),
        *_read_conditions(node),
    ]
    if node.metadata.deletion_timestamp is not None:
        deadline = parse_time(node.metadata.deletion_timestamp)
        notices.append(Notice("deletion of the Node", Course.DRAIN, deadline=deadline))
    return min(notices, key=_gravity, default=None)


def is_silent(node: Node) -> bool:
    """Whether this is a spot node whose kubelet does not answer: it may be gone without a notice."""
    ready = next((condition for condition in node.status.conditions if condition.type == "Ready"), None)
    return ready is not None and ready.status == "Unknown" and is_spot(node.metadata.labels)


def _read_annotation(node: Node) -> list[Notice]:
    """What people wrote (2m, a moment, anything: soon) or a program did, which says its name and how sure it is."""
    text = node.metadata.annotations.get(NOTICE)
    if text is None:
        return []
    stated = read_annotation(text)
    source = stated.source or f"annotation {NOTICE}"
    return [Notice(source, Course(stated.course), seconds=stated.seconds, deadline=stated.deadline)]


def _read_conditions(node: Node) -> list[Notice]:
    notices = []
    for condition in node.status.conditions:
        if condition.type in CONDITIONS and condition.status == "True":
            notices.append(Notice(f"condition {condition.type}", Course.RECLAIM, _CONDITION_SECONDS))
        if condition.type == "Ready" and condition.status != "True" and SHUTTING_DOWN in condition.message:
            notices.append(Notice(f"condition Ready: {SHUTTING_DOWN}", Course.RECLAIM, _SHUTDOWN_SECONDS))
    return notices


def _gravity(notice: Notice) -> tuple[int, bool, float, str]:
    """Graver first; of two alike the one that says when, and then the sooner."""
    moment = notice.deadline if notice.deadline is not None else notice.seconds
    return _ORDER.index(notice.course), moment is None, moment or 0.0, notice.source
