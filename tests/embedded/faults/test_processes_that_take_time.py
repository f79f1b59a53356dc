"""Processes with mirrors and workers of their own: decisions that are under way while faults strike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pytest

from wukong.actions import DONE, Action, Create, Outcome
from wukong.api.kinds import CONFIG_MAPS
from wukong.api.resources import Key
from wukong.embedded.store import Server
from wukong.embedded.world.clock import VirtualClock
from wukong.embedded.world.latencies import Latency, Spread
from wukong.embedded.world.process import Crashed, Process, Role, Transport
from wukong.embedded.world.timing import Timing
from wukong.embedded.world.transport import RetryingTransport, perform
from wukong.embedded.world.watch_stream import Arrival, WatchStream
from wukong.embedded.world.world import World
from wukong.errors import OutcomeUnknown
from wukong.ports import PatchBody
from wukong.runtime.dispatch import Item
from wukong.runtime.pending_writes import PATIENCE, WrittenVersion
from wukong.state import State
from wukong.state.controller import Watch

HEARING, WRITING = 0.002, 0.010
FIXED = {"parts": Latency(Spread(2, 2, 2, 2, 2), Spread(10, 10, 10, 10, 10), workers=2)}
WHOLE = Key("default", "whole")


class Parts:
    """Creates the parts of each ConfigMap that has a number of them, one after the other."""

    name = "parts"
    watches = (Watch(CONFIG_MAPS, lambda change, _: [Key("default", change.key.name.partition("-")[0])]),)

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        config_maps = state.objects["ConfigMap"]
        if key not in config_maps:
            return DONE
        names = [f"{key.name}-{number}" for number in range(3)]
        missing = [name for name in names if Key(key.namespace, name) not in config_maps]
        return Outcome(tuple(Create(CONFIG_MAPS, {"metadata": {"name": name}}, key.namespace) for name in missing))


class SeenDecision(NamedTuple):
    at: float
    process: Process
    actions: int


class FaultInjection:
    """What a test wants to go wrong: after how many writes which error is raised, and how late parts are seen."""

    def __init__(self) -> None:
        self.errors: dict[int, Exception] = {}
        self.writes = 0
        self.delay = 0.0

    def join(self, world: World) -> None:
        self.world = world

    def transport(self, process: Process) -> Transport:
        return RetryingTransport(self._write, self.world.server.get)

    def _write(self, action: Action) -> WrittenVersion | None:
        written = perform(self.world.server, action)
        self.writes += 1
        if error := self.errors.pop(self.writes, None):
            raise error
        return written

    def observe_start(self, process: Process, streams: list[WatchStream]) -> None:
        for stream in streams:
            stream.route = lambda _, event: Arrival(self.delay if "-" in event.key.name else 0.0, may_be_overtaken=True)


class PartsCluster:
    def __init__(self, *, roles: int = 1, timing: Timing | None = None) -> None:
        clock = VirtualClock()
        self.server, self.faults = Server(clock), FaultInjection()
        all_roles = [Role(f"parts-{number}", lambda _: [Parts()]) for number in range(roles)]
        self.world = World(
            server=self.server,
            clock=clock,
            roles=all_roles,
            fault_injection=self.faults,
            timing=timing or Timing(1, FIXED),
        )
        self.decisions: list[SeenDecision] = []
        self.begin = clock.now()
        self.world.listen_to_decisions(self._observe_decision)

    @property
    def process(self) -> Process:
        return self.world.processes[0]

    def create(self, name: str = WHOLE.name) -> None:
        self.server.create(CONFIG_MAPS, {"metadata": {"name": name}}, "default")

    def run(self, seconds: float) -> list[str]:
        """The parts there are after so many seconds."""
        self.world.run(deadline=self.begin + seconds)
        return [document["metadata"]["name"] for document in self.server.list(CONFIG_MAPS).items][1:]

    def moments_of_writes(self) -> list[float]:
        return [round(step.at - self.begin, 3) for step in self.world.trace]

    def _observe_decision(self, process: Process, _: Item, actions: Sequence[Action]) -> None:
        self.decisions.append(SeenDecision(round(self.world.clock.now() - self.begin, 3), process, len(actions)))


def test_a_process_takes_its_time_for_each_write() -> None:
    cluster = PartsCluster()
    cluster.create()
    cluster.run(1.0)
    assert cluster.moments_of_writes() == [0.012, 0.022, 0.032]


def test_work_under_way_is_lost_with_its_process_and_done_by_the_next() -> None:
    cluster = PartsCluster()
    cluster.faults.errors[2] = Crashed(7.0)
    cluster.create()
    assert cluster.run(5.0) == ["whole-0", "whole-1"]
    assert cluster.run(10.0) == ["whole-0", "whole-1", "whole-2"]
    assert [decision.actions for decision in cluster.decisions if decision.actions] == [3, 1]


def test_a_process_that_is_stopped_writes_nothing_more() -> None:
    cluster = PartsCluster(roles=2)
    cluster.create()
    assert cluster.run(0.015) == ["whole-0"]
    for process in list(cluster.world.processes):
        cluster.world.stop(process)
    assert cluster.run(60.0) == ["whole-0"]


def test_an_answer_that_gets_lost_in_the_middle_is_looked_for_and_the_rest_follows() -> None:
    cluster = PartsCluster()
    cluster.faults.errors[2] = OutcomeUnknown("connection lost")
    cluster.create()
    assert cluster.run(60.0) == ["whole-0", "whole-1", "whole-2"]
    assert cluster.faults.writes == 3
    assert [decision.actions for decision in cluster.decisions if decision.actions] == [3]


@pytest.mark.parametrize("skew", [30.0, -30.0])
def test_what_is_under_way_takes_as_long_whatever_the_clock_of_its_process_says(skew: float) -> None:
    cluster = PartsCluster()
    cluster.create()
    cluster.run(0.015)
    cluster.process.skew = skew
    cluster.run(1.0)
    assert cluster.moments_of_writes() == [0.012, 0.022, 0.032]


def test_a_process_whose_clock_is_ahead_hears_of_changes_no_later() -> None:
    cluster = PartsCluster()
    cluster.process.skew = 30.0
    cluster.create()
    cluster.run(1.0)
    assert cluster.moments_of_writes() == [0.012, 0.022, 0.032]
    items = [queued.at - cluster.begin for queued in cluster.world.queued_items()]
    assert items == []


def test_work_under_way_is_queued_by_the_clock_of_everybody() -> None:
    cluster = PartsCluster()
    cluster.process.skew = 30.0
    cluster.create()
    cluster.run(0.005)
    assert [round(queued.at - cluster.begin, 3) for queued in cluster.world.queued_items()] == [0.012]


def test_a_key_rests_from_the_end_of_its_writes_until_they_show() -> None:
    cluster = PartsCluster()
    cluster.create()
    cluster.faults.delay = 60.0
    cluster.run(1.0)
    cluster.server.patch(CONFIG_MAPS, WHOLE, PatchBody("merge", {"data": {"changed": "yes"}}))
    cluster.run(PATIENCE + 0.1)
    assert [decision.at for decision in cluster.decisions] == [HEARING, HEARING + 3 * WRITING + PATIENCE]


def test_what_a_decision_was_based_on_is_known_while_it_is_carried_out() -> None:
    cluster = PartsCluster()
    mirrored: list[int] = []

    def look(_: object) -> None:
        if cluster.world.acting is not None:
            mirrored.append(len(cluster.world.acting.mirror_at_decision().objects["ConfigMap"]))

    cluster.world.listen(look)
    cluster.create()
    cluster.run(1.0)
    assert mirrored == [1, 1, 1]


def test_processes_draw_times_of_their_own_by_seed_and_name() -> None:
    timing = Timing(1)
    one, same, other, started_again = (timing.derive(name) for name in ("a 1", "a 1", "b 1", "a 2"))
    moments = [10.0 + number for number in range(20)]

    def draws(drawn: Timing) -> list[float]:
        return [drawn.writing_time("parts", moment) for moment in moments]

    first = draws(one)
    assert draws(same) == first
    assert draws(other) != first
    assert draws(started_again) != first
    assert draws(Timing(2).derive("a 1")) != first


def test_two_processes_that_do_the_same_interleave() -> None:
    cluster = PartsCluster(roles=2, timing=Timing(3))
    cluster.create()
    cluster.run(1.0)
    assert len({decision.process for decision in cluster.decisions}) == 2
    refusals = [step.error for step in cluster.world.trace if step.error]
    assert refusals, "who is second finds parts that were not there when it decided"
