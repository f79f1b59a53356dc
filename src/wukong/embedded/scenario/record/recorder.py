"""Hears every change of a cluster and makes its story: minima and maxima, events, and in the end what is stuck.

Attached by playing.py to an embedded cluster and by app/sim_live to a real one: the same numbers mean the same on both.
It never writes; the clock is the cluster's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from wukong.api.core import Pod as AnyPod
from wukong.api.meta import Object, controller_of
from wukong.api.resources import Key, key_of
from wukong.embedded.actors import pods as podlike
from wukong.embedded.scenario.play.steps import Drains
from wukong.embedded.scenario.record import workload_status
from wukong.embedded.scenario.record.colocation import Colocation
from wukong.embedded.scenario.record.observed_cluster import ObservedCluster
from wukong.embedded.scenario.record.peak_pods import PeakPods
from wukong.embedded.scenario.record.story import Event, NodeCount, WorkloadSummary
from wukong.embedded.store.documents import condition_of
from wukong.embedded.world.objects import Node, Pod, ReplicaSet
from wukong.runtime.dispatch import Item
from wukong.state import Change

GONE_KEPT = 10_000
IsTold = Callable[[str, str], bool]


class Recorder:
    def __init__(
        self, scene: ObservedCluster, is_told: IsTold = lambda kind, key: True, *, passing_seconds: float = 0.0
    ) -> None:
        """`is_told` says of a workload's kind and key whether the story is about it. `passing_seconds`: crowds.py."""
        self.scene, self.begun, self.is_told = scene, scene.clock.now(), is_told
        self.last_change = self.begun
        self.events: list[Event] = []
        self.fates: dict[str, WorkloadSummary] = {}
        self.nodes = NodeCount()
        self._names: dict[tuple[str, str], str] = {}  # kind and key of a workload → what it is called
        self._was_whole: set[str] = set()
        self._short_since: dict[str, float] = {}
        self._crowds = PeakPods(passing_seconds)
        self._owner: dict[str, str] = {}  # uid of a pod → its workload
        self._disrupted: set[str] = set()
        self._gone: deque[str] = deque()  # uids of pods that went, of which the above is remembered for a while
        self._sharing = Colocation()
        scene.listen(self.hear)

    def is_about(self, pod: AnyPod) -> bool:
        """Whether this pod is of a workload that the story is about."""
        return isinstance(pod, Pod) and self._is_ours(self._workload_of(pod))

    def tell(self, subject: str, text: str) -> None:
        self.events.append(Event(round(max(0.0, self.scene.clock.now() - self.begun), 3), subject, text))

    # ---- while it goes on

    def hear(self, change: Change) -> None:
        self.last_change = self.scene.clock.now()
        found = change.new or change.old
        if isinstance(found, Pod):
            self._pod(change, found)
        elif isinstance(found, Node):
            self._node(change)
        elif found is not None and change.group_kind in workload_status.KINDS:
            self._maker(change, found)
            if workload_status.is_top(found) and self.is_told(found.kind, found.key):
                self._workload(change, found)

    def _workload(self, change: Change, found: Object) -> None:
        name = self.name_of(found)
        if change.new is None:
            self._stop_short(name)
            self.fates.pop(name, None)
            self._crowds.forget(name)
            self._was_whole.discard(name)
            self.tell(name, f"{found.kind} deleted")
            return
        fate = self.fates.setdefault(name, WorkloadSummary(kind=found.kind))
        self._count(name)
        count = workload_status.counted(found)
        fate.replicas, fate.available = count.wanted, count.available
        if count.available >= count.wanted and count.wanted:
            if name not in self._was_whole:
                self._was_whole.add(name)
                fate.min_available = count.available
            self._stop_short(name)
        elif name in self._was_whole and count.wanted:
            self._short_since.setdefault(name, self.scene.clock.now())
        if name in self._was_whole:
            fate.min_available = min(fate.min_available, count.available)
        self._tell_conditions(name, change.old, found)

    def _tell_conditions(self, name: str, old: Object | None, new: Object) -> None:
        for kind in ("Progressing", "ReplicaFailure", "Complete", "Failed"):
            now = condition_of(workload_status.document_of(new), kind) or {}
            before = condition_of(workload_status.document_of(old), kind) or {} if old is not None else {}
            is_news = (now.get("status"), now.get("reason")) != (before.get("status"), before.get("reason"))
            if is_news and now.get("reason") not in (None, "ReplicaSetUpdated", "NewReplicaSetCreated"):
                self.tell(name, str(now["reason"]))

    def _stop_short(self, name: str) -> None:
        since = self._short_since.pop(name, None)
        if since is not None and name in self.fates:
            spent = self.fates[name].unavailable_seconds + self.scene.clock.now() - since
            self.fates[name].unavailable_seconds = round(spent, 3)

    def _node(self, change: Change) -> None:
        old, new = change.old, change.new
        count = len(self.scene.state.objects.get("Node", {}))
        self.nodes.max, self.nodes.end = max(self.nodes.max, count), count
        name = f"node {change.key.name}"
        if old is None or new is None:
            self.tell(name, "added" if old is None else "gone")
            return
        for text, was, is_now in (
            ("cordoned", _is_cordoned(old), _is_cordoned(new)),
            ("not ready", _is_unready(old), _is_unready(new)),
        ):
            if was != is_now:
                self.tell(name, text if is_now else {"cordoned": "uncordoned", "not ready": "ready"}[text])

    def _pod(self, change: Change, pod: Pod) -> None:
        old, new, uid = change.old, change.new, pod.metadata.uid
        name = self._workload_of(pod)
        self._crowds.hear_pod(pod, is_gone=new is None)
        self._count(name)
        fate = self.fates.get(name)
        if fate is not None:
            crowd, fate.mixed_nodes = self._sharing.hear(name, pod, is_gone=new is None)
            fate.max_per_node = max(fate.max_per_node, crowd)
            target = podlike.condition(pod, "DisruptionTarget")
            if target is not None and target.status == "True" and uid not in self._disrupted:
                self._disrupted.add(uid)
                fate.restarts += 1
        if new is None:
            self._forget(uid)
        if self._is_ours(name):
            for text in _news(old if isinstance(old, Pod) else None, new if isinstance(new, Pod) else None):
                self.tell(name, text)

    def _forget(self, uid: str) -> None:
        """Not at once: others may still ask whose pod that was."""
        self._gone.append(uid)
        if len(self._gone) > GONE_KEPT:
            oldest = self._gone.popleft()
            self._owner.pop(oldest, None)
            self._disrupted.discard(oldest)

    def _maker(self, change: Change, found: Object) -> None:
        """What makes pods: a Deployment's ReplicaSets, or the workload itself."""
        owner = controller_of(found.metadata)
        top = (found.kind, found.key) if owner is None else (owner.kind, f"{found.metadata.namespace}/{owner.name}")
        if found.kind != "Deployment" and self.is_told(*top):
            name = self._named(*top)
            self._crowds.hear_maker(name, change)
            self._count(name)

    def _count(self, name: str) -> None:
        if name in self.fates:
            self._crowds.count(name, self.scene.clock.now())
            self.fates[name].max_pods = self._crowds.most.get(name, 0)

    def forget_news(self) -> None:
        """What was taken in before the story began is no event of it."""
        self.events.clear()
        for fate in self.fates.values():
            fate.restarts = 0

    def workload_of(self, uid: str) -> str:
        """What the workload is called that a pod belonged to, as long as anybody remembers the pod."""
        return self._owner.get(uid, "")

    # ---- in the end

    def finish(self) -> list[str]:
        """Complete the fates; gives what is stuck, by workload."""
        for name in list(self._short_since):
            self._stop_short(name)
        for pod in self.scene.state.all(Pod):
            fate = self.fates.get(self._workload_of(pod))
            if fate is not None and pod.spec.node_name and podlike.is_active(pod):
                fate.per_node[pod.spec.node_name] = fate.per_node.get(pod.spec.node_name, 0) + 1
        for name, fate in self.fates.items():
            fate.max_pods = self._crowds.keep(name, self.scene.clock.now())
            fate.per_node = dict(sorted(fate.per_node.items()))
        return self._stuck()

    def _stuck(self) -> list[str]:
        found: dict[str, list[str]] = {}
        for kind in workload_status.KINDS:
            for each in self.scene.state.objects.get(kind, {}).values():
                is_ours = workload_status.is_top(each) and self.is_told(kind, each.key)
                if is_ours and not workload_status.counted(each).is_complete:
                    found.setdefault(self.name_of(each), []).extend(workload_status.troubles(each))
        for pod in filter(self.is_about, self.scene.state.all(Pod)):
            scheduled = podlike.condition(pod, "PodScheduled")
            if not pod.spec.node_name and podlike.is_active(pod):
                told = scheduled.message if scheduled is not None and scheduled.message else "not scheduled"
                reasons = found.setdefault(self._workload_of(pod), [])
                reasons.extend([f"pending: {told}"] if f"pending: {told}" not in reasons else [])
            attempt = self.scene.attempt(Item(Drains.name, key_of(pod)))
            if attempt is not None:
                found.setdefault(f"node {pod.spec.node_name}", []).append(f"drain: pod {pod.key}: {attempt.error}")
        for name, reasons in found.items():
            if not reasons:
                fate = self.fates[name]
                reasons.append(f"{fate.available} of {fate.replicas} are available, or not all of the latest version")
        return [f"{name}: {reason}" for name, reasons in sorted(found.items()) for reason in reasons]

    # ---- names

    def name_of(self, found: Object) -> str:
        """`ns/name`; with the kind where another workload has that name already."""
        return self._named(found.kind, found.key)

    def _named(self, kind: str, key: str) -> str:
        known = self._names.get((kind, key))
        if known is None:
            is_taken = key in self._names.values()
            known = f"{key}.{kind.lower()}" if is_taken else key
            self._names[kind, key] = known
        return known

    def _workload_of(self, pod: Pod) -> str:
        """Kept once it is known: a pod may have nobody at first and be adopted, or be heard of before its maker is."""
        known = self._owner.get(pod.metadata.uid)
        if known is not None:
            return known
        owner, namespace = controller_of(pod.metadata), pod.metadata.namespace
        if owner is None:
            return f"pod {pod.key}"
        if owner.kind == "ReplicaSet":
            owned = self.scene.state.get(ReplicaSet, Key(namespace, owner.name))
            if owned is None:
                return f"{namespace}/{owner.name}"
            owner = controller_of(owned.metadata) or owner
        key = f"{namespace}/{owner.name}"
        name = self._named(owner.kind, key) if self.is_told(owner.kind, key) else f"another's {key}"
        self._owner[pod.metadata.uid] = name
        return name

    def _is_ours(self, name: str) -> bool:
        """Workloads have their names from us; a pod without one is told of if the story is about it."""
        return self.is_told("Pod", name[4:]) if name.startswith("pod ") else not name.startswith("another's ")


def _news(old: Pod | None, new: Pod | None) -> list[str]:
    """What a person would tell of this change."""
    if new is None:
        return ["gone"]
    if old is None:
        return ["created"]
    found = []
    if new.is_terminating and not old.is_terminating:
        found.append("stopping")
    if podlike.is_ready(new) != podlike.is_ready(old) and not new.is_terminating:
        found.append("ready" if podlike.is_ready(new) else "not ready")
    refused, before = podlike.condition(new, "PodScheduled"), podlike.condition(old, "PodScheduled")
    if refused is not None and refused.status == "False" and (before is None or before.message != refused.message):
        found.append(f"pending: {refused.message}")
    return found


def _is_cordoned(node: Object) -> bool:
    return isinstance(node, Node) and node.spec.unschedulable


def _is_unready(node: Object) -> bool:
    ready = condition_of(workload_status.document_of(node), "Ready")
    return ready is not None and ready.get("status") != "True"
