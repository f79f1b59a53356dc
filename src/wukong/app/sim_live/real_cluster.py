"""A real cluster as a scenario needs it: its mirror, who drains nodes, and what the run created there.

Built by player.py, cleaned by cleanup.py. The mirror follows what the plan is about; every change of it wakes whoever
waits, so nothing is polled.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from math import inf
from typing import Any

import msgspec

from wukong.actions import Action, Create, Delete, Patch, Scale
from wukong.api.core import Pod
from wukong.api.kinds import NAMESPACES, NODES
from wukong.api.resources import Key, Resource
from wukong.app.live import WallClock
from wukong.app.sim_live.cordons import TRIES, Cordons
from wukong.app.sim_live.ownership import CreatedObject, carries_label, fields_to_apply, label_document, uid_of
from wukong.app.sim_live.plan import Plan, find_object
from wukong.app.sim_live.watch_source import WATCHES, lasting_part_of, watch_source_of
from wukong.embedded.actors.kubelet.controller import is_silent
from wukong.embedded.scenario.play.steps import Drains, cordoned_node, uncordoned_node
from wukong.embedded.scenario.record.recorder import Recorder
from wukong.embedded.scenario.record.recording import Recording, StoryTrace
from wukong.embedded.world.objects import Node
from wukong.errors import AlreadyExists, ClusterError, Conflict, InputError
from wukong.ports import Cluster, Document, PatchBody
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
        self.created: list[CreatedObject] = []  # in their order
        self.cordons = Cordons(cluster, f"wukong-sim-{plan.run}")
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
        """Perform the actions, and remember what there is to take back. InputError where the API server refuses one.

        Whatever the actions say, only what this run made is changed, and the cordon of nodes.
        """
        for action in actions:
            try:
                await _complete(self._perform(action))
            except InputError as error:
                raise error.at(place) from None
            except ClusterError as error:
                raise InputError(f"{place}: the API server refuses it: {error}") from None

    async def _perform(self, action: Action) -> None:
        node = cordoned_node(action) or uncordoned_node(action)
        if node is not None:
            await self.cordons.set(node, is_cordoned=cordoned_node(action) is not None)
        elif isinstance(action, Create):
            await self._create(*object_of(action), action.body)
        elif isinstance(action, Patch) and action.patch.type == "apply":
            await self._apply(action)
        else:
            assert isinstance(action, Patch | Delete | Scale), action
            await self._change(action)

    async def _create(self, resource: Resource, key: Key, body: Document) -> None:
        """Never overwrites: InputError if somebody made such an object meanwhile."""
        self.created.append(CreatedObject(resource, key))  # before: nobody knows whether what fails has happened
        action = Create(resource, label_document(body, self.plan.run), key.namespace)
        try:
            written = await self.performer.perform(action, self.clock.now())
        except AlreadyExists:
            raise InputError(f"{resource.kind} {key} was made by somebody else meanwhile. It stays as it is.") from None
        if written is not None:
            self.created[-1] = CreatedObject(resource, key, written.uid)

    async def _apply(self, action: Patch) -> None:
        """Create the object, or apply to the one that this run created."""
        resource, key = object_of(action)
        document = await find_object(self.cluster, resource, key)
        if document is None:
            await self._create(resource, key, action.patch.body)
            return
        self._check_ownership(resource, key, document)
        await self._own_fields(resource, key, document, action.patch.manager)
        configuration = label_document(action.patch.body, self.plan.run)
        configuration["metadata"]["uid"] = uid_of(document)
        patch = msgspec.structs.replace(action.patch, body=configuration)
        await self.performer.perform(msgspec.structs.replace(action, patch=patch), self.clock.now())

    async def _own_fields(self, resource: Resource, key: Key, document: Document, manager: str) -> None:
        """Have `manager` own what was created as if it had applied it, on the very version that was read."""
        for _ in range(TRIES):
            entries = fields_to_apply(document, manager)
            if entries is None:
                return
            operations = [
                {"op": "test", "path": "/metadata/uid", "value": uid_of(document)},
                {
                    "op": "replace",
                    "path": "/metadata/resourceVersion",
                    "value": document["metadata"]["resourceVersion"],
                },
                {"op": "replace", "path": "/metadata/managedFields", "value": entries},
            ]
            try:
                document = await self.cluster.patch(resource, key, PatchBody("json", operations, manager=manager))
            except Conflict:  # controllers write its status
                document = await self.cluster.get(resource, key, dict)

    async def _change(self, action: Patch | Delete | Scale) -> None:
        """Patch, scale or delete what this run made: exactly that, not what has its name by now."""
        resource, key = object_of(action)
        document = await find_object(self.cluster, resource, key)
        if document is None:
            raise InputError(f"there is no {resource.kind} {key}.")
        self._check_ownership(resource, key, document)
        await self.performer.perform(_demand_uid(action, uid_of(document)), self.clock.now())

    def _check_ownership(self, resource: Resource, key: Key, document: Document) -> None:
        if not self.is_own(key, document):
            raise InputError(f"{resource.kind} {key} is not of this run's making. It stays as it is.")

    def is_own(self, key: Key, document: Document) -> bool:
        """Whether this run made it, or had it made: by uid, by label, or because it is in a namespace of the run."""
        is_created = any(created.uid == uid_of(document) for created in self.created)
        return is_created or carries_label(document, self.plan.run) or key.namespace in self.own_namespaces()

    def own_namespaces(self) -> set[str]:
        """Those that this run created. A plan's new ones may be somebody else's by now."""
        return {created.key.name for created in self.created if created.resource == NAMESPACES and created.uid}

    def has_kubelet(self, pod: Pod) -> bool:
        """Whether there is a kubelet that can end this pod."""
        node = self.state.get(Node, Key("", pod.spec.node_name))
        return node is not None and not is_silent(node)


async def _complete(writing: Coroutine[Any, Any, None]) -> None:
    """Await a write to its end, also where the run is interrupted meanwhile: what is on its way may still arrive."""
    task = asyncio.ensure_future(writing)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # it is the interruption that counts
        raise


def _demand_uid(action: Patch | Delete | Scale, uid: str) -> Action:
    """Have the API server refuse the action for an object with another uid, where it can."""
    if isinstance(action, Delete):
        return msgspec.structs.replace(action, uid=uid)
    if isinstance(action, Scale) or action.subresource:
        return action
    body = action.patch.body
    if action.patch.type == "json":
        body = [{"op": "test", "path": "/metadata/uid", "value": uid}, *body]
    else:
        body = {**body, "metadata": {**(body.get("metadata") or {}), "uid": uid}}
    return msgspec.structs.replace(action, patch=msgspec.structs.replace(action.patch, body=body))


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
