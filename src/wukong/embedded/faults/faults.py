"""Faults in a world: draws them by seed, counts them, and lets them happen until the last episode is over.

    Faults(seed, episodes) ─► World(roles, fault_injection=faults) ─► writes.py   around every write of every process
                                                           ─► watches.py  around every event of every watch
                                                           ─► processes.py, strangers.py   at moments drawn beforehand

Built by app/embedded.py. Which fault strikes is a hash of the seed and of how many things it could have struck so far:
the same seed and episodes give the same faults at the same places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from wukong.embedded.faults.catalogue import TYPES, Episode
from wukong.embedded.faults.disturbances import Disturbances
from wukong.embedded.faults.fault_counts import FaultCounts
from wukong.embedded.faults.processes import Processes
from wukong.embedded.faults.watches import Watches
from wukong.embedded.faults.writes import FaultyTransport
from wukong.embedded.world.clock import Chance
from wukong.embedded.world.process import Process, Transport
from wukong.embedded.world.watch_stream import WatchStream
from wukong.embedded.world.world import World
from wukong.errors import InputError
from wukong.runtime.dispatch import Item
from wukong.runtime.pending_writes import WrittenVersion

T = TypeVar("T")
Decided = Callable[[Process, Item], None]
Wrote = Callable[[Process, Item, WrittenVersion], None]


class Faults:
    def __init__(self, seed: int, episodes: Iterable[Episode]) -> None:
        self.episodes, self.ledger = list(episodes), FaultCounts()
        self.world: World  # set by `join`
        self.decision_listeners: list[Decided] = []
        self.write_listeners: list[Wrote] = []
        self._chance, self._drawn = Chance(seed, "faults"), 0
        self._watches, self._processes, self._strangers = Watches(self), Processes(self), Disturbances(self)
        self.slow_down = self._watches.slow_down
        self._begun = 0.0
        self._by_place = {
            place: [each for each in self.episodes if TYPES[each.type].per == place]
            for place in ("write", "event", "question")
        }

    @property
    def end(self) -> float:
        """When it is calm, in seconds from the beginning; what was begun before may take a while longer to end."""
        return max((each.end for each in self.episodes), default=0.0)

    # ---- for the world (world.Weather)

    def join(self, world: World) -> None:
        self.world, self._begun = world, world.clock.now()
        world.listen(self._strangers.heard)
        for index, episode in enumerate(self.episodes):
            if TYPES[episode.type].per == "minute":
                happen = self._happening(episode.type)
                for moment in self._moments(index, episode):
                    world.agenda.at(self._begun + moment, happen)

    def transport(self, process: Process) -> Transport:
        return FaultyTransport(self, process)

    def started(self, process: Process, feeds: list[WatchStream]) -> None:
        self._watches.join(process, feeds)

    # ---- for who asks the extender

    def asked(self, pod: str) -> None:
        """Raises InputError where the extender's answer cannot be read."""
        self.ledger.saw(("asked", pod))
        if self.drawn("question", lambda _: True) is not None:
            self.ledger.inject("extender")
            self.ledger.expect(("asked", pod), "extender")
            raise InputError("the extender answered what nobody can read (injected)")

    # ---- for the faults

    def drawn(self, place: str, suits: Callable[[str], bool]) -> str | None:
        """The type that strikes this write, event or question, if any."""
        now = self.world.clock.now() - self._begun
        active = [each for each in self._by_place[place] if each.begin <= now < each.end]
        if not active:
            return None
        left = self.share(place)
        for episode in active:
            if left < episode.rate and suits(episode.type):
                return episode.type
            left -= episode.rate
            if left < 0:
                return None
        return None

    def share(self, *of: object) -> float:
        """Between 0 and 1; another number each time."""
        self._drawn += 1
        return self._chance.share(self._drawn, *of)

    def chosen(self, what: str, among: Sequence[T]) -> T:
        return among[int(self.share(what) * len(among))]

    def decided(self, process: Process, item: Item) -> None:
        self.ledger.saw(("decided", process.name, item))
        self.ledger.saw(("about", item.key))
        self._watches.decided(process)
        self._processes.decided(process, process.was_due)
        for hear in self.decision_listeners:
            hear(process, item)

    def wrote(self, process: Process, item: Item, written: WrittenVersion | None) -> None:
        self._processes.wrote(process)
        if written is not None:
            for hear in self.write_listeners:
                hear(process, item, written)

    def _happening(self, name: str) -> Callable[[], None]:
        found: Callable[[], None]
        for owner in (self._processes, self._strangers):
            if hasattr(owner, name.replace("-", "_")):
                found = getattr(owner, name.replace("-", "_"))
                return found
        raise AssertionError(f"nobody wrote the fault {name}")

    def _moments(self, index: int, episode: Episode) -> list[float]:
        if episode.is_once:
            return [episode.begin]
        chance = self._chance.named(f"{index} {episode.type}")
        length = episode.end - episode.begin
        number = int(episode.rate * length / 60.0 + chance.share("number"))
        return sorted(episode.begin + length * chance.share(each) for each in range(number))
