"""Deletions without a reason, or by somebody whose business they are not, are found; so are histories that go back."""

from __future__ import annotations

import pytest

from embedded.checkers.judging import Actor, Court
from wukong.actions import DONE, Delete, Outcome
from wukong.api.core import Pod
from wukong.api.kinds import PODS
from wukong.api.resources import Key


def deleting(key: Key, pod: Pod, now: float) -> Outcome:
    return DONE if pod.is_terminating else Outcome((Delete(PODS, key, uid=pod.metadata.uid),))


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("tainteviction", "deleted by tainteviction without a reason"),
        ("podgc", "deleted by podgc without a reason"),
        ("garbage", "deleted by garbage without a reason"),
        ("namespace", "deleted by namespace without a reason"),
        ("drain", "deleted by drain without a reason"),
        ("scheduler", "deleted by scheduler without a reason"),
        ("deployment", "deleted by deployment, whose business it is not"),
    ],
)
def test_who_deletes_a_pod_must_have_a_reason(name: str, told: str) -> None:
    court = Court(Actor(name, deleting))
    court.node("n0")
    court.pod("one", nodeName="n0")
    (found,) = court.verdict()
    assert found.startswith(f"pod default/one: {told}")


def test_people_need_no_reason() -> None:
    court = Court()
    court.node("n0")
    court.pod("one", nodeName="n0")
    court.world.run()
    court.server.delete(PODS, Key("default", "one"))
    assert court.verdict() == []


def test_a_pod_that_is_over_stays_over_and_one_that_goes_goes() -> None:
    court = Court()
    court.node("n0")
    made = court.pod("one", nodeName="n0", restartPolicy="Never")
    database = court.server.database
    over = database.put("pods", {**made, "status": {"phase": "Failed"}})
    database.put("pods", {**over, "status": {"phase": "Running"}})
    leaving = {**over["metadata"], "deletionTimestamp": "2026-01-01T00:00:09Z", "generation": 5}
    database.put("pods", {**over, "metadata": leaving})
    database.put("pods", over)
    texts = " ".join(court.verdict())
    assert "was over (Failed) and is Running again" in texts
    assert "was being deleted and is no more" in texts
    assert "went from generation 5 back to 1" in texts
