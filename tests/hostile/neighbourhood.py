"""One process of Wukong with good objects in its mirror, fed by the text of an API server: what hostile objects meet.

    text of a watch line or list ─► Kube ─► MirrorFeed ─► State ─► Dispatch ─► policy, load, our scheduler and extender

Everything between the HTTP body and the actions is the real thing; only the connection is replaced. It measures the
processor time of each step, judges what is asked to be written, and counts what is kept.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Iterable, Mapping
from typing import Any

import msgspec
import numpy as np

from builders import a_pod, a_usage
from policies import a_policy, a_rule, a_wukong, needs, spot, steady
from wukong.actions import Action, Bind, Create, Delete, Evict, Note, Patch
from wukong.api.core import Namespace, Pod
from wukong.api.kind_table import Kind
from wukong.api.kinds import (
    CLUSTER_PLACEMENT_POLICIES,
    KINDS,
    NODE_USAGES,
    NODES,
    PLACEMENT_POLICIES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    PRIORITY_CLASSES,
    group_kind_of,
)
from wukong.api.meta import Object, ObjectMeta
from wukong.api.resources import Resource, key_of
from wukong.api.vm import NAME_LABEL
from wukong.app.assemble import assemble
from wukong.app.component import Context
from wukong.app.components.extender import EXTENDER
from wukong.app.components.extender.component import build_extender
from wukong.app.components.extender.options import ExtenderOptions
from wukong.app.components.kube_scheduler import KUBE_SCHEDULER
from wukong.app.components.load import LOAD
from wukong.app.components.policy import POLICY
from wukong.app.components.wukongs import WUKONG_SETTINGS, WukongOptions
from wukong.cluster.credentials import Credentials
from wukong.cluster.kube import Kube
from wukong.cluster.kubeconfig import ClusterEntry, Login, UserEntry
from wukong.controllers.load.floor_demand import FloorDemand
from wukong.errors import Conflict
from wukong.placement.rules import BUILT_IN
from wukong.ports import Event, Listing, Page
from wukong.rules.labels import is_label_key, is_label_value
from wukong.runtime import Metrics
from wukong.runtime.dispatch import Dispatch
from wukong.runtime.mirror_feed import MirrorFeed, list_unreadable
from wukong.runtime.work_cycle import WorkCycle
from wukong.state import State
from wukong.state.controller import Watch

START = 1_767_225_600.0
KIND_LIST = [kind for kind in KINDS if kind.struct is not Object]
STRUCTS = {kind.group_kind: kind for kind in KIND_LIST}
GOOD_NODES = [*(spot(f"good-s{number}") for number in range(3)), *(steady(f"good-d{number}") for number in range(3))]
GOOD_NAMES = [node.metadata.name for node in GOOD_NODES]
PROBES = [
    a_pod("probe-spot", namespace="shop", app="web", cpu="1"),
    a_pod("probe-floor", namespace="shop", app="db", memory="1Gi"),
    a_pod("probe-score", namespace="shop", app="api"),
    a_pod("probe-machine", namespace="shop", app="api", labels={NAME_LABEL: "machine"}),
]


class CannedHttp:
    """Stands for cluster.http.Http: what the next request is answered with is set beforehand."""

    def __init__(self) -> None:
        self.answer: bytes | Exception = b""
        self.lines: Iterable[bytes] = ()

    async def send(self, method: str, path: str, body: object = None, **_: Any) -> bytes:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def read_lines(self, path: str, params: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        for line in self.lines:
            yield line


def a_canned_kube() -> tuple[Kube, CannedHttp]:
    kube = Kube(Credentials(Login(place="test", cluster=ClusterEntry(server="http://127.0.0.1:1"), user=UserEntry())))
    http = CannedHttp()
    kube._http = http  # type: ignore[assignment]
    return kube, http


class Clock:
    def __init__(self) -> None:
        self.time = START

    def now(self) -> float:
        return self.time


class Neighbourhood:
    def __init__(self) -> None:
        self.clock, self.state, self.metrics = Clock(), State(), Metrics()
        self.kube, self.http = a_canned_kube()
        options = {WUKONG_SETTINGS.name: WukongOptions(resource_affinity="scheduler")}
        context = Context(self.state, self.metrics, self.clock, BUILT_IN, options)
        assembly = assemble([KUBE_SCHEDULER, EXTENDER, LOAD, POLICY], context)
        self.extender = build_extender(ExtenderOptions(), assembly.context)
        self.dispatch = Dispatch(assembly.controllers, self.state)
        self.cycle = WorkCycle(self.dispatch)
        watches = {kind.resource: Watch(kind.resource) for kind in KIND_LIST}
        self.watches = watches
        self.feed = MirrorFeed(watches, self.state, self.clock, self.metrics, 60.0)
        self.slowest, self.slowest_step = 0.0, ""
        self.actions = 0
        self.good_keys = {(group_kind_of(subject), key_of(subject)) for subject in list_good_objects()}
        for subject in list_good_objects():
            self.dispatch.observe(self.state.apply("ADDED", subject), self.clock.now())
        self.work()
        self.expected = self.ask_for_neighbours()

    # ---- what the API server sends

    async def take_event(self, kind: Kind, event_type: str, text: bytes) -> list[Object]:
        """A line of a watch; gives the objects of it that could be read. Raises ClusterError where it is no event."""
        self.http.lines = (b'{"type":"' + event_type.encode() + b'","object":' + text + b"}",)
        subjects = []
        started = time.thread_time()
        async for event in self.kube.watch(kind.resource, kind.struct, resource_version="1"):
            self._take_in(kind, event)
            subjects.append(event.object)
        self._measure(started, f"{event_type} {kind.group_kind}")
        return subjects

    async def take_list(self, kind: Kind, texts: Iterable[bytes]) -> Page[Any]:
        """A list of the tenant's objects, after the good ones, which stay as they are."""
        good = [msgspec.json.encode(subject) for subject in self._list_good(kind)]
        metadata = b'{"metadata":{"resourceVersion":"7"},"items":['
        self.http.answer = metadata + b",".join([*good, *texts]) + b"]}"
        page = await self.kube.list(kind.resource, kind.struct)
        self._take_in(kind, Listing(page.items, page.resource_version, page.unreadable))
        return page

    def _take_in(self, kind: Kind, update: Any) -> None:
        now = self.clock.now()
        self.dispatch.observe(self.feed.take_in(self.watches[kind.resource], update), now)
        keys = map(key_of, list_unreadable(update)) if isinstance(update, Event | Listing) else ()
        self.dispatch.observe_unreadable(kind.group_kind, keys, now)

    def _list_good(self, kind: Kind) -> list[Object]:
        mirrored = self.state.objects.get(kind.group_kind, {})
        return [subject for key, subject in mirrored.items() if (kind.group_kind, key) in self.good_keys]

    # ---- what we make of it

    def work(self) -> None:
        """Decide all that is due. What is asked to be written is judged; every second write fails."""
        now = self.clock.now()
        self.dispatch.expire(now)
        for item in self.dispatch.queue.take_due(now):
            started = time.thread_time()
            work = self.cycle.take(item, now)
            self._measure(started, str(item))
            if work.only_looks:
                work.advance(None)
                self.cycle.finish(work, now)
                continue
            is_refused = False
            while (action := work.next_action) is not None and not is_refused:
                self.actions += 1
                judge_write(action)
                is_refused = self.actions % 2 == 0 or isinstance(action, Bind)  # so nobody takes the neighbours' room
                if is_refused:
                    self.cycle.fail(work, Conflict("changed"), now, 0.0)
                else:
                    work.advance(None)
            if not is_refused:
                self.cycle.finish(work, now)

    def ask(self, pod: Pod) -> None:
        """The three questions of kube-scheduler about a pod, on all nodes."""
        started, now = time.thread_time(), self.clock.now()
        fleet = self.extender.fleet(now)
        rows = np.arange(fleet.size, dtype=np.intp)
        result = self.extender.filter(pod, fleet, rows, now)
        covered = result.kept.astype(np.int64) + sum(refusal.mask.astype(np.int64) for refusal in result.refusals)
        assert (covered == 1).all(), "each node is kept or refused once"
        assert all(len(note.text) <= 1024 for note in result.notes)
        scores = self.extender.prioritize(pod, fleet, rows, now)
        assert ((scores >= 0) & (scores <= 10)).all() or ((scores >= 0) & (scores <= 100)).all()
        self.extender.preempt(pod, {name: [pod, "no-such-uid"] for name in fleet.names}, now)
        self._measure(started, f"question about {pod.key!r:.80}")

    def ask_for_neighbours(self) -> list[Any]:
        """What holds for the neighbours' pods on their nodes, and how much is free there."""
        now = self.clock.now()
        fleet = self.extender.fleet(now)
        rows = np.array([fleet.row_of[name] for name in GOOD_NAMES], dtype=np.intp)
        answers: list[Any] = []
        for pod in PROBES:
            result = self.extender.filter(pod, fleet, rows, now)
            answers.append((result.plan, result.kept.tolist(), [refusal.reason for refusal in result.refusals]))
            answers.append(self.extender.prioritize(pod, fleet, rows, now).tolist())
        snapshot = self.state.snapshot
        numbers = [snapshot.row_of[name] for name in GOOD_NAMES]
        answers.append([snapshot.load[:6, number].tolist() for number in numbers])
        answers.append([snapshot.room[:6, number].tolist() for number in numbers])
        return answers

    def check_neighbours(self) -> None:
        answers = self.ask_for_neighbours()
        assert answers == self.expected, f"the neighbours' pods are decided differently: {answers}"

    def _measure(self, started: float, step: str) -> None:
        seconds = time.thread_time() - started
        if seconds > self.slowest:
            self.slowest, self.slowest_step = seconds, step

    # ---- what is kept

    def count_entries(self) -> dict[str, int]:
        state, snapshot = self.state, self.state.snapshot
        policies, queue, pending = self.extender.policies, self.dispatch.queue, self.dispatch._pending_writes
        return {
            **{f"objects {kind}": len(mirrored) for kind, mirrored in state.objects.items() if mirrored},
            **{f"unreadable {kind}": len(subjects) for kind, subjects in state.unreadable.items() if subjects},
            "pods": len(state.pods.by_node) + len(state.pods.by_class) + len(state.pods.classes),
            "owners": len(state.owners.by_owner),
            "placed": len(snapshot.pods) + len(snapshot.pending) + len(snapshot.stray),
            "rows": len(snapshot.rows),
            "ports": sum(len(ports) for ports in snapshot.ports.values()),
            "assumed": sum(1 for _ in state.placements),
            "attempts": len(state.attempts),
            "plans": len(policies._policies._by_key) + len(policies._policies._candidates),
            "namespaces": len(policies._policies._namespaces),
            "wukongs": len(policies.wukongs._plans) + len(policies.wukongs._combined),
            "floors": len(state.index_of(FloorDemand)._counts) + len(state.index_of(FloorDemand).amounts),
            "answers": self.extender.judge.count_kept(),
            "queue": queue.in_flight + len(queue._failures) + len(self.cycle._doubts),
            "pending": len(pending._missing) + len(pending._by_object) + len(pending._overdue),
        }


def list_good_objects() -> list[Object]:
    uid = {node.metadata.name: f"uid-{node.metadata.name}" for node in GOOD_NODES}
    for node in GOOD_NODES:
        node.metadata.uid, node.metadata.resource_version = uid[node.metadata.name], "1"
    pods = [a_pod(f"good-{number}", namespace="shop", node=name) for number, name in enumerate(GOOD_NAMES)]
    policies = [
        a_policy("web", namespace="shop", selects={"app": "web"}, strategy="spot-first"),
        a_policy(
            "db",
            namespace="shop",
            selects={"app": "db"},
            floors=[needs("memory", "4Gi")],
            rules=[a_rule("label-match", "filter", matchLabels={"kubernetes.io/hostname": "good-d1"})],
        ),
    ]
    policies.append(
        a_policy(
            "api",
            namespace="shop",
            selects={"app": "api"},
            strategy="spot-preferred",
            preferred_cpu={"weight": 50, "threshold": "35%"},
            rules=[a_rule("label-match", "score", 50, matchLabels={"kubernetes.io/hostname": "good-s2"})],
        )
    )
    machine = a_wukong(
        "machine",
        namespace="shop",
        floors=[needs("memory", "2Gi"), needs("cpu", 1)],
        preferred_cpu={"weight": 50, "threshold": "25%"},
        rules=[a_rule("label-match", "filter", matchLabels={"kubernetes.io/hostname": "good-s1"})],
    )
    namespaces = [Namespace(metadata=ObjectMeta(name=name, uid=name)) for name in ("shop", "evil", "evil-2")]
    usages = [a_usage(name, None, cpu=10.0 * number) for number, name in enumerate(GOOD_NAMES)]
    objects = [*GOOD_NODES, *namespaces, *pods, *policies, machine, *usages]
    for subject in objects:
        subject.metadata.resource_version = "1"
        subject.metadata.uid = subject.metadata.uid or f"uid-{subject.metadata.name}"
    return objects


def judge_write(action: Action) -> None:
    """Raises AssertionError for a write that is not ours to make: at all, or about the neighbours' objects."""
    msgspec.json.encode(action)  # or nobody could send it
    match action:
        case Patch(resource=resource, patch=patch, subresource=subresource):
            if resource in (PLACEMENT_POLICIES, CLUSTER_PLACEMENT_POLICIES):
                assert subresource == "status"
                assert set(patch.body) == {"metadata", "status"}
                assert patch.body["status"].keys() <= {"observedGeneration", "conditions", "split"}
                if "conditions" in patch.body["status"]:
                    (own,) = [entry for entry in patch.body["status"]["conditions"] if entry["type"] == "Accepted"]
                    assert len(own.get("message", "")) <= 32_768
            elif resource in (POD_DISRUPTION_BUDGETS, PRIORITY_CLASSES):
                judge_name(resource, action.key.name)
            elif resource == NODES:
                assert set(patch.body) == {"metadata"}
                labels = patch.body["metadata"]["labels"]
                assert all(name.startswith(("usage.novasphere.dev/", "free.novasphere.dev/")) for name in labels)
                assert all(is_label_key(name) for name in labels)
                assert all(value is None or is_label_value(value) for value in labels.values())
            else:
                assert resource.kind == "Pod"  # our scheduler's: conditions and nominations
                assert subresource == "status"
                assert not action.key.name.startswith(("good-", "probe-"))
        case Create(resource=resource, body=body):
            judge_name(resource, body["metadata"]["name"])
            assert len(msgspec.json.encode(body)) < 128 << 10
        case Delete(resource=resource, key=key) if resource != PODS:
            judge_name(resource, key.name)
        case Evict(key=key):
            assert not key.name.startswith(("good-", "probe-")), "no neighbour is moved"
        case Note(text=text):
            assert len(text) <= 1024
        case Bind(key=key):
            assert not key.name.startswith("good-"), "bound already"
        case Delete(key=key):
            assert not key.name.startswith("good-"), "no neighbour is preempted"
        case _:
            raise AssertionError(f"nobody should ask for {action}")


def judge_name(resource: Resource, name: str) -> None:
    """Budgets and PriorityClasses of ours have names of their own: somebody else's is never touched."""
    prefixes = {POD_DISRUPTION_BUDGETS: ("wukong-", "wukong."), PRIORITY_CLASSES: ("placement-", "wukong-")}
    assert name.startswith(prefixes[resource]), name


def fingerprint(state: State) -> dict[str, Any]:
    """What a mirror says, for comparing it with one that was built of the same objects at once."""
    snapshot = state.snapshot
    names = [row.name for row in snapshot.rows]
    # Nobody asks what is held of a resource that no node offers, and whether it has a line depends on the past.
    lines = sorted((name, line) for name, line in snapshot.lines.items() if snapshot.room[line].any())
    return {
        "pods": {key: names[placed.row] for key, placed in sorted(snapshot.pods.items())},
        "pending": sorted(snapshot.pending),
        "stray": {key: node for key, (_, node) in sorted(snapshot.stray.items())},
        "load": {
            name: {line: int(snapshot.load[at, row]) for line, at in lines if snapshot.load[at, row]}
            for row, name in sorted(enumerate(names), key=lambda entry: entry[1])
        },
        "room": {
            name: {line: int(snapshot.room[at, row]) for line, at in lines if snapshot.room[at, row]}
            for row, name in sorted(enumerate(names), key=lambda entry: entry[1])
        },
        "by node": {node: sorted(keys) for node, keys in sorted(state.pods.by_node.items())},
        "owners": {owner: sorted(keys) for owner, keys in sorted(state.owners.by_owner.items())},
    }


def rebuild(state: State) -> State:
    """A mirror built of the same objects, kind by kind, nodes first."""
    fresh = State()
    fresh.replace("Node", state.objects.get("Node", {}).values())
    for group_kind, mirrored in state.objects.items():
        fresh.replace(group_kind, mirrored.values())
    return fresh


def is_usage(kind: Kind) -> bool:
    """Usage comes from a meter, not from an API server."""
    return kind.resource == NODE_USAGES
