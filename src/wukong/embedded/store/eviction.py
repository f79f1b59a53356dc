"""Evictions: a pod is deleted through its disruption budget, which is asked and charged.

    pending, over or leaving already ─► deleted, no budget asked      no budget ─► deleted       two budgets ─► 500
    not ready: AlwaysAllow, or its budget is met without it ─► deleted, not charged
    otherwise: not counted yet or none left ─► 429;  else charged (disruptionsAllowed, disruptedPods) ─► deleted

Follows registry/core/pod/storage/eviction.go. Budgets are counted by a controller; here they are only charged. Unlike
rules.budgets, which serves preemption, an empty selector covers every pod of the namespace.
"""

from __future__ import annotations

from wukong.api.apps import PodDisruptionBudget
from wukong.api.resources import Key
from wukong.embedded.store.api_errors import (
    BUDGET_RETRY_SECONDS,
    budget_says_not_now,
    forbidden,
    not_found,
    recreated,
    two_budgets,
)
from wukong.embedded.store.database import Database
from wukong.embedded.store.deletion import Options, delete
from wukong.embedded.store.documents import at, condition_of, is_leaving, meta_of, stamp, with_condition
from wukong.embedded.store.kinds import Kind
from wukong.embedded.store.validation.objects import as_struct
from wukong.ports import Document
from wukong.semantics.selectors import compile_selector, selects

_MOST_DISRUPTED = 2000
_TARGET: Document = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}


def evict(database: Database, pods: Kind, budgets: Kind, key: Key, options: Options, now: float) -> None:
    pod = database.get(pods.name, key)
    if pod is None:
        raise not_found(pods.name, key)
    _check(key, pod, options)
    if not _may_ignore_budgets(pod):
        found = [each for each in database.all(budgets.name, key.namespace) if covers(each, pod)]
        if len(found) > 1:
            raise two_budgets()
        if found and not _is_free(found[0], pod):
            _charge(database, budgets, found[0], key, now)
    marked = with_condition(pod, _TARGET, now)
    if marked != pod:
        database.put(pods.name, marked)
    delete(database, pods, key, options, now)


def covers(budget: Document, pod: Document) -> bool:
    read = as_struct("PodDisruptionBudget", budget)
    assert isinstance(read, PodDisruptionBudget)
    return selects(compile_selector(read.spec.selector), meta_of(pod).get("labels") or {})


def _check(key: Key, pod: Document, options: Options) -> None:
    if options.uid and options.uid != meta_of(pod)["uid"]:
        raise recreated("Pod", key, options.uid, meta_of(pod)["uid"])


def _may_ignore_budgets(pod: Document) -> bool:
    return is_leaving(pod) or at(pod, "status.phase") in (None, "Pending", "Succeeded", "Failed")


def _is_free(budget: Document, pod: Document) -> bool:
    """A pod that is not ready counts for nothing, so it costs nothing: if its budget says so, or is met without it."""
    ready = condition_of(pod, "Ready")
    if ready is not None and ready.get("status") == "True":
        return False
    status = budget.get("status") or {}
    desired, healthy = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
    return at(budget, "spec.unhealthyPodEvictionPolicy") == "AlwaysAllow" or bool(healthy >= desired > 0)


def _charge(database: Database, kind: Kind, budget: Document, pod: Key, now: float) -> None:
    status, meta = budget.get("status") or {}, meta_of(budget)
    allowed, disrupted = status.get("disruptionsAllowed", 0), status.get("disruptedPods") or {}
    if status.get("observedGeneration", 0) < meta.get("generation", 0):
        raise budget_says_not_now(BUDGET_RETRY_SECONDS)
    if allowed < 0:
        raise forbidden("poddisruptionbudget.policy", meta["name"], "pdb disruptions allowed is negative")
    if len(disrupted) > _MOST_DISRUPTED:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise forbidden("poddisruptionbudget.policy", meta["name"], why)
    if allowed == 0:
        raise budget_says_not_now(None)
    charged = {**status, "disruptionsAllowed": allowed - 1, "disruptedPods": {**disrupted, pod.name: stamp(now)}}
    changed = {**budget, "status": charged}
    if allowed == 1:
        none_left = {"type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods"}
        changed = with_condition(changed, none_left | {"observedGeneration": meta.get("generation", 0)}, now)
    database.put(kind.name, changed)
