"""The kubelets of all nodes as one actor: its keys are pods.

Bound pods get their status as behaviour.py's table says, deleted ones are let go when their containers have stopped,
within their grace. A node with the annotation `sim.novasphere.dev/silent: "true"` does nothing with its pods.
Heartbeats are not written: node_lifecycle knows silence by the same annotation, so that a quiet cluster has nothing to
do.

What it remembers (since when it runs a pod, since when it stops it) may be lost: the pod's own times then stand in.
"""

from __future__ import annotations

import ipaddress
import zlib
from functools import lru_cache
from math import inf

from wukong.actions import DONE, Delete, Note, Outcome, Patch
from wukong.api.kinds import NODES, PODS
from wukong.api.meta import Object
from wukong.api.resources import Key
from wukong.embedded.actors.events import of_pod
from wukong.embedded.actors.kubelet import pod_status
from wukong.embedded.actors.kubelet.behaviour import (
    BadAnnotationError,
    Behaviour,
    is_silenced,
    may_exit,
    overridden,
    stage_at,
    timeline,
)
from wukong.embedded.actors.pods import keys_on_node
from wukong.embedded.store.documents import parse_time, value_at
from wukong.embedded.world.clock import Chance
from wukong.embedded.world.objects import Node, Pod
from wukong.ports import PatchBody
from wukong.state import State
from wukong.state.controller import Watch

_HOSTS = int(ipaddress.ip_address("172.16.0.0"))
_ADDRESSES = int(ipaddress.ip_address("10.0.0.0"))


class Kubelets:
    name = "kubelet"

    def __init__(
        self, behaviour: Behaviour | None = None, chance: Chance | None = None, held: frozenset[str] = frozenset()
    ) -> None:
        """`held`: uids of pods of a snapshot that do not come up; they stay as they are until they are deleted."""
        self.behaviour, self.chance, self.held = behaviour or Behaviour(), chance or Chance(), held
        self._since: dict[str, float] = {}  # uid → when its kubelet first saw the pod
        self._stopping: dict[str, float] = {}  # uid → when its kubelet first saw it deleted

    watches = (Watch(PODS), Watch(NODES, keys_on_node))

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        pod = state.get(Pod, key)
        if pod is None or not pod.spec.node_name:
            self._forget_gone(state)
            return DONE
        node = state.get(Node, Key("", pod.spec.node_name))
        if node is None or is_silent(node):
            return DONE
        since = self._since.setdefault(pod.metadata.uid, _started(pod, now))
        try:
            behaviour = overridden(self.behaviour, node.metadata.annotations, pod.metadata.annotations)
        except BadAnnotationError as error:
            behaviour = self.behaviour
            if not pod.is_terminating:
                return DONE if pod.is_finished else _writing(key, pod_status.refusal(pod.document, str(error)))
        if pod.is_terminating:
            return self._let_go(key, pod, behaviour, now)
        is_over = pod.is_finished or pod.metadata.uid in self.held
        return DONE if is_over else self._show_stage(key, pod, behaviour, since, now)

    def _forget_gone(self, state: State) -> None:
        """Now and then: pods may go without their kubelet, and over the days these are many."""
        if len(self._since) > 1000 + 2 * len(state.objects.get("Pod", {})):
            there = {pod.metadata.uid for pod in state.objects.get("Pod", {}).values()}
            for known in (self._since, self._stopping):
                for uid in [uid for uid in known if uid not in there]:
                    del known[uid]

    def _show_stage(self, key: Key, pod: Pod, behaviour: Behaviour, since: float, now: float) -> Outcome:
        policy = value_at(pod.document, "spec.restartPolicy") or "Always"
        chance = self.chance.share(pod.metadata.uid)
        rows = timeline(behaviour, may_exit=may_exit(policy, behaviour.exit_code), chance=chance)
        stage, left = stage_at(rows, now - since)
        again = None if left == inf else left
        if pod_status.is_shown(pod.document, stage):
            return Outcome(requeue_after=again)
        host = address_of(pod.spec.node_name)
        own = host if pod.spec.host_network else _pod_address(pod)
        patch = pod_status.patch(pod.document, stage, now, pod_address=own, host_address=host)
        return _writing(key, patch, again)

    def _let_go(self, key: Key, pod: Pod, behaviour: Behaviour, now: float) -> Outcome:
        """The containers stop in their own time, within the grace; then the pod is really deleted."""
        uid = pod.metadata.uid
        told = () if uid in self._stopping else _killing(pod)
        began = self._stopping.setdefault(uid, now)
        grace = value_at(pod.document, "metadata.deletionGracePeriodSeconds") or 0
        left = began + min(behaviour.stop_seconds, grace) - now
        if left > 1e-6:
            return Outcome(told, requeue_after=left)
        self._since.pop(uid, None)
        self._stopping.pop(uid, None)
        return Outcome((*told, Delete(PODS, key, uid=uid, grace_seconds=0)))


def is_silent(node: Object) -> bool:
    return is_silenced(node.metadata.annotations)


@lru_cache(8192)
def address_of(node: str) -> str:
    """One of the million in 172.16.0.0/12, always the same for a name."""
    return str(ipaddress.ip_address(_HOSTS + zlib.crc32(node.encode()) % 2**20))


def _pod_address(pod: Pod) -> str:
    known = value_at(pod.document, "status.podIP")
    return known or str(ipaddress.ip_address(_ADDRESSES + zlib.crc32(pod.metadata.uid.encode()) % 2**24))


def _started(pod: Pod, now: float) -> float:
    return parse_time(pod.status.start_time) if pod.status.start_time else now


def _killing(pod: Pod) -> tuple[Note, ...]:
    """Of pods that run; one that never got so far has nothing to be stopped."""
    running = pod.status.phase == "Running"
    names = [str(each["name"]) for each in pod.document["spec"]["containers"]] if running else []
    return tuple(of_pod(pod, "Killing", f"Stopping container {name}") for name in names)


def _writing(key: Key, patch: dict[str, object], again: float | None = None) -> Outcome:
    return Outcome((Patch(PODS, key, PatchBody("strategic", patch, manager="kubelet"), "status"),), again)
