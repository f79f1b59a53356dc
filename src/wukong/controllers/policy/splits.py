"""Shares put right: where the pods of an owner stand otherwise than onDemandBase and spotPercent say, one is evicted.

Keys are policies. Of each owner one pod is evicted at a time, and of all owners of a policy one at each look:

    not whole: pods missing, not ready, a rollout, a leaving node ─► wait
    its youngest pod was made less than PAUSE_SECONDS ago         ─► wait: no two evictions within that time
    no node of the right kind takes the replacement               ─► wait
    a budget allows none, or there are two                        ─► wait
    MOST_EVICTIONS that left as many pods wrong as there were     ─► held: the condition SplitHeld says so
    else                                                          ─► note the pod on the policy's status, then evict it

What was done is on the status, written at the version that was read and before the eviction: whoever decides on an old
mirror is refused there. A noted pod that is still there is evicted again, and no other. A held owner is tried anew when
it has another version or size, or the policy changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, NamedTuple

import msgspec

from wukong.actions import DONE, Action, Evict, Note, Outcome, Patch
from wukong.api.apps import PodDisruptionBudget, Workload
from wukong.api.core import Node, Pod, Toleration
from wukong.api.kinds import (
    CLUSTER_PLACEMENT_POLICIES,
    DEPLOYMENTS,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PLACEMENT_POLICIES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
)
from wukong.api.meta import Object
from wukong.api.placement import ClusterPlacementPolicy, PlacementPolicy
from wukong.api.policy_status import MOST_REPAIRS, SplitRepair, SplitStatus
from wukong.api.profile import default_profile
from wukong.api.resources import Key, key_of
from wukong.controllers.policy.groups import Group, find_owner, is_fixed, read_group
from wukong.controllers.policy.plans import PolicyMatcher, get_policy, resource_of
from wukong.engine import Scheduler
from wukong.engine.copy_on_write import CopyOnWriteDicts
from wukong.errors import InputError
from wukong.placement.capacity import SPOT_TAINTS, is_spot
from wukong.placement.compile import Plan, Policy, title_of
from wukong.placement.leaving_nodes import find_leaving_reason
from wukong.placement.pods.split import ON_DEMAND, SPOT, find_misplaced
from wukong.placement.rule import Rules
from wukong.ports import PatchBody
from wukong.semantics.selectors import EVERYTHING, compile_selector, selects
from wukong.state import Change, State
from wukong.state.controller import PodRight, Watch, no_keys

PAUSE_SECONDS = 60.0
LOOK_SECONDS = 5.0  # the pods of a policy are looked at no more often than this
ROOM_SECONDS = 60.0  # until a look whether there is room now
BUDGET_SECONDS = 10.0
MOST_EVICTIONS = 3


class SplitPolicies:
    """A derived index: the policies with onDemandBase or spotPercent, by namespace; "" for those of the cluster."""

    kinds: ClassVar[frozenset[str]] = frozenset((PLACEMENT_POLICIES.group_kind, CLUSTER_PLACEMENT_POLICIES.group_kind))

    def __init__(self) -> None:
        self._keys: CopyOnWriteDicts[str, Key, None] = CopyOnWriteDicts()

    def list_of(self, namespace: str) -> list[Key]:
        """The policies of this namespace, and those of the cluster."""
        return sorted((*self._keys.get(namespace, ()), *self._keys.get("", ())))

    def list_all(self) -> list[Key]:
        return sorted(key for namespace in self._keys for key in self._keys[namespace])

    def note(self, group_kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        if asks_for_split(new):
            self._keys.own(key.namespace)[key] = None
        elif asks_for_split(old):
            self._keys.own(key.namespace).pop(key, None)
            self._keys.drop_if_empty(key.namespace)

    def fork(self) -> SplitPolicies:
        copy = SplitPolicies()
        copy._keys = self._keys.fork()
        return copy


def asks_for_split(policy: Object | None) -> bool:
    if not isinstance(policy, PlacementPolicy | ClusterPlacementPolicy) or policy.spec.capacity is None:
        return False
    return policy.spec.capacity.on_demand_base is not None or policy.spec.capacity.spot_percent is not None


def splits_of_pod(change: Change, state: State) -> Iterable[Key]:
    policies = state.index_of(SplitPolicies).list_of(change.key.namespace)
    if not policies:
        return ()
    sides = [subject.metadata.labels for subject in (change.old, change.new) if subject is not None]
    found = ((key, get_policy(key, state)) for key in policies)
    return [key for key, policy in found if policy is not None and any(_selects(policy, labels) for labels in sides)]


def splits_of_node(change: Change, state: State) -> Iterable[Key]:
    """A node that came, went, or is of another kind now. What room it has is looked at from time to time."""
    old, new = change.old, change.new
    if isinstance(old, Node) and isinstance(new, Node) and _is_alike(old, new):
        return ()
    return state.index_of(SplitPolicies).list_all()


def _is_alike(old: Node, new: Node) -> bool:
    return (old.metadata.labels, old.spec, find_leaving_reason(old)) == (
        new.metadata.labels,
        new.spec,
        find_leaving_reason(new),
    )


def _selects(policy: Policy, labels: dict[str, str]) -> bool:
    selector = policy.spec.selector
    return selects(EVERYTHING if selector is None else compile_selector(selector), labels)


class Finding(NamedTuple):
    """A group, and its pods that are on the wrong side."""

    group: Group
    wrong: tuple[Pod, ...]

    @property
    def wanted(self) -> str:
        """Where those pods belong."""
        index = self.group.pods.index(self.wrong[0])
        return ON_DEMAND if self.group.capacities[index] == SPOT else SPOT


class Step(NamedTuple):
    """What becomes of a group at this look."""

    repair: SplitRepair | None  # as it is to be noted on the status
    pod: Pod | None = None  # to be evicted
    wait: float | None = None  # seconds until it may have changed by itself


class PolicySplits:
    name = "policy-split"
    pod_rights: ClassVar[frozenset[PodRight]] = frozenset((PodRight.EVICT_FROM_WHOLE,))
    watches = (
        Watch(PLACEMENT_POLICIES),
        Watch(CLUSTER_PLACEMENT_POLICIES),
        Watch(PODS, splits_of_pod, is_secondary=True),
        Watch(NODES, splits_of_node, is_secondary=True),
        *(Watch(resource, no_keys) for resource in (DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS)),
        # What tells whether a pod may be evicted, and whether another finds a node.
        *(
            Watch(resource, no_keys)
            for resource in (POD_DISRUPTION_BUDGETS, NAMESPACES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES)
        ),
    )

    def __init__(self, rules: Rules, pause_seconds: float = PAUSE_SECONDS) -> None:
        """`pause_seconds` is the least time between the making of a pod and the eviction of one of its owner's."""
        self.matcher, self.pause_seconds = PolicyMatcher(rules), pause_seconds
        self._profile = msgspec.structs.replace(default_profile(), scores=(), zero_scores=())
        self._looked_at: dict[Key, float] = {}  # may be lost: it saves work

    def copy_memory(self, source: PolicySplits, _: State) -> None:
        self._looked_at = dict(source._looked_at)

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        policy = get_policy(key, state)
        if policy is None or policy.metadata.deletion_timestamp is not None:
            self._looked_at.pop(key, None)
            return DONE
        if not asks_for_split(policy):
            return DONE if policy.status.split is None else Outcome((_write_status(policy, key, None),))
        left = self._looked_at.get(key, now - LOOK_SECONDS) + LOOK_SECONDS - now
        if 0 < left <= LOOK_SECONDS:
            return Outcome(requeue_after=left)
        self._looked_at[key] = now
        return self._look(policy, key, state, now)

    def _look(self, policy: Policy, key: Key, state: State, now: float) -> Outcome:
        title, findings = title_of(policy), list[Finding]()
        plan: Plan | None = None
        for owner, found in self._list_owners(policy, state):
            if found.name == title:
                plan, group = found, read_group(owner, state)
                wrong = find_misplaced(found, group.capacities)
                findings.append(Finding(group, tuple(group.pods[index] for index in wrong)))
        steps = self._plan_steps(policy, plan, findings, state, now)
        evicted = next((step.pod for step in steps if step.pod is not None), None)
        status = SplitStatus(
            owners=len(findings),
            on_demand=sum(finding.group.capacities.count(ON_DEMAND) for finding in findings),
            spot=sum(finding.group.capacities.count(SPOT) for finding in findings),
            misplaced=sum(len(finding.wrong) for finding in findings),
            repairs=[step.repair for step in steps if step.repair is not None],
        )
        actions: list[Action] = [] if status == policy.status.split else [_write_status(policy, key, status)]
        if evicted is not None:
            text = f"Pod {evicted.key} is evicted: it belongs on another kind of node."
            note = Note(resource_of(key), key, "SplitRepaired", text, uid=policy.metadata.uid)
            actions += [Evict(key_of(evicted), uid=evicted.metadata.uid), note]
        waits = [step.wait for step in steps if step.wait is not None]
        return Outcome(tuple(actions), requeue_after=min(waits, default=None))

    def _list_owners(self, policy: Policy, state: State) -> list[tuple[Workload, Plan]]:
        """The owners of the pods that the policy selects, by key, each with the plan that holds for its pods."""
        own = policy.metadata.namespace
        owners: dict[tuple[str, Key], tuple[Workload, Plan]] = {}
        for namespace in [own] if own else sorted(state.pods.classes):
            for labels in sorted(state.pods.classes.get(namespace, ())):
                if not _selects(policy, dict(labels)):
                    continue
                for pod_key in sorted(state.pods.by_class[namespace, labels]):
                    pod = state.get(Pod, pod_key)
                    owner = find_owner(pod, state) if pod is not None and not pod.is_finished else None
                    if pod is not None and owner is not None:
                        place = type(owner).__name__, key_of(owner)
                        owners.setdefault(place, (owner, self.matcher.find(pod, state)))
        return [owners[place] for place in sorted(owners)]

    def _plan_steps(
        self, policy: Policy, plan: Plan | None, findings: list[Finding], state: State, now: float
    ) -> list[Step]:
        """One for each group that is wrong, or was at work; at most one of them evicts a pod."""
        present = policy.status.split or SplitStatus()
        repairs = {repair.owner: repair for repair in present.repairs}
        free = MOST_REPAIRS - sum(finding.group.title in repairs for finding in findings)
        if plan is None or not plan.is_enforced:
            return []
        steps, may_evict = list[Step](), True
        for finding in findings:
            repair = repairs.get(finding.group.title)
            version = f"{policy.metadata.generation} {finding.group.version}"
            if repair is not None and repair.version != version and not finding.group.wait:
                repair, free = None, free + 1
            may_begin = may_evict and (repair is not None or free > 0)
            step = self._plan_step(finding, repair, version, state, now, may_evict=may_begin)
            free -= step.repair is not None and repair is None
            may_evict = may_evict and step.pod is None
            steps.append(step)
        return steps

    def _plan_step(
        self, finding: Finding, repair: SplitRepair | None, version: str, state: State, now: float, *, may_evict: bool
    ) -> Step:
        group, wrong = finding
        if group.wait:
            return Step(repair, wait=ROOM_SECONDS if wrong else None)
        if not wrong or (repair is not None and repair.held):
            return Step(repair if wrong else None)
        if is_fixed(wrong[-1]):
            return Step(repair)
        pause = max(self.pause_seconds, float(group.owner.spec.min_ready_seconds))
        if now < group.created_at + pause:
            return Step(repair, wait=group.created_at + pause - now)
        pod = next((pod for pod in group.pods if repair is not None and pod.metadata.uid == repair.pod), None)
        if pod is None:
            # Fewer: the last eviction helped. More: others did that, nodes that were lost say, for ours never adds one.
            is_another = repair is None or len(wrong) != repair.misplaced
            evictions = 0 if is_another or repair is None else repair.evictions
            if evictions >= MOST_EVICTIONS:
                return Step(msgspec.structs.replace(repair, held=True) if repair is not None else None)
            pod = wrong[-1]
            noted = SplitRepair(
                owner=group.title,
                version=version,
                pod=pod.metadata.uid,
                misplaced=len(wrong),
                evictions=evictions + 1,
            )
        elif pod in wrong:
            assert repair is not None
            noted = repair  # noted, and not evicted yet
        else:
            return Step(None)
        if not may_evict:
            return Step(repair, wait=LOOK_SECONDS)
        if not self._has_room(pod, finding, state):
            return Step(repair, wait=ROOM_SECONDS)
        if not allows_eviction(pod, state):
            return Step(repair, wait=BUDGET_SECONDS)
        return Step(noted, pod)

    def _has_room(self, pod: Pod, finding: Finding, state: State) -> bool:
        """Whether a node of the kind where the pod belongs takes it, as its owner makes it anew."""
        snapshot = state.snapshot.fork()
        if pod.key in snapshot.pods:
            snapshot.forget(pod.key)
        try:
            view = Scheduler(snapshot, self._profile).view_of(_replace_pod(pod, finding))
            view.sync()
        except InputError:  # a pod that no scheduler could read
            return False
        names = (snapshot.rows[row].name for row in view.feasible.nonzero()[0])
        nodes = (state.get(Node, Key("", name)) for name in names)
        return any(
            node is not None
            and is_spot(node.metadata.labels) == (finding.wanted == SPOT)
            and not find_leaving_reason(node)
            for node in nodes
        )


def _replace_pod(pod: Pod, finding: Finding) -> Pod:
    """The pod as its owner's template has it; what admission added for the kind of node it is on is not in there."""
    template = finding.group.owner.spec.template
    rules = template.spec if template is not None else pod.spec
    taints = SPOT_TAINTS if finding.wanted == SPOT else ()
    tolerations = [
        *rules.tolerations,
        *(Toleration(key=key, operator="Equal", value=value, effect=effect) for key, value, effect in taints),
    ]
    spec = msgspec.structs.replace(
        pod.spec,
        node_name="",
        node_selector=rules.node_selector,
        affinity=rules.affinity,
        tolerations=tolerations,
        topology_spread_constraints=rules.topology_spread_constraints,
    )
    return msgspec.structs.replace(pod, spec=spec)


def allows_eviction(pod: Pod, state: State) -> bool:
    """Whether the budget over a pod has one left; under two each eviction fails."""
    covering = [
        budget
        for key, budget in sorted(state.of(PodDisruptionBudget).items())
        if key.namespace == pod.metadata.namespace
        and isinstance(budget, PodDisruptionBudget)
        and selects(compile_selector(budget.spec.selector), pod.metadata.labels)
    ]
    return len(covering) < 2 and all(budget.status.disruptions_allowed > 0 for budget in covering)


def _write_status(policy: Policy, key: Key, status: SplitStatus | None) -> Patch:
    """At the version that was read: nothing is done on what others have changed meanwhile."""
    body = {
        "metadata": {"resourceVersion": policy.metadata.resource_version},
        "status": {"split": None if status is None else _format(status)},
    }
    return Patch(resource_of(key), key, PatchBody("merge", body), subresource="status")


def _format(status: SplitStatus) -> dict[str, object]:
    """All numbers, zeros too: a merge leaves what is not said."""
    names = {"owners": status.owners, "onDemand": status.on_demand, "spot": status.spot, "misplaced": status.misplaced}
    return {**names, "repairs": msgspec.to_builtins(status.repairs)}
