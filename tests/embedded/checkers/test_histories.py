"""What goes back in time is found; a finished pod that is said to wait again, unless who says so could not know that it
had finished."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from wukong.actions import DONE, Outcome, Patch
from wukong.api.core import Pod, PodSpec
from wukong.api.kinds import PODS
from wukong.api.meta import ObjectMeta
from wukong.api.resources import Key
from wukong.embedded.checkers import Checkers
from wukong.embedded.checkers.findings import Findings
from wukong.embedded.checkers.histories import Histories
from wukong.embedded.store import Server
from wukong.embedded.world.clock import VirtualClock
from wukong.embedded.world.watch_stream import Arrival
from wukong.embedded.world.world import Role, World
from wukong.ports import PatchBody
from wukong.state import Change, State
from wukong.state.controller import Watch

KEY = Key("default", "web")


class Waker:
    """Says once of every pod with the label `wake` that it waits, whatever it was."""

    name = "waker"
    watches = (Watch(PODS),)

    def __init__(self) -> None:
        self.is_done = False

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        pod = state.get(Pod, key)
        if self.is_done or pod is None or "wake" not in pod.metadata.labels:
            return DONE
        self.is_done = True
        return Outcome((Patch(PODS, key, a_phase("Pending"), "status"),))


def a_phase(phase: str) -> PatchBody:
    return PatchBody("merge", {"status": {"phase": phase}})


def play(*, has_processes: bool, delay: float = 0.0) -> list[str]:
    """A pod fails, and is said to wait again by a process that hears of this so many seconds later."""
    clock = VirtualClock()
    server = Server(clock)
    roles = [Role("waker", lambda _: [Waker()])]
    world = World(server=server, clock=clock, **({"roles": roles} if has_processes else {"controllers": [Waker()]}))
    checkers = Checkers(world)
    meta = {"name": KEY.name, "labels": {"wake": "yes"} if delay else {}}
    server.create(PODS, {"metadata": meta, "spec": {"containers": [{"name": "a", "image": "b"}]}}, KEY.namespace)
    for stream in world.streams_of(world.processes[0]):
        stream.route = lambda *_: Arrival(delay=delay)
    server.patch(PODS, KEY, a_phase("Failed"), "status")
    if not delay:
        server.patch(PODS, KEY, PatchBody("merge", {"metadata": {"labels": {"wake": "yes"}}}))
    world.run()
    assert server.get(PODS, KEY)["status"]["phase"] == "Pending"
    return [finding.text for finding in checkers.finish(is_at_rest=False)]


@pytest.mark.parametrize("has_processes", [False, True])
def test_a_finished_pod_that_is_said_to_wait_again_by_who_knows_better_is_found(has_processes: bool) -> None:
    assert play(has_processes=has_processes) == ["was over (Failed) and is Pending again"]


def test_who_has_not_heard_that_a_pod_has_finished_may_say_that_it_waits() -> None:
    """A kubelet whose watch is late does so, and the API server takes it: tests/conformance/test_patching.py."""
    assert play(has_processes=True, delay=5.0) == []


@pytest.mark.parametrize(
    ("version", "text"),
    [("3", "went from version 4 back to 3"), ("4", "went from version 4 back to 4"), ("5", "")],
    ids=["lower", "the same", "higher"],
)
def test_a_write_that_does_not_raise_the_version_is_found(version: str, text: str) -> None:
    """The API server gives every write a higher one; watches and caches tell by it that something changed."""
    assert observe(a_change({"resource_version": version})) == ([text] if text else [])


def observe(*changes: Change) -> list[str]:
    """What is found in these changes."""
    clock = VirtualClock()
    findings = Findings(World(server=Server(clock), clock=clock))
    histories = Histories(findings)
    for change in changes:
        histories.observe(change)
    return [finding.text for finding in findings.all]


def a_change(after: dict[str, Any], before: dict[str, Any] | None = None) -> Change:
    """Of a pod's metadata. What is not said is the same as before, but for the version."""
    old = ObjectMeta(name=KEY.name, namespace=KEY.namespace, uid="u1", resource_version="4", generation=2)
    old = replace(old, **(before or {}))
    new = replace(old, **{"resource_version": "5", **after})
    return Change("MODIFIED", "Pod", KEY, Pod(metadata=old, spec=PodSpec()), Pod(metadata=new, spec=PodSpec()))


@pytest.mark.parametrize(
    ("after", "text"),
    [
        ({"uid": "u2"}, "changed its uid from u1 to u2"),
        ({"generation": 1}, "went from generation 2 back to 1"),
        ({"generation": 2}, ""),
        ({"generation": 3}, ""),
        ({"labels": {"a": "b"}}, ""),
    ],
)
def test_what_goes_back_or_is_another_is_found(after: dict[str, Any], text: str) -> None:
    assert observe(a_change(after)) == ([text] if text else [])


def test_an_object_that_was_gone_does_not_come_back_with_its_uid() -> None:
    change = a_change({})
    gone, back = change._replace(type="DELETED", new=None), change._replace(type="ADDED", old=None)
    assert observe(gone, back) == ["is back with the uid u1 of one that was gone"]
    another = a_change({"uid": "u2"})._replace(type="ADDED", old=None)
    assert observe(gone, another) == []


@pytest.mark.parametrize(("before", "after", "moves"), [("", "n1", False), ("n1", "n1", False), ("n1", "n2", True)])
def test_a_pod_never_moves(before: str, after: str, moves: bool) -> None:
    change = a_change({})
    assert change.old is not None
    assert change.new is not None
    old = Pod(metadata=change.old.metadata, spec=PodSpec(node_name=before))
    new = Pod(metadata=change.new.metadata, spec=PodSpec(node_name=after))
    found = observe(change._replace(old=old, new=new))
    assert found == (['moved from node n1 to "n2"'] if moves else [])
