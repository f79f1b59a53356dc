"""The embedded cluster as a whole: server, mirror, clock, and controllers played one decision at a time.

    write ─► the server's history ─► mirror ─► keys due ─► reconcile ─► actions ─► write …
                                                  └─ nothing due now: the clock jumps to the next key's time

Built by app/embedded.py and by tests. Nothing sleeps and nothing is drawn from a global source: the same seed and the
same calls give the same trace, byte for byte. The mirror is current after every write, so nobody decides on old news.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple

from wukong.actions import Action, Outcome
from wukong.api.meta import Object
from wukong.api.resources import Resource
from wukong.embedded import objects
from wukong.embedded.clock import Chance, VirtualClock
from wukong.embedded.performing import perform
from wukong.embedded.store import Server
from wukong.embedded.store.kinds import Kind
from wukong.errors import ClusterError
from wukong.ports import Document
from wukong.runtime.dispatch import Dispatch, Item
from wukong.runtime.perform import described
from wukong.state import Change, State
from wukong.state.contract import Controller

Ending = Literal["held", "quiet", "deadline"]
MOST_STEPS = 100_000  # decisions in one run without a deadline, or without the clock moving: more is a quarrel


class Step(NamedTuple):
    """One action of one controller, and what became of it."""

    at: float
    item: Item
    action: Action
    error: str = ""

    def __str__(self) -> str:
        return f"{self.at:.3f} {self.item}: {described(self.action)}" + (f": {self.error}" if self.error else "")


class World:
    def __init__(
        self,
        controllers: Iterable[Controller],
        *,
        server: Server,
        clock: VirtualClock,
        seed: int = 0,
    ) -> None:
        self.server, self.clock, self.state = server, clock, State()
        self.trace: list[Step] = []
        self.dispatch = Dispatch(controllers, self.state)
        self._chance = Chance(seed, "backoff")
        self._listeners: list[Callable[[Change], None]] = []
        self._structs: dict[str, tuple[Resource, type[Object]]] = {}  # name of a kind → how it is mirrored
        for controller in self.dispatch.controllers.values():
            for watch in controller.watches:
                name = Kind(resource=watch.resource).name
                self._structs.setdefault(name, (watch.resource, watch.struct))
        self._seen: dict[str, int] = {}
        self._begin()

    def listen(self, hear: Callable[[Change], None]) -> None:
        """`hear` is called with every change of the mirror, in order: for stories and checkers."""
        self._listeners.append(hear)

    def run(
        self,
        until: Callable[[State], bool] | None = None,
        *,
        seconds: float | None = None,
        deadline: float | None = None,
    ) -> Ending:
        """Play until the predicate holds, nothing is due any more, or the time is up, whichever comes first."""
        if seconds is not None:
            deadline = self.clock.now() + seconds
        steps, moment = 0, self.clock.now()
        while True:
            if until is not None and until(self.state):
                return "held"
            if self.step():
                steps = steps + 1 if deadline is None or moment == self.clock.now() else 0
                moment = self.clock.now()
                assert steps < MOST_STEPS, f"controllers quarrel: {[str(it) for it in self.trace[-6:]]}"
                continue
            due = self.dispatch.next_due()
            if deadline is not None and (due is None or due > deadline):
                self.clock.move_to(deadline)
                return "quiet" if due is None else "deadline"
            if due is None:
                return "quiet"
            self.clock.move_to(due)

    def step(self) -> bool:
        """Play one decision that is due now; False if there is none."""
        now = self.clock.now()
        self.dispatch.expire(now)
        for item in self.dispatch.queue.due(now, limit=1):
            self._play(item, now)
            return True
        return False

    # ---- decisions

    def _play(self, item: Item, now: float) -> None:
        outcome = self.dispatch.reconcile(item, now)
        for index, action in enumerate(outcome.actions):
            try:
                perform(self.server, action)
            except ClusterError as error:
                self._failed(item, outcome, index, error, now)
                return
            self.trace.append(Step(now, item, action))
        self.dispatch.succeeded(item, outcome, now)

    def _failed(self, item: Item, outcome: Outcome, index: int, error: ClusterError, now: float) -> None:
        action = outcome.actions[index]
        self.trace.append(Step(now, item, action, f"{type(error).__name__}: {error}"))
        before = self.state.attempts.get(item.controller, item.key)
        jitter = self._chance.share(item, before.count if before else 0)
        self.dispatch.failed(item, error, now, jitter, outcome.actions[index:])

    # ---- the mirror

    def _begin(self) -> None:
        """Take in what is there, then hear of every write."""
        for name, (resource, struct) in sorted(self._structs.items()):
            found = self.server.list(resource).items
            self._seen[name] = self.server.database.version
            kind = resource.kind
            self._observe(self.state.replace(kind, [objects.read(kind, each, struct) for each in found]))
        self.server.database.listen(self._heard)

    def _heard(self, name: str) -> None:
        if name not in self._structs:
            return
        resource, struct = self._structs[name]
        for change in self.server.database.since(name, self._seen[name]):
            self._seen[name] = change.version
            document: Document = change.document
            found = objects.read(resource.kind, document, struct)
            self._observe(self.state.apply(change.type, found, resource.kind))

    def _observe(self, changes: list[Change]) -> None:
        self.dispatch.observe(changes, self.clock.now())
        for change in changes:
            for hear in self._listeners:
                hear(change)
