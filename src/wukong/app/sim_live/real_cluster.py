"""A real cluster as a scenario needs it: its mirror, who drains nodes, and what the run created there.

Built by player.py, cleaned by cleanup.py. The mirror follows what the plan is about; every change of it wakes whoever
waits, so nothing is polled.
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
from wukong.app.sim_live.plan import Plan, find_object
from wukong.app.sim_live.watch_source import WATCHES, lasting_part_of, watch_source_of
from wukong.embedded.actors.kubelet.controller import is_silent
from wukong.embedded.scenario.play.steps import Drains, cordoned_node
from wukong.embedded.scenario.record.recorder import Recorder
from wukong.embedded.scenario.record.recording import Recording, StoryTrace
from wukong.embedded.world.objects import Node
from wukong.errors import ClusterError, InputError
from wukong.ports import Cluster, Document
from wukong.runtime import Loop
from wukong.runtime.delivery import object_of
from wukong.runtime.dispatch import Item
from wukong.runtime.performer import Performer
from wukong.state import Change, State
from wukong.state.attempts import Attempt

SYNC_SECONDS = 60.0
PASSING_SECONDS = 1.5  # between two states of a rollout controllers are faster, pods and entries of a timeline are not
HOLLOW_LABEL, KWOK = "sim.novasphere.dev/hollow", "kwok.x-k8s.io/node"


class RealCluster:
    def __init__(self, cluster: Cluster, plan: Plan) -> None:
        self.cluster, self.plan, self.clock = cluster, plan, WallClock()
        self.state = State()
        self._listeners: list[Callable[[Change], None]] = []
        self.recording = Recording(self, StoryTrace(), plan.covers, passing_seconds=PASSING_SECONDS)
        self.recorder.started_at = inf  # until everything is prepared
        self.drains = Drains(self.recorder.is_about)
        self.performer = Performer(cluster, "wukong-sim")
        self.loop = Loop(
            cluster,
            [self.drains],
            watch_source_of(plan),
            clock=self.clock,
            random=random.random,
            also=WATCHES,
            state=self.state,
        )
        self.loop.listen(self._hear)
        self.created: list[tuple[Resource, Key]] = []  # in their order
        self.cordoned_nodes: set[str] = set()
        self.last_change = self.clock.now()
        self.is_recorded = True  # until the story is told; then only the cleanup goes on
        self._changed, self._stop = asyncio.Event(), asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    @property
    def recorder(self) -> Recorder:
        return self.recording.recorder

    def listen(self, hear: Callable[[Change], None]) -> None:
        self._listeners.append(hear)

    def failing_keys(self, controller: str) -> list[Key]:
        return self.state.attempts.list_failing(controller)

    def attempt(self, item: Item) -> Attempt | None:
        return self.state.attempts.get(item.controller, item.key)

    async def open(self) -> None:
        self._running = asyncio.create_task(self.loop.run(self._stop))
        await self.wait_until(lambda: self.loop.is_synced, SYNC_SECONDS)
        if not self.loop.is_synced:
            raise ClusterError(f"the cluster could not be read within {SYNC_SECONDS:.0f} s")

    async def close(self) -> None:
        self._stop.set()
        if self._running is not None:
            await self._running

    async def wait_until(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Wait for what the mirror will show; False if it did not in time."""
        deadline = self.clock.now() + seconds
        while not holds():
            left = deadline - self.clock.now()
            if left <= 0:
                return False
            await self.wait_for_change(min(left, 1.0))
        return True

    async def wait_for_change(self, seconds: float) -> None:
        """Wait until something changes, for so long at most. Raises what ended the following of the cluster."""
        if self._running is not None and self._running.done():
            self._running.result()
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return
        self._changed.clear()

    def _hear(self, change: Change) -> None:
        self._changed.set()
        if not self.is_recorded:
            return
        for hear in self._listeners:
            hear(change)
        if change.old is None or change.new is None or lasting_part_of(change.old) != lasting_part_of(change.new):
            self.last_change = self.clock.now()
            at = round(max(0.0, self.last_change - self.recorder.started_at), 3)
            document = {"at": at, "change": change.type, "kind": change.kind, "key": str(change.key)}
            self.recording.trace.add(msgspec.json.encode(document).decode() + "\n")

    # ---- acting

    async def perform(self, actions: list[Action], place: str) -> None:
        """Perform the actions, and remember what there is to take back. InputError where the API server refuses one."""
        for action in actions:
            try:
                if isinstance(action, Delete) and await find_object(self.cluster, action.resource, action.key) is None:
                    raise InputError(f"{place}: there is no {action.resource.kind} {action.key}.")
                self._remember(action)
                await self.performer.perform(action, self.clock.now())
            except ClusterError as error:
                raise InputError(f"{place}: the API server refuses it: {error}") from None

    def _remember(self, action: Action) -> None:
        """Before it is performed: nobody knows whether an action that fails has happened."""
        node = cordoned_node(action)
        if node is not None:
            self.cordoned_nodes.add(node)
        resource, key = object_of(action)
        is_new = isinstance(action, Create) or (isinstance(action, Patch) and action.patch.type == "apply")
        if is_new and (resource, key) not in self.created:
            self.created.append((resource, key))

    def has_kubelet(self, pod: Pod) -> bool:
        """Whether there is a kubelet that can end this pod."""
        node = self.state.get(Node, Key("", pod.spec.node_name))
        return node is not None and not is_silent(node)


def make_hollow(action: Action) -> Action:
    """Have hollow kubelets run a Node that is created: it is they who say that it is ready. Other actions stay."""
    if not isinstance(action, Create) or action.resource != NODES:
        return action
    body: Document = msgspec.json.decode(msgspec.json.encode(action.body))
    meta = body["metadata"]
    meta["labels"] = {**(meta.get("labels") or {}), HOLLOW_LABEL: "true"}
    meta["annotations"] = {**(meta.get("annotations") or {}), KWOK: "fake"}
    body["status"] = {name: value for name, value in (body.get("status") or {}).items() if name != "conditions"}
    return Create(NODES, body)
