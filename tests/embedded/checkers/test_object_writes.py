"""A controller that writes an object of ours without end is found; one that has much to tell is not."""

from __future__ import annotations

from typing import Any

import pytest

from embedded.actors.machine_world import a_machine
from embedded.checkers.checked_cluster import CheckedCluster
from wukong.actions import DONE, Outcome, Patch
from wukong.api.kinds import PLACEMENT_POLICIES, POD_DISRUPTION_BUDGETS, VIRTUAL_MACHINES, WUKONGS
from wukong.api.resources import Key, Resource
from wukong.embedded.checkers.object_writes import MOST_WRITES, WINDOW_SECONDS
from wukong.embedded.world.process import Role
from wukong.ports import PatchBody
from wukong.state import State
from wukong.state.controller import Watch

KEY = Key("default", "web")


class Counter:
    """Writes how often it has looked at an object, so many times."""

    name = "counter"

    def __init__(self, resource: Resource, times: int, wait: float = 1.0) -> None:
        self.resource, self.times, self.wait, self.count = resource, times, wait, 0
        self.watches = (Watch(resource),)

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        if self.count == self.times:
            return DONE
        self.count += 1
        body = {"metadata": {"labels": {"count": str(self.count)}}}
        return Outcome((Patch(self.resource, key, PatchBody("merge", body)),), requeue_after=self.wait)


def play(counter: Counter, replicas: int = 0, *, has_second: bool = False, is_ours: bool = False) -> list[str]:
    """What is found. `has_second`: another instance of its process runs."""
    cluster = CheckedCluster(counter, gated=(counter.name,) if is_ours else ())
    if has_second:
        cluster.world.start(Role(cluster.world.processes[0].role.name, lambda _: ()))
    disks = [{"name": "root", "containerDisk": {"image": "a"}}]
    wukong = {"metadata": {"name": "web"}, "spec": {"disks": disks, "replicas": replicas}}
    documents: dict[Resource, dict[str, Any]] = {
        WUKONGS: wukong,
        PLACEMENT_POLICIES: {"metadata": {"name": "web"}, "spec": {}},
    }
    document = documents.get(counter.resource) or a_machine(strategy="Halted")
    cluster.server.create(counter.resource, document, "default")
    return [finding for finding in cluster.findings() if "never content" in finding]


@pytest.mark.parametrize("resource", [VIRTUAL_MACHINES, WUKONGS, PLACEMENT_POLICIES])
def test_a_controller_that_is_never_content_is_found_once(resource: Resource) -> None:
    most = MOST_WRITES[resource.group_kind]
    assert play(Counter(resource, most)) == []
    (finding,) = play(Counter(resource, 2 * most))
    assert f"{resource.kind.lower()} default/web: written {most + 1} times in " in finding
    assert "by counter" in finding


@pytest.mark.parametrize(
    ("resource", "is_ours", "is_found"),
    [(VIRTUAL_MACHINES, False, False), (VIRTUAL_MACHINES, True, True), (WUKONGS, False, True)],
)
def test_of_two_leaders_only_kubevirts_may_write_a_machine_in_turns(
    resource: Resource, is_ours: bool, is_found: bool
) -> None:
    counter = Counter(resource, 2 * MOST_WRITES[resource.group_kind])
    assert bool(play(counter, has_second=True, is_ours=is_ours)) == is_found


def test_a_wukong_may_be_written_for_each_of_its_machines() -> None:
    most = MOST_WRITES[WUKONGS.group_kind]
    assert play(Counter(WUKONGS, 3 * most), replicas=2) == []
    assert len(play(Counter(WUKONGS, 3 * most + 1), replicas=2)) == 1


def test_writes_that_take_their_time_are_no_sign_of_discontent() -> None:
    most = MOST_WRITES[VIRTUAL_MACHINES.group_kind]
    slow = Counter(VIRTUAL_MACHINES, 3 * most, wait=1.1 * WINDOW_SECONDS / most)
    slow.watches = (Watch(VIRTUAL_MACHINES, lambda change, state: (change.key,) if change.old is None else ()),)
    assert play(slow) == []


def test_what_people_write_is_not_counted() -> None:
    cluster = CheckedCluster()
    cluster.server.create(VIRTUAL_MACHINES, a_machine(strategy="Halted"), "default")
    for number in range(2 * MOST_WRITES[VIRTUAL_MACHINES.group_kind]):
        body = {"metadata": {"labels": {"count": str(number)}}}
        cluster.server.patch(VIRTUAL_MACHINES, KEY, PatchBody("merge", body))
    assert [finding for finding in cluster.findings() if "never content" in finding] == []


@pytest.mark.parametrize(("is_status", "is_found"), [(True, False), (False, True)])
def test_of_a_budget_only_what_it_asks_for_counts(is_status: bool, is_found: bool) -> None:
    class Writer:
        name, count = "writer", 0
        watches = (Watch(POD_DISRUPTION_BUDGETS),)

        def reconcile(self, key: Key, state: State, now: float) -> Outcome:
            if self.count == 2 * MOST_WRITES[POD_DISRUPTION_BUDGETS.group_kind]:
                return DONE
            self.count += 1
            body = {"status": {"expectedPods": self.count}} if is_status else {"spec": {"minAvailable": self.count}}
            subresource = "status" if is_status else ""
            return Outcome((Patch(POD_DISRUPTION_BUDGETS, key, PatchBody("merge", body), subresource),), 1.0)

    cluster = CheckedCluster(Writer())
    spec = {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 0}
    cluster.server.create(POD_DISRUPTION_BUDGETS, {"metadata": {"name": "web"}, "spec": spec}, "default")
    assert bool([finding for finding in cluster.findings() if "never content" in finding]) == is_found
