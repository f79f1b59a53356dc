"""On which nodes a DaemonSet's pods should run. Called by controller.py.

Decided by name, node selector, node affinity and taints, not by resources: whether there is room is for the scheduler.
"""

from __future__ import annotations

from typing import NamedTuple

from wukong.api.core import Pod
from wukong.embedded.actors.daemon_set.pods import added_tolerations
from wukong.embedded.world.objects import DaemonSet, Node
from wukong.semantics.node_selectors import allows_node
from wukong.semantics.tolerations import HARD_EFFECTS, is_tolerated


class NodeEligibility(NamedTuple):
    """Whether a daemon should run on a node, and whether one that is there already may stay."""

    should_run: bool
    may_stay: bool


def assess_node(node: Node, daemon_set: DaemonSet) -> NodeEligibility:
    template = daemon_set.spec.template
    if template is None or template.spec.node_name not in ("", node.metadata.name):
        return NodeEligibility(False, False)
    if not allows_node(Pod(spec=template.spec), node):
        return NodeEligibility(False, False)
    tolerations = [*template.spec.tolerations, *added_tolerations(template.spec)]
    hard_taints = [taint for taint in node.spec.taints if taint.effect in HARD_EFFECTS]
    untolerated = {taint.effect for taint in hard_taints if not is_tolerated(taint, tolerations)}
    return NodeEligibility(not untolerated, "NoExecute" not in untolerated)
