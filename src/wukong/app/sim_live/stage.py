"""A real cluster as the place where a scenario is played: its mirror, who drains nodes, and what was made there.

Built by player.py, taken down by cleaning.py. The mirror follows what the plan is about; every change of it wakes
whoever waits, so nothing is polled.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from math import inf

import msgspec

from wukong.actions import Action, Create, Delete, Patch
from wukong.api.core import Pod
from wukong.api.kinds import NODES
from wukong.api.resources import Key, Resource
from wukong.app.live import WallClock
from wukong.app.sim_live.plan import Plan, found
from wukong.app.sim_live.watch_source import WATCHES, following, gist
from wukong.embedded.actors.kubelet.controller import is_silent
from wukong.embedded.scenario.play.steps import Drains
from wukong.embedded.scenario.record.availability import Availability
from wukong.embedded.scenario.record.moves import Moves
from wukong.embedded.scenario.record.recorder import Recorder
from wukong.embedded.world.objects import Node
from wukong.errors import ClusterError, InputError
from wukong.ports import Cluster, Document
from wukong.runtime import Loop
from wukong.runtime.dispatch import Item
from wukong.runtime.performer import Performer, subject
from wukong.state import Change, State
from wukong.state.attempts import Attempt

SYNC_SECONDS = 60.0
PASSING_SECONDS = 2.0  # between two states of a rollout controllers are faster than that, pods are not
HOLLOW_LABEL, KWOK = "testbed.wukong/hollow", "kwok.x-k8s.io/node"


class Stage:
    def __init__(self, cluster: Cluster, plan: Plan) -> None:
        self.cluster, self.plan, self.clock = cluster, plan, WallClock()
        self.state = State()
        self._listeners: list[Callable[[Change], None]] = []
        self.recorder = Recorder(self, plan.is_told, passing_seconds=PASSING_SECONDS)
        self.moves, self.availability = Moves(self, self.recorder), Availability(self, self.recorder)
        self.recorder.begun = inf  # until the place is furnished
        self.drains = Drains(self.recorder.is_about)
        self.performer = Performer(cluster, "wukong-sim")
        self.loop = Loop(
            cluster,
            [self.drains],
            following(plan),
            clock=self.clock,
            random=random.random,
            also=WATCHES,
            state=self.state,
        )
        self.loop.listen(self._heard)
        self.made: list[tuple[Resource, Key]] = []  # in their order
        self.cordoned: set[str] = set()
        self.trace: list[str] = []
        self.last_move = self.clock.now()
        self.is_over = False  # then the story is told, and only cleaning goes on
        self._changed, self._stop = asyncio.Event(), asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    def listen(self, hear: Callable[[Change], None]) -> None:
        self._listeners.append(hear)

    def attempt(self, item: Item) -> Attempt | None:
        return self.state.attempts.get(item.controller, item.key)

    async def open(self) -> None:
        self._running = asyncio.create_task(self.loop.run(self._stop))
        await self.until(lambda: self.loop.is_synced, SYNC_SECONDS)
        if not self.loop.is_synced:
            raise ClusterError(f"the cluster could not be read within {SYNC_SECONDS:.0f} s")

    async def close(self) -> None:
        self._stop.set()
        if self._running is not None:
            await self._running

    async def until(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Wait for what the mirror will show; False if it did not in time."""
        deadline = self.clock.now() + seconds
        while not holds():
            left = deadline - self.clock.now()
            if left <= 0:
                return False
            await self.news(min(left, 1.0))
        return True

    async def news(self, seconds: float) -> None:
        """Until something changes, for so long at most. Raises what ended the following of the cluster."""
        if self._running is not None and self._running.done():
            self._running.result()
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return
        self._changed.clear()

    def _heard(self, change: Change) -> None:
        self._changed.set()
        if self.is_over:
            return
        for hear in self._listeners:
            hear(change)
        if change.old is None or change.new is None or gist(change.old) != gist(change.new):
            self.last_move = self.clock.now()
            at = round(max(0.0, self.last_move - self.recorder.begun), 3)
            told = {"at": at, "change": change.type, "kind": change.kind, "key": str(change.key)}
            self.trace.append(msgspec.json.encode(told).decode() + "\n")

    # ---- acting

    async def do(self, actions: list[Action], place: str) -> None:
        for action in actions:
            try:
                if isinstance(action, Delete) and await found(self.cluster, action.resource, action.key) is None:
                    raise InputError(f"{place}: there is no {action.resource.kind} {action.key}.")
                resource, key = subject(action)
                is_new = isinstance(action, Create) or (isinstance(action, Patch) and action.patch.type == "apply")
                if is_new and (resource, key) not in self.made:
                    self.made.append((resource, key))
                await self.performer.perform(action, self.clock.now())
            except ClusterError as error:
                raise InputError(f"{place}: the API server refuses it: {error}") from None

    def drain(self, node: str) -> None:
        self.drains.nodes.add(node)
        self.recorder.tell(f"node {node}", "drain begins")
        self.loop.enqueue(Item(self.drains.name, key) for key in self.state.pods.on_node(node))

    def is_kept(self, pod: Pod) -> bool:
        """Whether there is a kubelet that can let it go."""
        node = self.state.get(Node, Key("", pod.spec.node_name))
        return node is not None and not is_silent(node)


def hollow(action: Action) -> Action:
    """A Node that hollow kubelets take up: it is they who say that it is ready."""
    assert isinstance(action, Create), action
    assert action.resource == NODES, action
    body: Document = msgspec.json.decode(msgspec.json.encode(action.body))
    meta = body["metadata"]
    meta["labels"] = {**(meta.get("labels") or {}), HOLLOW_LABEL: "true"}
    meta["annotations"] = {**(meta.get("annotations") or {}), KWOK: "fake"}
    body["status"] = {name: value for name, value in (body.get("status") or {}).items() if name != "conditions"}
    return Create(NODES, body)
