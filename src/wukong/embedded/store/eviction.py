"""Evictions: a pod is deleted if its PodDisruptionBudget allows a disruption, which is then charged to the budget.

    pending, finished or terminating ─► deleted whatever the budget      no budget ─► deleted      two budgets ─► 500
    not ready: AlwaysAllow, or its budget is met without it ─► deleted, not charged
    otherwise: not counted yet or none left ─► 429;  else charged (disruptionsAllowed, disruptedPods) ─► deleted

Before all that KubeVirt's webhook is asked about the pods in which virtual machines run: kubevirt/eviction.py.

Called by server.py. Follows registry/core/pod/storage/eviction.go. The disruption controller counts the pods of a
budget; here it is only charged. Unlike in rules.budgets, which serves preemption, an empty selector covers every pod
of the namespace.
"""

from __future__ import annotations

from wukong.api.apps import PodDisruptionBudget
from wukong.api.kinds import POD_DISRUPTION_BUDGETS
from wukong.api.resources import Key
from wukong.embedded.store.api_errors import (
    BUDGET_RETRY_SECONDS,
    budget_violation,
    forbidden,
    multiple_budgets,
    not_found,
    uid_mismatch,
)
from wukong.embedded.store.database import Database
from wukong.embedded.store.deletion import DeleteOptions, delete
from wukong.embedded.store.documents import condition_of, format_time, is_terminating, meta_of, value_at, with_condition
from wukong.embedded.store.kinds import ServedKind
from wukong.embedded.store.kubevirt.eviction import intercept_eviction, is_launcher
from wukong.embedded.store.validation.objects import decode_object
from wukong.ports import Document
from wukong.semantics.selectors import compile_selector, selects

_MAX_DISRUPTED_PODS = 2000
_DISRUPTION_TARGET: Document = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}


def evict(
    database: Database, pods: ServedKind, budgets: ServedKind, key: Key, options: DeleteOptions, now: float
) -> None:
    """Evict a pod. Raises NotFound, Conflict for another uid, TooManyRequests where its budget allows no disruption."""
    pod = database.get(pods.name, key)
    if pod is None:
        raise not_found(pods.name, key)
    if is_launcher(pod):
        intercept_eviction(database, pod)
    _check_preconditions(key, pod, options)
    if not _may_ignore_budgets(pod):
        covering = [budget for budget in database.list_objects(budgets.name, key.namespace) if covers(budget, pod)]
        if len(covering) > 1:
            raise multiple_budgets()
        if covering and not _is_free_of_charge(covering[0], pod):
            _charge(database, budgets, covering[0], key, now)
    marked = with_condition(pod, _DISRUPTION_TARGET, now)
    if marked != pod:
        database.put(pods.name, marked)
    delete(database, pods, key, options, now)


def covers(budget: Document, pod: Document) -> bool:
    """Whether the budget's selector selects the pod. Both are of the same namespace."""
    struct = decode_object(POD_DISRUPTION_BUDGETS, budget)
    assert isinstance(struct, PodDisruptionBudget)
    return selects(compile_selector(struct.spec.selector), meta_of(pod).get("labels") or {})


def _check_preconditions(key: Key, pod: Document, options: DeleteOptions) -> None:
    if options.uid and options.uid != meta_of(pod)["uid"]:
        raise uid_mismatch("Pod", key, options.uid, meta_of(pod)["uid"])


def _may_ignore_budgets(pod: Document) -> bool:
    return is_terminating(pod) or value_at(pod, "status.phase") in (None, "Pending", "Succeeded", "Failed")


def _is_free_of_charge(budget: Document, pod: Document) -> bool:
    """Whether the pod, not being ready, is evicted without a charge: its budget allows that, or is met without it."""
    ready = condition_of(pod, "Ready")
    if ready is not None and ready.get("status") == "True":
        return False
    status = budget.get("status") or {}
    desired, healthy = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
    return value_at(budget, "spec.unhealthyPodEvictionPolicy") == "AlwaysAllow" or bool(healthy >= desired > 0)


def _charge(database: Database, kind: ServedKind, budget: Document, pod: Key, now: float) -> None:
    """Take one allowed disruption from the budget and note the pod. Raises where the budget has none left."""
    status, meta = budget.get("status") or {}, meta_of(budget)
    allowed, disrupted_pods = status.get("disruptionsAllowed", 0), status.get("disruptedPods") or {}
    if status.get("observedGeneration", 0) < meta.get("generation", 0):
        raise budget_violation(BUDGET_RETRY_SECONDS)
    if allowed < 0:
        raise forbidden("poddisruptionbudget.policy", meta["name"], "pdb disruptions allowed is negative")
    if len(disrupted_pods) > _MAX_DISRUPTED_PODS:
        reason = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise forbidden("poddisruptionbudget.policy", meta["name"], reason)
    if allowed == 0:
        raise budget_violation(None)
    new_status = {
        **status,
        "disruptionsAllowed": allowed - 1,
        "disruptedPods": {**disrupted_pods, pod.name: format_time(now)},
    }
    changed = {**budget, "status": new_status}
    if allowed == 1:
        condition = {"type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods"}
        changed = with_condition(changed, condition | {"observedGeneration": meta.get("generation", 0)}, now)
    database.put(kind.name, changed)
