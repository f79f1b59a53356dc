"""Listens to a world and makes its story: minima and maxima over every change, events, and in the end what is stuck.

Attached by playing.py. It reads the mirror's changes and never writes; the clock is the world's.
"""

from __future__ import annotations

from wukong.api.meta import Object, controller_of
from wukong.api.resources import Key
from wukong.embedded.actors import pods as podlike
from wukong.embedded.objects import Node, Pod, ReplicaSet
from wukong.embedded.scenario import workloads
from wukong.embedded.scenario.acts import Drains
from wukong.embedded.scenario.sharing import Sharing
from wukong.embedded.scenario.story import Event, Fate, NodeCount
from wukong.embedded.store.documents import condition_of
from wukong.embedded.world import World
from wukong.runtime.dispatch import Item
from wukong.state import Change


class Recorder:
    def __init__(self, world: World) -> None:
        self.world, self.begun = world, world.clock.now()
        self.last_change = self.begun
        self.events: list[Event] = []
        self.fates: dict[str, Fate] = {}
        self.nodes = NodeCount()
        self._names: dict[tuple[str, str], str] = {}  # kind and key of a workload → what it is called
        self._was_whole: set[str] = set()
        self._short_since: dict[str, float] = {}
        self._pods: dict[str, set[str]] = {}  # workload → uids of its pods
        self._owner: dict[str, str] = {}  # uid of a pod → its workload
        self._disrupted: set[str] = set()
        self._sharing = Sharing()
        world.listen(self._heard)

    def tell(self, subject: str, text: str) -> None:
        self.events.append(Event(round(self.world.clock.now() - self.begun, 3), subject, text))

    # ---- while it goes on

    def _heard(self, change: Change) -> None:
        self.last_change = self.world.clock.now()
        found = change.new or change.old
        if isinstance(found, Pod):
            self._pod(change, found)
        elif isinstance(found, Node):
            self._node(change)
        elif found is not None and workloads.is_top(found):
            self._workload(change, found)

    def _workload(self, change: Change, found: Object) -> None:
        name = self.name_of(found)
        if change.new is None:
            self._stop_short(name)
            self.fates.pop(name, None)
            self._was_whole.discard(name)
            self.tell(name, f"{found.kind} deleted")
            return
        fate = self.fates.setdefault(name, Fate(kind=found.kind))
        count = workloads.counted(found)
        fate.replicas, fate.available = count.wanted, count.available
        if count.available >= count.wanted and count.wanted:
            if name not in self._was_whole:
                self._was_whole.add(name)
                fate.min_available = count.available
            self._stop_short(name)
        elif name in self._was_whole and count.wanted:
            self._short_since.setdefault(name, self.world.clock.now())
        if name in self._was_whole:
            fate.min_available = min(fate.min_available, count.available)
        self._tell_conditions(name, change.old, found)

    def _tell_conditions(self, name: str, old: Object | None, new: Object) -> None:
        for kind in ("Progressing", "ReplicaFailure", "Complete", "Failed"):
            now = condition_of(workloads.document_of(new), kind) or {}
            before = condition_of(workloads.document_of(old), kind) or {} if old is not None else {}
            is_news = (now.get("status"), now.get("reason")) != (before.get("status"), before.get("reason"))
            if is_news and now.get("reason") not in (None, "ReplicaSetUpdated", "NewReplicaSetCreated"):
                self.tell(name, str(now["reason"]))

    def _stop_short(self, name: str) -> None:
        since = self._short_since.pop(name, None)
        if since is not None and name in self.fates:
            spent = self.fates[name].unavailable_seconds + self.world.clock.now() - since
            self.fates[name].unavailable_seconds = round(spent, 3)

    def _node(self, change: Change) -> None:
        old, new = change.old, change.new
        count = len(self.world.state.objects.get("Node", {}))
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
        name = self._owner.get(uid, "pod ")
        if name.startswith("pod ") and new is not None:  # new, or nobody has adopted it so far
            self._pods.get(name, set()).discard(uid)
            name = self._owner[uid] = self._workload_of(pod)
        held = self._pods.setdefault(name, set())
        if new is None or pod.is_finished:
            held.discard(uid)
        else:
            held.add(uid)
        fate = self.fates.get(name)
        if fate is not None:
            fate.max_pods = max(fate.max_pods, len(held))
            crowd, fate.mixed_nodes = self._sharing.hear(name, pod, is_gone=new is None)
            fate.max_per_node = max(fate.max_per_node, crowd)
            target = podlike.condition(pod, "DisruptionTarget")
            if target is not None and target.status == "True" and uid not in self._disrupted:
                self._disrupted.add(uid)
                fate.restarts += 1
        for text in _news(old if isinstance(old, Pod) else None, new if isinstance(new, Pod) else None):
            self.tell(name, text)

    def workload_of(self, uid: str) -> str:
        """What the workload is called that a pod belonged to, as long as anybody remembers the pod."""
        return self._owner.get(uid, "")

    # ---- in the end

    def finish(self) -> list[str]:
        """Complete the fates; gives what is stuck, by workload."""
        for name in list(self._short_since):
            self._stop_short(name)
        for pod in self.world.state.all(Pod):
            fate = self.fates.get(self._owner.get(pod.metadata.uid, ""))
            if fate is not None and pod.spec.node_name and podlike.is_active(pod):
                fate.per_node[pod.spec.node_name] = fate.per_node.get(pod.spec.node_name, 0) + 1
        for fate in self.fates.values():
            fate.per_node = dict(sorted(fate.per_node.items()))
        return self._stuck()

    def _stuck(self) -> list[str]:
        found: dict[str, list[str]] = {}
        for kind in workloads.KINDS:
            for each in self.world.state.objects.get(kind, {}).values():
                if workloads.is_top(each) and not workloads.counted(each).is_complete:
                    found.setdefault(self.name_of(each), []).extend(workloads.troubles(each))
        for pod in self.world.state.all(Pod):
            scheduled = podlike.condition(pod, "PodScheduled")
            if not pod.spec.node_name and podlike.is_active(pod):
                told = scheduled.message if scheduled is not None and scheduled.message else "not scheduled"
                reasons = found.setdefault(self._owner[pod.metadata.uid], [])
                reasons.extend([f"pending: {told}"] if f"pending: {told}" not in reasons else [])
            attempt = self.world.attempt(Item(Drains.name, podlike.key_of(pod)))
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
        known = self._names.get((found.kind, found.key))
        if known is None:
            is_taken = found.key in self._names.values()
            known = f"{found.key}.{found.kind.lower()}" if is_taken else found.key
            self._names[found.kind, found.key] = known
        return known

    def _workload_of(self, pod: Pod) -> str:
        state, owner = self.world.state, controller_of(pod.metadata)
        if owner is not None and owner.kind == "ReplicaSet":
            owned = state.get(ReplicaSet, Key(pod.metadata.namespace, owner.name))
            owner = (controller_of(owned.metadata) if owned is not None else None) or owner
        if owner is None:
            return f"pod {pod.key}"
        found = state.objects.get(owner.kind, {}).get(Key(pod.metadata.namespace, owner.name))
        return self.name_of(found) if found is not None else f"{pod.metadata.namespace}/{owner.name}"


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
    ready = condition_of(workloads.document_of(node), "Ready")
    return ready is not None and ready.get("status") != "True"
