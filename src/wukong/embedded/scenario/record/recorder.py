"""Hears every change of a cluster and makes its story: minima and maxima, events, and in the end what is stuck.

Built by recording.py, on an embedded cluster and on a real one: the same numbers mean the same on both. It never
writes; the clock is the cluster's.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import deque
from collections.abc import Callable, Iterable, Iterator

from msgspec.structs import replace

from wukong.api.autoscaling import HorizontalPodAutoscaler
from wukong.api.core import Pod as AnyPod
from wukong.api.kinds import (
    DEPLOYMENTS,
    KINDS,
    PODS,
    REPLICA_SETS,
    VIRTUAL_MACHINE_INSTANCES,
    VIRTUAL_MACHINES,
    group_kind_of,
)
from wukong.api.meta import Object, OwnerReference, controller_of
from wukong.api.node_groups import NodeRequest
from wukong.api.resources import Key, key_of, refers_to
from wukong.embedded.actors import pods as podlike
from wukong.embedded.scenario.play.steps import Drains
from wukong.embedded.scenario.record import workload_status
from wukong.embedded.scenario.record.autoscaler_events import describe_autoscaler_change
from wukong.embedded.scenario.record.colocation import Colocation
from wukong.embedded.scenario.record.failed_attempts import (
    find_drain_error,
    list_creation_failures,
    read_scheduling_message,
)
from wukong.embedded.scenario.record.node_events import describe_node_change
from wukong.embedded.scenario.record.observed_cluster import ObservedCluster
from wukong.embedded.scenario.record.peak_pods import PeakPods
from wukong.embedded.scenario.record.story import Event, NodeCount, ReplicasBefore, WorkloadSummary
from wukong.embedded.store.documents import condition_of
from wukong.embedded.world.objects import Node, Pod, ReplicaSet, VirtualMachine, VirtualMachineInstance
from wukong.engine.copy_on_write import CopyOnWriteEntries
from wukong.engine.layered_dict import LayeredDict
from wukong.state import Change, State

REMEMBERED_PODS = 10_000  # that are gone
_FOREIGN = "another's "  # begins the name of a workload that the story does not cover
Covers = Callable[[str, str], bool]


class Recorder:
    def __init__(
        self, cluster: ObservedCluster, covers: Covers = lambda kind, key: True, *, passing_seconds: float = 0.0
    ) -> None:
        """`covers` says of a workload's kind and key whether the story is about it. `passing_seconds`: peak_pods.py."""
        self.cluster, self.started_at, self.covers = cluster, cluster.clock.now(), covers
        self.last_change = self.started_at
        self.events: list[Event] = []
        self.workloads: CopyOnWriteEntries[str, WorkloadSummary] = CopyOnWriteEntries()  # by name
        self.nodes = NodeCount()
        self._names: LayeredDict[tuple[str, str], str] = LayeredDict()  # group kind and key of a workload → its name
        self._places: LayeredDict[str, tuple[str, str]] = LayeredDict()  # the other way round
        self._incomplete: dict[tuple[str, Key], None] = {}  # group kind and key of workloads that lack something
        self._touched: set[str] = set()  # workloads that something happened to since they were last summed up
        self._unbound_pods: dict[Key, None] = {}
        self._was_available: LayeredDict[str, None] = LayeredDict()  # workloads that were so wholly at some time
        self._levels_before: dict[str, int] = {}  # workloads short from the beginning → how many were available then
        self._unavailable_since: dict[str, float] = {}
        self._peak_pods = PeakPods(passing_seconds)
        self._workload_of_pod: LayeredDict[str, str] = LayeredDict()  # uid of a pod → its workload
        self._disrupted_pods: set[str] = set()
        self._gone_pods: deque[str] = deque()  # uids of pods of which the above is still remembered
        self._colocation = Colocation()
        cluster.listen(self.hear)

    def fork(self, cluster: ObservedCluster) -> Recorder:
        """The same for a copy of the cluster, to which it listens."""
        copy = Recorder(cluster, self.covers, passing_seconds=self._peak_pods.passing_seconds)
        copy.started_at, copy.last_change, copy.events = self.started_at, self.last_change, list(self.events)
        copy.workloads, copy.nodes = self.workloads.fork(), replace(self.nodes)
        copy._names, copy._places, copy._incomplete = self._names.fork(), self._places.fork(), dict(self._incomplete)
        copy._touched, copy._unbound_pods = set(self._touched), dict(self._unbound_pods)
        copy._was_available, copy._unavailable_since = self._was_available.fork(), dict(self._unavailable_since)
        copy._levels_before = dict(self._levels_before)
        copy._peak_pods, copy._colocation = self._peak_pods.fork(), self._colocation.fork()
        copy._workload_of_pod, copy._disrupted_pods = self._workload_of_pod.fork(), set(self._disrupted_pods)
        copy._gone_pods = self._gone_pods.copy()
        return copy

    def is_about(self, pod: AnyPod) -> bool:
        """Whether this pod is of a workload that the story is about."""
        return isinstance(pod, Pod) and self._covers_name(self._find_workload(pod))

    def add_event(self, subject: str, text: str) -> None:
        self.events.append(Event(self.seconds_since_start(), subject, text))

    def add_cause(self, subject: str, text: str, effects: int) -> None:
        """Add an event before the last `effects` ones, which it has brought about."""
        place = len(self.events) - effects
        self.events.insert(place, Event(self.seconds_since_start(), subject, text))

    def seconds_since_start(self) -> float:
        return round(max(0.0, self.cluster.clock.now() - self.started_at), 3)

    # ---- while it goes on

    def hear(self, change: Change) -> None:
        self.last_change = self.cluster.clock.now()
        changed = change.new or change.old
        if isinstance(changed, Pod):
            self._hear_pod(change, changed)
        elif isinstance(changed, Node):
            self._hear_node(change)
        elif isinstance(changed, VirtualMachineInstance):
            self._hear_instance(change, changed)
        elif isinstance(changed, NodeRequest):
            if change.old is None:
                self.add_event(f"node group {changed.group}", f"asks for node {changed.metadata.name}")
        elif isinstance(changed, HorizontalPodAutoscaler):
            for text in describe_autoscaler_change(change.old, change.new):
                self.add_event(f"autoscaler {changed.key}", text)
        elif changed is not None and workload_status.is_workload_kind(change.group_kind):
            self._hear_pod_owner(change, changed)
            if workload_status.is_top_level(changed):
                self._note_completeness(change)
                if self.covers(changed.kind, changed.key):
                    self._hear_workload(change, changed)

    def include_pods(self, pods: Iterable[Pod]) -> None:
        """Count pods that were there before the story began. None of them is an event."""
        for pod in pods:
            name = self._find_workload(pod)
            self._touched.add(name)
            self._count_pod(name, pod, is_gone=False)
            if not pod.spec.node_name:
                self._unbound_pods[key_of(pod)] = None
        for name in self.workloads:
            self._count_pods(name)

    def _note_completeness(self, change: Change) -> None:
        place = (change.group_kind, change.key)
        if change.new is None or workload_status.count_replicas(change.new).is_complete:
            self._incomplete.pop(place, None)
        else:
            self._incomplete[place] = None

    def _hear_workload(self, change: Change, workload: Object) -> None:
        name = self.name_of(workload)
        self._touched.add(name)
        if change.new is None:
            self._end_shortage(name)
            self.workloads.pop(name, None)
            self._peak_pods.forget(name)
            self._was_available.pop(name, None)
            self.add_event(name, f"{workload.kind} deleted")
            return
        if name not in self.workloads:
            self.workloads[name] = WorkloadSummary(kind=workload.kind)
        self._count_pods(name)
        summary = self.workloads.own(name)
        count = workload_status.count_replicas(workload)
        summary.replicas, summary.available = count.wanted, count.available
        summary.up_to_date = count.up_to_date
        if count.available >= count.wanted and count.wanted:
            self._levels_before.pop(name, None)
            if name not in self._was_available:
                self._was_available[name] = None
                summary.min_available = count.available
        if count.available >= min(count.wanted, self._levels_before.get(name, count.wanted)):
            self._end_shortage(name)
        elif name in self._was_available:
            self._unavailable_since.setdefault(name, self.cluster.clock.now())
        if name in self._was_available:
            summary.min_available = min(summary.min_available, count.available)
        self._add_condition_events(name, change.old, workload)
        if isinstance(workload, VirtualMachine):
            self._add_machine_event(name, change.old, workload)

    def _add_condition_events(self, name: str, old: Object | None, new: Object) -> None:
        for kind in ("Progressing", "ReplicaFailure", "Complete", "Failed"):
            now = condition_of(workload_status.document_of(new), kind) or {}
            before = condition_of(workload_status.document_of(old), kind) or {} if old is not None else {}
            has_changed = (now.get("status"), now.get("reason")) != (before.get("status"), before.get("reason"))
            if has_changed and now.get("reason") not in (None, "ReplicaSetUpdated", "NewReplicaSetCreated"):
                self.add_event(name, str(now["reason"]))

    def _add_machine_event(self, name: str, old: Object | None, machine: VirtualMachine) -> None:
        """KubeVirt's word for a virtual machine, whenever that changes."""
        before = old.status.printable_status if isinstance(old, VirtualMachine) else ""
        word = machine.status.printable_status
        if word and word != before:
            self.add_event(name, word)

    def _hear_instance(self, change: Change, instance: VirtualMachineInstance) -> None:
        """The running instance of a virtual machine, whose pods it makes: it may have moved to another node."""
        if not self.covers(VIRTUAL_MACHINES.kind, instance.key):
            return
        name = self._find_name(VIRTUAL_MACHINES.group_kind, instance.key)
        self._peak_pods.hear_owner(name, change)
        self._count_pods(name)
        old = change.old
        if change.new is None or not isinstance(old, VirtualMachineInstance) or not old.status.node_name:
            return
        if old.status.node_name != instance.status.node_name:
            self.add_event(name, f"migrated from {old.status.node_name} to {instance.status.node_name}")
        was_failed = old.status.migration_state is not None and old.status.migration_state.failed
        state = instance.status.migration_state
        if state is not None and state.failed and not was_failed:
            self.add_event(name, f"migration failed: {state.failure_reason}")

    def _end_shortage(self, name: str, end: float | None = None) -> None:
        since = self._unavailable_since.pop(name, None)
        if since is not None and name in self.workloads:
            now = self.cluster.clock.now() if end is None else end
            seconds = self.workloads[name].unavailable_seconds + max(0.0, now - since)
            self.workloads.own(name).unavailable_seconds = round(seconds, 3)

    def _hear_node(self, change: Change) -> None:
        old, new = change.old, change.new
        count = len(self.cluster.state.of(Node))
        self.nodes.max, self.nodes.end = max(self.nodes.max, count), count
        name = f"node {change.key.name}"
        if old is None or new is None:
            self.add_event(name, "added" if old is None else "gone")
            return
        for text in describe_node_change(old, new):
            self.add_event(name, text)

    def _hear_pod(self, change: Change, pod: Pod) -> None:
        old, new = change.old, change.new
        name = self._find_workload(pod)
        self._touched.add(name)
        if self._count_pod(name, pod, is_gone=new is None):
            self._count_pods(name)
        if new is None or pod.spec.node_name:
            self._unbound_pods.pop(change.key, None)
        else:
            self._unbound_pods[change.key] = None
        if new is None:
            self._forget_pod_later(pod.metadata.uid)
        if self._covers_name(name):
            for text in _describe_pod_change(
                old if isinstance(old, Pod) else None, new if isinstance(new, Pod) else None
            ):
                self.add_event(name, text)

    def _count_pod(self, name: str, pod: Pod, *, is_gone: bool) -> bool:
        """Count a pod of the workload of this name. Returns whether it has one more or less now."""
        uid, is_counted_anew = pod.metadata.uid, self._peak_pods.hear_pod(pod, is_gone=is_gone)
        if name in self.workloads:
            summary = self.workloads.own(name)
            on_node, summary.mixed_nodes = self._colocation.hear(name, pod, is_gone=is_gone)
            summary.max_per_node = max(summary.max_per_node, on_node)
            disruption = podlike.condition(pod, "DisruptionTarget")
            if disruption is not None and disruption.status == "True" and uid not in self._disrupted_pods:
                self._disrupted_pods.add(uid)
                summary.restarts += 1
        return is_counted_anew

    def _forget_pod_later(self, uid: str) -> None:
        """Not at once: others may still ask whose pod that was."""
        self._gone_pods.append(uid)
        if len(self._gone_pods) > REMEMBERED_PODS:
            oldest = self._gone_pods.popleft()
            self._workload_of_pod.pop(oldest, None)
            self._disrupted_pods.discard(oldest)

    def _hear_pod_owner(self, change: Change, owner: Object) -> None:
        """A Deployment's ReplicaSet changed, or a workload that makes its pods itself."""
        if isinstance(owner, VirtualMachine):  # its instance makes its pods
            return
        controller = controller_of(owner.metadata)
        group_kind, key = change.group_kind, owner.key
        if controller is not None:
            group_kind, key = _group_kind_of(controller), f"{owner.metadata.namespace}/{controller.name}"
        if change.group_kind != DEPLOYMENTS.group_kind and self.covers(_kind_of(group_kind), key):
            name = self._find_name(group_kind, key)
            self._peak_pods.hear_owner(name, change)
            self._count_pods(name)

    def _count_pods(self, name: str) -> None:
        if name in self.workloads:
            self._peak_pods.count_pods(name, self.cluster.clock.now())
            self._set_peak(name)

    def _set_peak(self, name: str) -> None:
        peak = self._peak_pods.peaks.get(name, 0)
        if self.workloads[name].max_pods != peak:
            self.workloads.own(name).max_pods = peak

    def begin(self) -> None:
        """Count from now on: what is short by now is so for no fault of the story's."""
        self.started_at = self.last_change = self.cluster.clock.now()
        for name in list(self.workloads):
            summary = self.workloads.own(name)
            summary.before = ReplicasBefore(summary.replicas, summary.available)
            if name not in self._was_available:
                self._was_available[name], self._levels_before[name] = None, summary.available
                summary.min_available = summary.available

    def generation_of(self, name: str) -> int:
        """How often what is wanted of this workload was changed; 0 if there is none of this name."""
        workload = self.find_named(name)
        return workload.metadata.generation if workload is not None else 0

    def clear_events(self) -> None:
        """Forget the events and restarts so far: the story begins now."""
        self.events.clear()
        for name in [name for name, summary in self.workloads.items() if summary.restarts]:
            self.workloads.own(name).restarts = 0

    def workload_of(self, uid: str) -> str:
        """The name of the workload that a pod belongs or belonged to; "" if it is unknown or forgotten."""
        return self._workload_of_pod.get(uid, "")

    # ---- in the end

    def finish(self, end: float) -> list[str]:
        """Complete the summaries of a story that ends then, and give what is stuck, by workload.

        What nothing happened to since it was last summed up is as it was.
        """
        for name in list(self._unavailable_since):
            self._end_shortage(name, end)
        self._sum_up_nodes()
        for name in self._peak_pods.update_peaks(self.cluster.clock.now()):
            if name in self.workloads:
                self._set_peak(name)
        return self._list_stuck()

    def _sum_up_nodes(self) -> None:
        """Count the pods on each node, of the workloads that something happened to."""
        state, pods = self.cluster.state, dict[str, Pod]()  # by uid, for one may have two owners
        for name in self._touched:
            if (workload := self.find_named(name)) is not None and workload_status.is_top_level(workload):
                pods.update((pod.metadata.uid, pod) for pod in _list_pods(workload, state))
        counts: dict[str, Tally[str]] = {}
        for pod in pods.values():
            if pod.spec.node_name and podlike.is_active(pod):
                counts.setdefault(self._find_workload(pod), Tally())[pod.spec.node_name] += 1
        for name in self._touched:
            if name in self.workloads:
                self.workloads.own(name).per_node = dict(sorted(counts.get(name, {}).items()))
        self._touched.clear()

    def _list_stuck(self) -> list[str]:
        reasons_by_name: dict[str, list[str]] = {}
        for group_kind, key in sorted(self._incomplete):
            workload = self.cluster.state.objects.get(group_kind, {}).get(key)
            is_there = workload is not None and workload_status.is_top_level(workload)
            if workload is not None and is_there and self.covers(workload.kind, workload.key):
                reasons = reasons_by_name.setdefault(self.name_of(workload), [])
                reasons.extend(
                    workload_status.list_failures(workload) or list_creation_failures(self.cluster, group_kind, key)
                )
        for name, _, message in self.list_waiting_pods():
            reasons = reasons_by_name.setdefault(name, [])
            reasons.extend([f"pending: {message}"] if f"pending: {message}" not in reasons else [])
        for name, pod, error in self.list_refused_drains():
            reasons_by_name.setdefault(name, []).append(f"drain: pod {pod.key}: {error}")
        for name, reasons in reasons_by_name.items():
            if not reasons:
                summary = self.workloads[name]
                counts = f"{summary.available} of {summary.replicas} are available"
                reasons.append(f"{counts}, or not all of the latest version")
        return [f"{name}: {reason}" for name, reasons in sorted(reasons_by_name.items()) for reason in reasons]

    def list_waiting_pods(self) -> Iterator[tuple[str, Pod, str]]:
        """Workload, pod and the scheduler's message, of pods without a node."""
        for pod in self._list_own_pods(self._unbound_pods):
            if podlike.is_active(pod):
                yield self._find_workload(pod), pod, read_scheduling_message(pod)

    def list_refused_drains(self) -> Iterator[tuple[str, Pod, str]]:
        """Node, pod and why it is not evicted."""
        for pod in self._list_own_pods(self.cluster.failing_keys(Drains.name)):
            if (error := find_drain_error(self.cluster, pod)) is not None:
                yield f"node {pod.spec.node_name}", pod, error

    def _list_own_pods(self, keys: Iterable[Key]) -> list[Pod]:
        """The pods with these keys that the story is about."""
        pods = (self.cluster.state.get(Pod, key) for key in sorted(keys))
        return [pod for pod in pods if pod is not None and self.is_about(pod)]

    # ---- names

    def name_of(self, workload: Object) -> str:
        """`ns/name`; with the kind where another workload has that name already, and with its group where that has."""
        return self._find_name(group_kind_of(workload), workload.key)

    def _find_name(self, group_kind: str, key: str) -> str:
        name = self._names.get((group_kind, key))
        if name is None:
            candidates = (key, f"{key}.{_kind_of(group_kind).lower()}")
            free = (candidate for candidate in candidates if candidate not in self._places)
            name = next(free, f"{key}.{group_kind.lower()}")
            self._names[group_kind, key] = name
            self._places[name] = group_kind, key
        return name

    def find_named(self, name: str) -> Object | None:
        """The workload of this name, if it is there."""
        if name not in self._places:
            return None
        group_kind, key = self._places[name]
        namespace, _, object_name = key.rpartition("/")
        return self.cluster.state.objects.get(group_kind, {}).get(Key(namespace, object_name))

    def _find_workload(self, pod: Pod) -> str:
        """Kept once it is known: a pod may have no owner at first and be adopted, or be heard of before its owner."""
        known_name = self._workload_of_pod.get(pod.metadata.uid)
        if known_name is not None:
            return known_name
        owner, namespace = controller_of(pod.metadata), pod.metadata.namespace
        if owner is None:
            return f"pod {pod.key}"
        if refers_to(owner, REPLICA_SETS):
            replica_set = self.cluster.state.get(ReplicaSet, Key(namespace, owner.name))
            if replica_set is None:
                return f"{namespace}/{owner.name}"
            owner = controller_of(replica_set.metadata) or owner
        key, group_kind = f"{namespace}/{owner.name}", _group_kind_of(owner)
        if refers_to(owner, VIRTUAL_MACHINE_INSTANCES):  # named as its virtual machine
            group_kind = VIRTUAL_MACHINES.group_kind
        is_covered = self.covers(_kind_of(group_kind), key)
        name = self._find_name(group_kind, key) if is_covered else f"{_FOREIGN}{key}"
        self._workload_of_pod[pod.metadata.uid] = name
        return name

    def _covers_name(self, name: str) -> bool:
        """Workloads that are covered have their names from us; a pod without owner is asked for by its own."""
        return self.covers("Pod", name[4:]) if name.startswith("pod ") else not name.startswith(_FOREIGN)


def _group_kind_of(owner: OwnerReference) -> str:
    return KINDS.group_kind_named(owner.kind, owner.api_version)


def _kind_of(group_kind: str) -> str:
    return group_kind.partition(".")[0]


def _list_pods(workload: Object, state: State) -> Iterator[Pod]:
    """The pods of a workload, and of the ReplicaSets and instances that it owns."""
    for resource in (REPLICA_SETS, VIRTUAL_MACHINE_INSTANCES, PODS):
        for key in state.owners.owned_by(workload.metadata.uid, resource):
            owned = state.objects.get(resource.group_kind, {}).get(key)
            if isinstance(owned, Pod):
                yield owned
            elif owned is not None:
                yield from _list_pods(owned, state)


def _describe_pod_change(old: Pod | None, new: Pod | None) -> list[str]:
    """What a person would want to know of this change."""
    if new is None:
        return ["gone"]
    if old is None:
        return ["created"]
    texts = []
    if new.is_terminating and not old.is_terminating:
        texts.append("stopping")
    if new.status is old.status:
        return texts
    if podlike.is_ready(new) != podlike.is_ready(old) and not new.is_terminating:
        texts.append("ready" if podlike.is_ready(new) else "not ready")
    scheduled, before = podlike.condition(new, "PodScheduled"), podlike.condition(old, "PodScheduled")
    if (
        scheduled is not None
        and scheduled.status == "False"
        and (before is None or before.message != scheduled.message)
    ):
        texts.append(f"pending: {scheduled.message}")
    return texts
