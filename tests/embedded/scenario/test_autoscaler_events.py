"""What a story tells of an autoscaler: each change of scale, and each new reason why it cannot decide."""

from __future__ import annotations

from typing import Any

import msgspec

from wukong.api.autoscaling import HorizontalPodAutoscaler
from wukong.embedded.scenario.record.autoscaler_events import describe_autoscaler_change
from wukong.embedded.world.objects import Pod
from wukong.ports import Document


class WholeAutoscaler(HorizontalPodAutoscaler):
    document: Document = {}


def an_autoscaler(reason: str = "", is_active: bool = False, least: int | None = 2, **status: Any) -> WholeAutoscaler:
    conditions = [{"type": "ScalingActive", "status": str(is_active), "reason": reason}] if reason else []
    target = {"kind": "Deployment", "name": "web"}
    spec = {"scaleTargetRef": target, "maxReplicas": 8, **({} if least is None else {"minReplicas": least})}
    subject = msgspec.convert({"metadata": {"name": "web"}, "spec": spec}, WholeAutoscaler)
    subject.document = {"status": {"conditions": conditions, **status}}
    return subject


def told(old: WholeAutoscaler | None, new: WholeAutoscaler | None) -> list[str]:
    return list(describe_autoscaler_change(old, new))


def test_a_change_of_scale_is_told_once() -> None:
    scaled = an_autoscaler(lastScaleTime="t1", currentReplicas=2, desiredReplicas=5)
    assert told(an_autoscaler(), scaled) == told(None, scaled) == ["scales Deployment web from 2 to 5"]
    assert told(scaled, an_autoscaler(lastScaleTime="t1", currentReplicas=5, desiredReplicas=5)) == []
    again = an_autoscaler(lastScaleTime="t2", desiredReplicas=6)
    assert told(scaled, again) == ["scales Deployment web from 0 to 6"]
    assert told(scaled, an_autoscaler()) == []


def test_why_it_cannot_decide_is_told_when_the_reason_changes() -> None:
    text = "{}: keeps Deployment web within {} to 8 replicas, as it is"
    failing, disabled = an_autoscaler("FailedGetResourceMetric"), an_autoscaler("ScalingDisabled", least=None)
    assert told(None, failing) == told(an_autoscaler(), failing) == [text.format("FailedGetResourceMetric", 2)]
    assert told(failing, failing) == []
    assert told(failing, disabled) == [text.format("ScalingDisabled", 1)]
    active = an_autoscaler("ValidMetricFound", is_active=True)
    assert told(failing, active) == told(None, active) == []
    assert told(active, failing) == [text.format("FailedGetResourceMetric", 2)]
    assert told(an_autoscaler("FailedGetResourceMetric", is_active=True), failing) != []


def test_nothing_is_told_of_one_that_goes_or_of_another_kind() -> None:
    assert told(an_autoscaler("FailedGetResourceMetric"), None) == []
    assert list(describe_autoscaler_change(None, Pod())) == []
