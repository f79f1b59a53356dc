"""The disruption controller: how many pods of a PodDisruptionBudget may be disrupted just now.

Follows kube-controller-manager 1.35. Percentages round up over the sum of the controllers' `spec.replicas`; an integer
minAvailable is itself, over the pods there are. A pod let go by an eviction counts as disrupted until it is seen to
leave, two minutes at most. Pods of ReplicaSets count for their Deployment's replicas, as the real one finds scale.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from wukong.actions import DONE, Outcome
from wukong.api.apps import PodDisruptionBudget as AnyBudget
from wukong.api.core import Pod as AnyPod
from wukong.api.kinds import DEPLOYMENTS, POD_DISRUPTION_BUDGETS, PODS, REPLICA_SETS, STATEFUL_SETS
from wukong.api.meta import Object, controller_of
from wukong.api.resources import Key, key_of, refers_to
from wukong.embedded.actors import pods
from wukong.embedded.actors.deployment.sizes import percent
from wukong.embedded.actors.disruption.budget_index import BudgetIndex
from wukong.embedded.actors.replica_set.controller import writing_status
from wukong.embedded.store.documents import format_time, parse_time
from wukong.embedded.world.objects import Deployment, Pod, PodDisruptionBudget, ReplicaSet, StatefulSet
from wukong.ports import Document
from wukong.state import Change, State
from wukong.state.controller import Watch, each_side

DISRUPTED_SECONDS = 120.0


class TooVague(Exception):  # noqa: N818
    """A budget whose pods cannot be counted; its condition says why."""


@each_side
def _covering(pod: Object, state: State) -> Iterable[Key]:
    assert isinstance(pod, AnyPod)
    return state.derived(BudgetIndex).of(pod)


def _of_workload(change: Change, state: State) -> Iterable[Key]:
    return [key_of(budget) for budget in state.all(AnyBudget) if budget.metadata.namespace == change.key.namespace]


class Disruption:
    name = "disruption"
    watches = (
        Watch(POD_DISRUPTION_BUDGETS),
        Watch(PODS, _covering),
        *(Watch(resource, _of_workload) for resource in (DEPLOYMENTS, STATEFUL_SETS, REPLICA_SETS)),
    )

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        budget = state.get(PodDisruptionBudget, key)
        if budget is None:
            return DONE
        found = _pods(budget, state)
        disrupted = dict(_disrupted(budget, found, now))
        again = min((parse_time(at) + DISRUPTED_SECONDS - now for at in disrupted.values()), default=None)
        try:
            expected, desired = _expected(budget, found, state)
        except TooVague as error:
            status = _failed(budget, str(error), now)
        else:
            healthy = sum(
                pods.is_ready(it) and not it.is_terminating and it.metadata.name not in disrupted for it in found
            )
            status = _counted(budget, healthy, desired, expected, disrupted, now)
        before = budget.document.get("status") or {}
        if status == before:
            return Outcome(requeue_after=again)
        written = writing_status(POD_DISRUPTION_BUDGETS, key, _cleared(before, status), status)
        # At this version only: an eviction charged meanwhile must not be forgotten by a count that did not know of it.
        body = {"metadata": {"resourceVersion": budget.metadata.resource_version}, **written.patch.body}
        return Outcome((replace(written, patch=replace(written.patch, body=body)),), again)


def _pods(budget: PodDisruptionBudget, state: State) -> list[Pod]:
    keys = state.pods.matching(budget.metadata.namespace, budget.spec.selector)
    return [pod for key in keys if (pod := state.get(Pod, key)) is not None and not pod.is_finished]


def _disrupted(budget: PodDisruptionBudget, found: list[Pod], now: float) -> Iterable[tuple[str, str]]:
    there = {pod.metadata.name: pod for pod in found}
    for name, at in sorted(budget.status.disrupted_pods.items()):
        pod = there.get(name)
        if pod is not None and not pod.is_terminating and at and parse_time(at) + DISRUPTED_SECONDS > now:
            yield name, at


def _expected(budget: PodDisruptionBudget, found: list[Pod], state: State) -> tuple[int, int]:
    """How many pods there should be, and how many of them healthy."""
    spec = budget.spec
    if spec.max_unavailable is not None:
        expected = _scale(found, state)
        return expected, max(0, expected - percent(spec.max_unavailable, expected, up=True))
    if isinstance(spec.min_available, str):
        expected = _scale(found, state)
        return expected, percent(spec.min_available, expected, up=True)
    return len(found), spec.min_available or 0


def _scale(found: list[Pod], state: State) -> int:
    sizes: dict[str, int] = {}  # uid of a controller → its spec.replicas
    for pod in found:
        owner = controller_of(pod.metadata)
        if owner is None:
            raise TooVague(f'found no controller ref for pod "{pod.metadata.name}"')
        if owner.uid in sizes:
            continue
        uid, size = _sized(pod, state)
        sizes[uid] = size
    return sum(sizes.values())


def _sized(pod: AnyPod, state: State) -> tuple[str, int]:
    owner = controller_of(pod.metadata)
    assert owner is not None
    key = Key(pod.metadata.namespace, owner.name)
    if refers_to(owner, REPLICA_SETS) and (replica_set := state.get(ReplicaSet, key)) is not None:
        above = controller_of(replica_set.metadata)
        if above is None or not refers_to(above, DEPLOYMENTS):
            return owner.uid, replica_set.spec.replicas or 0
        deployment = state.get(Deployment, Key(key.namespace, above.name))
        return above.uid, (deployment.spec.replicas or 0) if deployment is not None else 0
    if refers_to(owner, STATEFUL_SETS) and (stateful_set := state.get(StatefulSet, key)) is not None:
        return owner.uid, stateful_set.spec.replicas or 0
    raise TooVague(f"{owner.kind}.{owner.api_version.partition('/')[0]} does not implement the scale subresource")


def _counted(
    budget: PodDisruptionBudget, healthy: int, desired: int, expected: int, disrupted: dict[str, str], now: float
) -> Document:
    allowed = max(0, healthy - desired) if expected > 0 else 0
    reason, status = ("SufficientPods", "True") if allowed else ("InsufficientPods", "False")
    made: Document = {
        "observedGeneration": budget.metadata.generation,
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "conditions": [_condition(budget, status, reason, "", now)],
    }
    return {**made, "disruptedPods": disrupted} if disrupted else made


def _failed(budget: PodDisruptionBudget, message: str, now: float) -> Document:
    """Nothing is counted anew; no disruption is allowed."""
    before = budget.document.get("status") or {}
    told = [_condition(budget, "False", "SyncFailed", message, now)]
    counts = dict.fromkeys(("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"), 0)
    generation = {"observedGeneration": budget.metadata.generation}
    return {**counts, **before, **generation, "disruptionsAllowed": 0, "conditions": told}


def _condition(budget: PodDisruptionBudget, status: str, reason: str, message: str, now: float) -> Document:
    before: Document = next(iter((budget.document.get("status") or {}).get("conditions") or []), {})
    since = before.get("lastTransitionTime") if before.get("status") == status else None
    made = {"type": "DisruptionAllowed", "status": status, "reason": reason, "message": message}
    return {**made, "observedGeneration": budget.metadata.generation, "lastTransitionTime": since or format_time(now)}


def _cleared(before: Document, status: Document) -> Document:
    """Merging keeps the entries of a map that are not mentioned: those that went are named."""
    gone = set(before.get("disruptedPods") or {}) - set(status.get("disruptedPods") or {})
    if gone and "disruptedPods" in status:
        status["disruptedPods"] = {**status["disruptedPods"], **dict.fromkeys(sorted(gone))}
    return before
