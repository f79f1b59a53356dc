"""A key rests until its own writes have shown: which change shows which write, how long it waits, what is overdue."""

from __future__ import annotations

import pytest

from builders import a_pod
from wukong.api.core import Pod
from wukong.api.resources import Key
from wukong.runtime import pending_writes
from wukong.runtime.pending_writes import PATIENCE, PendingWrites, WrittenVersion
from wukong.state import Change

WEB, DB = Key("default", "web"), Key("default", "db")
WRITE = WrittenVersion("Pod", WEB, "7", "u")


def version(number: str, name: str = "web", uid: str = "u") -> Pod:
    pod = a_pod(name)
    pod.metadata.resource_version, pod.metadata.uid = number, uid
    return pod


def shows(number: str, key: Key = WEB, group_kind: str = "Pod") -> Change:
    return Change("MODIFIED", group_kind, key, None, version(number, key.name))


def gone(uid: str = "u") -> Change:
    return Change("DELETED", "Pod", WEB, version("9", uid=uid), None)


def holding(*writes: WrittenVersion, now: float = 0.0) -> PendingWrites[str]:
    pending: PendingWrites[str] = PendingWrites()
    assert pending.hold("item", writes or [WRITE], now)
    return pending


@pytest.mark.parametrize(
    ("change", "is_shown"),
    [
        (shows("7"), True),
        (shows("8"), False),
        (shows("7", DB), False),
        (shows("7", WEB, "Job.batch"), False),
        (gone(), True),
        (gone(uid="earlier"), False),
        (Change("DELETED", "Pod", WEB, None, None), False),
    ],
)
def test_a_write_shows_by_its_version_or_when_its_object_goes(change: Change, is_shown: bool) -> None:
    pending = holding()
    assert pending.observe([change]) == (["item"] if is_shown else [])
    assert (pending.next_expiry() is None) is is_shown


def test_a_write_to_an_object_of_unknown_uid_shows_when_any_of_that_name_goes() -> None:
    assert holding(WRITE._replace(uid="")).observe([gone(uid="whose")]) == ["item"]


def test_an_item_rests_until_all_its_writes_have_shown() -> None:
    pending = holding(WRITE, WrittenVersion("Pod", DB, "8"))
    assert pending.observe([shows("7")]) == []
    assert pending.observe([shows("7")]) == []
    assert pending.observe([shows("8", DB)]) == ["item"]
    assert pending.observe([shows("8", DB)]) == []


def test_a_write_that_has_shown_before_its_answer_came_is_not_waited_for() -> None:
    pending: PendingWrites[str] = PendingWrites()
    pending.observe([shows("7")])
    assert not pending.hold("item", [WRITE], 0.0)
    assert not pending.hold("item", [], 0.0)
    assert pending.hold("item", [WRITE._replace(version="8")], 0.0)


def test_of_versions_that_have_shown_the_latest_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending_writes, "_REMEMBERED", 2)
    pending: PendingWrites[str] = PendingWrites()
    pending.observe([shows("7"), shows("8"), shows("9")])
    held = [pending.hold(number, [WRITE._replace(version=number)], 0.0) for number in ("7", "8", "9")]
    assert held == [True, False, False]


def test_nobody_rests_for_longer_than_the_patience_and_the_oldest_is_known() -> None:
    pending = holding(now=1.0)
    pending.hold("other", [WRITE._replace(version="8")], 2.0)
    assert pending.next_expiry() == 1.0 + PATIENCE
    assert pending.expire(1.0 + PATIENCE - 0.001) == []
    assert pending.expire(1.0 + PATIENCE) == ["item"]
    assert pending.next_expiry() == 2.0 + PATIENCE
    assert pending.observe([shows("7")]) == [], "it is at work already"


def test_what_is_overdue_is_looked_for_in_lists_of_its_kind_until_it_shows() -> None:
    pending = holding(WRITE, WrittenVersion("Pod", DB, "8"), WrittenVersion("Node", Key("", "n"), "9"))
    pending.expire(PATIENCE)
    pending.observe([shows("7")])
    fork = pending.fork()
    assert pending.take_overdue("Pod") == ["item"], "for the other pod"
    assert pending.take_overdue("Pod") == []
    assert pending.take_overdue("Node") == ["item"]
    fork.observe([shows("8", DB)])
    assert fork.take_overdue("Pod") == []
    assert fork.take_overdue("Node") == ["item"]


def test_an_item_that_writes_again_waits_for_its_latest_write_only() -> None:
    pending = holding()
    pending.hold("other", [WRITE._replace(version="6")], 0.0)
    pending.expire(PATIENCE)
    pending.hold("item", [WRITE._replace(version="8")], 10.0)
    pending.expire(10.0 + PATIENCE)
    pending.observe([shows("8")])
    assert pending.take_overdue("Pod") == ["other"]


def test_a_fork_waits_for_itself() -> None:
    pending = holding(WRITE, WrittenVersion("Pod", DB, "8"))
    pending.observe([shows("3", Key("default", "x"))])
    fork = pending.fork()
    assert fork.observe([shows("7"), shows("8", DB)]) == ["item"]
    assert fork.next_expiry() is None
    assert pending.next_expiry() == PATIENCE
    assert pending.observe([shows("8", DB)]) == []
    assert pending.observe([shows("7")]) == ["item"]
    assert not fork.hold("late", [WrittenVersion("Pod", Key("default", "x"), "3")], 0.0)


def test_a_kind_is_named_without_its_group() -> None:
    assert WrittenVersion("Deployment.apps", WEB, "1").kind == "Deployment"
