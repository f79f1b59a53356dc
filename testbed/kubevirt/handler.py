"""Hollow virt-handlers, those of all Nodes at once. supervisor.py runs them where KubeVirt was asked for.

They follow VirtualMachineInstances, virt-launcher pods and Nodes and do what guests.py says: a write of the whole
VirtualMachineInstance at the version that was read, by the account of the real virt-handler (virt-api's webhook drops
the status that anybody else writes). A pod is ended by an annotation that the hollow kubelets follow.

Level-triggered: a write that came too late is refused, and what refused it is looked at next.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from math import inf

from testbed.behaviour import BadAnnotationError, Behaviour, is_set, overridden
from testbed.client import UNREACHABLE, ApiError, Client, Json, Listed, as_json
from testbed.kubevirt.guests import CREATED_BY, ENDED, Step, View, has_ended, next_step

log = logging.getLogger(__name__)

VMIS = "/apis/kubevirt.io/v1/virtualmachineinstances"
RETRY_SECONDS = 1.0


class Guest:
    """One VirtualMachineInstance, its pods, and what its virt-handler remembers of it."""

    def __init__(self) -> None:
        self.vmi: Json | None = None
        self.pods: dict[str, Json] = {}  # by uid
        self.since: dict[str, float] = {}
        self.is_busy = False
        self.is_stale = False
        self.timer: asyncio.TimerHandle | None = None

    def age(self, event: str) -> float:
        now = time.monotonic()
        return now - self.since.setdefault(event, now)


class Handlers:
    """All of them. `run` never ends by itself. `client` is virt-handler's, `admin` ends pods in the guests' place."""

    def __init__(self, client: Client, admin: Client, behaviour: Behaviour | None = None) -> None:
        self.client = client
        self.admin = admin
        self.behaviour = behaviour or Behaviour()
        self.guests: dict[str, Guest] = {}  # by uid of the VirtualMachineInstance
        self.nodes: dict[str, Json] = {}
        self.tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.follow(VMIS, self.set_vmi, self.forget_vmi))
                launchers = {"labelSelector": "kubevirt.io=virt-launcher"}
                group.create_task(self.follow("/api/v1/pods", self.set_pod, self.forget_pod, **launchers))
                group.create_task(self.follow("/api/v1/nodes", self.set_node, self.forget_node))
        finally:
            for task in self.tasks:
                task.cancel()

    async def follow(
        self, path: str, seen: Callable[[Json], None], gone: Callable[[Json], None], **params: str
    ) -> None:
        known: dict[str, Json] = {}
        async for change in self.admin.follow(path, **params):
            if isinstance(change, Listed):
                listed = {uid_of(item): item for item in map(as_json, change.items)}
                for uid in known.keys() - listed.keys():
                    gone(known[uid])
                known = listed
                for item in listed.values():
                    seen(item)
                continue
            item = as_json(change.object)
            if change.type == "DELETED":
                known.pop(uid_of(item), None)
                gone(item)
            else:
                known[uid_of(item)] = item
                seen(item)

    # What they see ---------------------------------------------------------------------------------------------------

    def set_vmi(self, vmi: Json) -> None:
        self.guests.setdefault(uid_of(vmi), Guest()).vmi = vmi
        self.wake(uid_of(vmi))

    def forget_vmi(self, vmi: Json) -> None:
        guest = self.guests.get(uid_of(vmi))
        if guest:
            guest.vmi = None
            self.wake(uid_of(vmi))  # pods that are left have no guest to wait for

    def set_pod(self, pod: Json) -> None:
        owner = pod["metadata"]["labels"].get(CREATED_BY, "")
        self.guests.setdefault(owner, Guest()).pods[uid_of(pod)] = pod
        self.wake(owner)

    def forget_pod(self, pod: Json) -> None:
        owner = pod["metadata"]["labels"].get(CREATED_BY, "")
        guest = self.guests.get(owner)
        if guest:
            guest.pods.pop(uid_of(pod), None)
            self.wake(owner)

    def set_node(self, node: Json) -> None:
        name = node["metadata"]["name"]
        before = self.nodes.get(name, {"metadata": {}})
        self.nodes[name] = node
        if before["metadata"].get("annotations") != node["metadata"].get("annotations"):
            for uid in list(self.guests):
                self.wake(uid)

    def forget_node(self, node: Json) -> None:
        self.nodes.pop(node["metadata"]["name"], None)

    # What they do ----------------------------------------------------------------------------------------------------

    def wake(self, uid: str) -> None:
        """Look at this guest now, or as soon as whoever does is finished."""
        guest = self.guests.get(uid)
        if guest is None:
            return
        if guest.vmi is None and not guest.pods:
            del self.guests[uid]
        if guest.is_busy:
            guest.is_stale = True
            return
        guest.is_busy = True
        self.start_task(self.attend(uid, guest))

    async def attend(self, uid: str, guest: Guest) -> None:
        if guest.timer:
            guest.timer.cancel()
        guest.is_stale = False
        again_after = await self.act(guest)
        guest.is_busy = False
        if guest.is_stale:
            self.wake(uid)
        elif again_after < inf and self.guests.get(uid) is guest:
            guest.timer = asyncio.get_running_loop().call_later(again_after, self.wake, uid)

    async def act(self, guest: Guest) -> float:
        """Do what is due; gives the seconds until something else is."""
        step = self.decide(guest)
        pods = [pod for pod in guest.pods.values() if pod["metadata"]["name"] in step.ended_pods and not has_ended(pod)]
        is_done = True
        if step.vmi is not None:
            is_done &= await self.attempt(self.client.replace(path_of("virtualmachineinstances", step.vmi), step.vmi))
        for pod in pods:
            ended = {"metadata": {"uid": uid_of(pod), "annotations": dict(ENDED)}}
            is_done &= await self.attempt(self.admin.patch(path_of("pods", pod), ended))
        return step.again_after if is_done else RETRY_SECONDS

    def decide(self, guest: Guest) -> Step:
        if guest.vmi is None:
            return Step(ended_pods=[pod["metadata"]["name"] for pod in guest.pods.values()])
        node = self.nodes.get(guest.vmi.get("status", {}).get("nodeName", ""), {"metadata": {}})
        annotations = [item["metadata"].get("annotations") for item in (node, guest.vmi)]
        try:
            behaviour = overridden(self.behaviour, *annotations)
        except BadAnnotationError as error:
            log.warning("%s: %s", guest.vmi["metadata"]["name"], error)
            behaviour = self.behaviour
        silent = [name for name, item in self.nodes.items() if is_set("silent", item["metadata"].get("annotations"))]
        view = View(
            vmi=guest.vmi,
            pods=list(guest.pods.values()),
            behaviour=behaviour,
            silent_nodes=frozenset(silent),
            age=guest.age,
            now=time.time(),
        )
        return next_step(view)

    async def attempt(self, call: Coroutine[object, object, Json]) -> bool:
        """False where it should be tried again. What was changed meanwhile is heard of by the watch."""
        try:
            await call
        except ApiError as error:
            if error.status not in (404, 409):
                log.warning("will try again: %s", error)
                return False
            log.info("not done: %s", error)
        except UNREACHABLE as error:
            log.warning("will try again: %r", error)
            return False
        return True

    def start_task(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.finish_task)

    def finish_task(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("a hollow virt-handler failed", exc_info=error)


def uid_of(item: Json) -> str:
    return str(item["metadata"]["uid"])


def path_of(resource: str, item: Json) -> str:
    group = "/api/v1" if resource == "pods" else "/apis/kubevirt.io/v1"
    return f"{group}/namespaces/{item['metadata']['namespace']}/{resource}/{item['metadata']['name']}"
