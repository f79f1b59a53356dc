"""What became of notices, written down in objects that outlive their nodes: NodeNotices.

Keys are nodes, and PRUNING, which removes the oldest that are finished. One NodeNotice for each record on a Node:

    a record               ─► a NodeNotice, with the pods that have to leave
    a pod goes             ─► its way and when (ways.py)
    the Node is gone       ─► who is still there is lost; Recovering
    the record is gone     ─► who is still there stays; Recovering
    another record         ─► Superseded and Finished; who is still there is in the next one
    Recovering             ─► Finished, once its workloads have all their pods, or after RECOVERY_SECONDS

Meanwhile the seconds are counted for which workloads had too few pods (shortages.py): at most as many as have gone from
this node, and of several notices the one whose pod went last has them. It is written every WRITE_SECONDS at most.
Nothing is decided by it; what is remembered besides may be lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import msgspec

from wukong.actions import DONE, Action, Create, Delete, Outcome, Patch
from wukong.api.core import Node, Pod
from wukong.api.kinds import NODE_NOTICES, NODES, PODS
from wukong.api.meta import Object
from wukong.api.node_notices import MOST_WORKLOADS, NodeNotice, NodeNoticeStatus, NoticedPod, Shortage
from wukong.api.resources import Key, key_of
from wukong.api.times import format_time, parse_time
from wukong.controllers.spot.noticed_pods import NoticedPods
from wukong.controllers.spot.records import LeavingNodes, Record, read_record
from wukong.controllers.spot.shortages import ShortageClock, WorkloadName, count_missing, name_workload
from wukong.controllers.spot.ways import LEFT, LOST, STAYED
from wukong.ports import PatchBody
from wukong.state import Change, State
from wukong.state.controller import Watch

LEAVING, RECOVERING, FINISHED = "Leaving", "Recovering", "Finished"
GONE, WITHDRAWN, SUPERSEDED = "Gone", "Withdrawn", "Superseded"
WRITE_SECONDS = 5.0
RECOVERY_SECONDS = 600.0  # a workload that is short for longer has other troubles
PRUNING = Key("pruning", "")  # no node's: those have no namespace
_MOST_DELETED = 50  # at a time
_STATUS_FIELDS = tuple(field.encode_name for field in msgspec.structs.fields(NodeNoticeStatus))


class OpenNotices:
    """A derived index: notices that are not finished, by node and by workload."""

    kinds: ClassVar[frozenset[str]] = frozenset((NODE_NOTICES.group_kind,))

    def __init__(self) -> None:
        self.by_node: dict[str, dict[str, NodeNotice]] = {}
        self.by_workload: dict[WorkloadName, dict[str, NodeNotice]] = {}

    def note(self, group_kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        if isinstance(old, NodeNotice):
            _drop(self.by_node, old.spec.node, key.name)
            for name in _list_workloads(old):
                _drop(self.by_workload, name, key.name)
        if isinstance(new, NodeNotice) and new.status.phase != FINISHED:
            self.by_node.setdefault(new.spec.node, {})[key.name] = new
            for name in _list_workloads(new):
                self.by_workload.setdefault(name, {})[key.name] = new

    def fork(self) -> OpenNotices:
        copy = OpenNotices()
        copy.by_node = {node: dict(notices) for node, notices in self.by_node.items()}
        copy.by_workload = {name: dict(notices) for name, notices in self.by_workload.items()}
        return copy


def _drop(index: dict[Any, dict[str, NodeNotice]], key: Any, name: str) -> None:
    if key in index and index[key].pop(name, None) is not None and not index[key]:
        del index[key]


def _list_workloads(notice: NodeNotice) -> set[WorkloadName]:
    return {WorkloadName(pod.namespace, pod.workload) for pod in notice.status.pods if pod.workload}


# ---- which nodes a change is about


def node_with_record(change: Change, state: State) -> Iterable[Key]:
    old, new = (node if isinstance(node, Node) else None for node in (change.old, change.new))
    if read_record(old) == read_record(new) and (old is None) == (new is None):
        return ()
    is_known = change.key.name in state.index_of(OpenNotices).by_node
    return (change.key,) if is_known or read_record(new) is not None else ()


def node_of_notice(change: Change, state: State) -> Iterable[Key]:
    notices = [it for it in (change.new, change.old) if isinstance(it, NodeNotice)]
    is_finished = any(notice.status.phase == FINISHED for notice in notices)
    return (*sorted({Key("", notice.spec.node) for notice in notices}), *((PRUNING,) if is_finished else ()))


def nodes_of_pod(change: Change, state: State) -> Iterable[Key]:
    """Its own, and those whose notices are about its workload."""
    leaving, notices = state.index_of(LeavingNodes).records, state.index_of(OpenNotices)
    if not leaving and not notices.by_node:
        return ()
    names = set[str]()
    for pod in (change.old, change.new):
        if isinstance(pod, Pod):
            if pod.spec.node_name in leaving or pod.spec.node_name in notices.by_node:
                names.add(pod.spec.node_name)
            open_notices = notices.by_workload.get(name_workload(pod, state), {})
            names.update(notice.spec.node for notice in open_notices.values())
    return [Key("", name) for name in sorted(names)]


class SpotHistory:
    name = "spot-history"
    watches = (
        Watch(NODE_NOTICES, node_of_notice),
        Watch(NODES, node_with_record),
        Watch(PODS, nodes_of_pod, is_secondary=True),
    )

    def __init__(self, kept: int) -> None:
        """`kept` is how many finished notices stay."""
        self._kept = kept
        self._pods, self._clock = NoticedPods(), ShortageClock()
        self._written: dict[str, float] = {}  # by notice: when

    def copy_memory(self, source: SpotHistory, _: State) -> None:
        self._pods, self._clock = source._pods.copy(), source._clock.copy()
        self._written = dict(source._written)

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        if key == PRUNING:
            return Outcome(tuple(self._prune(state)))
        node = state.get(Node, key)
        record = read_record(node)
        actions, waits = list[Action](), list[float]()
        for _, notice in sorted(state.index_of(OpenNotices).by_node.get(key.name, {}).items()):
            outcome = self._update(notice, node, record, state, now)
            actions += outcome.actions
            waits += [] if outcome.requeue_after is None else [outcome.requeue_after]
        if node is not None and record is not None:
            title = name_notice(node, record)
            if state.get(NodeNotice, Key("", title)) is None:
                self._pods.add_present(title, key.name, state)
                self._pods.note_ways(title, key.name, state, now, unseen=LEFT)
                actions.append(_create(title, node, record))
        return Outcome(tuple(actions), requeue_after=min(waits, default=None))

    def _prune(self, state: State) -> Iterable[Action]:
        finished = [notice for notice in state.all(NodeNotice) if notice.status.phase == FINISHED]
        finished.sort(key=lambda notice: (notice.spec.seen, notice.metadata.name))
        for notice in finished[: max(0, len(finished) - self._kept)][:_MOST_DELETED]:
            yield Delete(NODE_NOTICES, key_of(notice), uid=notice.metadata.uid)

    def _update(
        self, notice: NodeNotice, node: Node | None, record: Record | None, state: State, now: float
    ) -> Outcome:
        status, title = notice.status, notice.metadata.name
        if notice.metadata.deletion_timestamp is not None:
            return DONE
        outcome = status.outcome or _find_outcome(notice, node, record)
        pods = self._list_pods(notice, outcome, state, now)
        shortages, is_short = self._count_shortages(notice, state, now)
        ended = status.ended or (format_time(now) if outcome else "")
        since = parse_time(ended)
        left = 0.0 if since is None else since + RECOVERY_SECONDS - now
        is_over = outcome == SUPERSEDED or (bool(status.outcome) and (not is_short or left <= 0))
        wanted = NodeNoticeStatus(
            phase=(FINISHED if is_over else RECOVERING) if outcome else LEAVING,
            outcome=outcome,
            ended=ended,
            emptied=status.emptied or _find_emptied(pods),
            total=len(pods),
            lost=sum(pod.way == LOST for pod in pods),
            short_seconds=sum(it.seconds for it in shortages),
            pods=pods,
            shortages=shortages,
        )
        if wanted.phase == FINISHED:
            self._pods.forget(title)
            self._clock.forget(title)
            self._written.pop(title, None)
            return Outcome((_patch_status(notice, wanted),))
        if record is not None and not outcome and notice.spec.deadline != _format_again(record.deadline):
            return Outcome((_patch(notice, {"spec": {"deadline": _format_again(record.deadline) or None}}),))
        again = left if outcome and is_short else None
        if wanted == status:
            return Outcome(requeue_after=again)
        wait = self._written.get(title, now - WRITE_SECONDS) + WRITE_SECONDS - now
        if wait > 0 and wanted.phase == status.phase:
            return Outcome(requeue_after=wait)
        self._written[title] = now
        return Outcome((_patch_status(notice, wanted),), requeue_after=again)

    def _list_pods(self, notice: NodeNotice, outcome: str, state: State, now: float) -> list[NoticedPod]:
        title, node, pods = notice.metadata.name, notice.spec.node, self._pods
        pods.adopt(title, notice.status.pods)
        if not outcome:
            pods.add_present(title, node, state)
        pods.note_ways(title, node, state, now, unseen=LOST if outcome == GONE else LEFT)
        if outcome == SUPERSEDED:
            pods.drop_present(title)
        elif outcome:
            pods.close(title, LOST if outcome == GONE else STAYED, now)
        return pods.list(title)

    def _count_shortages(self, notice: NodeNotice, state: State, now: float) -> tuple[list[Shortage], bool]:
        """Of each workload of its pods; and whether one is short now."""
        written = {WorkloadName(it.namespace, it.workload): it.seconds for it in notice.status.shortages}
        shortages, is_short = list[Shortage](), False
        for name in sorted(_list_workloads(notice)):
            missing = self._take_share(notice, name, state)
            seconds = self._clock.advance(notice.metadata.name, name, missing, now, written.get(name, 0))
            is_short = is_short or missing > 0
            if seconds and len(shortages) < MOST_WORKLOADS:
                shortages.append(Shortage(namespace=name.namespace, workload=name.text, seconds=seconds))
        return shortages, is_short

    def _take_share(self, notice: NodeNotice, name: WorkloadName, state: State) -> int:
        """Of the pods that a workload is short of, as many as went from this node; whose pod went last comes first."""
        missing, pods = count_missing(name, state), self._pods
        titles = state.index_of(OpenNotices).by_workload.get(name, {})
        for title in sorted(titles, key=lambda title: (pods.find_last(title, name), title), reverse=True):
            share = min(missing, self._pods.count_gone(title, name))
            if title == notice.metadata.name:
                return share
            missing -= share
        return 0


def name_notice(node: Node, record: Record) -> str:
    """One name for each notice of a node, so that it is written once."""
    return f"{node.metadata.name[:230].rstrip('.-')}.{max(0, int(parse_time(record.seen) or 0))}"


def _find_outcome(notice: NodeNotice, node: Node | None, record: Record | None) -> str:
    if node is None or node.metadata.uid != notice.spec.uid:
        return GONE
    if record is None:
        return WITHDRAWN
    return "" if name_notice(node, record) == notice.metadata.name else SUPERSEDED


def _find_emptied(pods: list[NoticedPod]) -> str:
    """When the last of them had left; "" if one is still there, or was until the end."""
    is_empty = bool(pods) and all(pod.way and pod.way not in (LOST, STAYED) for pod in pods)
    return max(pod.at for pod in pods) if is_empty else ""


def _create(title: str, node: Node, record: Record) -> Create:
    deadline = _format_again(record.deadline)
    spec = {
        "node": node.metadata.name,
        "uid": node.metadata.uid,
        "source": record.source,
        "course": record.course.value,
        "seen": _format_again(record.seen),
        **({"deadline": deadline} if deadline else {}),
    }
    body = {
        "apiVersion": NODE_NOTICES.api_version,
        "kind": NODE_NOTICES.kind,
        "metadata": {"name": title},
        "spec": spec,
    }
    return Create(NODE_NOTICES, body)


def _format_again(text: str) -> str:
    """A time of a record, which anybody may have written, as the API writes times; "" if it is none."""
    moment = parse_time(text)
    return "" if moment is None else format_time(moment)


def _patch_status(notice: NodeNotice, status: NodeNoticeStatus) -> Patch:
    fields = msgspec.to_builtins(status)
    return _patch(notice, {"status": {name: fields.get(name) for name in _STATUS_FIELDS}}, "status")


def _patch(notice: NodeNotice, body: dict[str, Any], subresource: str = "") -> Patch:
    """At the version that was read."""
    body = {"metadata": {"resourceVersion": notice.metadata.resource_version}, **body}
    return Patch(NODE_NOTICES, key_of(notice), PatchBody("merge", body), subresource=subresource)
