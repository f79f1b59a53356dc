"""What a policy's or a Wukong's condition would say is said when it is applied."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from rollouts import a_rollout, canary
from wukong.api.kinds import CLUSTER_PLACEMENT_POLICIES, PLACEMENT_POLICIES, ROLLOUTS, WUKONGS
from wukong.api.resources import Resource
from wukong.placement.rules import BUILT_IN
from wukong.replies.admission.own_kinds import KindAdmission
from wukong.replies.admission.reply import ObjectRequest, Reply

GOOD: dict[str, Any] = {"selector": {"matchLabels": {"app": "web"}}, "capacity": {"strategy": "spot-first"}}
UNKNOWN_RULE: dict[str, Any] = {"scheduling": {"schedulingPolicy": {"rules": [{"name": "cost-awre", "type": "score"}]}}}


def raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


def review(spec: Any, resource: Resource = PLACEMENT_POLICIES, old: Any = None, **meta: Any) -> Reply:
    document = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": {"name": "web", **meta}}
    return KindAdmission(BUILT_IN).review(
        ObjectRequest(resource.group_kind, raw({**document, "spec": spec}), raw(old and {**document, "spec": old}))
    )


@pytest.mark.parametrize("resource", [PLACEMENT_POLICIES, CLUSTER_PLACEMENT_POLICIES])
def test_a_good_policy_is_accepted(resource: Resource) -> None:
    assert review(GOOD, resource) == Reply("accepted")


def test_what_is_wrong_is_said_with_its_place_and_the_fix() -> None:
    reply = review(UNKNOWN_RULE)
    assert not reply.is_allowed
    assert reply.message.startswith("$.spec.scheduling.schedulingPolicy.rules[0].name: expected a rule that is there")
    assert 'Did you mean "cost-aware"?' in reply.message


def test_every_problem_is_said() -> None:
    reply = review({"capacity": {"strategy": "spot"}, "mode": "Watch"})
    assert [line.partition(":")[0] for line in reply.message.splitlines()] == [
        "$.spec.capacity.strategy",
        "$.spec.mode",
    ]


def test_a_wukong_is_checked_as_well() -> None:
    assert review({"cpu": 2, "memory": "2Gi", "image": "fedora"}, WUKONGS).is_allowed is True
    reply = review({"cpu": 2, "memory": "lots"}, WUKONGS)
    assert "$.spec.memory" in reply.message


def test_a_rollout_is_checked_as_well() -> None:
    spec = a_rollout(canary())["spec"]
    assert review(spec, ROLLOUTS) == Reply("accepted")
    reply = review({**spec, "selector": {"matchLabels": {"app": "db"}}}, ROLLOUTS)
    assert reply.message.startswith("$.spec.template.metadata.labels: expected labels that $.spec.selector selects")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("nonsense", "$.spec: expected"),
        ({"selector": 3}, "$.spec.selector: expected"),
        (
            {"scheduling": {"schedulingPolicy": {"rules": [{"name": "a", "type": "score", "config": {}}] * 40}}},
            "at most 32",
        ),
    ],
)
def test_what_cannot_be_read_or_is_too_large_is_denied_with_the_reason(spec: Any, words: str) -> None:
    reply = review(spec)
    assert not reply.is_allowed
    assert words in reply.message.lower().replace("expected `", "expected ")


def test_a_config_that_is_nested_too_deeply_is_denied() -> None:
    config: Any = 1
    for _ in range(40):
        config = {"a": config}
    rules = [{"name": "label-match", "type": "filter", "config": config}]
    assert not review({"scheduling": {"schedulingPolicy": {"rules": rules}}}).is_allowed
    for _ in range(900):
        config = [config]
    rules = [{"name": "label-match", "type": "filter", "config": {"deep": config}}]
    reply = review({"scheduling": {"schedulingPolicy": {"rules": rules}}})
    assert "nested too deeply" in reply.message


def test_one_that_is_being_deleted_or_says_what_it_said_passes() -> None:
    assert review(UNKNOWN_RULE, deletionTimestamp="2026-11-16T12:00:00Z", finalizers=[]).is_allowed
    assert review(UNKNOWN_RULE, old=UNKNOWN_RULE, labels={"a": "b"}).is_allowed
    assert not review(UNKNOWN_RULE, old=GOOD).is_allowed


def test_other_kinds_are_none_of_our_business() -> None:
    request = ObjectRequest("Deployment.apps", raw({"spec": "nonsense"}), raw(None))
    assert KindAdmission(BUILT_IN).review(request) == Reply("left-alone")


def test_a_message_has_a_bound() -> None:
    names = [{"name": "x" * 60 + str(number), "type": "score"} for number in range(32)]
    reply = review({"scheduling": {"schedulingPolicy": {"rules": names * 1}}, "mode": "y" * 20_000})
    assert len(reply.message) <= 8192
