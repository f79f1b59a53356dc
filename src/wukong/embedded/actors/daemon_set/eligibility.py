"""On which nodes a DaemonSet's pods should run. Called by controller.py.

Decided by name, node selector, node affinity and taints, not by resources: whether there is room is for the scheduler.
"""

from __future__ import annotations

from typing import NamedTuple

from wukong.api.core import Pod
from wukong.api.resources import Key, key_of
from wukong.embedded.actors.daemon_set.pods import added_tolerations
from wukong.embedded.world.objects import DaemonSet, Node
from wukong.semantics.node_selectors import allows_node
from wukong.semantics.tolerations import HARD_EFFECTS, is_tolerated
from wukong.state import State


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


class EligibilityCache:
    """The eligibility of all nodes for each DaemonSet. Only nodes and DaemonSets that changed are assessed again."""

    def __init__(self) -> None:
        # key of a DaemonSet → its uid and generation, and for each node its uid and version, and its eligibility
        self._assessed: dict[Key, tuple[str, dict[str, tuple[str, NodeEligibility]]]] = {}

    def copy_memory(self, source: EligibilityCache) -> None:
        self._assessed = dict(source._assessed)

    def assess(self, daemon_set: DaemonSet, state: State) -> dict[str, NodeEligibility]:
        """The eligibility of every node, by name."""
        key, generation = key_of(daemon_set), f"{daemon_set.metadata.uid}/{daemon_set.metadata.generation}"
        generation_before, known = self._assessed.get(key, ("", {}))
        known = known if generation_before == generation else {}
        assessed = {}
        for node in state.all(Node):
            name, version = node.metadata.name, f"{node.metadata.uid}/{node.metadata.resource_version}"
            before = known.get(name)
            is_current = before is not None and before[0] == version
            assessed[name] = before if is_current and before is not None else (version, assess_node(node, daemon_set))
        self._assessed[key] = generation, assessed
        return {name: eligibility for name, (_, eligibility) in assessed.items()}

    def forget(self, key: Key) -> None:
        self._assessed.pop(key, None)
