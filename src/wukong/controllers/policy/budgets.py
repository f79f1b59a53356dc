"""The budgets of policies with `disruption`: a PodDisruptionBudget in each namespace that the policy is about.

Keys are those of budgets: `wukong-web` of the PlacementPolicy web, `wukong.web` of the ClusterPlacementPolicy web. Two
budgets over one pod make each eviction of it fail, so of all that select a pod exactly one may be there:

    somebody else's budget selects a pod of ours ─► none of ours; the condition BudgetConflict names it
    two policies with a budget select one pod     ─► that of the more specific policy; the other has the condition
    the policy is gone, asks no more, observes    ─► ours is deleted

A budget selects by labels alone: it also covers pods for which a more specific policy without `disruption` holds. A
policy of the cluster has one where there are pods that it selects. Ours have a label and an annotation; nobody else's
is touched. Whether pods are covered by two is judged by the pods there are; those that have ended count for no budget.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import ClassVar, NamedTuple

import msgspec

from wukong.actions import DONE, Action, Create, Delete, Outcome, Patch
from wukong.api.apps import PodDisruptionBudget, PodDisruptionBudgetSpec
from wukong.api.core import Namespace, Pod
from wukong.api.kinds import CLUSTER_PLACEMENT_POLICIES, NAMESPACES, PLACEMENT_POLICIES, POD_DISRUPTION_BUDGETS, PODS
from wukong.api.meta import Object
from wukong.api.placement import GROUP, ClusterPlacementPolicy, ClusterPlacementPolicySpec, PlacementPolicy
from wukong.api.resources import Key, key_of
from wukong.controllers.policy.plans import Plans, get_policy, resource_of
from wukong.engine.copy_on_write import CopyOnWriteDicts
from wukong.placement.compile import Policy, title_of
from wukong.placement.matching import rank_of
from wukong.placement.rule import Rules
from wukong.placement.vm.priority import MANAGED_BY, MANAGER
from wukong.ports import Document, PatchBody
from wukong.semantics.selectors import EVERYTHING, Selector, compile_selector, selects
from wukong.state import Change, State
from wukong.state.controller import Watch

POLICY = f"{GROUP}/policy"  # an annotation of a budget: the policy that it is of
LONGEST_NAME = 253


class BudgetPolicies:
    """A derived index: the policies that ask for a budget, by namespace; "" for those of the cluster."""

    kinds: ClassVar[frozenset[str]] = frozenset((PLACEMENT_POLICIES.group_kind, CLUSTER_PLACEMENT_POLICIES.group_kind))

    def __init__(self) -> None:
        self._keys: CopyOnWriteDicts[str, Key, None] = CopyOnWriteDicts()

    def list_of(self, namespace: str) -> list[Key]:
        """The policies of this namespace, and those of the cluster."""
        return sorted((*self._keys.get(namespace, ()), *self.list_of_cluster()))

    def list_of_cluster(self) -> list[Key]:
        return sorted(self._keys.get("", ()))

    def note(self, group_kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        if asks_for_budget(new):
            self._keys.own(key.namespace)[key] = None
        elif asks_for_budget(old):
            self._keys.own(key.namespace).pop(key, None)
            self._keys.drop_if_empty(key.namespace)

    def fork(self) -> BudgetPolicies:
        copy = BudgetPolicies()
        copy._keys = self._keys.fork()
        return copy


def asks_for_budget(policy: Object | None) -> bool:
    if not isinstance(policy, PlacementPolicy | ClusterPlacementPolicy):
        return False
    is_leaving = policy.metadata.deletion_timestamp is not None
    return policy.spec.disruption is not None and policy.spec.mode != "Observe" and not is_leaving


def budget_name_of(policy: Key) -> str:
    """The budget of a policy, in whatever namespace. A long name is cut, and made unique by a digest."""
    name = f"wukong-{policy.name}" if policy.namespace else f"wukong.{policy.name}"
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[: LONGEST_NAME - 11]}-{blake2b(policy.name.encode(), digest_size=5).hexdigest()}"


def is_ours(budget: PodDisruptionBudget) -> bool:
    meta = budget.metadata
    return meta.labels.get(MANAGED_BY) == MANAGER and POLICY in meta.annotations


# ---- which keys a change stands for


def budgets_of_policy(change: Change, state: State) -> Iterable[Key]:
    """Its own, and those of others beside it: one that is more specific takes their place."""
    old, new, key = change.old, change.new, change.key
    if (not asks_for_budget(old) and not asks_for_budget(new)) or _has_same_spec(old, new):
        return ()
    name = budget_name_of(key)
    if key.namespace:
        return (Key(key.namespace, name), *list_possible(key.namespace, state))
    namespaces = sorted(state.pods.classes)
    possible = [possible for namespace in namespaces for possible in list_possible(namespace, state)]
    return [*(Key(namespace, name) for namespace in namespaces), *list_budgets_named(name, state), *possible]


def _has_same_spec(old: Object | None, new: Object | None) -> bool:
    """Whether only the status, or nothing that a budget depends on, has changed."""
    kinds = PlacementPolicy | ClusterPlacementPolicy
    if not isinstance(old, kinds) or not isinstance(new, kinds):
        return False
    return old.spec == new.spec and asks_for_budget(old) == asks_for_budget(new)


def list_budgets_named(name: str, state: State) -> list[Key]:
    return sorted(key for key in state.of(PodDisruptionBudget) if key.name == name)


def budgets_beside(change: Change, state: State) -> Iterable[Key]:
    """A budget, and those of policies that might be in its way. How many pods it has left concerns nobody here."""
    old, new = change.old, change.new
    if isinstance(old, PodDisruptionBudget) and isinstance(new, PodDisruptionBudget) and _is_alike(old, new):
        return ()
    return (change.key, *list_possible(change.key.namespace, state))


def _is_alike(old: PodDisruptionBudget, new: PodDisruptionBudget) -> bool:
    before, after = old.metadata, new.metadata
    return (old.spec, before.labels, before.annotations, before.owner_references, before.deletion_timestamp) == (
        new.spec,
        after.labels,
        after.annotations,
        after.owner_references,
        after.deletion_timestamp,
    )


def budgets_in_namespace(change: Change, state: State) -> Iterable[Key]:
    """The labels of a namespace decide whether policies of the cluster are about it."""
    old, new = change.old, change.new
    if old is not None and new is not None and old.metadata.labels == new.metadata.labels:
        return ()
    return list_possible(change.key.name, state) if state.index_of(BudgetPolicies).list_of_cluster() else ()


def budgets_of_pod(change: Change, state: State) -> Iterable[Key]:
    return list_possible(change.key.namespace, state) if matters_to_budgets(change, state) else ()


def matters_to_budgets(change: Change, state: State) -> bool:
    """Whether a pod that came, went, ended or has other labels is selected by a policy with a budget."""
    old, new = change.old, change.new
    policies = state.index_of(BudgetPolicies).list_of(change.key.namespace)
    if not policies or _counts_alike(old, new):
        return False
    sides = [subject.metadata.labels for subject in (old, new) if subject is not None]
    selectors = [_selector_of(policy) for key in policies if (policy := get_policy(key, state)) is not None]
    return any(selects(selector, labels) for selector in selectors for labels in sides)


def _counts_alike(old: Object | None, new: Object | None) -> bool:
    if not isinstance(old, Pod) or not isinstance(new, Pod):
        return False
    return old.metadata.labels == new.metadata.labels and old.is_finished == new.is_finished


def list_possible(namespace: str, state: State) -> list[Key]:
    """The budgets that there may be in a namespace."""
    policies = state.index_of(BudgetPolicies).list_of(namespace)
    return [Key(namespace, budget_name_of(policy)) for policy in policies]


# ---- who may have a budget


class BudgetClaim(NamedTuple):
    """A policy that asks for a budget in a namespace. `conflict` says why it gets none; "" if it does."""

    policy: Policy
    conflict: str = ""


def claim_budgets(namespace: str, state: State, plans: Plans) -> dict[str, BudgetClaim]:
    """By name, the budgets that policies ask for in this namespace: the most specific policy first."""
    asking = [
        policy
        for key in state.index_of(BudgetPolicies).list_of(namespace)
        if (policy := get_policy(key, state)) is not None
        and plans.plan_of(policy) is not None
        and _is_about(policy, namespace, state)
    ]
    if not asking:
        return {}
    pods = _list_labels(namespace, state)
    others = [
        (f"PodDisruptionBudget {budget.metadata.name}", compile_selector(budget.spec.selector))
        for budget in _list_budgets(namespace, state)
        if not is_ours(budget)
    ]
    claims: dict[str, BudgetClaim] = {}
    for policy in sorted(asking, key=rank_of):
        selector, name = _selector_of(policy), budget_name_of(key_of(policy))
        covered = [labels for labels in pods if selects(selector, labels)]
        if not covered and not policy.metadata.namespace:
            continue
        in_way = next((title for title, other in others if any(selects(other, labels) for labels in covered)), "")
        conflict = f"{in_way} selects the same pods" if in_way else ""
        present = state.get(PodDisruptionBudget, Key(namespace, name))
        if not conflict and present is not None and not is_ours(present):
            conflict = f"PodDisruptionBudget {name} is somebody else's"
        claims[name] = BudgetClaim(policy, conflict)
        if not conflict:
            others.append((title_of(policy), selector))
    return claims


def list_conflicts(policy: Policy, state: State, plans: Plans) -> list[str]:
    """Where a policy gets no budget, and why: a line for each namespace."""
    name, own = budget_name_of(key_of(policy)), policy.metadata.namespace
    claims = ((place, claim_budgets(place, state, plans)) for place in ([own] if own else sorted(state.pods.classes)))
    found = ((namespace, by_name[name].conflict) for namespace, by_name in claims if name in by_name)
    return [f"{namespace}: {conflict}." for namespace, conflict in found if conflict]


def _is_about(policy: Policy, namespace: str, state: State) -> bool:
    spec = policy.spec
    if not isinstance(spec, ClusterPlacementPolicySpec) or spec.namespace_selector is None:
        return True
    subject = state.get(Namespace, Key("", namespace))
    labels: Mapping[str, str] = subject.metadata.labels if subject is not None else {}
    return selects(compile_selector(spec.namespace_selector), labels)


def _selector_of(policy: Policy) -> Selector | None:
    selector = policy.spec.selector
    return EVERYTHING if selector is None else compile_selector(selector)


def _list_labels(namespace: str, state: State) -> list[dict[str, str]]:
    """The labels of the pods of a namespace that have not ended, each once."""
    classes = sorted(state.pods.classes.get(namespace, ()))
    return [dict(labels) for labels in classes if _has_live_pod(state.pods.by_class[namespace, labels], state)]


def _has_live_pod(keys: Iterable[Key], state: State) -> bool:
    return any((pod := state.get(Pod, key)) is not None and not pod.is_finished for key in keys)


def _list_budgets(namespace: str, state: State) -> list[PodDisruptionBudget]:
    return [
        budget
        for key, budget in sorted(state.of(PodDisruptionBudget).items())
        if key.namespace == namespace and isinstance(budget, PodDisruptionBudget)
    ]


# ---- the controller


class PolicyBudgets:
    name = "policy-budget"
    watches = (
        Watch(PLACEMENT_POLICIES, budgets_of_policy),
        Watch(CLUSTER_PLACEMENT_POLICIES, budgets_of_policy),
        Watch(POD_DISRUPTION_BUDGETS, budgets_beside),
        Watch(PODS, budgets_of_pod),
        Watch(NAMESPACES, budgets_in_namespace),
    )

    def __init__(self, rules: Rules) -> None:
        self.plans = Plans(rules)

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        budget = state.get(PodDisruptionBudget, key)
        if budget is not None and (not is_ours(budget) or budget.metadata.deletion_timestamp is not None):
            return DONE
        claim = claim_budgets(key.namespace, state, self.plans).get(key.name)
        if claim is None or claim.conflict:
            return DONE if budget is None else Outcome((_delete(budget),))
        if budget is None:
            return self._create(key, claim.policy, state)
        document = build_budget(claim.policy, key)
        return DONE if is_as_wanted(budget, document) else Outcome((_replace(budget, document),))

    def _create(self, key: Key, policy: Policy, state: State) -> Outcome:
        """Unless one of ours that yields to it is still there: its deletion brings us back."""
        namespace = state.get(Namespace, Key("", key.namespace))
        if namespace is not None and namespace.metadata.deletion_timestamp is not None:
            return DONE
        pods, selector = _list_labels(key.namespace, state), _selector_of(policy)
        covered = [labels for labels in pods if selects(selector, labels)]
        present = (compile_selector(budget.spec.selector) for budget in _list_budgets(key.namespace, state))
        if any(selects(other, labels) for other in present for labels in covered):
            return DONE
        return Outcome((Create(POD_DISRUPTION_BUDGETS, build_budget(policy, key), key.namespace),))


def build_budget(policy: Policy, key: Key) -> Document:
    """Pods that are not ready hold no eviction up: AlwaysAllow."""
    disruption, policy_key = policy.spec.disruption, key_of(policy)
    assert disruption is not None
    resource = resource_of(policy_key)
    owner = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": policy_key.name,
        "uid": policy.metadata.uid,
        "controller": True,
    }
    return {
        "apiVersion": POD_DISRUPTION_BUDGETS.api_version,
        "kind": POD_DISRUPTION_BUDGETS.kind,
        "metadata": {
            "name": key.name,
            "namespace": key.namespace,
            "labels": {MANAGED_BY: MANAGER},
            "annotations": {POLICY: title_of(policy)},
            "ownerReferences": [owner],
        },
        "spec": {
            "selector": msgspec.to_builtins(policy.spec.selector),
            **msgspec.to_builtins(disruption),
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }


def is_as_wanted(budget: PodDisruptionBudget, document: Document) -> bool:
    owners = [owner.uid for owner in budget.metadata.owner_references]
    (wanted,) = document["metadata"]["ownerReferences"]
    return owners == [wanted["uid"]] and budget.spec == msgspec.convert(document["spec"], PodDisruptionBudgetSpec)


def _replace(budget: PodDisruptionBudget, document: Document) -> Action:
    """The whole spec, at the version that was read: a merge would leave what is no longer asked for."""
    changes = {
        "/metadata/resourceVersion": budget.metadata.resource_version,
        "/metadata/ownerReferences": document["metadata"]["ownerReferences"],
        "/spec": document["spec"],
    }
    body = [{"op": "add", "path": path, "value": value} for path, value in changes.items()]
    return Patch(POD_DISRUPTION_BUDGETS, key_of(budget), PatchBody("json", body))


def _delete(budget: PodDisruptionBudget) -> Action:
    meta = budget.metadata
    return Delete(POD_DISRUPTION_BUDGETS, key_of(budget), uid=meta.uid, resource_version=meta.resource_version)
