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
    pod = objects.read("Pod", {"metadata": {"name": name, "uid": name, "ownerReferences": [controller], **meta}})
    assert isinstance(pod, Pod)
    return pod


class Rollout:
    """A workload called `web`, and a clock."""

    def __init__(self, passing_seconds: float) -> None:
        self.peak_pods, self.now = PeakPods(passing_seconds), 0.0

    def scale(self, uid: str, replicas: int) -> None:
        change = Change("MODIFIED", "ReplicaSet.apps", Key("", uid), None, a_set(uid, replicas))
        self.peak_pods.hear_owner("web", change)
        self.peak_pods.count_pods("web", self.now)

    def create_pods(self, owner: str, *names: str) -> None:
        for name in names:
            self.peak_pods.hear_pod(a_pod(name, owner), is_gone=False)
            self.peak_pods.count_pods("web", self.now)

    def stop_pod(self, owner: str, name: str) -> None:
        self.peak_pods.hear_pod(a_pod(name, owner, deletionTimestamp="2026-01-01T00:00:00Z"), is_gone=False)
        self.peak_pods.count_pods("web", self.now)

    def peak(self) -> int:
        self.peak_pods.update_peaks(self.now)
        return self.peak_pods.peaks.get("web", 0)


def test_pods_that_stop_do_not_count() -> None:
    rollout = Rollout(0.0)
    rollout.scale("old", 2)
    rollout.create_pods("old", "a", "b")
    rollout.now = 1.0
    rollout.stop_pod("old", "a")
    rollout.create_pods("old", "c")
    rollout.now = 2.0
    assert rollout.peak() == 2


def test_pods_that_a_replica_set_was_told_to_give_up_do_not_count() -> None:
    rollout = Rollout(0.0)
    rollout.scale("old", 2)
    rollout.create_pods("old", "a", "b")
    rollout.now = 5.0
    rollout.scale("old", 1)
    rollout.scale("new", 1)
    rollout.create_pods("new", "c")  # there before `b` is deleted
    rollout.now = 6.0
    assert rollout.peak() == 2


def test_what_lasts_no_longer_than_a_moment_does_not_count() -> None:
    rollout = Rollout(2.0)
    rollout.scale("old", 2)
    rollout.create_pods("old", "a", "b")
    rollout.now = 10.0
    rollout.scale("new", 2)
    rollout.create_pods("new", "c", "d")
    rollout.now = 11.5
    rollout.scale("old", 0)
    rollout.now = 20.0
    assert rollout.peak() == 2
    rollout.create_pods("new", "e")
    rollout.scale("new", 3)
    rollout.now = 22.5
    assert rollout.peak() == 3


def test_on_virtual_time_a_moment_is_no_time_at_all() -> None:
    rollout = Rollout(0.0)
    rollout.scale("new", 3)
    rollout.create_pods("new", "a", "b", "c")
    rollout.stop_pod("new", "c")
    rollout.now = 0.1
    assert rollout.peak() == 2


def test_a_pod_heard_of_before_its_maker_counts_from_then_on() -> None:
    rollout = Rollout(0.0)
    rollout.create_pods("late", "a")
    rollout.now = 1.0
    assert rollout.peak() == 0
    rollout.scale("late", 1)
    rollout.now = 2.0
    assert rollout.peak() == 1


def test_pods_of_a_replica_set_that_is_gone_do_not_count_and_nothing_of_it_is_kept() -> None:
    rollout = Rollout(0.0)
    rollout.scale("old", 2)
    rollout.create_pods("old", "a", "b")
    gone = Change("DELETED", "ReplicaSet.apps", Key("", "old"), a_set("old", 2), None)
    rollout.peak_pods.hear_owner("web", gone)
    assert "web" not in rollout.peak_pods._limits
    rollout.now = 60.0
    rollout.scale("new", 1)
    rollout.create_pods("new", "c")
    assert len(rollout.peak_pods._levels["web"]) == 1
