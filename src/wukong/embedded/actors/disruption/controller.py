"""The disruption controller: how many pods of a PodDisruptionBudget may be disrupted now.

Follows kube-controller-manager 1.35. Percentages round up over the sum of the controllers' `spec.replicas`; an integer
minAvailable is itself, over the pods there are. An evicted pod counts as disrupted until it is seen to terminate, two
minutes at most. Pods of ReplicaSets count for their Deployment's replicas, as the real one finds scale.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from msgspec.structs import replace

from wukong.actions import DONE, Outcome
from wukong.api.core import Pod as AnyPod
from wukong.api.kinds import DEPLOYMENTS, POD_DISRUPTION_BUDGETS, PODS, REPLICA_SETS, STATEFUL_SETS
from wukong.api.meta import Object, OwnerReference, controller_of
from wukong.api.resources import Key, refers_to
from wukong.embedded.actors.deployment.sizes import resolve_percent
from wukong.embedded.actors.disruption.budget_index import BudgetIndex
from wukong.embedded.actors.disruption.covered_pods import CoveredPods, CoveredPodsIndex
from wukong.embedded.actors.status_patch import null_removed_entries, patch_status
from wukong.embedded.actors.watch_keys import has_same_labels, has_same_owners
from wukong.embedded.store.documents import format_time, parse_time
from wukong.embedded.world.objects import Deployment, Pod, PodDisruptionBudget, ReplicaSet, StatefulSet
from wukong.ports import Document
from wukong.state import Change, State
from wukong.state.controller import Watch, each_side_unless

DISRUPTED_SECONDS = 120.0


class UncountableBudgetError(Exception):
    """A budget whose pods cannot be counted; its condition says why."""


@each_side_unless(has_same_labels)
def _budgets_of_pod(pod: Object, state: State) -> Iterable[Key]:
    assert isinstance(pod, AnyPod)
    return state.index_of(BudgetIndex).of(pod)


def _budgets_in_namespace(change: Change, state: State) -> Iterable[Key]:
    """Those that count by this workload are among them. Nothing but its size and its own controller is counted by."""
    old, new = change.old, change.new
    if old is not None and new is not None and has_same_owners(old, new) and _replicas_of(old) == _replicas_of(new):
        return ()
    return state.index_of(BudgetIndex).in_namespace(change.key.namespace)


def _replicas_of(workload: Object) -> int | None:
    assert isinstance(workload, Deployment | ReplicaSet | StatefulSet)
    return workload.spec.replicas


class Disruption:
    name = "disruption"
    watches = (
        Watch(POD_DISRUPTION_BUDGETS),
        Watch(PODS, _budgets_of_pod, is_secondary=True),
        *(
            Watch(resource, _budgets_in_namespace, is_secondary=True)
            for resource in (DEPLOYMENTS, STATEFUL_SETS, REPLICA_SETS)
        ),
    )

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        state.index_of(BudgetIndex)  # made by now, so that a fork of the mirror need not make it
        budget = state.get(PodDisruptionBudget, key)
        if budget is None:
            return DONE
        covered = state.index_of(CoveredPodsIndex).of(budget, state)
        disrupted = dict(_find_disrupted(budget, covered, state, now))
        requeue_after = min((parse_time(at) + DISRUPTED_SECONDS - now for at in disrupted.values()), default=None)
        try:
            expected, desired = _count_expected(budget, covered, state)
        except UncountableBudgetError as error:
            status = _build_failed_status(budget, str(error), now)
        else:
            evicted = [covered.pods[Key(key.namespace, name)] for name in disrupted]
            healthy = covered.healthy - sum(pod.is_healthy for pod in evicted)
            status = _build_status(budget, healthy, desired, expected, disrupted, now)
        before = budget.document.get("status") or {}
        if status == before:
            return Outcome(requeue_after=requeue_after)
        null_removed_entries(before, status, "disruptedPods")
        patch = patch_status(POD_DISRUPTION_BUDGETS, key, before, status)
        # At this version only: an eviction charged meanwhile must not be forgotten by a count that did not know of it.
        body = {"metadata": {"resourceVersion": budget.metadata.resource_version}, **patch.patch.body}
        return Outcome((replace(patch, patch=replace(patch.patch, body=body)),), requeue_after)


def _find_disrupted(
    budget: PodDisruptionBudget, covered: CoveredPods, state: State, now: float
) -> Iterable[tuple[str, str]]:
    """Names of evicted pods that are not seen to terminate yet, and when they were evicted."""
    for name, at in sorted(budget.status.disrupted_pods.items()):
        key = Key(budget.metadata.namespace, name)
        pod = state.get(Pod, key) if key in covered.pods else None
        if pod is not None and not pod.is_terminating and at and parse_time(at) + DISRUPTED_SECONDS > now:
            yield name, at


def _count_expected(budget: PodDisruptionBudget, covered: CoveredPods, state: State) -> tuple[int, int]:
    """How many pods there should be, and how many of them healthy. Raises UncountableBudgetError."""
    spec = budget.spec
    if spec.max_unavailable is not None:
        expected = _sum_scales(covered, state)
        return expected, max(0, expected - resolve_percent(spec.max_unavailable, expected, up=True))
    if isinstance(spec.min_available, str):
        expected = _sum_scales(covered, state)
        return expected, resolve_percent(spec.min_available, expected, up=True)
    return len(covered.pods), spec.min_available or 0


def _sum_scales(covered: CoveredPods, state: State) -> int:
    """The sum of the replicas of the workloads. Raises UncountableBudgetError about the first pod that has none."""
    scales: dict[str, int] = {}  # uid of a workload → its spec.replicas
    problems: list[tuple[Key, str]] = []
    for owner, keys in covered.by_owner.items():
        if owner is None:
            problems.append((keys.first(), f'found no controller ref for pod "{keys.first().name}"'))
            continue
        scale = _find_scale(keys.first().namespace, owner.reference, state)
        if scale is not None:
            scales[scale.uid] = scale.replicas
        else:
            group = owner.api_version.partition("/")[0]
            problems.append((keys.first(), f"{owner.kind}.{group} does not implement the scale subresource"))
    if problems:
        raise UncountableBudgetError(min(problems)[1])
    return sum(scales.values())


class Scale(NamedTuple):
    """How many pods a workload should have."""

    uid: str
    replicas: int


def _find_scale(namespace: str, owner: OwnerReference, state: State) -> Scale | None:
    """The scale of the workload that the pods of this owner belong to in the end; None if it has none."""
    key = Key(namespace, owner.name)
    if refers_to(owner, REPLICA_SETS) and (replica_set := state.get(ReplicaSet, key)) is not None:
        above = controller_of(replica_set.metadata)
        if above is None or not refers_to(above, DEPLOYMENTS):
            return Scale(owner.uid, replica_set.spec.replicas or 0)
        deployment = state.get(Deployment, Key(namespace, above.name))
        return Scale(above.uid, (deployment.spec.replicas or 0) if deployment is not None else 0)
    if refers_to(owner, STATEFUL_SETS) and (stateful_set := state.get(StatefulSet, key)) is not None:
        return Scale(owner.uid, stateful_set.spec.replicas or 0)
    return None


def _build_status(
    budget: PodDisruptionBudget, healthy: int, desired: int, expected: int, disrupted: dict[str, str], now: float
) -> Document:
    allowed = max(0, healthy - desired) if expected > 0 else 0
    reason, is_allowed = ("SufficientPods", "True") if allowed else ("InsufficientPods", "False")
    status: Document = {
        "observedGeneration": budget.metadata.generation,
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "conditions": [_build_condition(budget, is_allowed, reason, "", now)],
    }
    return {**status, "disruptedPods": disrupted} if disrupted else status


def _build_failed_status(budget: PodDisruptionBudget, message: str, now: float) -> Document:
    """The counts stay as they were; no disruption is allowed."""
    before = budget.document.get("status") or {}
    conditions = [_build_condition(budget, "False", "SyncFailed", message, now)]
    counts = dict.fromkeys(("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"), 0)
    generation = {"observedGeneration": budget.metadata.generation}
    return {**counts, **before, **generation, "disruptionsAllowed": 0, "conditions": conditions}


def _build_condition(budget: PodDisruptionBudget, status: str, reason: str, message: str, now: float) -> Document:
    before: Document = next(iter((budget.document.get("status") or {}).get("conditions") or []), {})
    since = before.get("lastTransitionTime") if before.get("status") == status else None
    # As the server stores it, with an empty message, too: else every count looks new.
    condition: Document = {"type": "DisruptionAllowed", "status": status, "reason": reason, "message": message}
    times = {"observedGeneration": budget.metadata.generation, "lastTransitionTime": since or format_time(now)}
    return {**condition, **times}
