"""Budgets of policies: one where nobody else has one, none beside another, and gone with what asked for it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from builders import a_pod
from wukong.actions import DONE, Action, Create, Delete, Outcome, Patch
from wukong.api.apps import PodDisruptionBudget
from wukong.api.core import Namespace, Pod
from wukong.api.meta import Object
from wukong.api.placement import ClusterPlacementPolicy, PlacementPolicy
from wukong.api.policy_status import Condition
from wukong.api.resources import Key
from wukong.controllers.policy.budgets import (
    LONGEST_NAME,
    POLICY,
    BudgetPolicies,
    PolicyBudgets,
    budget_name_of,
    build_budget,
)
from wukong.controllers.policy.controller import BUDGET_CONFLICT, LOOK_SECONDS, Policy
from wukong.placement.rules import BUILT_IN
from wukong.state import State
from wukong.state.mirror import Change

NOW = 1_800_000_000.0
KEY = Key("shop", "wukong-web")
OF_CLUSTER = Key("shop", "wukong.all")
WEB: dict[str, Any] = {"selector": {"matchLabels": {"app": "web"}}, "disruption": {"maxUnavailable": 1}}
FRONT: dict[str, Any] = {
    "selector": {"matchLabels": {"app": "web", "tier": "front"}},
    "disruption": {"minAvailable": "50%"},
}


def a_policy(name: str = "web", spec: dict[str, Any] = WEB, **meta: Any) -> PlacementPolicy:
    metadata = {"name": name, "namespace": "shop", "uid": f"uid-{name}", "resourceVersion": "7", **meta}
    return msgspec.convert({"metadata": metadata, "spec": spec}, PlacementPolicy)


def of_cluster(name: str = "all", spec: dict[str, Any] = WEB) -> ClusterPlacementPolicy:
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": "7"}
    return msgspec.convert({"metadata": metadata, "spec": spec}, ClusterPlacementPolicy)


def pod(name: str = "web-1", namespace: str = "shop", phase: str = "Running", **labels: str) -> Pod:
    built = a_pod(name, namespace=namespace)
    built.metadata.labels, built.status.phase = labels or {"app": "web"}, phase
    return built


def somebodys(name: str = "theirs", spec: dict[str, Any] | None = None) -> PodDisruptionBudget:
    spec = {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 1} if spec is None else spec
    document = {"metadata": {"name": name, "namespace": "shop", "uid": name}, "spec": spec}
    return msgspec.convert(document, PodDisruptionBudget)


def ours(policy: PlacementPolicy | ClusterPlacementPolicy, key: Key = KEY) -> PodDisruptionBudget:
    document = build_budget(policy, key)
    document["metadata"] |= {"uid": "b", "resourceVersion": "3"}
    return msgspec.convert(document, PodDisruptionBudget)


def a_state(*objects: Object) -> State:
    state = State()
    for subject in objects:
        state.apply("ADDED", subject)
    return state


def look(*objects: Object, key: Key = KEY) -> Outcome:
    return PolicyBudgets(BUILT_IN).reconcile(key, a_state(*objects), NOW)


def only(outcome: Outcome) -> Action:
    (action,) = outcome.actions
    return action


def condition_of(*objects: Object) -> Condition | None:
    patch = only(Policy(BUILT_IN).reconcile(Key("shop", "web"), a_state(*objects), NOW))
    assert isinstance(patch, Patch)
    conditions = msgspec.convert(patch.patch.body["status"]["conditions"], list[Condition])
    return next((condition for condition in conditions if condition.type == BUDGET_CONFLICT), None)


def test_a_policy_has_the_budget_it_asks_for_made() -> None:
    create = only(look(a_policy(), pod()))
    assert isinstance(create, Create)
    assert create.body == {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {
            "name": "wukong-web",
            "namespace": "shop",
            "labels": {"app.kubernetes.io/managed-by": "wukong"},
            "annotations": {POLICY: "PlacementPolicy shop/web"},
            "ownerReferences": [
                {
                    "apiVersion": "placement.novasphere.dev/v1alpha1",
                    "kind": "PlacementPolicy",
                    "name": "web",
                    "uid": "uid-web",
                    "controller": True,
                }
            ],
        },
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "maxUnavailable": 1,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }
    assert look(a_policy(), pod(), ours(a_policy())) == DONE
    assert look(a_policy()).actions == (create,), "also before there are pods"


@pytest.mark.parametrize(
    "spec",
    [
        {"selector": WEB["selector"]},
        {**WEB, "mode": "Observe"},
        {**WEB, "disruption": {"maxUnavailable": 1, "minAvailable": 1}},
        {"disruption": {"maxUnavailable": 1}},
    ],
    ids=["asks for none", "observes", "has a problem", "has no selector"],
)
def test_a_policy_that_may_not_have_one_loses_it_at_the_version_that_was_read(spec: dict[str, Any]) -> None:
    assert look(a_policy(spec=spec), pod()) == DONE
    delete = only(look(a_policy(spec=spec), pod(), ours(a_policy())))
    assert isinstance(delete, Delete)
    assert (delete.key, delete.uid, delete.resource_version) == (KEY, "b", "3")


def test_a_budget_goes_with_its_policy() -> None:
    assert isinstance(only(look(pod(), ours(a_policy()))), Delete)
    leaving = a_policy(deletionTimestamp="2027-01-15T08:00:00Z")
    assert isinstance(only(look(leaving, pod(), ours(a_policy()))), Delete)


@pytest.mark.parametrize(
    "changed",
    [
        a_policy(spec={**WEB, "disruption": {"minAvailable": "50%"}}),
        a_policy(spec={**WEB, "selector": {"matchLabels": {"app": "api"}}}),
        a_policy(uid="uid-of-another"),
    ],
    ids=["another bound", "another selector", "the policy was made anew"],
)
def test_a_budget_that_is_not_as_asked_is_replaced_whole(changed: PlacementPolicy) -> None:
    patch = only(look(changed, pod(), ours(a_policy())))
    assert isinstance(patch, Patch)
    values = {operation["path"]: operation["value"] for operation in patch.patch.body}
    assert values["/metadata/resourceVersion"] == "3"
    assert values["/spec"] == build_budget(changed, KEY)["spec"]
    assert values["/metadata/ownerReferences"][0]["uid"] == changed.metadata.uid


@pytest.mark.parametrize(
    "selector", [{"matchLabels": {"app": "web"}}, {}, {"matchExpressions": [{"key": "app", "operator": "Exists"}]}]
)
def test_there_is_none_beside_somebody_elses_over_the_same_pods(selector: dict[str, Any]) -> None:
    theirs = somebodys(spec={"selector": selector, "minAvailable": 1})
    assert look(a_policy(), pod(), theirs) == DONE
    assert isinstance(only(look(a_policy(), pod(), theirs, ours(a_policy()))), Delete)
    condition = condition_of(a_policy(), pod(), theirs)
    assert condition is not None
    assert (condition.status, condition.reason) == ("True", "PodsHaveBudget")
    assert "shop: PodDisruptionBudget theirs selects the same pods." in condition.message


def test_somebody_elses_over_other_pods_is_in_nobodys_way() -> None:
    others: list[Object] = [somebodys(spec={"selector": {"matchLabels": {"app": "api"}}}), somebodys("none", spec={})]
    assert isinstance(only(look(a_policy(), pod(), pod("api", app="api"), *others)), Create)
    condition = condition_of(a_policy(), pod(), *others)
    assert condition is not None
    assert condition.status == "False"


def test_pods_that_have_ended_are_in_nobodys_way() -> None:
    assert isinstance(only(look(a_policy(), pod(phase="Succeeded"), somebodys())), Create)


def test_a_budget_of_that_name_that_is_not_ours_is_never_touched() -> None:
    theirs = somebodys("wukong-web", spec={"selector": {"matchLabels": {"app": "api"}}})
    assert look(a_policy(), pod(), theirs) == DONE
    assert look(theirs) == DONE
    condition = condition_of(a_policy(), pod(), theirs)
    assert condition is not None
    assert "PodDisruptionBudget wukong-web is somebody else's" in condition.message


def test_of_two_policies_over_one_pod_the_more_specific_has_the_budget() -> None:
    front, key = a_policy("front", FRONT), Key("shop", "wukong-front")
    both: list[Object] = [a_policy(), front, pod(app="web", tier="front")]
    assert look(*both) == DONE
    assert isinstance(only(look(*both, key=key)), Create)
    assert look(*both, ours(a_policy()), key=key) == DONE, "first the other goes"
    assert isinstance(only(look(*both, ours(a_policy()))), Delete)
    condition = condition_of(*both)
    assert condition is not None
    assert "PlacementPolicy shop/front selects the same pods" in condition.message
    apart = [a_policy(), front, pod()]
    assert isinstance(only(look(*apart)), Create), "no pod is selected by both"


def test_a_policy_that_yields_to_one_that_has_none_itself_keeps_its_budget() -> None:
    theirs = somebodys(spec={"selector": {"matchLabels": {"own": "budget"}}})
    objects = [a_policy(), a_policy("front", FRONT), theirs, pod("a", app="web", tier="front"), pod("b")]
    assert look(*objects) == DONE, "front has one"
    both = pod("c", app="web", tier="front", own="budget")
    assert look(*objects, both) == DONE, "theirs selects a pod of both"
    objects = [a_policy(), a_policy("front", FRONT), somebodys("wukong-front", spec={}), *objects[3:]]
    assert isinstance(only(look(*objects)), Create), "front cannot have one"


def test_a_policy_of_the_cluster_has_one_where_it_selects_pods() -> None:
    spec = {**WEB, "namespaceSelector": {"matchLabels": {"team": "shop"}}}
    namespace = Namespace(metadata=msgspec.convert({"name": "shop", "labels": {"team": "shop"}}, type(pod().metadata)))
    create = only(look(of_cluster(spec=spec), pod(), namespace, key=OF_CLUSTER))
    assert isinstance(create, Create)
    assert create.namespace == "shop"
    assert create.body["metadata"]["ownerReferences"][0]["kind"] == "ClusterPlacementPolicy"
    assert look(of_cluster(spec=spec), pod(), key=OF_CLUSTER) == DONE, "not its namespace"
    assert look(of_cluster(spec=spec), namespace, key=OF_CLUSTER) == DONE, "no pods"
    present = ours(of_cluster(spec=spec), OF_CLUSTER)
    assert isinstance(only(look(of_cluster(spec=spec), namespace, present, key=OF_CLUSTER)), Delete)
    assert look(of_cluster(), a_policy(), pod(), key=OF_CLUSTER) == DONE, "the namespace's own comes first"


def test_none_is_made_in_a_namespace_that_goes() -> None:
    namespace = msgspec.convert({"metadata": {"name": "shop", "deletionTimestamp": "2027-01-15T08:00:00Z"}}, Namespace)
    assert look(a_policy(), pod(), namespace) == DONE


def test_a_policy_without_a_budget_has_no_condition_about_it() -> None:
    assert condition_of(a_policy(spec={"selector": WEB["selector"]}), pod()) is None


def test_a_policy_of_the_cluster_is_looked_at_some_seconds_apart_unless_it_was_edited() -> None:
    controller, state, key = Policy(BUILT_IN), a_state(of_cluster(), pod()), Key("", "all")
    assert controller.reconcile(key, state, NOW).actions
    assert controller.reconcile(key, state, NOW + 1) == Outcome(requeue_after=LOOK_SECONDS - 1)
    assert controller.reconcile(key, state, NOW + LOOK_SECONDS).actions
    edited = of_cluster()
    edited.metadata.generation, edited.metadata.resource_version = 2, "8"
    state.apply("MODIFIED", edited)
    assert controller.reconcile(key, state, NOW + LOOK_SECONDS + 1).actions


def test_names_are_apart_and_bounded() -> None:
    assert budget_name_of(Key("shop", "web")) != budget_name_of(Key("", "web"))
    names = {budget_name_of(Key("shop", "x" * 252 + letter)) for letter in "ab"}
    assert len(names) == 2
    assert {len(name) for name in names} == {LONGEST_NAME}


def keys_of(change: Change, state: State, kind: str) -> list[Key]:
    (keys,) = [watch.keys for watch in PolicyBudgets.watches if watch.resource.group_kind == kind]
    return sorted({*keys(change, state)})


def test_a_change_brings_back_every_budget_that_it_may_concern_and_no_other() -> None:
    front = Key("shop", "wukong-front")
    state = a_state(a_policy(), a_policy("front", FRONT), of_cluster(), pod())
    everybody = sorted([KEY, front, OF_CLUSTER])
    (came,) = state.apply("ADDED", pod("web-2"))
    assert keys_of(came, state, "Pod") == everybody
    changed = pod("web-2")
    changed.metadata.resource_version, changed.spec.node_name = "9", "n"
    (bound,) = state.apply("MODIFIED", changed)
    assert keys_of(bound, state, "Pod") == []
    (other,) = state.apply("ADDED", pod("api", app="api"))
    assert keys_of(other, state, "Pod") == []
    (theirs,) = state.apply("ADDED", somebodys())
    assert keys_of(theirs, state, "PodDisruptionBudget.policy") == sorted([*everybody, Key("shop", "theirs")])
    counted = somebodys()
    counted.metadata.resource_version, counted.status.disruptions_allowed = "9", 1
    (status,) = state.apply("MODIFIED", counted)
    assert keys_of(status, state, "PodDisruptionBudget.policy") == []
    accepted = a_policy(resourceVersion="8")
    accepted.status.observed_generation = 1
    (told,) = state.apply("MODIFIED", accepted)
    assert keys_of(told, state, "PlacementPolicy.placement.novasphere.dev") == []
    (gone,) = state.apply("DELETED", a_policy())
    assert keys_of(gone, state, "PlacementPolicy.placement.novasphere.dev") == everybody
    assert state.index_of(BudgetPolicies).list_of("shop") == [Key("", "all"), Key("shop", "front")]


def test_a_fork_knows_its_own_policies() -> None:
    state = a_state(a_policy())
    assert state.index_of(BudgetPolicies).list_of("shop") == [Key("shop", "web")]
    fork = state.fork()
    fork.apply("DELETED", a_policy())
    assert fork.index_of(BudgetPolicies).list_of("shop") == []
    assert state.index_of(BudgetPolicies).list_of("shop") == [Key("shop", "web")]
