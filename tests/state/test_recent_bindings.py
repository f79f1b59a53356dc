"""Bindings seen happening are remembered until the pod is gone or they are old; others never are."""

from __future__ import annotations

import pytest

from builders import a_node, a_pod
from wukong.api.core import Pod, PodCondition
from wukong.api.resources import Key
from wukong.state import State
from wukong.state.recent_bindings import KEPT_SECONDS, RecentBinding, RecentBindings

WEB = Key("default", "web-1")
AT = "1970-01-01T00:16:40Z"  # second 1000


def bound(name: str = "web-1", node: str = "n", at: str | None = AT, status: str = "True", phase: str = "") -> Pod:
    pod = a_pod(name, node=node, cpu="500m", memory="1Gi")
    pod.status.conditions = [PodCondition(type="PodScheduled", status=status, last_transition_time=at)]
    pod.status.phase = phase
    return pod


def test_a_binding_seen_happening_is_remembered_with_what_the_pod_asks_for() -> None:
    recent = RecentBindings()
    recent.note(WEB, a_pod(), bound())
    assert recent.on_node == {"n": {WEB: RecentBinding(1000.0, "n", 500, 1 << 30)}}


def test_what_a_pod_does_not_ask_for_counts_as_the_scheduler_counts_it() -> None:
    recent = RecentBindings()
    pod = bound()
    pod.spec.containers[0].resources.requests = {}
    recent.note(WEB, a_pod(), pod)
    assert recent.on_node["n"][WEB] == RecentBinding(1000.0, "n", 100, 200 << 20)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (None, bound()),  # we did not see it: after a restart all pods look like this
        (bound(), bound()),
        (a_pod(), a_pod()),
        (a_pod(), bound(phase="Succeeded")),
        (a_pod(), bound(at=None)),
        (a_pod(), bound(at="yesterday")),
        (a_pod(), bound(status="False")),
        (a_pod(), a_pod(node="n")),
        (a_pod(), None),
    ],
)
def test_anything_else_is_no_binding(old: Pod | None, new: Pod | None) -> None:
    recent = RecentBindings()
    recent.note(WEB, old, new)
    assert (recent.on_node, recent.version) == ({}, 0)


@pytest.mark.parametrize("last", [None, bound(phase="Succeeded"), bound(phase="Failed")])
def test_a_pod_that_is_gone_or_finished_is_forgotten(last: Pod | None) -> None:
    recent = RecentBindings()
    recent.note(WEB, a_pod(), bound())
    version = recent.version
    recent.note(WEB, bound(), last)
    assert recent.on_node == {}
    assert recent.version != version


def test_the_version_changes_only_with_what_is_remembered() -> None:
    recent = RecentBindings()
    recent.note(WEB, a_pod(), bound())
    version = recent.version
    recent.note(WEB, bound(), bound(phase="Running"))
    recent.expire(1000.0 + KEPT_SECONDS - 1)
    assert recent.version == version
    recent.expire(1000.0 + KEPT_SECONDS)
    assert recent.on_node == {}
    assert recent.version != version


def test_a_time_without_a_zone_is_utc() -> None:
    recent = RecentBindings()
    recent.note(WEB, a_pod(), bound(at="1970-01-01T00:16:40"))
    assert recent.on_node["n"][WEB].at == 1000.0


def test_a_fork_remembers_for_itself() -> None:
    state = State()
    state.apply("ADDED", a_node("n"))
    state.apply("ADDED", a_pod())
    state.apply("MODIFIED", bound())
    fork = state.fork()
    fork.apply("DELETED", bound())
    assert (len(state.recent.on_node), len(fork.recent.on_node)) == (1, 0)


def test_a_name_created_again_is_another_pod() -> None:
    state = State()
    state.apply("ADDED", a_pod())
    state.apply("MODIFIED", bound())
    another = bound(node="m")
    another.metadata.uid = "2"
    state.apply("ADDED", another)
    assert state.recent.on_node == {}


def test_bindings_are_remembered_for_ten_minutes_and_the_oldest_go_first() -> None:
    recent = RecentBindings()
    recent.note(WEB, a_pod(), bound())
    recent.note(Key("default", "web-2"), a_pod("web-2"), bound("web-2", at="1970-01-01T00:16:41Z"))
    recent.expire(1000.0 + KEPT_SECONDS - 0.1)
    assert list(recent.on_node["n"]) == [WEB, Key("default", "web-2")]
    recent.expire(1000.0 + KEPT_SECONDS)
    assert list(recent.on_node["n"]) == [Key("default", "web-2")]
    assert KEPT_SECONDS == 600.0


def test_of_ever_so_many_bindings_only_so_many_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wukong.state.recent_bindings._MOST_KEPT", 2)
    monkeypatch.setattr("wukong.state.recent_bindings._LONGEST_LOG", 3)
    recent = RecentBindings()
    for number in range(3):
        recent.note(Key("default", f"w{number}"), a_pod(), bound(f"w{number}", node=f"n{number}"))
    recent.expire(1000.0)
    assert list(recent.on_node) == ["n1", "n2"]
    assert recent.version == 4
    assert recent.changed_since(2) is None, "too long ago to tell"
    assert recent.changed_since(4) == set()
    recent.note(Key("default", "w2"), bound("w2"), None)
    assert recent.changed_since(4) == {"n2"}
