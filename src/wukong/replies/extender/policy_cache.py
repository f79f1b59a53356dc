"""The policies and Wukongs of the mirror, compiled, kept current at the cost of what changed. Used by verbs.py.

A policy is compiled when it comes and when its spec changes: what is written to its status changes nothing here. Nor
does a Namespace, but for which of its pods a policy of the cluster selects. Of a Wukong its scheduling block counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, NamedTuple

from wukong.api.kinds import CLUSTER_PLACEMENT_POLICIES, NAMESPACES, PLACEMENT_POLICIES, WUKONGS
from wukong.api.meta import Object
from wukong.api.placement import ClusterPlacementPolicy, PlacementPolicy
from wukong.api.resources import Key
from wukong.api.vm import Wukong
from wukong.placement.compile import GPU_NAMES, Plan
from wukong.placement.matching import Policies
from wukong.placement.rule import Rules
from wukong.placement.slices import Slices
from wukong.placement.wukong_plan import WukongPlans
from wukong.state import State

_READ = (NAMESPACES, PLACEMENT_POLICIES, CLUSTER_PLACEMENT_POLICIES, WUKONGS)
_KINDS = tuple(resource.group_kind for resource in _READ)
_LONGEST_LOG = 1 << 14


class ChangedObject(NamedTuple):
    group_kind: str
    key: Key


class PolicyChanges:
    """A derived index of the mirror: which policies, Wukongs and namespaces changed lately in what decisions read."""

    kinds: ClassVar[frozenset[str]] = frozenset(_KINDS)

    def __init__(self) -> None:
        self._log: list[ChangedObject] = []
        self._forgotten = 0  # entries dropped from the log's beginning

    @property
    def version(self) -> int:
        """Another number whenever something changed."""
        return self._forgotten + len(self._log)

    def changed_since(self, version: int) -> list[ChangedObject] | None:
        """What changed since then; None if that is too long ago to tell."""
        return self._log[version - self._forgotten :] if version >= self._forgotten else None

    def note(self, group_kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        if old is not None and new is not None and _content_of(old) == _content_of(new):
            return
        self._log.append(ChangedObject(group_kind, key))
        if len(self._log) > _LONGEST_LOG:
            dropped = _LONGEST_LOG // 2
            del self._log[:dropped]
            self._forgotten += dropped

    def fork(self) -> PolicyChanges:
        copy = PolicyChanges()
        copy._log, copy._forgotten = list(self._log), self._forgotten
        return copy


class PolicyCache:
    def __init__(
        self,
        state: State,
        rules: Rules,
        default_plan: Plan,
        gpu_names: tuple[str, ...] = GPU_NAMES,
        forget: Callable[[Plan], None] = lambda plan: None,
        *,
        judges_resources: bool = False,
    ) -> None:
        """`forget` is called with every plan that holds no longer; `judges_resources`: those that Wukongs ask for."""
        self.state = state
        self._forget = forget
        self.wukongs = WukongPlans(rules, gpu_names, judges_resources=judges_resources, forget=forget)
        self._policies = Policies((), rules, default_plan, {}, gpu_names)
        self._version = -1  # of PolicyChanges: up to there they have been taken over
        self._pending: dict[ChangedObject, None] = {}  # what changed and is still to be looked at
        self._taken_over: dict[ChangedObject, object] = {}  # what decisions read of each

    def read_in_slices(self) -> Slices[Policies]:
        """The policies as the mirror has them when the last slice is over."""
        while True:
            self._collect_changes()
            if not self._pending:
                return self._policies
            changed = next(iter(self._pending))
            del self._pending[changed]
            self._take_over(changed)
            yield

    def _collect_changes(self) -> None:
        changes = self.state.index_of(PolicyChanges)
        if changes.version == self._version:
            return
        changed = changes.changed_since(self._version) if self._version >= 0 else None
        if changed is None:
            # The first time, or too much has changed meanwhile: what is as we know it costs nothing.
            changed = [ChangedObject(kind, key) for kind in _KINDS for key in self.state.objects.get(kind, {})]
            self._pending |= dict.fromkeys(self._taken_over)
        self._pending |= dict.fromkeys(changed)
        self._version = changes.version

    def _take_over(self, changed: ChangedObject) -> None:
        group_kind, key = changed
        subject = self.state.objects.get(group_kind, {}).get(key)
        content = None if subject is None else _content_of(subject)
        if self._taken_over.get(changed) == content:
            return
        self._taken_over.pop(changed, None)
        if content is not None:
            self._taken_over[changed] = content
        if group_kind == NAMESPACES.group_kind:
            self._policies.put_namespace(key.name, subject.metadata.labels if subject is not None else None)
            return
        if group_kind == WUKONGS.group_kind:
            if isinstance(subject, Wukong):
                self.wukongs.put(subject)
            else:
                self.wukongs.remove(key)
            return
        if isinstance(subject, PlacementPolicy | ClusterPlacementPolicy):
            old_plan = self._policies.put(subject)
        else:
            is_of_cluster = group_kind == CLUSTER_PLACEMENT_POLICIES.group_kind
            old_plan = self._policies.remove(key, is_of_cluster=is_of_cluster)
        if old_plan is not None:
            self._forget(old_plan)


def _content_of(subject: Object) -> object:
    """What decisions read of it. The status of a policy is not."""
    if isinstance(subject, PlacementPolicy | ClusterPlacementPolicy):
        return subject.spec
    if isinstance(subject, Wukong):
        scheduling = subject.spec.scheduling
        block = (scheduling.resource_affinity, scheduling.scheduling_policy) if scheduling is not None else (None, None)
        return (*block, subject.spec.gpus)
    return subject.metadata.labels
