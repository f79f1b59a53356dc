"""The kubelets of all nodes as one actor: its keys are pods.

Bound pods get their status as the table of behaviour.py says; deleted ones are removed when their containers have
stopped, within their grace period. A node with the annotation `sim.novasphere.dev/silent: "true"` does nothing with its
pods. Heartbeats are not written: node_lifecycle/ knows silence by the same annotation, so that a quiet cluster has
nothing to do.

A condition Ready that somebody else has changed is put back, at most every ten seconds for each pod: a real kubelet
compares what it has written with what the API server has so often (syncPeriod of its status manager). So it does not
race a node controller that is late and marks the pod not ready again and again.

What it remembers (since when it runs a pod, since when it stops it) may be lost: then the pod's own times are used.
"""

from __future__ import annotations

import ipaddress
import zlib
from collections.abc import Iterable
from functools import lru_cache
from math import inf

from wukong.actions import DONE, Delete, Note, Outcome, Patch
from wukong.api.kinds import NODES, PODS
from wukong.api.meta import Object
from wukong.api.resources import Key
from wukong.embedded.actors.events import note_about_pod
from wukong.embedded.actors.kubelet import pod_status
from wukong.embedded.actors.kubelet.behaviour import (
    BadAnnotationError,
    Behaviour,
    Timeline,
    apply_annotations,
    build_timeline,
    has_annotations,
    is_silenced,
    may_exit,
    seconds_until_ready,
    stage_at,
)
from wukong.embedded.actors.kubelet.durations import PodDurations
from wukong.embedded.actors.pods import is_ready
from wukong.embedded.actors.watch_keys import keys_on_node
from wukong.embedded.store.documents import parse_time, value_at
from wukong.embedded.store.kubevirt.names import LAUNCHER, LAUNCHER_LABEL
from wukong.embedded.world.clock import Chance
from wukong.embedded.world.objects import Node, Pod
from wukong.ports import PatchBody
from wukong.state import Change, State
from wukong.state.controller import Watch

_FIRST_NODE_ADDRESS = int(ipaddress.ip_address("172.16.0.0"))
_FIRST_POD_ADDRESS = int(ipaddress.ip_address("10.0.0.0"))
RESTORE_SECONDS = 10.0


class Kubelets:
    name = "kubelet"

    def __init__(
        self,
        behaviour: Behaviour | None = None,
        chance: Chance | None = None,
        stuck_pods: frozenset[str] = frozenset(),
        durations: PodDurations = PodDurations(),  # noqa: B008  # never changed
    ) -> None:
        """`stuck_pods`: uids of pods of a snapshot that never get ready; they stay as they are until deleted."""
        self.behaviour, self.chance, self.stuck_pods = behaviour or Behaviour(), chance or Chance(), stuck_pods
        self._leaves_pods_up = self.behaviour == Behaviour()  # starting and stopping is nothing to one that is up
        self.behaviour, self.durations = durations.of_all.apply_to(self.behaviour), durations
        self.watches = (Watch(PODS, self._find_keys), Watch(NODES, keys_on_node))
        self._running_since: dict[str, float] = {}  # uid → when its kubelet first saw the pod
        self._stopping_since: dict[str, float] = {}  # uid → when its kubelet first saw it deleted
        self._restored_at: dict[str, float] = {}  # uid → when it last put back what somebody else had changed

    def copy_memory(self, source: Kubelets, _: State) -> None:
        self._running_since, self._stopping_since = dict(source._running_since), dict(source._stopping_since)
        self._restored_at = dict(source._restored_at)

    def _find_keys(self, change: Change, state: State) -> Iterable[Key]:
        """A pod without a node, or that is gone, is no kubelet's business. One that is up when we first see it stays so
        until something changes: of a snapshot most are."""
        pod = change.new
        if not isinstance(pod, Pod) or not pod.spec.node_name:
            return ()
        return () if change.old is None and self._stays_up(pod, state) else (change.key,)

    def _stays_up(self, pod: Pod, state: State) -> bool:
        node = state.get(Node, Key("", pod.spec.node_name))
        return (
            self._leaves_pods_up
            and pod.status.phase == "Running"
            and bool(pod.status.start_time)
            and is_ready(pod)
            and not pod.is_terminating
            and node is not None
            and not has_annotations(node.metadata.annotations)
            and not has_annotations(pod.metadata.annotations)
        )

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        pod = state.get(Pod, key)
        if pod is None or not pod.spec.node_name:
            return DONE
        node = state.get(Node, Key("", pod.spec.node_name))
        if node is None or is_silent(node):
            return DONE
        try:
            behaviour = apply_annotations(self.behaviour, node.metadata.annotations, pod.metadata.annotations)
            behaviour = self.durations.apply_by_workload(behaviour, pod, state)
        except BadAnnotationError as error:
            behaviour = self.behaviour
            if not pod.is_terminating:
                return (
                    DONE if pod.is_finished else _patch_status(key, pod_status.build_refusal(pod.document, str(error)))
                )
        if pod.is_terminating:
            return self._terminate(key, pod, behaviour, now)
        if pod.is_finished or pod.metadata.uid in self.stuck_pods:
            return DONE
        since = self._running_since.get(pod.metadata.uid)
        if since is None:
            self._forget_gone(state)
            since = self._running_since[pod.metadata.uid] = _find_start(pod, behaviour, now)
        return self._write_stage(key, pod, behaviour, since, now)

    def _forget_gone(self, state: State) -> None:
        """Forget, now and then, pods that went without their kubelet: over days these are many."""
        if len(self._running_since) > 1000 + 2 * len(state.of(Pod)):
            present = {pod.metadata.uid for pod in state.of(Pod).values()}
            for times in (self._running_since, self._stopping_since, self._restored_at):
                for uid in [uid for uid in times if uid not in present]:
                    del times[uid]

    def _write_stage(self, key: Key, pod: Pod, behaviour: Behaviour, since: float, now: float) -> Outcome:
        policy = pod.document["spec"].get("restartPolicy") or "Always"
        chance = self.chance.share(pod.metadata.uid) if behaviour.spread else 0.0
        timeline = build_timeline(behaviour, may_exit=may_exit(policy, behaviour.exit_code), chance=chance)
        stage, left = stage_at(timeline, self._age_of(pod, timeline, since, now))
        requeue_after = None if left == inf else left
        if pod_status.is_written(pod, stage):
            return Outcome(requeue_after=requeue_after)
        if pod_status.is_changed_by_others(pod, stage):
            wait = self._restored_at.get(pod.metadata.uid, now - RESTORE_SECONDS) + RESTORE_SECONDS - now
            if 0 < wait <= RESTORE_SECONDS:
                return Outcome(requeue_after=min(wait, left))
            self._restored_at[pod.metadata.uid] = now
        host_address = address_of(pod.spec.node_name)
        pod_address = host_address if pod.spec.host_network else pod_address_of(pod)
        patch = pod_status.build_patch(pod.document, stage, now, pod_address=pod_address, host_address=host_address)
        if pod.metadata.labels.get(LAUNCHER_LABEL) == LAUNCHER:  # virt-handler's actor writes its end in our place
            patch["metadata"]["resourceVersion"] = pod.metadata.resource_version
        return _patch_status(key, patch, requeue_after)

    def _age_of(self, pod: Pod, timeline: Timeline, since: float, now: float) -> float:
        """How long the pod has run. Where the clock was set back, its containers go on from where they are."""
        if now >= since:
            return now - since
        age = 0.0
        for stage, seconds in timeline:
            if pod_status.is_written(pod, stage):
                self._running_since[pod.metadata.uid] = now - age
                return age
            if seconds == inf:
                break
            age += seconds
        return 0.0

    def _terminate(self, key: Key, pod: Pod, behaviour: Behaviour, now: float) -> Outcome:
        """Wait for the containers to stop, within the grace period; then remove the pod."""
        uid = pod.metadata.uid
        notes = () if uid in self._stopping_since else _note_killing(pod)
        stopping_since = self._stopping_since.setdefault(uid, now)
        grace = value_at(pod.document, "metadata.deletionGracePeriodSeconds") or 0
        left = stopping_since + min(behaviour.stop_seconds, grace) - now
        if left > 1e-6:
            return Outcome(notes, requeue_after=left)
        self._running_since.pop(uid, None)
        self._stopping_since.pop(uid, None)
        return Outcome((*notes, Delete(PODS, key, uid=uid, grace_seconds=0)))


def is_silent(node: Object) -> bool:
    """Whether the node's kubelet sends no heartbeats."""
    return is_silenced(node.metadata.annotations)


@lru_cache(8192)
def address_of(node: str) -> str:
    """The address of a node: one of the million in 172.16.0.0/12, always the same for a name."""
    return _format_address(_FIRST_NODE_ADDRESS + zlib.crc32(node.encode()) % 2**20)


def pod_address_of(pod: Pod) -> str:
    """The address of a pod; of one whose status does not say, always the same one."""
    known = value_at(pod.document, "status.podIP")
    return known or _format_address(_FIRST_POD_ADDRESS + zlib.crc32(pod.metadata.uid.encode()) % 2**24)


def _format_address(number: int) -> str:
    return f"{number >> 24}.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


def _find_start(pod: Pod, behaviour: Behaviour, now: float) -> float:
    """Since when a pod runs that we see for the first time. One that is ready has started, however long that takes."""
    start = parse_time(pod.status.start_time) if pod.status.start_time else now
    return min(start, now - seconds_until_ready(behaviour)) if is_ready(pod) else start


def _note_killing(pod: Pod) -> tuple[Note, ...]:
    """The Events of containers that are stopped; none for a pod that does not run."""
    containers = pod.document["spec"]["containers"] if pod.status.phase == "Running" else []
    names = [str(container["name"]) for container in containers]
    return tuple(note_about_pod(pod, "Killing", f"Stopping container {name}") for name in names)


def _patch_status(key: Key, patch: dict[str, object], requeue_after: float | None = None) -> Outcome:
    return Outcome((Patch(PODS, key, PatchBody("strategic", patch, manager="kubelet"), "status"),), requeue_after)
