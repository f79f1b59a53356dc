"""Plays a scenario on a real cluster: the same file, the same course (scenario/play/course.py), in real time.

    plan (refuse) ─► prepare ─► … the course … ─► story
                                                    └─► everything taken back

Called by `wukong sim run --kubeconfig` and by the test bed's fidelity. Whatever happens, also Ctrl-C, what the run made
is removed again. Kubernetes itself draws ties here: there is no seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from wukong.actions import Create
from wukong.api.kinds import NODES, SERVICE_ACCOUNTS
from wukong.api.resources import Key
from wukong.app.sim_live.cleanup import clean_up
from wukong.app.sim_live.plan import Plan, describe_name, find_object, make_plan
from wukong.app.sim_live.real_cluster import RealCluster, make_hollow
from wukong.embedded.actors.kubelet.behaviour import SILENT
from wukong.embedded.scenario import Scenario, Story
from wukong.embedded.scenario.play import steps
from wukong.embedded.scenario.play.course import (
    Drain,
    Milestone,
    Perform,
    Request,
    WaitForRest,
    WaitUntil,
    begin_drain,
    course_of,
)
from wukong.embedded.scenario.play.quiescence import is_over
from wukong.embedded.scenario.record.observed_cluster import ObservedCluster
from wukong.embedded.scenario.record.recorder import Recorder
from wukong.embedded.store.documents import condition_of
from wukong.embedded.world.objects import Node
from wukong.errors import InputError
from wukong.ports import Cluster
from wukong.runtime.delivery import object_of
from wukong.runtime.dispatch import Item

READY_SECONDS = 60.0
REST_CHECK_SECONDS = 0.5  # at the longest between two looks at whether the story is over
NOT_READY = "node.kubernetes.io/not-ready"
Say = Callable[[str], None]


class Options(msgspec.Struct, frozen=True):
    create_nodes: bool = False
    keep: bool = False  # what the run made


async def play_live(
    cluster: Cluster,
    scenario: Scenario,
    options: Options,
    say: Say,
    make_player: Callable[[RealCluster, Plan, Scenario], LivePlayer] | None = None,
) -> Story:
    """Raises InputError where the scenario cannot be played there; what had been made by then is removed."""
    plan = await make_plan(cluster, scenario, makes_nodes=options.create_nodes)
    say(_describe(plan, options))
    real = RealCluster(cluster, plan)
    try:
        await real.open()
        try:
            return await (make_player or LivePlayer)(real, plan, scenario).play()
        finally:
            real.drains.nodes.clear()
            if not options.keep:
                for problem in await clean_up(real):
                    say(f"not taken back: {problem}")
    finally:
        await real.close()


def _describe(plan: Plan, options: Options) -> str:
    names = [describe_name(name) for name in sorted(plan.documents)]
    names += [f"Namespace {name}" for name in sorted(plan.new_namespaces)]
    names += [f"Node {name}" for name in sorted(plan.nodes)] if plan.makes_nodes else []
    end = "stays" if options.keep else "is removed in the end"
    return f"plays in real time on the cluster, and makes there what {end}: {', '.join(names) or 'nothing'}."


class LivePlayer:
    """Drives the course of one scenario on a real cluster. A Driver (scenario/play/course.py)."""

    def __init__(self, real: RealCluster, plan: Plan, scenario: Scenario) -> None:
        self.real, self.plan, self.scenario = real, plan, scenario
        self._is_resting = False
        self._drains_to_begin: list[str] = []  # nodes

    async def play(self) -> Story:
        is_at_rest = await self._drive()
        real = self.real
        story = real.recording.tell_story(
            is_at_rest=is_at_rest, last_change=real.last_change, writes=len(real.recording.trace.lines)
        )
        real.is_recorded = False
        return story

    # ---- the driver

    async def _drive(self) -> bool:
        others = [document for document in self.scenario.manifests if document["kind"] != "Node"]
        course = course_of(msgspec.structs.replace(self.scenario, manifests=others), self)
        try:
            while True:
                await self._carry_out(next(course))
        except StopIteration as end:
            return bool(end.value)

    async def _carry_out(self, request: Request) -> None:
        match request:
            case Milestone.PREPARE:
                await self._prepare()
            case Milestone.BEGIN:
                # Only now: on virtual time all of it is there at once, and a busy API server may take seconds.
                self.recorder.started_at = self.real.clock.now()
            case Perform(actions, place):
                await self.real.perform([make_hollow(action) for action in actions], place)
            case Drain(node):
                self._drains_to_begin.append(node)  # all are cordoned before any is emptied
            case WaitUntil(seconds):
                self._begin_drains()
                await self.wait_until(self.recorder.started_at + seconds)
            case WaitForRest(limit):
                self._begin_drains()
                await self._wait_for_rest(limit)

    def _begin_drains(self) -> None:
        for node in self._drains_to_begin:
            begin_drain(node, self)
        self._drains_to_begin.clear()

    async def wait_until(self, time: float) -> None:
        """Until what the timeline has for this time may happen."""
        while (left := time - self.real.clock.now()) > 0:
            await self.real.wait_for_change(left)

    async def _wait_for_rest(self, limit: float) -> None:
        now = self.real.clock.now()
        if not self._is_resting:  # what the last entry did counts as a change
            self.real.last_change = max(self.real.last_change, now)
            self._is_resting = True
        if now < limit:
            await self.real.wait_for_change(min(REST_CHECK_SECONDS, limit - now))

    # ---- what the course reads

    @property
    def cluster(self) -> ObservedCluster:
        return self.real

    @property
    def recorder(self) -> Recorder:
        return self.real.recorder

    @property
    def drains(self) -> steps.Drains:
        return self.real.drains

    def namespaces(self) -> frozenset[str]:
        return self.plan.namespaces

    def is_at_rest(self) -> bool:
        return is_over(self.real, self.real.clock.now() - self.real.last_change)

    def enqueue(self, items: Iterable[Item]) -> None:
        self.real.loop.enqueue(items)

    # ---- preparation

    async def _prepare(self) -> None:
        """Create namespaces with the account that pods need, and nodes, and wait until the nodes are ready."""
        documents = {
            document["metadata"]["name"]: document
            for document in self.scenario.documents
            if document["kind"] == "Namespace"
        }
        for name in sorted(self.plan.new_namespaces):
            namespace = documents.get(name, steps.bare_namespace(name))
            await self.real.perform(steps.apply_documents([namespace], frozenset()), f"Namespace {name}")
        if self.plan.makes_nodes:
            await self._create_nodes()
        for name in sorted(self.plan.new_namespaces):
            await self._wait_for_account(name)

    async def _create_nodes(self) -> None:
        documents = [document for document in self.scenario.manifests if document["kind"] == "Node"]
        actions = [*steps.create_nodes(self.scenario.nodes), *(Create(NODES, document) for document in documents)]
        await self.real.perform([make_hollow(action) for action in actions], "$.nodes")
        names = {object_of(action)[1].name for action in actions}  # not those that come later
        if not await self.real.wait_until(lambda: self._are_nodes_usable(names), READY_SECONDS):
            raise InputError(
                f"the nodes were not ready within {READY_SECONDS:.0f} s: no hollow kubelet takes them up. "
                "--create-nodes is for clusters that have some, such as the test bed or KWOK."
            )
        self._check_silence()

    def _are_nodes_usable(self, names: set[str]) -> bool:
        nodes = self.real.state.all(Node)
        return {node.metadata.name for node in nodes} >= names and all(map(_is_usable, nodes))

    def _check_silence(self) -> None:
        is_needed = any(entry.not_ready or entry.ready for entry in self.scenario.timeline)
        for node in self.real.state.all(Node) if is_needed else ():
            info = (node.document.get("status") or {}).get("nodeInfo") or {}
            if not str(info.get("containerRuntimeVersion", "")).startswith("hollow://"):
                raise InputError(
                    f"notReady and ready need kubelets that fall silent on demand (annotation {SILENT}), "
                    f"as those of the test bed do; node {node.metadata.name} has another."
                )

    async def _wait_for_account(self, namespace: str) -> None:
        """A namespace's default account comes a moment after it; until then pods are refused."""
        deadline = self.real.clock.now() + READY_SECONDS
        while await find_object(self.real.cluster, SERVICE_ACCOUNTS, Key(namespace, "default")) is None:
            if self.real.clock.now() > deadline:
                raise InputError(f"namespace {namespace} got no default ServiceAccount. Does a controller manager run?")
            await self.real.wait_for_change(0.1)


def _is_usable(node: Node) -> bool:
    ready = condition_of(node.document, "Ready") or {}
    return ready.get("status") == "True" and not any(taint.key == NOT_READY for taint in node.spec.taints)
