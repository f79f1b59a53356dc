"""What a pod asks of a scheduler that ours does not do. Such a pod is told so, and left alone until that has changed.

Called by controller.py for our own scheduler: one that only stands for kube-scheduler in an embedded cluster treats all
of this as satisfied.
"""

from __future__ import annotations

from wukong.api.core import Pod


def find_unmodelled(pod: Pod) -> str:
    """Return the first thing that we do not model about this pod; "" if there is none."""
    return "it has resource claims, and devices are not allocated here" if pod.spec.resource_claims else ""
