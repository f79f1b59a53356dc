"""Hollow kubelets, those of all hollow Nodes at once. supervisor.py runs them beside a control plane.

They follow Nodes and Pods and answer as the table in behaviour.py says: bound pods get their status, deleted ones are
let go after their grace, Nodes are kept ready and their leases renewed, so that the node lifecycle of the real
controllers is real. They are driven through the API alone: create a Node with the hollow label and it lives, annotate
it `sim.novasphere.dev/silent: "true"` and it goes silent, with its pods left as they are.

Where KubeVirt runs beside them, a deleted virt-launcher pod stays until its guest is down, which the hollow
virt-handlers (kubevirt/handler.py) say by the pod's annotation `sim.novasphere.dev/run-seconds: "0"`.

Level-triggered: what to do follows from a pod as last seen and the time, so missed events and restarts cost nothing.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import time
from collections.abc import Coroutine
from math import inf

import msgspec

from testbed import nodes, pod_status
from testbed.behaviour import BadAnnotationError, Behaviour, is_set, may_exit, overridden, stage_at, timeline
from testbed.client import UNREACHABLE, ApiError, Client, Json, Listed
from testbed.leases import Leases
from testbed.objects import Meta, Node, Pod, condition

log = logging.getLogger(__name__)

WORKERS = 32
RETRY_SECONDS = 1.0
POD_NETWORK = int(ipaddress.ip_address("10.0.0.0"))


class Named(msgspec.Struct):
    metadata: Meta


class Tracked(msgspec.Struct):
    """A pod bound to a hollow Node, and what its kubelet remembers of it."""

    pod: Pod
    since: float  # when its kubelet first saw it
    address: str
    stopping_since: float | None = None
    is_busy: bool = False  # somebody works on it
    is_stale: bool = False  # something happened meanwhile
    timer: asyncio.TimerHandle | None = None


class Kubelets:
    """All of them. `run` never ends by itself."""

    def __init__(
        self,
        client: Client,
        behaviour: Behaviour | None = None,
        lease_seconds: float | None = None,
        *,
        await_guests: bool = False,
    ) -> None:
        self.client = client
        self.await_guests = await_guests
        self.behaviour = behaviour or Behaviour()
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Tracked] = {}  # by uid
        self.pods_of: dict[str, set[str]] = {}  # node name -> uids
        self.leases = Leases(client, self.heard_nodes, lease_seconds)
        self.next_address = 0
        self.slots = asyncio.Semaphore(WORKERS)
        self.tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.follow_nodes())
                group.create_task(self.follow_pods())
                group.create_task(self.leases.run())
        finally:
            for task in self.tasks:
                task.cancel()

    def heard_nodes(self) -> list[Node]:
        return [node for node in self.nodes.values() if not is_silent(node)]

    # Nodes ---------------------------------------------------------------------------------------------------------

    async def follow_nodes(self) -> None:
        async for change in self.client.follow("/api/v1/nodes"):  # no selector can ask for either of two labels
            if isinstance(change, Listed):
                listed = [msgspec.json.decode(raw, type=Node) for raw in change.items]
                self.nodes = {node.metadata.name: node for node in listed if is_hollow(node)}
                for node in listed:
                    self.node_changed(node)
            elif change.type == "DELETED":
                self.nodes.pop(msgspec.json.decode(change.object, type=Named).metadata.name, None)
            else:
                self.node_changed(msgspec.json.decode(change.object, type=Node))

    def node_changed(self, node: Node) -> None:
        name = node.metadata.name
        if not is_hollow(node):
            self.nodes.pop(name, None)
            return
        before = self.nodes.get(name)
        self.nodes[name] = node
        if is_silent(node):
            return
        if not is_ready(node):
            self.start_task(self.recover(node))
        if before is None or before is node or annotations_differ(before, node):
            for uid in self.pods_of.get(name, ()):
                self.wake(uid)

    async def recover(self, node: Node) -> None:
        """A kubelet that starts or comes back: it renews its lease, then says that it is ready."""
        path = f"/api/v1/nodes/{node.metadata.name}/status"
        await self.leases.renew(node)
        while await self.attempt(self.client.patch(path, nodes.recovery(node, time.time()), "strategic")) is None:
            await asyncio.sleep(RETRY_SECONDS)

    # Pods ----------------------------------------------------------------------------------------------------------

    async def follow_pods(self) -> None:
        async for change in self.client.follow("/api/v1/pods", fieldSelector="spec.nodeName!="):
            if isinstance(change, Listed):
                listed = [msgspec.json.decode(raw, type=Pod) for raw in change.items]
                for uid in self.pods.keys() - {pod.metadata.uid for pod in listed}:
                    self.forget(uid)
                for pod in listed:
                    self.pod_changed(pod)
            elif change.type == "DELETED":
                self.forget(msgspec.json.decode(change.object, type=Named).metadata.uid)
            else:
                self.pod_changed(msgspec.json.decode(change.object, type=Pod))

    def pod_changed(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        tracked = self.pods.get(uid)
        if tracked is None:
            started = pod.status.start_time
            since = pod_status.seconds_of(started) if started else time.time()
            self.pods[uid] = Tracked(pod, since, pod.status.pod_ip or self.new_address())
            self.pods_of.setdefault(pod.spec.node_name, set()).add(uid)
        elif is_newer(pod, tracked.pod):
            tracked.pod = pod
        else:
            return  # our own write, which its answer already told us
        self.wake(uid)

    def forget(self, uid: str) -> None:
        tracked = self.pods.pop(uid, None)
        if tracked is None:
            return
        self.pods_of.get(tracked.pod.spec.node_name, set()).discard(uid)
        if tracked.timer:
            tracked.timer.cancel()

    def wake(self, uid: str) -> None:
        """Look at this pod now, or as soon as whoever does is finished."""
        tracked = self.pods.get(uid)
        if tracked is None:
            return
        if tracked.is_busy:
            tracked.is_stale = True
            return
        tracked.is_busy = True
        self.start_task(self.attend(uid, tracked))

    async def attend(self, uid: str, tracked: Tracked) -> None:
        if tracked.timer:
            tracked.timer.cancel()
        async with self.slots:
            tracked.is_stale = False
            again_after = await self.act(tracked)
        tracked.is_busy = False
        if uid not in self.pods:
            return
        if tracked.is_stale:
            self.wake(uid)
        elif again_after < inf:
            tracked.timer = asyncio.get_running_loop().call_later(again_after, self.wake, uid)

    async def act(self, tracked: Tracked) -> float:
        """Do what is due for one pod; gives the seconds until something else is."""
        pod, node = tracked.pod, self.nodes.get(tracked.pod.spec.node_name)
        if node is None or is_silent(node):
            return inf
        try:
            behaviour = overridden(self.behaviour, node.metadata.annotations, pod.metadata.annotations)
        except BadAnnotationError as error:
            behaviour = self.behaviour
            if pod.metadata.deletion_timestamp is None:
                return await self.refuse(tracked, str(error))
        if pod.metadata.deletion_timestamp is not None:
            return await self.let_go(tracked, behaviour)
        return await self.show_stage(tracked, behaviour, node)

    async def show_stage(self, tracked: Tracked, behaviour: Behaviour, node: Node) -> float:
        pod, now = tracked.pod, time.time()
        if pod.status.phase in ("Succeeded", "Failed"):
            return inf
        rows = timeline(behaviour, may_exit=may_exit(pod.spec.restart_policy, behaviour.exit_code))
        stage, left = stage_at(rows, now - tracked.since)
        if pod_status.is_shown(pod, stage):
            return left
        host = host_address(node)
        address = host if pod.spec.host_network else tracked.address
        patch = pod_status.patch(pod, stage, now, pod_address=address, host_address=host)
        return left if await self.write_status(tracked, patch) else RETRY_SECONDS

    async def refuse(self, tracked: Tracked, message: str) -> float:
        if tracked.pod.status.phase == "Failed":
            return inf
        return inf if await self.write_status(tracked, pod_status.refusal(tracked.pod, message)) else RETRY_SECONDS

    async def write_status(self, tracked: Tracked, patch: Json) -> bool:
        """True when it is written, or the pod is no more."""
        with_uid = {**patch, "metadata": {"uid": tracked.pod.metadata.uid}}  # not its successor of the same name
        answer = await self.attempt(self.client.patch(f"{tracked.pod.path}/status", with_uid, "strategic"))
        if answer is None:
            return False
        if "metadata" in answer:
            written = msgspec.convert(answer, Pod)
            if is_newer(written, tracked.pod):  # news of the watch, a deletion say, may have overtaken the answer
                tracked.pod = written
        return True

    async def let_go(self, tracked: Tracked, behaviour: Behaviour) -> float:
        """The containers stop in their own time, within the grace; then the pod is really deleted."""
        meta = tracked.pod.metadata
        if tracked.stopping_since is None:
            tracked.stopping_since = time.time()
        stop_seconds = min(self.stop_seconds(tracked.pod, behaviour), meta.deletion_grace_period_seconds or 0)
        left = tracked.stopping_since + stop_seconds - time.time()
        if left > 0:
            return left
        deletion = self.client.delete(tracked.pod.path, grace_seconds=0, uid=meta.uid)
        return inf if await self.attempt(deletion) is not None else RETRY_SECONDS

    def stop_seconds(self, pod: Pod, behaviour: Behaviour) -> float:
        if not self.await_guests or (pod.metadata.labels or {}).get("kubevirt.io") != "virt-launcher":
            return behaviour.stop_seconds
        return 0.0 if behaviour.run_seconds == 0 or pod.status.phase in ("Succeeded", "Failed") else inf

    # Small things --------------------------------------------------------------------------------------------------

    async def attempt(self, call: Coroutine[object, object, Json | None]) -> Json | None:
        """The answer; {} where there is nothing to do any more; None where it should be tried again."""
        try:
            return await call or {}
        except ApiError as error:
            if error.status in (404, 409, 422):  # gone, or another object by now
                log.info("not done: %s", error)
                return {}
            log.warning("will try again: %s", error)
        except UNREACHABLE as error:
            log.warning("will try again: %r", error)
        return None

    def new_address(self) -> str:
        self.next_address += 1
        return str(ipaddress.ip_address(POD_NETWORK + self.next_address))

    def start_task(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.finished)

    def finished(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("a hollow kubelet stumbled", exc_info=error)


def is_hollow(node: Node) -> bool:
    return is_set("hollow", node.metadata.labels)


def is_silent(node: Node) -> bool:
    return is_set("silent", node.metadata.annotations)


def is_ready(node: Node) -> bool:
    ready = condition(node.status.conditions, "Ready")
    return ready is not None and ready.status == "True" and bool(node.status.allocatable)


def is_newer(one: Pod, other: Pod) -> bool:
    return int(one.metadata.resource_version) > int(other.metadata.resource_version)


def host_address(node: Node) -> str:
    known = (it.address for it in node.status.addresses or () if it.type == "InternalIP")
    return next(known, "") or nodes.address(node.metadata.name)


def annotations_differ(one: Node, other: Node) -> bool:
    return one.metadata.annotations != other.metadata.annotations
