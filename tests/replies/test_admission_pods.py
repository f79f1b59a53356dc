"""New pods get what their policy says, shares are kept exactly, and whatever is in doubt passes as it is."""

from __future__ import annotations

import copy
import itertools
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admission_reviews import a_new_pod, a_review, encode
from policies import spot, steady
from wukong.api.core import Pod, PriorityClass
from wukong.api.kinds import RESOURCE_QUOTAS
from wukong.api.meta import Object, ObjectMeta
from wukong.api.placement import PlacementPolicy
from wukong.api.quota import ResourceQuota
from wukong.embedded.store.patch.json_patch import apply_json_patch
from wukong.placement.pods import MARK, SPOT, PodChange, build_pod, read_mark
from wukong.placement.pods.priority import UNUSED
from wukong.ports import Document
from wukong.replies.admission.decisions import FORGET_SECONDS, NONCE
from wukong.replies.admission.pods import AdmissionSettings, PodAdmission
from wukong.replies.admission.reply import PodRequest, Reply
from wukong.serve.admission.request import read_pod_review
from wukong.state import State

SELECTOR = {"matchLabels": {"app": "web"}}


def a_shop_policy(name: str = "web", **spec: Any) -> PlacementPolicy:
    document = {"metadata": {"name": name, "namespace": "shop"}, "spec": {"selector": SELECTOR, **spec}}
    return msgspec.convert(document, PlacementPolicy)


SPOT_FIRST: Document = {"capacity": {"strategy": "spot-first"}}
HALF: Document = {"capacity": {"strategy": "spot-preferred", "onDemandBase": 2, "spotPercent": 50}}


class Webhook:
    """The webhook's answers, with a mirror that is behind until `see` is called."""

    def __init__(self, *objects: Object, **options: Any) -> None:
        self.state, self.version, self.now = State(), 0, 1000.0
        self.numbers = itertools.count(1)
        for subject in objects:
            self.put(subject)
        self.admission = PodAdmission(self.state, lambda: f"nonce-{next(self.numbers)}", **options)

    def put(self, subject: Object) -> None:
        self.version += 1
        subject.metadata.resource_version = str(self.version)
        group_kind = RESOURCE_QUOTAS.group_kind if isinstance(subject, ResourceQuota) else ""
        self.state.apply("MODIFIED", subject, group_kind)

    def review(self, pod: Document, **request: Any) -> Reply:
        question = read_pod_review(encode(a_review(pod, **request)))
        assert isinstance(question.about, PodRequest)
        return self.admission.review(question.about, self.now)

    def admit(self, pod: Document, **request: Any) -> Document:
        """The pod as it would be stored."""
        return patched(pod, self.review(pod, **request))

    def see(self, pod: Document, name: str, node: str = "") -> None:
        pod = copy.deepcopy(pod)
        pod["metadata"]["name"] = name
        pod["spec"] |= {"nodeName": node} if node else {}
        self.put(msgspec.convert(without_null_times(pod), Pod))


def without_null_times(pod: Document) -> Document:
    return {**pod, "metadata": {name: value for name, value in pod["metadata"].items() if value is not None}}


def patched(pod: Document, reply: Reply) -> Document:
    return apply_json_patch(copy.deepcopy(pod), json.loads(reply.patch or b"[]"))


def capacity_of(pod: Document) -> str:
    mark = read_mark(pod["metadata"].get("annotations"))
    return mark.capacity if mark is not None else ""


# What is added -----------------------------------------------------------------------------------------------------


def test_a_pod_gets_what_its_policy_says_and_keeps_what_it_has() -> None:
    pod, webhook = a_new_pod(), Webhook(a_shop_policy(**SPOT_FIRST))
    reply = webhook.review(pod)
    assert reply.result == "patched"
    after = patched(pod, reply)
    assert "nodeAffinity" in after["spec"]["affinity"]
    assert after["spec"]["tolerations"][: len(pod["spec"]["tolerations"])] == pod["spec"]["tolerations"]
    assert {name for name in after["spec"] if after["spec"][name] != pod["spec"].get(name)} == {
        "affinity",
        "tolerations",
    }
    assert {operation["op"] for operation in json.loads(reply.patch)} == {"add"}


@pytest.mark.parametrize(
    ("policies", "pod", "result"),
    [
        ([], a_new_pod(), "no-policy"),
        ([a_shop_policy(**SPOT_FIRST)], a_new_pod(namespace="elsewhere"), "no-policy"),
        ([a_shop_policy(mode="Observe", **SPOT_FIRST)], a_new_pod(), "observed"),
        ([a_shop_policy(apply="None", **SPOT_FIRST)], a_new_pod(), "not-applied"),
        ([a_shop_policy()], a_new_pod(), "unchanged"),
        ([a_shop_policy(**SPOT_FIRST)], a_new_pod(namespace="kube-system"), "left-alone"),
        ([a_shop_policy(**SPOT_FIRST)], a_new_pod(namespace="wukong-system"), "left-alone"),
        ([a_shop_policy(**SPOT_FIRST)], a_new_pod(nodeName="n1"), "skipped"),
        ([a_shop_policy(capacity={"strategy": "nonsense"})], a_new_pod(), "no-policy"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_not_asked_for_or_in_doubt_changes_nothing(
    policies: list[PlacementPolicy], pod: Document, result: str
) -> None:
    left_alone = frozenset({"kube-system", "wukong-system"})
    webhook = Webhook(*copy.deepcopy(policies), settings=AdmissionSettings(left_alone=left_alone))
    reply = webhook.review(pod)
    assert (reply.result, reply.patch, reply.is_allowed) == (result, b"", True)
    assert len(webhook.admission.decisions) == 0


def test_a_person_is_warned_and_a_controller_is_not() -> None:
    webhook = Webhook(a_shop_policy("a", **SPOT_FIRST), a_shop_policy("b", **SPOT_FIRST))
    (warning,) = webhook.review(a_new_pod("by-hand", owner="")).warnings
    assert (
        warning == "wukong: PlacementPolicy shop/a holds, the first by name; just as specific: PlacementPolicy shop/b"
    )
    assert webhook.review(a_new_pod()).warnings == ()


def test_an_edited_policy_holds_for_the_next_pod() -> None:
    webhook = Webhook(a_shop_policy(**SPOT_FIRST))
    first = webhook.admit(a_new_pod())
    webhook.put(a_shop_policy(capacity={"strategy": "on-demand-only"}))
    second = webhook.admit(a_new_pod())
    assert first["spec"]["affinity"] != second["spec"]["affinity"]
    webhook.put(a_shop_policy(mode="Observe", **SPOT_FIRST))
    assert webhook.admit(a_new_pod()) == a_new_pod()


def test_a_priority_class_is_named_once_it_is_there() -> None:
    webhook = Webhook(a_shop_policy(priority={"className": "gold"}))
    reply = webhook.review(a_new_pod())
    assert reply.result == "skipped"
    assert reply.reasons == ("PlacementPolicy shop/web: priority: there is no PriorityClass gold",)
    webhook.put(PriorityClass(kind="PriorityClass", metadata=ObjectMeta(name="gold"), value=7))
    spec = webhook.admit(a_new_pod())["spec"]
    assert spec["priorityClassName"] == "gold"
    assert not {"priority", "preemptionPolicy"} & spec.keys()


def test_a_class_that_is_about_to_be_deleted_is_not_named() -> None:
    meta = ObjectMeta(name="gold", annotations={UNUSED: "2026-01-01T00:00:00Z"})
    gold = PriorityClass(kind="PriorityClass", metadata=meta, value=7)
    reply = Webhook(a_shop_policy(priority={"className": "gold"}), gold).review(a_new_pod())
    assert reply.reasons == ("PlacementPolicy shop/web: priority: there is no PriorityClass gold",)


GOLD = PriorityClass(kind="PriorityClass", metadata=ObjectMeta(name="gold"), value=7)


def a_quota(namespace: str = "shop", **spec: Any) -> ResourceQuota:
    document = {"kind": "ResourceQuota", "metadata": {"name": "q", "namespace": namespace}, "spec": spec}
    return msgspec.convert(document, ResourceQuota)


def for_classes(operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"scopeName": "PriorityClass", "operator": operator, "values": [*values]}]}


@pytest.mark.parametrize(
    ("quota", "is_named"),
    [
        (a_quota(scopeSelector=for_classes("In", "gold", "silver")), False),
        (a_quota(scopeSelector=for_classes("In", "silver")), True),
        (a_quota(scopeSelector=for_classes("Exists")), False),
        (a_quota(scopeSelector=for_classes("NotIn", "silver")), True),  # it counts pods without a class as well
        (a_quota(scopes=["PriorityClass"]), False),
        (a_quota(scopes=["BestEffort"]), True),
        (a_quota(), True),
        (a_quota("elsewhere", scopes=["PriorityClass"]), True),
    ],
)
def test_a_class_whose_pods_a_quota_counts_is_not_named(quota: ResourceQuota, is_named: bool) -> None:
    webhook = Webhook(a_shop_policy(priority={"className": "gold"}, **SPOT_FIRST), copy.deepcopy(GOLD))
    assert webhook.admit(a_new_pod())["spec"]["priorityClassName"] == "gold"
    webhook.put(copy.deepcopy(quota))
    reply = webhook.review(a_new_pod())
    after = patched(a_new_pod(), reply)
    assert after["spec"]["affinity"]
    assert (after["spec"].get("priorityClassName") == "gold") == is_named
    assert any("ResourceQuota" in reason for reason in reply.reasons) != is_named


def test_a_quota_of_affinity_across_namespaces_is_not_drawn_on() -> None:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "db"}}, "namespaces": ["data"]}
    webhook = Webhook(a_shop_policy(scheduling={"podAffinity": {"required": [term]}}))
    assert webhook.review(a_new_pod()).result == "patched"
    webhook.put(a_quota(scopes=["CrossNamespacePodAffinity"]))
    assert webhook.review(a_new_pod()).result == "skipped"


def test_pods_made_alike_are_built_once(monkeypatch: pytest.MonkeyPatch) -> None:
    built = []

    def count(*arguments: Any, **more: Any) -> PodChange:
        built.append(arguments)
        return build_pod(*arguments, **more)

    monkeypatch.setattr("wukong.replies.admission.pods.build_pod", count)
    webhook = Webhook(a_shop_policy(**SPOT_FIRST))
    for number in range(10):
        pod = a_new_pod()
        pod["spec"]["volumes"][0]["name"] = f"kube-api-access-{number:05}"  # the token's volume: another for each pod
        assert webhook.admit(pod)["spec"]["affinity"]
    assert len(built) == 1
    assert webhook.admit(a_new_pod(nodeSelector={"disk": "ssd"}))["spec"]["affinity"]
    assert webhook.review(a_new_pod(nodeSelector={"disk": "no label!"})).result == "skipped"
    assert len(built) == 2, "what the author wrote is looked at for each pod, and only that"
    webhook.admit(a_new_pod(topologySpreadConstraints=[]))
    assert len(built) == 3
    assert webhook.review(a_new_pod(tolerations=[None])).result == "patched", "as an API server reads it"


# Shares ------------------------------------------------------------------------------------------------------------


def test_a_hundred_pods_at_once_come_out_exactly_though_the_mirror_has_seen_none() -> None:
    webhook = Webhook(a_shop_policy(**HALF), spot("s"), steady("d"))
    capacities = [capacity_of(webhook.admit(a_new_pod())) for _ in range(100)]
    assert capacities[:2] == ["on-demand", "on-demand"]
    assert capacities.count(SPOT) == 50


def test_pods_that_were_there_before_count() -> None:
    before = Webhook(a_shop_policy(**HALF))
    state = before.state
    for number in range(4):
        before.see(before.admit(a_new_pod()), f"web-{number}")
    after = PodAdmission(state, lambda: "a-nonce")  # another instance leads
    question = read_pod_review(encode(a_review(a_new_pod())))
    assert isinstance(question.about, PodRequest)
    assert capacity_of(patched(a_new_pod(), after.review(question.about, before.now))) == "on-demand"  # 2, 2, and now


def test_a_pod_that_is_seen_counts_once() -> None:
    webhook = Webhook(a_shop_policy(**HALF), spot("s"), steady("d"))
    for number in range(40):
        pod = webhook.admit(a_new_pod())
        if number % 3:
            webhook.see(pod, f"web-{number}")
        if number % 3 == 1:
            webhook.see(pod, f"web-{number}", "s" if capacity_of(pod) == SPOT else "d")
    capacities = [capacity_of(webhook.admit(a_new_pod())) for _ in range(60)]
    assert capacities.count(SPOT) == 30


def test_a_decision_whose_pod_was_refused_afterwards_is_forgotten() -> None:
    webhook = Webhook(a_shop_policy(**HALF))
    for _ in range(2):
        assert capacity_of(webhook.admit(a_new_pod())) == "on-demand"
    webhook.now += FORGET_SECONDS
    assert [capacity_of(webhook.admit(a_new_pod())) for _ in range(3)] == ["on-demand", "on-demand", "spot"]


def test_groups_do_not_count_for_one_another() -> None:
    webhook = Webhook(a_shop_policy(**HALF))
    for owner in ("rs-1", "rs-2", ""):
        capacities = [capacity_of(webhook.admit(a_new_pod(f"{owner}{n}", owner=owner))) for n in range(4)]
        assert capacities == ["on-demand", "on-demand", "spot", "spot"]


def test_called_again_for_the_same_pod_it_decides_the_same_and_counts_it_once() -> None:
    webhook = Webhook(a_shop_policy(**HALF))
    first = webhook.admit(a_new_pod())
    assert first["metadata"]["annotations"][NONCE] == "nonce-1"
    changed = copy.deepcopy(first)
    changed["spec"]["containers"].append({"name": "sidecar", "image": "proxy"})
    changed["spec"]["nodeSelector"] = {"disk": "ssd"}
    assert webhook.admit(changed, uid="another") == changed
    assert len(webhook.admission.decisions) == 1


def test_what_another_webhook_took_away_is_added_again_by_the_same_decision() -> None:
    webhook = Webhook(a_shop_policy(**HALF))
    pod = a_new_pod()
    first = webhook.admit(pod)
    stripped = {**first, "spec": pod["spec"]}
    assert webhook.admit(stripped) == first
    assert len(webhook.admission.decisions) == 1


def test_a_pod_copied_with_its_annotations_is_decided_by_its_mark_and_counted_of_its_own() -> None:
    webhook = Webhook(a_shop_policy(**HALF))
    first = webhook.admit(a_new_pod())
    webhook.see(first, "web-1")
    copied = {**first, "spec": a_new_pod()["spec"]}
    second = webhook.admit(copied)
    assert capacity_of(second) == capacity_of(first)
    assert second["metadata"]["annotations"][NONCE] != first["metadata"]["annotations"][NONCE]
    assert [capacity_of(webhook.admit(a_new_pod())) for _ in range(2)] == ["spot", "spot"]


def test_a_dry_run_leaves_nothing_behind() -> None:
    webhook = Webhook(a_shop_policy(**HALF))
    for _ in range(5):
        pod = webhook.admit(a_new_pod(), dryRun=True)
        assert capacity_of(pod) == "on-demand"
        assert set(pod["metadata"]["annotations"]) == {MARK}
    assert len(webhook.admission.decisions) == 0


@settings(deadline=None, max_examples=60)
@given(
    base=st.integers(0, 4) | st.sampled_from(["0%", "30%", "100%"]),
    percent=st.integers(0, 100),
    steps=st.lists(st.sampled_from(["create", "create", "create", "see", "delete", "again", "dry"]), max_size=40),
)
def test_whatever_comes_in_whatever_order_base_and_share_hold_for_the_pods_on_their_way(
    base: int | str, percent: int, steps: list[str]
) -> None:
    """Decisions count from the moment they are made, until their pods are gone."""
    from wukong.placement.compile import compile_policy
    from wukong.placement.pods import divide
    from wukong.placement.rules import BUILT_IN

    policy = a_shop_policy(capacity={"strategy": "spot-preferred", "onDemandBase": base, "spotPercent": percent})
    rule = compile_policy(policy, BUILT_IN).split
    assert rule is not None
    webhook, unseen, seen = Webhook(policy), dict[str, Document](), dict[str, Document]()
    names = itertools.count()
    for step in steps:
        if step == "create":
            before = [capacity_of(pod) for pod in (*unseen.values(), *seen.values())]
            pod = webhook.admit(a_new_pod())
            lacks_on_demand = before.count("on-demand") < divide(rule, len(before) + 1).on_demand
            assert capacity_of(pod) == ("on-demand" if lacks_on_demand else "spot")
            unseen[f"web-{next(names)}"] = pod
        elif step == "see" and unseen:
            name = next(iter(unseen))
            seen[name] = unseen.pop(name)
            webhook.see(seen[name], name)
        elif step == "delete" and seen:
            name = next(iter(seen))
            seen.pop(name)
            (mirrored,) = [pod for pod in webhook.state.all(Pod) if pod.metadata.name == name]
            webhook.state.apply("DELETED", mirrored)
        elif step == "again" and unseen:
            pod = next(reversed(unseen.values()))
            assert webhook.admit(pod) == pod
        elif step == "dry":
            webhook.review(a_new_pod(), dryRun=True)
