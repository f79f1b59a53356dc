"""Where pods were and how they fared while a change was played, moment by moment: for the report of a plan.

Records one more play of a seed that a plan shows; the same seed gives the same play. Only pods and nodes that something
happens to are recorded, and the pods of the workloads that the change is about; all others are counted.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Collection
from typing import Literal

import msgspec

from wukong.api.core import Pod as AnyPod
from wukong.api.kinds import NODES, PODS
from wukong.api.resources import Key
from wukong.app.snapshots import Baseline
from wukong.embedded.actors import pods as podlike
from wukong.embedded.scenario.play.player import WorldPlayer
from wukong.embedded.scenario.record import workload_status
from wukong.embedded.scenario.record.story import Event
from wukong.embedded.world.objects import Node, Pod
from wukong.errors import NoProgress
from wukong.forecast.course import Place, list_active_pods, version_of
from wukong.forecast.planned_change import PlannedChange
from wukong.forecast.play import PlayOptions, list_places
from wukong.placement.node_groups.shapes import INSTANCE_TYPE, ZONE
from wukong.state import Change

BEFORE = -1.0  # when something was so before the change
MOST_NODES, MOST_PODS = 300, 3000  # in a history; what is more is counted
PodPhase = Literal["waiting", "starting", "ready", "stopping", "gone"]  # waiting: for a node
NodePhase = Literal["ready", "not ready", "cordoned", "gone"]
Version = Literal["old", "new", "other"]  # other: of a workload that the change is not about


class PodSpan(msgspec.Struct, frozen=True):
    """From then on, until the next one."""

    at: float
    node: str
    phase: PodPhase


class PodHistory(msgspec.Struct, kw_only=True):
    name: str  # namespace/name
    workload: str
    version: Version
    spans: list[PodSpan]

    def span_at(self, end: float) -> PodSpan | None:
        """How it was just before `end`; None if it was not there yet."""
        return next((span for span in reversed(self.spans) if span.at < end), None)


class NodeSpan(msgspec.Struct, frozen=True):
    at: float
    phase: NodePhase


class NodeHistory(msgspec.Struct, kw_only=True):
    name: str
    instance_type: str
    zone: str
    spans: list[NodeSpan]
    other_pods: int = 0  # that nothing happens to

    def phase_at(self, end: float) -> NodePhase:
        """How it was just before `end`."""
        return next((span.phase for span in reversed(self.spans) if span.at < end), "gone")


class PlacementHistory(msgspec.Struct, kw_only=True):
    """By name, whatever was recorded; and how many others there were in the cluster."""

    seed: int
    events: list[Event]
    nodes: list[NodeHistory] = []
    pods: list[PodHistory] = []
    untouched_nodes: int = 0
    untouched_pods: int = 0
    omitted_nodes: int = 0  # touched, but more than a history holds
    omitted_pods: int = 0


def record_placement(
    baseline: Baseline, change: PlannedChange, options: PlayOptions, seed: int, most_nodes: int = MOST_NODES
) -> PlacementHistory:
    """Play the change once more with this seed, and look on."""
    observer = _Observer(list_places(change))
    try:
        events = baseline.play(change.scenario(options.until), seed, observer, _leave_out).events
    except NoProgress:  # the plan says so; what happened until then is to be seen
        events = list(observer.events)
    return observer.sum_up(seed, events, most_nodes)


def _leave_out(_: str) -> None:
    """No line of a trace is kept."""


class _PodRecord:
    """What is known of one pod so far."""

    def __init__(self, pod: Pod, workload: str) -> None:
        self.name, self.workload, self.version = pod.key, workload, version_of(pod)
        self.spans: list[PodSpan] = []

    def add(self, at: float, pod: AnyPod | None) -> None:
        """Whatever happens at one moment is one span; how it was before the change stays."""
        last = self.spans[-1] if self.spans else None
        node = pod.spec.node_name if pod is not None else last.node if last is not None else ""
        span = PodSpan(at, node, _phase_of(pod))
        if last is not None and (last.node, last.phase) == (span.node, span.phase):
            return
        if last is not None and last.at == at:
            self.spans.pop()
        self.spans.append(span)


class _Observer:
    """Looks on while the change is played. One of `record_placement`'s alone."""

    def __init__(self, places: Collection[Place]) -> None:
        self._workload_places = {place for place in places if workload_status.is_workload_kind(place[0])}
        self._pods: dict[str, _PodRecord] = {}  # by uid
        self._nodes: dict[str, list[NodeSpan]] = {}
        self._labels: dict[str, dict[str, str]] = {}
        self._own: set[str] = set()  # names of the workloads that the change is about
        self._latest_versions: dict[str, str] = {}  # of these, that of the pod that was created last

    def begin(self, player: WorldPlayer) -> None:
        self._world, self._recorder = player.world, player.recorder
        self.events = player.recorder.events
        state = player.world.state
        self._nodes_before, self._pods_before = len(state.of(Node)), len(state.of(Pod))
        for group_kind, key in sorted(self._workload_places):
            workload = state.objects.get(group_kind, {}).get(key)
            if workload is not None:
                self._own.add(self._recorder.name_of(workload))
                for pod in list_active_pods(workload, state):
                    self._find_record(pod).add(BEFORE, pod)
        player.world.listen(self._hear)

    def _hear(self, change: Change) -> None:
        if change.group_kind == PODS.group_kind:
            self._hear_pod(change)
        elif change.group_kind == NODES.group_kind:
            self._hear_node(change)
        elif change.new is not None and (change.group_kind, change.key) in self._workload_places:
            self._own.add(self._recorder.name_of(change.new))

    def _hear_pod(self, change: Change) -> None:
        old, new = change.old, change.new
        pod = new if new is not None else old
        assert isinstance(pod, Pod)
        record = self._find_record(pod)
        if isinstance(old, Pod) and not record.spans:
            record.add(BEFORE, old)
        if old is None and record.workload in self._own:
            self._latest_versions[record.workload] = record.version
        record.add(self._recorder.seconds_since_start(), new if isinstance(new, Pod) else None)

    def _find_record(self, pod: Pod) -> _PodRecord:
        uid = pod.metadata.uid
        if uid not in self._pods:
            self._pods[uid] = _PodRecord(pod, self._recorder.workload_of(uid) or f"pod {pod.key}")
        return self._pods[uid]

    def _hear_node(self, change: Change) -> None:
        name, now = change.key.name, self._recorder.seconds_since_start()
        before = _phase_of_node(change.old) if isinstance(change.old, Node) else "gone"
        phase = _phase_of_node(change.new) if isinstance(change.new, Node) else "gone"
        if before == phase:
            return
        node = change.new or change.old
        assert node is not None
        self._labels[name] = node.metadata.labels
        spans = self._nodes.setdefault(name, [NodeSpan(BEFORE, before)])
        if spans[-1].at == now:
            spans.pop()
        spans.append(NodeSpan(now, phase))

    # ---- in the end

    def sum_up(self, seed: int, events: list[Event], most_nodes: int) -> PlacementHistory:
        touched = [record for record in self._pods.values() if any(span.phase != "gone" for span in record.spans)]
        per_node = Tally(node for record in touched for node in {span.node for span in record.spans} if node)
        names = self._nodes.keys() | per_node.keys()
        chosen = set(sorted(names, key=lambda name: (name not in self._nodes, -per_node[name], name))[:most_nodes])
        shown = [record for record in touched if {span.node for span in record.spans} <= chosen | {""}]
        shown.sort(key=lambda record: (record.workload not in self._own, record.workload, record.spans[0].at))
        kept = sorted(shown[:MOST_PODS], key=lambda record: record.name)
        present_before = sum(record.spans[0].at == BEFORE for record in touched)
        nodes_before = sum(1 for name in names if name not in self._nodes or self._nodes[name][0].phase != "gone")
        return PlacementHistory(
            seed=seed,
            events=events,
            nodes=[self._describe_node(name) for name in sorted(chosen)],
            pods=[self._describe_pod(record) for record in kept],
            untouched_nodes=max(0, self._nodes_before - nodes_before),
            untouched_pods=max(0, self._pods_before - present_before),
            omitted_nodes=len(names) - len(chosen),
            omitted_pods=len(touched) - len(kept),
        )

    def _describe_node(self, name: str) -> NodeHistory:
        state = self._world.state
        node = state.get(Node, Key("", name))
        labels = node.metadata.labels if node is not None else self._labels.get(name, {})
        now = _phase_of_node(node) if node is not None else "gone"
        others = [pod for pod in state.pods_on(name) if pod.metadata.uid not in self._pods and not pod.is_finished]
        return NodeHistory(
            name=name,
            instance_type=labels.get(INSTANCE_TYPE, ""),
            zone=labels.get(ZONE, ""),
            spans=self._nodes.get(name, [NodeSpan(BEFORE, now)]),
            other_pods=len(others),
        )

    def _describe_pod(self, record: _PodRecord) -> PodHistory:
        return PodHistory(
            name=record.name, workload=record.workload, version=self._tell_version(record), spans=record.spans
        )

    def _tell_version(self, record: _PodRecord) -> Version:
        """As in course.py: where no pod was created, all are of the new one."""
        if record.workload not in self._own:
            return "other"
        return "new" if record.version == self._latest_versions.get(record.workload, record.version) else "old"


def _phase_of(pod: AnyPod | None) -> PodPhase:
    if pod is None or pod.is_finished:
        return "gone"
    if pod.is_terminating:
        return "stopping"
    if not pod.spec.node_name:
        return "waiting"
    return "ready" if podlike.is_ready(pod) else "starting"


def _phase_of_node(node: Node) -> NodePhase:
    ready = next((condition for condition in node.status.conditions if condition.type == "Ready"), None)
    if ready is not None and ready.status != "True":
        return "not ready"
    return "cordoned" if node.spec.unschedulable else "ready"
