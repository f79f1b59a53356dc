"""Which tests run on which worker of xdist, and in which order. Loaded by tests/conftest.py, used by `make test`.

    GROUPS                        tests that share something costly by a fixture: one worker runs them all
    xdist_group("name")           the mark behind it, for tests that share something else
    slow(waits=…)                 seconds for which a test does next to nothing: those who wait longest start first
    --computing=2                 only the first two workers run whatever comes, and they give way a little; the others
                                  run what waits for long: so cores are busy, and stories in real time have air
    a file                        its tests that neither are slow nor need a control plane: what they make once and
                                  keep, one worker makes once

Tests that wait start before those that only compute, see `turn_of`. xdist's own `--dist loadgroup` knows groups by a
suffix that workers give to the ids of tests, and pytest 9 does not let them. Here one worker writes the groups into a
file when it has collected, and the scheduler reads it. All else is xdist's: a group or a single test at a time. When
the last test is over that may use a shared control plane, that is ended: it would take time from those that compute.
"""

from __future__ import annotations

import os
from collections import Counter
from functools import cached_property, partial
from pathlib import Path
from threading import Thread
from typing import Any

import msgspec
import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

from testbed.pytest_plugin import RUN, Run, SharedUse, end_shared

WRITER = "gw0"
LONG_SECONDS = 20.0  # who waits so long, or longer, is for the workers that do not compute
GIVE_WAY = 5  # of niceness, by workers that compute beside such
KUBEVIRT_FIXTURE = "kubevirt_bed"


class Group(msgspec.Struct, frozen=True):
    """Tests that use a fixture of which there shall be one in a run, and not one per worker."""

    fixture: str
    waits: float  # seconds, all of them together, in which next to nothing happens


GROUPS = {
    "kubevirt": Group(KUBEVIRT_FIXTURE, 200),  # a cluster with KubeVirt, which limits how many migrations go on at once
    "extended": Group("extended", 80),  # a cluster whose kube-scheduler asks our extender, and others beside it
    "own-scheduler": Group("own_scheduler", 20),  # our scheduler on the shared cluster, with exactly its rights
    "admission": Group("webhooks", 250),  # a cluster whose API server asks our webhooks
    "lone-api-server": Group("lone_api_server", 60),  # etcd and an API server, which tests kill and start again
    "few-controllers": Group("few_controllers", 5),  # a cluster with those of budgets and DaemonSets alone
    "policies": Group("kinds", 5),  # a cluster with our kinds, and nobody else who judges policies or Wukongs
}


class Plan(msgspec.Struct, frozen=True):
    """What a worker has found out about the tests, by their ids."""

    groups: dict[str, str]  # test → its group
    long_waits: set[str]  # groups, and tests without one, that wait for long
    with_kubevirt: set[str]  # tests that use the shared control plane with KubeVirt
    with_control_plane: set[str]  # tests that need any, or may ask for the other shared one


class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
    """What xdist calls a scope is a group, or a test that is in none."""

    @cached_property
    def plan(self) -> Plan:
        """Asked for when every worker has collected."""
        file = plan_file(self.config)
        plan = msgspec.json.decode(file.read_bytes(), type=Plan)
        file.unlink()
        return plan

    @cached_property
    def uses(self) -> list[SharedUse]:
        run = self.config.stash[RUN]
        return [
            SharedUse(self.plan.with_kubevirt, partial(end_in_thread, run.kubevirt)),
            SharedUse(self.plan.with_control_plane, partial(end_in_thread, run)),
        ]

    def _split_scope(self, nodeid: str) -> str:
        return self.plan.groups.get(nodeid, nodeid)

    def _find_scope(self, node: Any) -> str | None:
        """What this worker runs next: if it computes, what waits for long comes when nothing else is left."""
        waiting = (scope for scope in self.workqueue if scope in self.plan.long_waits)
        if not is_computing(self.config, node.gateway.id):
            return next(waiting, None)
        others = (scope for scope in self.workqueue if scope not in self.plan.long_waits)
        return next(others, None) or next(waiting, None)

    def _assign_work_unit(self, node: Any) -> None:
        scope = self._find_scope(node)
        if scope is not None:
            self.workqueue.move_to_end(scope, last=False)
            super()._assign_work_unit(node)

    def _reschedule(self, node: Any) -> None:
        if self.workqueue and self._find_scope(node) is None and not node.shutting_down:
            node.shutdown()  # it ends when it has run what it was given
        else:
            super()._reschedule(node)

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        super().mark_test_complete(node, item_index, duration)
        for use in self.uses:
            use.finish(self.registered_collections[node][item_index])


def is_computing(config: pytest.Config, worker: str) -> bool:
    """Whether a worker, such as gw2, runs whatever comes. All do where nothing is said."""
    count = config.getoption("--computing")
    return count is None or int(worker.removeprefix("gw")) < count


def end_in_thread(run: Run) -> None:
    """Ending takes a moment, in which workers shall not wait for tests."""
    Thread(target=end_shared, args=(run,), kwargs={"keep_logs": True}).start()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--computing", metavar="N", type=int, help="how many workers run more than what waits for long")


def pytest_configure(config: pytest.Config) -> None:
    worker = getattr(config, "workerinput", {}).get("workerid")
    if worker and config.getoption("--computing") is not None and is_computing(config, worker):
        os.nice(GIVE_WAY)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> GroupScheduling | None:
    return GroupScheduling(config, log) if config.getvalue("dist") == "loadgroup" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for name, group in GROUPS.items():
            if group.fixture in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.xdist_group(name))
    quick = {item for item in items if is_quick(item)}  # asked once: to look for marks is a tenth of collecting
    sizes = Counter(item.path for item in quick)
    for item in quick:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(str(item.path)))
    last = (True, True, 0.0, True)
    items.sort(key=lambda item: (*last, -sizes[item.path]) if item in quick else (*turn_of(item), 0))


def is_quick(item: pytest.Item) -> bool:
    return item.get_closest_marker("slow") is None and item.get_closest_marker("control_plane") is None


def turn_of(item: pytest.Item) -> tuple[bool, bool, float, bool]:
    """Who starts first: stories of a real cluster in real time, what needs a control plane, what only computes.

    Who waits longest comes first. So the stories, which a busy machine could change, run beside tests that do next to
    nothing, and what waits is over before there is nothing left to compute meanwhile. At the end come the quick ones,
    large files first, so that no worker is left with one of them.
    """
    slow = item.get_closest_marker("slow")
    is_in_real_time = slow is not None and slow.kwargs.get("real_time", False)
    needs_control_plane = item.get_closest_marker("control_plane") is not None
    return not is_in_real_time, not needs_control_plane, -seconds_of_waiting(item), slow is None


def seconds_of_waiting(item: pytest.Item) -> float:
    """For how long the test, or its whole group, waits on a quiet machine; 0 where nobody has said so."""
    group, slow = item.get_closest_marker("xdist_group"), item.get_closest_marker("slow")
    if group is not None and group.args[0] in GROUPS:
        return GROUPS[group.args[0]].waits
    return float(slow.kwargs.get("waits", 0)) if slow is not None else 0.0


@pytest.hookimpl(tryfirst=True)  # before xdist says that this worker has collected
def pytest_collection_finish(session: pytest.Session) -> None:
    worker = getattr(session.config, "workerinput", {}).get("workerid")
    if worker == WRITER and session.config.getvalue("loadgroup"):
        plan_file(session.config).write_bytes(msgspec.json.encode(make_plan(session.items)))


def make_plan(items: list[pytest.Item]) -> Plan:
    marks = {item.nodeid: item.get_closest_marker("xdist_group") for item in items}
    groups = {nodeid: str(mark.args[0]) for nodeid, mark in marks.items() if mark}
    return Plan(
        groups=groups,
        long_waits={groups.get(item.nodeid, item.nodeid) for item in items if seconds_of_waiting(item) >= LONG_SECONDS},
        with_kubevirt={item.nodeid for item in items if KUBEVIRT_FIXTURE in getattr(item, "fixturenames", ())},
        with_control_plane={item.nodeid for item in items if item.get_closest_marker("control_plane")},
    )


def plan_file(config: pytest.Config) -> Path:
    return config.stash[RUN].folder.with_suffix(".plan")
