"""Faults in a world: draws them by seed, counts them, and lets them happen until the last episode is over.

    Faults(seed, episodes) ─► World(roles, fault_injection=faults)
        ─► writes.py      around every write of every process
        ─► watches.py     around every event of every watch
        ─► ledger.py      around every write to the ledger
        ─► processes.py, disturbances.py   at moments drawn beforehand

Built by app/embedded.py. Which fault strikes is a hash of the seed and of how many things it could have struck so far:
the same seed and episodes give the same faults at the same places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from wukong.actions import Action
from wukong.embedded.faults.catalogue import TYPES, Episode
from wukong.embedded.faults.disturbances import Disturbances
from wukong.embedded.faults.fault_counts import FaultCounts
from wukong.embedded.faults.ledger import LedgerFaults
from wukong.embedded.faults.processes import ProcessFaults
from wukong.embedded.faults.watches import WatchFaults
from wukong.embedded.faults.writes import FaultyTransport
from wukong.embedded.world.clock import Chance
from wukong.embedded.world.process import Process, Transport
from wukong.embedded.world.watch_stream import WatchStream
from wukong.embedded.world.world import World
from wukong.errors import InputError
from wukong.runtime.dispatch import Item
from wukong.runtime.pending_writes import WrittenVersion

T = TypeVar("T")
WriteListener = Callable[[Process, Item, WrittenVersion], None]


class Faults:
    def __init__(self, seed: int, episodes: Iterable[Episode]) -> None:
        self.episodes, self.counts = list(episodes), FaultCounts()
        self.world: World  # set by `join`
        self.write_listeners: list[WriteListener] = []
        self._chance, self._draws = Chance(seed, "faults"), 0
        self._watches, self._processes, self._disturbances = WatchFaults(self), ProcessFaults(self), Disturbances(self)
        self.ledger = LedgerFaults(self)
        self._begin = 0.0
        self._by_place = {
            place: [episode for episode in self.episodes if TYPES[episode.type].per == place]
            for place in ("write", "event", "question", "record")
        }

    @property
    def end(self) -> float:
        """When the last episode ends, in seconds from the beginning; what began before may take a while longer."""
        return max((episode.end for episode in self.episodes), default=0.0)

    # ---- for the world (world.FaultInjection)

    def join(self, world: World) -> None:
        self.world, self._begin = world, world.clock.now()
        world.listen(self._disturbances.observe)
        world.listen_to_decisions(self._observe_decision)
        act_of = self._processes.by_type | self._disturbances.by_type | self.ledger.by_type
        for index, episode in enumerate(self.episodes):
            if TYPES[episode.type].per == "minute":
                for moment in self._draw_moments(index, episode):
                    world.timers.add(self._begin + moment, act_of[episode.type])

    def transport(self, process: Process) -> Transport:
        return FaultyTransport(self, process)

    def observe_start(self, process: Process, streams: list[WatchStream]) -> None:
        self._watches.attach(streams)

    # ---- for the scheduler that calls the extender

    def strike_extender(self, pod: str) -> None:
        """Called before the extender is asked about a pod. Raises InputError where its answer cannot be read."""
        self.counts.observe(("asked", pod))
        if self.draw_fault("question", lambda _: True) is not None:
            self.counts.count_injected("extender")
            self.counts.expect(("asked", pod), "extender")
            raise InputError("the extender answered what nobody can read (injected)")

    # ---- for the faults

    def draw_fault(self, place: str, can_strike: Callable[[str], bool]) -> str | None:
        """The type that strikes this write, event, question or record, if any."""
        now = self.world.clock.now() - self._begin
        active = [episode for episode in self._by_place[place] if episode.begin <= now < episode.end]
        if not active:
            return None
        fraction = self.draw_fraction(place)
        for episode in active:
            if fraction < episode.rate and can_strike(episode.type):
                return episode.type
            fraction -= episode.rate
            if fraction < 0:
                return None
        return None

    def draw_fraction(self, *purpose: object) -> float:
        """A number between 0 and 1, another one each time."""
        self._draws += 1
        return self._chance.share(self._draws, *purpose)

    def choose(self, purpose: str, candidates: Sequence[T]) -> T:
        return candidates[int(self.draw_fraction(purpose) * len(candidates))]

    def slow_down(self, process: Process, seconds: float) -> None:
        """All watches of the process lag for so long."""
        self._watches.slow_down(process, seconds)

    def _observe_decision(self, process: Process, item: Item, _: Sequence[Action]) -> None:
        self.counts.observe(("decided", process.name, item))
        self.counts.observe(("about", item.key))
        self._watches.observe_decision(process)
        self._processes.observe_decision(process, process.was_due)

    def observe_write(self, process: Process, item: Item, written: WrittenVersion | None) -> None:
        self._processes.observe_write(process)
        if written is not None:
            for listener in self.write_listeners:
                listener(process, item, written)

    def _draw_moments(self, index: int, episode: Episode) -> list[float]:
        if episode.is_once:
            return [episode.begin]
        chance = self._chance.derive(f"{index} {episode.type}")
        length = episode.end - episode.begin
        number = int(episode.rate * length / 60.0 + chance.share("number"))
        return sorted(episode.begin + length * chance.share(moment) for moment in range(number))
