"""Shares are put right one pod at a time, only where that helps, and never in a loop."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from builders import a_pod
from policies import spot, steady
from wukong.actions import DONE, Evict, Note, Outcome, Patch
from wukong.api.apps import Deployment, PodDisruptionBudget, ReplicaSet, StatefulSet
from wukong.api.core import NEVER_MOVE, Node, Pod, PodCondition
from wukong.api.meta import Object, OwnerReference
from wukong.api.placement import PlacementPolicy
from wukong.api.policy_status import MOST_REPAIRS, PlacementPolicyStatus, SplitRepair, SplitStatus
from wukong.api.resources import Key
from wukong.api.times import format_time
from wukong.controllers.policy.controller import SPLIT_HELD, claim_split
from wukong.controllers.policy.splits import (
    LOOK_SECONDS,
    MOST_EVICTIONS,
    PAUSE_SECONDS,
    ROOM_SECONDS,
    PolicySplits,
    SplitPolicies,
)
from wukong.placement.rules import BUILT_IN
from wukong.state import State

NOW = 1_800_000_000.0
KEY = Key("default", "web")
CAPACITY: dict[str, Any] = {"strategy": "spot-first", "onDemandBase": 1}


def a_policy(status: SplitStatus | None = None, *, generation: int = 1, **spec: Any) -> PlacementPolicy:
    meta = {"name": "web", "namespace": "default", "uid": "u", "resourceVersion": "7", "generation": generation}
    body = {"selector": {"matchLabels": {"app": "web"}}, "capacity": CAPACITY, **spec}
    policy = msgspec.convert({"metadata": meta, "spec": body}, PlacementPolicy)
    policy.status = PlacementPolicyStatus(split=status)
    return policy


def a_workload(kind: type[Any], name: str, replicas: int, owner: Object | None = None, **spec: Any) -> Any:
    body = {"replicas": replicas, "template": {"spec": msgspec.to_builtins(a_pod().spec)}, **spec}
    subject = msgspec.convert({"metadata": {"name": name, "namespace": "default", "uid": name}, "spec": body}, kind)
    subject.metadata.owner_references = [refer_to(owner)] if owner is not None else []
    return subject


def refer_to(owner: Object) -> OwnerReference:
    meta = owner.metadata
    return OwnerReference(
        name=meta.name, kind=type(owner).__name__, api_version="apps/v1", uid=meta.uid, controller=True
    )


def pod(name: str, node: str, *, owner: str = "web-1", age: float = 1000.0, is_ready: bool = True, **more: Any) -> Pod:
    built = a_pod(name, node=node, **more)
    meta = built.metadata
    meta.uid, meta.creation_timestamp = f"uid-{name}", format_time(NOW - age)
    reference = OwnerReference(name=owner, kind="ReplicaSet", api_version="apps/v1", uid=owner, controller=True)
    meta.owner_references, built.status.phase = [reference], "Running"
    built.status.conditions = [PodCondition(type="Ready", status=str(is_ready))]
    return built


DEPLOYMENT = a_workload(Deployment, "web", 3)
SET = a_workload(ReplicaSet, "web-1", 3, DEPLOYMENT)
NODES: list[Object] = [spot("s1"), spot("s2"), steady("d1"), steady("d2")]
OWNERS: list[Object] = [DEPLOYMENT, SET]
ON_DEMAND = [pod("a", "d1"), pod("b", "d1"), pod("c", "d2")]  # one belongs there, two on spot
RIGHT = [pod("a", "d1"), pod("b", "s1"), pod("c", "s2")]


def a_state(*objects: Object) -> State:
    state = State()
    for subject in objects:
        state.apply("ADDED", subject)
    return state


def look(*objects: Object, now: float = NOW) -> Outcome:
    return PolicySplits(BUILT_IN).reconcile(KEY, a_state(*objects), now)


def evicted_by(outcome: Outcome) -> list[str]:
    return [action.key.name for action in outcome.actions if isinstance(action, Evict)]


def split_of(outcome: Outcome) -> SplitStatus | None:
    patches = [action for action in outcome.actions if isinstance(action, Patch)]
    if not patches:
        return None
    assert patches[0].patch.body["metadata"] == {"resourceVersion": "7"}
    return msgspec.convert(patches[0].patch.body["status"]["split"], SplitStatus)


def repair_of(outcome: Outcome) -> SplitRepair:
    split = split_of(outcome)
    assert split is not None
    (repair,) = split.repairs
    return repair


def noted(**changes: Any) -> SplitStatus:
    """The status after the first eviction, which was of c."""
    split = split_of(look(a_policy(), *NODES, *OWNERS, *ON_DEMAND))
    assert split is not None
    return msgspec.structs.replace(split, repairs=[msgspec.structs.replace(split.repairs[0], **changes)])


def test_the_youngest_wrong_pod_is_noted_on_the_status_and_then_evicted() -> None:
    outcome = look(a_policy(), *NODES, *OWNERS, *ON_DEMAND)
    assert [type(action) for action in outcome.actions] == [Patch, Evict, Note]
    assert evicted_by(outcome) == ["c"]
    split = split_of(outcome)
    assert split is not None
    assert (split.owners, split.on_demand, split.spot, split.misplaced) == (1, 3, 0, 2)
    repair = repair_of(outcome)
    assert (repair.owner, repair.pod, repair.misplaced, repair.evictions) == ("ReplicaSet default/web-1", "uid-c", 2, 1)


def test_pods_beyond_the_share_of_spot_go_on_demand() -> None:
    pods = [pod("a", "s1"), pod("b", "s1"), pod("c", "s2")]
    assert evicted_by(look(a_policy(), *NODES, *OWNERS, *pods)) == ["c"]


def test_a_group_that_is_right_is_counted_and_left_alone() -> None:
    outcome = look(a_policy(), *NODES, *OWNERS, *RIGHT)
    assert evicted_by(outcome) == []
    split = split_of(outcome)
    assert split == SplitStatus(owners=1, on_demand=1, spot=2)
    assert look(a_policy(split), *NODES, *OWNERS, *RIGHT) == DONE


@pytest.mark.parametrize(
    "objects",
    [
        [*NODES, *OWNERS, *ON_DEMAND[:2]],
        [*NODES, *OWNERS, *ON_DEMAND, pod("d", "d1")],
        [*NODES, *OWNERS, *ON_DEMAND[:2], pod("c", "d2", is_ready=False)],
        [*NODES, *OWNERS, *ON_DEMAND[:2], pod("c", "")],
        [*NODES, *OWNERS, *ON_DEMAND[:2], pod("c", "d2", terminating=True)],
        [*NODES, a_workload(Deployment, "web", 4), SET, *ON_DEMAND],
        [*NODES, a_workload(Deployment, "web", 3, paused=True), SET, *ON_DEMAND],
        [*NODES, *OWNERS, a_workload(ReplicaSet, "web-2", 1, DEPLOYMENT), *ON_DEMAND],
        [*NODES, *OWNERS, a_workload(ReplicaSet, "web-2", 0, DEPLOYMENT), *ON_DEMAND, pod("o", "d1", owner="web-2")],
        [*NODES[:3], steady("d2", taints=["karpenter.sh/disrupted:NoSchedule"]), *OWNERS, *ON_DEMAND],
        [*NODES[2:], *OWNERS, *ON_DEMAND],
        [spot("s1", cpu="50m"), *NODES[2:], *OWNERS, *ON_DEMAND],
        [spot("s1", taints=["karpenter.sh/disrupted:NoSchedule"]), *NODES[2:], *OWNERS, *ON_DEMAND],
    ],
    ids=[
        "a pod is missing",
        "one too many",
        "one is not ready",
        "one has no node",
        "one is going",
        "the Deployment has another size",
        "it is paused",
        "another version is asked for",
        "another version has pods",
        "a node is leaving",
        "there is no spot node",
        "it has no room",
        "it is leaving",
    ],
)
def test_nobody_is_evicted_where_the_group_is_not_whole_or_it_would_not_help(objects: list[Object]) -> None:
    assert evicted_by(look(a_policy(), *objects)) == []


@pytest.mark.parametrize(("revisions", "evicted"), [("111", ["db-2"]), ("112", [])])
def test_a_stateful_set_is_put_right_but_not_while_it_is_updated(revisions: str, evicted: list[str]) -> None:
    owner = a_workload(StatefulSet, "db", 3)
    pods = [
        pod(f"db-{index}", "d1", labels={"controller-revision-hash": revision})
        for index, revision in enumerate(revisions)
    ]
    for subject in pods:
        subject.metadata.owner_references = [refer_to(owner)]
    assert evicted_by(look(a_policy(), *NODES, owner, *pods)) == evicted


def test_there_is_a_pause_after_the_youngest_pod_was_made() -> None:
    young = [*ON_DEMAND[:2], pod("c", "d2", age=PAUSE_SECONDS - 1)]
    outcome = look(a_policy(), *NODES, *OWNERS, *young)
    assert evicted_by(outcome) == []
    assert outcome.requeue_after == 1
    assert evicted_by(look(a_policy(), *NODES, *OWNERS, *young, now=NOW + 1)) == ["c"]


@pytest.mark.parametrize(("allowed", "is_evicted"), [((0,), False), ((1,), True), ((1, 1), False)])
def test_a_budget_that_allows_none_or_two_of_them_are_waited_for(allowed: tuple[int, ...], is_evicted: bool) -> None:
    selector = {"matchLabels": {"app": "web"}}
    budgets = [
        msgspec.convert(
            {
                "metadata": {"name": f"b{index}", "namespace": "default"},
                "spec": {"selector": selector},
                "status": {"disruptionsAllowed": count},
            },
            PodDisruptionBudget,
        )
        for index, count in enumerate(allowed)
    ]
    assert bool(evicted_by(look(a_policy(), *NODES, *OWNERS, *ON_DEMAND, *budgets))) == is_evicted


def test_pods_that_nobody_may_move_stay_and_others_go() -> None:
    pods = [pod("a", "d1"), pod("b", "d1"), pod("c", "d2")]
    pods[2].metadata.annotations = {NEVER_MOVE: "true"}
    assert evicted_by(look(a_policy(), *NODES, *OWNERS, *pods)) == ["b"]
    for fixed in pods:
        fixed.metadata.annotations = {NEVER_MOVE: "true"}
    assert evicted_by(look(a_policy(), *NODES, *OWNERS, *pods)) == []


def test_a_policy_that_only_observes_counts_and_evicts_nobody() -> None:
    outcome = look(a_policy(mode="Observe"), *NODES, *OWNERS, *ON_DEMAND)
    assert evicted_by(outcome) == []
    assert outcome.requeue_after is None
    assert split_of(outcome) == SplitStatus(owners=1, on_demand=3, misplaced=2)


def test_a_noted_pod_that_is_still_there_is_evicted_again_and_no_other() -> None:
    younger = pod("c", "d2"), pod("z", "d1")
    outcome = look(a_policy(noted()), *NODES, *OWNERS, *ON_DEMAND)
    assert [type(action) for action in outcome.actions] == [Evict, Note]
    assert evicted_by(outcome) == ["c"]
    replaced = look(a_policy(noted()), *NODES, *OWNERS, *ON_DEMAND[:2], younger[1])
    assert evicted_by(replaced) == ["z"], "it is gone, and what came instead is wrong again"
    assert repair_of(replaced).evictions == 2


def test_an_eviction_that_helped_begins_the_count_anew() -> None:
    outcome = look(a_policy(noted(evictions=MOST_EVICTIONS)), *NODES, *OWNERS, *ON_DEMAND[:2], pod("n", "s1"))
    assert evicted_by(outcome) == ["b"]
    assert (repair_of(outcome).misplaced, repair_of(outcome).evictions) == (1, 1)


def test_pods_that_others_put_wrong_meanwhile_begin_the_count_anew() -> None:
    """One was wrong when it was evicted; then spot nodes were lost. An eviction of ours never makes it more."""
    others = [*ON_DEMAND[:2], pod("n", "d1")]
    repair = repair_of(look(a_policy(noted(misplaced=1, evictions=MOST_EVICTIONS)), *NODES, *OWNERS, *others))
    assert (repair.misplaced, repair.evictions, repair.held) == (2, 1, False)


def test_after_three_evictions_that_did_not_help_the_owner_is_held() -> None:
    others = [*ON_DEMAND[:2], pod("n", "d1")]
    outcome = look(a_policy(noted(evictions=MOST_EVICTIONS)), *NODES, *OWNERS, *others)
    assert evicted_by(outcome) == []
    assert repair_of(outcome).held
    held = a_policy(split_of(outcome))
    assert look(held, *NODES, *OWNERS, *others) == DONE
    (claim,) = claim_split(held)
    assert (claim.type, claim.status) == (SPLIT_HELD, "True")
    assert "ReplicaSet default/web-1: 2 on the wrong kind of node." in claim.message


def test_a_held_owner_is_tried_anew_when_its_size_or_the_policy_changes_or_it_is_right() -> None:
    held, others = noted(evictions=MOST_EVICTIONS, held=True), [*ON_DEMAND[:2], pod("n", "d1")]
    edited = look(a_policy(held, generation=2), *NODES, *OWNERS, *others)
    assert evicted_by(edited) == ["n"]
    assert repair_of(edited).evictions == 1
    four: list[Object] = [a_workload(Deployment, "web", 4), a_workload(ReplicaSet, "web-1", 4, DEPLOYMENT)]
    assert evicted_by(look(a_policy(held), *NODES, *four, *others, pod("z", "d1"))) == ["z"]
    right = split_of(look(a_policy(held), *NODES, *OWNERS, *RIGHT))
    assert right is not None
    assert right.repairs == []


def test_of_several_owners_one_pod_is_evicted_at_a_look() -> None:
    owners = [a_workload(ReplicaSet, f"set-{index:02}", 1) for index in range(MOST_REPAIRS + 2)]
    pods = [pod(f"p-{owner.metadata.name}", "d1", owner=owner.metadata.name) for owner in owners]
    policy = a_policy(capacity={"strategy": "spot-first", "spotPercent": 100})
    outcome = look(policy, *NODES, *owners, *pods)
    assert evicted_by(outcome) == ["p-set-00"]
    assert outcome.requeue_after == LOOK_SECONDS
    full = [SplitRepair(owner=f"ReplicaSet default/set-{index:02}", held=True) for index in range(MOST_REPAIRS)]
    for repair, owner in zip(full, owners, strict=False):
        repair.version = f"1 {owner.metadata.uid} 1 "
    policy.status.split = SplitStatus(repairs=full)
    assert evicted_by(look(policy, *NODES, *owners, *pods)) == [], "what is done must be noted"


def test_pods_of_others_than_replica_sets_and_stateful_sets_are_left_alone() -> None:
    bare = pod("bare", "d1")
    bare.metadata.owner_references = []
    assert split_of(look(a_policy(), *NODES, bare)) == SplitStatus()


def test_a_pod_for_which_another_policy_holds_is_not_this_ones() -> None:
    other = msgspec.convert(
        {
            "metadata": {"name": "front", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": "web", "tier": "front"}}},
        },
        PlacementPolicy,
    )
    pods = [pod(name, "d1", labels={"tier": "front"}) for name in "abc"]
    assert split_of(look(a_policy(), other, *NODES, *OWNERS, *pods)) == SplitStatus()


def test_a_policy_that_divides_no_more_loses_what_was_counted() -> None:
    plain = a_policy(noted(), capacity={"strategy": "spot-first"})
    (patch,) = look(plain, *NODES, *OWNERS, *ON_DEMAND).actions
    assert isinstance(patch, Patch)
    assert patch.patch.body["status"] == {"split": None}
    assert claim_split(a_policy()) == []


def test_looks_are_some_seconds_apart() -> None:
    controller, state = PolicySplits(BUILT_IN), a_state(a_policy(), *NODES[2:], *OWNERS, *ON_DEMAND)
    assert controller.reconcile(KEY, state, NOW).requeue_after == ROOM_SECONDS
    assert controller.reconcile(KEY, state, NOW + 1) == Outcome(requeue_after=LOOK_SECONDS - 1)
    assert controller.reconcile(KEY, state, NOW + LOOK_SECONDS).actions
    assert controller.reconcile(KEY, state, NOW - 100).actions, "a clock that was set back holds nobody up"


def test_a_change_brings_back_the_policies_that_it_may_concern() -> None:
    state = a_state(a_policy(), *NODES, *OWNERS)
    keys = {watch.resource.group_kind: watch.keys for watch in PolicySplits.watches}
    (came,) = state.apply("ADDED", pod("a", "d1"))
    assert list(keys["Pod"](came, state)) == [KEY]
    (other,) = state.apply("ADDED", a_pod("api", app="api"))
    assert list(keys["Pod"](other, state)) == []
    node = spot("s1")
    node.metadata.resource_version = "2"
    (beat,) = state.apply("MODIFIED", node)
    assert list(keys["Node"](beat, state)) == []
    gone: Node = steady("d1")
    (left,) = state.apply("DELETED", gone)
    assert list(keys["Node"](left, state)) == [KEY]
    fork = state.fork()
    fork.apply("DELETED", a_policy())
    assert fork.index_of(SplitPolicies).list_all() == []
    assert state.index_of(SplitPolicies).list_all() == [KEY]
