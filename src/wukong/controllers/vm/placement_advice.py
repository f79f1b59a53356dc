"""Why a virtual machine's pod has no node, and the smallest change that would help: the engine asked, within bounds.

Called by the controller for a pod that the scheduler has refused. It decides on the mirror's snapshot as `wukong
explain` does. In clusters with more than MOST_NODES nodes only the scheduler's own reasons are told: trying out changes
there would hold everybody else up for longer than 50 ms.
"""

from __future__ import annotations

from wukong.api.core import Pod
from wukong.api.profile import Profile
from wukong.engine import Scheduler, Snapshot
from wukong.engine.fixes import Fix, find_fixes
from wukong.errors import InputError

MOST_NODES = 1000
_LABELS_OF_HANDLERS = ("kubevirt.io/schedulable", "machine-type.node.kubevirt.io/", "cpu-model.node.kubevirt.io/")


def advise(pod: Pod, snapshot: Snapshot, profile: Profile) -> str:
    """The smallest change that makes the pod fit, as a sentence; "" if there is none, or looking would take long."""
    if len(snapshot.rows) > MOST_NODES:
        return ""
    try:
        scheduler = Scheduler(snapshot.fork(), profile)
        if scheduler.view_of(pod).count_feasible():
            return "Our own look finds a node for it now: the scheduler will try again."
        fixes = find_fixes(scheduler, pod)
    except InputError:  # a pod that no scheduler could read
        return ""
    return describe_fix(fixes[0]) if fixes else "No single change would help."


def describe_fix(fix: Fix) -> str:
    if fix.kind == "drop" and any(label in fix.sentence for label in _LABELS_OF_HANDLERS):
        label = next(label for label in _LABELS_OF_HANDLERS if label in fix.sentence)
        return f"Smallest fix: run KubeVirt on a node that fits otherwise (label {label.rstrip('/')} is missing there)."
    where = "a node" if fix.nodes == 1 else f"{fix.nodes} nodes"
    return f"Smallest fix: {fix.sentence} (then it fits on {where})."
