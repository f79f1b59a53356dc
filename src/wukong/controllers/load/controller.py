"""The load controller: keeps on the labels of every node how much of it is in use, and what it has free.

Plain node affinity can then prefer quiet nodes and ask for room. What a label should be is decided in usage_labels.py
(measured: NodeUsages, watched like any object) and in free_labels.py (by requests, as the engine's snapshot has them;
only for floors that a policy or a Wukong asks for). It writes nothing but those labels. When it last changed a node it
remembers itself: after a restart a label may move once early.
"""

from __future__ import annotations

from collections.abc import Iterable

from wukong.actions import DONE, Outcome, Patch
from wukong.api.core import Node, Pod
from wukong.api.kinds import NODE_USAGES, NODES, PODS
from wukong.api.resources import Key
from wukong.api.usage import NodeUsage
from wukong.controllers.load.floor_demand import ASKING, FloorDemand
from wukong.controllers.load.free_labels import FreeSettings, find_wanted_labels, plan_free_labels
from wukong.controllers.load.usage_labels import LabelPlan, Settings, plan_labels
from wukong.engine.requests import is_resize_infeasible
from wukong.ports import PatchBody
from wukong.state import Change, State
from wukong.state.controller import Watch


class Load:
    name = "load"

    def __init__(self, settings: Settings | None = None, free: FreeSettings | None = None) -> None:
        """`free` is None where no labels of free resources are kept: then pods need not be watched."""
        self.settings, self.free = settings or Settings(), free
        self._usage_changed_at: dict[str, float] = {}
        self._free_changed_at: dict[str, float] = {}
        self._demand_version = 0  # of FloorDemand, when all nodes were last looked at for its sake
        self.watches: tuple[Watch, ...] = (Watch(NODES), Watch(NODE_USAGES))  # both are named after the node
        if free is not None:
            self.watches += (
                Watch(PODS, _keys_of_pod, is_secondary=True),
                *(Watch(resource, self._keys_of_demand, optional=True, is_secondary=True) for resource in ASKING),
            )

    def copy_memory(self, source: Load, _: State) -> None:
        self._usage_changed_at = dict(source._usage_changed_at)
        self._free_changed_at = dict(source._free_changed_at)
        self._demand_version = source._demand_version

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        node = state.get(Node, key)
        if node is None:
            self._usage_changed_at.pop(key.name, None)
            self._free_changed_at.pop(key.name, None)
            return DONE
        usage = plan_labels(
            node.metadata.labels, state.get(NodeUsage, key), self._usage_changed_at.get(key.name), self.settings, now
        )
        free = self._plan_free(node, state, now)
        for plan, changed_at in ((usage, self._usage_changed_at), (free, self._free_changed_at)):
            if plan.labels:
                changed_at[key.name] = now
        times = [at for at in (usage.again_after, free.again_after) if at is not None]
        again_after, labels = min(times, default=None), {**usage.labels, **free.labels}
        if not labels:
            return Outcome(requeue_after=again_after)
        body = {"metadata": {"labels": labels}}
        return Outcome((Patch(NODES, key, PatchBody("merge", body)),), requeue_after=again_after)

    def _plan_free(self, node: Node, state: State, now: float) -> LabelPlan:
        if self.free is None:
            return LabelPlan()
        demand, name = state.index_of(FloorDemand), node.metadata.name
        wanted = find_wanted_labels(state.snapshot, name, demand.amounts, self.free) if demand else {}
        return plan_free_labels(node.metadata.labels, wanted, self._free_changed_at.get(name), self.free, now)

    def _keys_of_demand(self, change: Change, state: State) -> Iterable[Key]:
        """All nodes, once, when a floor is asked for that was not, or no longer; usually none."""
        version = state.index_of(FloorDemand).version
        if version == self._demand_version:
            return ()
        self._demand_version = version
        return sorted(state.of(Node))


def _keys_of_pod(change: Change, state: State) -> Iterable[Key]:
    """The nodes that have more or less free now, if anybody asks for it."""
    old, new = change.old, change.new
    if not state.index_of(FloorDemand) or (isinstance(old, Pod) and isinstance(new, Pod) and _is_alike(old, new)):
        return ()
    names = {pod.spec.node_name for pod in (old, new) if isinstance(pod, Pod) and pod.spec.node_name}
    return [Key("", name) for name in sorted(names)]


def _is_alike(old: Pod, new: Pod) -> bool:
    """Whether it takes as much of the same node as before: most changes are of its health."""
    return (
        (old.spec is new.spec or old.spec == new.spec)
        and old.is_finished == new.is_finished
        and old.status.container_statuses == new.status.container_statuses  # where a resize is told
        and old.status.init_container_statuses == new.status.init_container_statuses
        and is_resize_infeasible(old) == is_resize_infeasible(new)
    )
