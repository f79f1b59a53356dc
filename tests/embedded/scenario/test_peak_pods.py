"""How many pods a workload had at once: on virtual time and on a real cluster, where controllers take time."""

from __future__ import annotations

from wukong.api.meta import Object
from wukong.api.resources import Key
from wukong.embedded.scenario.record.peak_pods import PeakPods
from wukong.embedded.world import objects
from wukong.embedded.world.objects import Pod
from wukong.state import Change


def a_set(uid: str, replicas: int) -> Object:
    return objects.read("ReplicaSet.apps", {"metadata": {"name": uid, "uid": uid}, "spec": {"replicas": replicas}})


def a_pod(name: str, owner: str, **meta: str) -> Pod:
    controller = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner, "controller": True}
    found = objects.read("Pod", {"metadata": {"name": name, "uid": name, "ownerReferences": [controller], **meta}})
    assert isinstance(found, Pod)
    return found


class PolicyReport:
    """A workload called `web`, and a clock."""

    def __init__(self, passing_seconds: float) -> None:
        self.crowds, self.now = PeakPods(passing_seconds), 0.0

    def asked(self, uid: str, replicas: int) -> None:
        change = Change("MODIFIED", "ReplicaSet.apps", Key("", uid), None, a_set(uid, replicas))
        self.crowds.hear_maker("web", change)
        self.crowds.count("web", self.now)

    def made(self, owner: str, *names: str) -> None:
        for name in names:
            self.crowds.hear_pod(a_pod(name, owner), is_gone=False)
            self.crowds.count("web", self.now)

    def stops(self, owner: str, name: str) -> None:
        self.crowds.hear_pod(a_pod(name, owner, deletionTimestamp="2026-01-01T00:00:00Z"), is_gone=False)
        self.crowds.count("web", self.now)

    def most(self) -> int:
        return self.crowds.keep("web", self.now)


def test_pods_that_stop_do_not_count() -> None:
    told = PolicyReport(0.0)
    told.asked("old", 2)
    told.made("old", "a", "b")
    told.now = 1.0
    told.stops("old", "a")
    told.made("old", "c")
    told.now = 2.0
    assert told.most() == 2


def test_pods_that_a_replica_set_was_told_to_give_up_do_not_count() -> None:
    told = PolicyReport(0.0)
    told.asked("old", 2)
    told.made("old", "a", "b")
    told.now = 5.0
    told.asked("old", 1)
    told.asked("new", 1)
    told.made("new", "c")  # there before `b` is deleted
    told.now = 6.0
    assert told.most() == 2


def test_what_lasts_no_longer_than_a_moment_does_not_count() -> None:
    told = PolicyReport(2.0)
    told.asked("old", 2)
    told.made("old", "a", "b")
    told.now = 10.0
    told.asked("new", 2)
    told.made("new", "c", "d")
    told.now = 11.5
    told.asked("old", 0)
    told.now = 20.0
    assert told.most() == 2
    told.made("new", "e")
    told.asked("new", 3)
    told.now = 22.5
    assert told.most() == 3


def test_on_virtual_time_a_moment_is_no_time_at_all() -> None:
    told = PolicyReport(0.0)
    told.asked("new", 3)
    told.made("new", "a", "b", "c")
    told.stops("new", "c")
    told.now = 0.1
    assert told.most() == 2


def test_a_pod_heard_of_before_its_maker_counts_from_then_on() -> None:
    told = PolicyReport(0.0)
    told.made("late", "a")
    told.now = 1.0
    assert told.most() == 0
    told.asked("late", 1)
    told.now = 2.0
    assert told.most() == 1
