"""Evictions below a budget are found, unless the controller that last counted the budget could not know better."""

from __future__ import annotations

import pytest

from wukong.api.kinds import POD_DISRUPTION_BUDGETS, PODS
from wukong.api.resources import Key
from wukong.embedded.actors.disruption.controller import Disruption
from wukong.embedded.checkers import Checkers
from wukong.embedded.store import Server
from wukong.embedded.store.deletion import DeleteOptions
from wukong.embedded.world.clock import VirtualClock
from wukong.embedded.world.watch_stream import Arrival
from wukong.embedded.world.world import Role, World
from wukong.errors import TooManyRequests
from wukong.ports import Document, PatchBody

BUDGET = Key("default", "web")
LABELS = {"app": "web"}


class Leaders:
    """Ready pods under a budget that asks for all but one of them, and disruption controllers that count them."""

    def __init__(self, *names: str, pods: int = 3) -> None:
        clock = VirtualClock()
        self.server = Server(clock)
        roles = [Role(name, lambda _: [Disruption()]) for name in names]
        self.world = World(server=self.server, clock=clock, roles=roles)
        self.checkers = Checkers(self.world)
        spec = {"minAvailable": pods - 1, "selector": {"matchLabels": LABELS}}
        self.server.create(POD_DISRUPTION_BUDGETS, {"metadata": {"name": BUDGET.name}, "spec": spec}, BUDGET.namespace)
        for number in range(pods):
            self.create_ready_pod(f"web-{number}")
        self.world.run()

    def create_ready_pod(self, name: str) -> None:
        spec = {"nodeName": "n0", "containers": [{"name": "web", "image": "web:1"}]}
        self.server.create(PODS, {"metadata": {"name": name, "labels": LABELS}, "spec": spec}, BUDGET.namespace)
        self.set_ready(name, is_ready=True)

    def set_ready(self, name: str, *, is_ready: bool) -> None:
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": str(is_ready)}]}
        self.server.patch(PODS, Key(BUDGET.namespace, name), PatchBody("merge", {"status": status}), "status")

    def replace_unseen(self, name: str) -> None:
        """The pod goes, and another of its name comes, before a leader hears of it."""
        for process in self.world.processes:
            (stream,) = (stream for stream in self.world.streams_of(process) if stream.kind == "Pod")
            stream.disconnect()
            self.server.delete(PODS, Key(BUDGET.namespace, name), DeleteOptions(grace_seconds=0))
            self.create_ready_pod(name)
            stream.relist()

    def delay(self, leader: str, kind: str, seconds: float = 3600.0) -> None:
        """Changes of this kind reach the leader so much later from now on."""
        process = next(process for process in self.world.processes if process.name == leader)
        (stream,) = (stream for stream in self.world.streams_of(process) if stream.watch.resource.kind == kind)
        stream.route = lambda *_: Arrival(delay=seconds)

    def evict(self, name: str) -> None:
        self.server.evict(Key(BUDGET.namespace, name))

    def status(self) -> Document:
        status: Document = self.server.get(POD_DISRUPTION_BUDGETS, BUDGET)["status"]
        return status

    def findings(self) -> list[str]:
        return [f"{finding.subject}: {finding.text}" for finding in self.checkers.finish(is_at_rest=False)]


def test_what_a_budget_allows_is_no_finding() -> None:
    cluster = Leaders("leader")
    cluster.evict("web-0")
    cluster.world.run()
    with pytest.raises(TooManyRequests):
        cluster.evict("web-1")
    assert cluster.findings() == []


def test_a_count_that_no_controller_made_excuses_no_eviction() -> None:
    cluster = Leaders("leader")
    cluster.evict("web-0")
    cluster.world.run()
    forged = PatchBody("merge", {"status": {"disruptionsAllowed": 1, "currentHealthy": 3}})
    cluster.server.patch(POD_DISRUPTION_BUDGETS, BUDGET, forged, "status")
    cluster.evict("web-1")
    assert cluster.findings() == [
        "pod default/web-1: evicted although budget default/web asks for 2 healthy pods and only 1 are left"
    ]


def let_old_leader_count_last(cluster: Leaders) -> None:
    """The new leader has seen web-0 go, and no longer names it as disrupted. The old one still sees it."""
    cluster.delay("old", "Pod")
    cluster.delay("old", "PodDisruptionBudget", 10.0)
    cluster.evict("web-0")
    cluster.world.run(seconds=5.0)
    assert (cluster.status()["currentHealthy"], cluster.status().get("disruptedPods")) == (2, None)
    cluster.world.run(lambda _: cluster.status()["currentHealthy"] == 3, seconds=60.0)
    assert cluster.status()["disruptionsAllowed"] == 1


def test_what_a_leader_allows_whose_pods_are_behind_is_no_finding() -> None:
    """tests/live/test_late_budgets.py shows that kube-controller-manager and the API server do so, too."""
    cluster = Leaders("new", "old")
    let_old_leader_count_last(cluster)
    cluster.evict("web-1")
    assert cluster.findings() == []
    with pytest.raises(TooManyRequests):
        cluster.evict("web-2")


def test_an_eviction_beyond_what_the_last_leader_allowed_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Leaders("new", "old")
    let_old_leader_count_last(cluster)
    cluster.evict("web-1")
    monkeypatch.setattr("wukong.embedded.store.eviction._charge", lambda *_: None)
    cluster.evict("web-2")
    assert cluster.findings() == [
        "pod default/web-2: evicted although budget default/web asks for 2 healthy pods and only 0 are left"
    ]


def test_what_a_budget_allows_after_a_pod_left_that_had_turned_unready_unseen_is_no_finding() -> None:
    """Such a pod leaves free of charge, as tests/live/test_late_budgets.py shows on a real cluster."""
    cluster = Leaders("leader")
    cluster.delay("leader", "Pod")
    cluster.set_ready("web-0", is_ready=False)
    cluster.evict("web-0")
    assert cluster.status()["disruptionsAllowed"] == 1
    cluster.evict("web-1")
    assert cluster.findings() == []


def test_what_a_budget_allows_after_an_eviction_of_a_pod_that_was_deleted_unseen_is_no_finding() -> None:
    """Nobody charges the budget for it, as tests/live/test_late_budgets.py shows on a real cluster."""
    cluster = Leaders("leader")
    cluster.delay("leader", "Pod")
    cluster.server.delete(PODS, Key(BUDGET.namespace, "web-0"))
    cluster.evict("web-0")
    assert cluster.status()["disruptionsAllowed"] == 1
    cluster.evict("web-1")
    assert cluster.findings() == []


def test_pods_that_left_at_a_charge_do_not_count_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Leaders("leader")
    cluster.delay("leader", "Pod")
    cluster.evict("web-0")
    monkeypatch.setattr("wukong.embedded.store.eviction._charge", lambda *_: None)
    cluster.evict("web-1")
    assert cluster.findings() == [
        "pod default/web-1: evicted although budget default/web asks for 2 healthy pods and only 1 are left"
    ]


@pytest.mark.parametrize(("seconds", "healthy"), [(60.0, 2), (130.0, 3)])
def test_a_pod_named_as_evicted_counts_again_after_two_minutes(seconds: float, healthy: int) -> None:
    """By its name the new pod is taken for the evicted one; tests/live/test_late_budgets.py shows for how long."""
    cluster = Leaders("leader")
    cluster.evict("web-0")
    cluster.replace_unseen("web-0")
    cluster.world.run(seconds=seconds)
    assert cluster.status()["currentHealthy"] == healthy
    cluster.delay("leader", "Pod")
    cluster.set_ready("web-0", is_ready=False)
    if healthy == 3:
        cluster.evict("web-1")  # by the count two would be left
    assert cluster.findings() == []
