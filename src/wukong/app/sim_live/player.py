"""Plays a scenario on a real cluster: the same file, the same story, in real time. The twin of scenario/playing.py.

    plan (refuse) ─► nodes ─► manifests ─► moments at their time ─► nothing to be expected any more, or `until`
                                                                         └─► everything taken back

Called by `wukong sim run --kubeconfig` and by the test bed's fidelity. Whatever happens, also Ctrl-C, what the run made
is removed again. Kubernetes itself draws ties here: there is no seed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import msgspec

from wukong.actions import Action, Create
from wukong.api.kinds import NODES
from wukong.api.resources import Key, Resource
from wukong.app.sim_live.cleanup import clean
from wukong.app.sim_live.plan import Plan, found, make_plan
from wukong.app.sim_live.stage import Stage, hollow
from wukong.embedded.scenario import Scenario, Story
from wukong.embedded.scenario.format.fields import TimelineEntry, seconds_of
from wukong.embedded.scenario.play import steps
from wukong.embedded.scenario.play.player import by_time
from wukong.embedded.scenario.play.quiescence import is_over
from wukong.embedded.store.documents import condition_of
from wukong.embedded.world.objects import Node
from wukong.errors import InputError
from wukong.ports import Cluster

READY_SECONDS = 60.0
ACCOUNTS = Resource(kind="ServiceAccount", plural="serviceaccounts")
NOT_READY = "node.kubernetes.io/not-ready"
Say = Callable[[str], None]


class Options(msgspec.Struct, frozen=True):
    create_nodes: bool = False
    keep: bool = False  # what the run made


async def play_live(cluster: Cluster, scenario: Scenario, options: Options, say: Say) -> Story:
    """Raises InputError where the scenario cannot be played there; what had been made by then is removed."""
    plan = await make_plan(cluster, scenario, makes_nodes=options.create_nodes)
    say(_announced(plan, options))
    stage = Stage(cluster, plan)
    await stage.open()
    try:
        try:
            return await _Play(stage, plan, scenario).story()
        finally:
            stage.drains.nodes.clear()
            if not options.keep:
                for each in await clean(stage, plan):
                    say(f"not removed: {each}")
    finally:
        await stage.close()


def _announced(plan: Plan, options: Options) -> str:
    made = [f"{kind} {key}" for kind, key in sorted(plan.documents)]
    made += [f"Namespace {name}" for name in sorted(plan.new_namespaces)]
    made += [f"Node {name}" for name in sorted(plan.nodes)] if plan.makes_nodes else []
    end = "stays" if options.keep else "is removed in the end"
    return f"plays in real time on the cluster, and makes there what {end}: {', '.join(made) or 'nothing'}."


class _Play:
    def __init__(self, stage: Stage, plan: Plan, scenario: Scenario) -> None:
        self.stage, self.plan, self.scenario = stage, plan, scenario
        self.recorder = stage.recorder

    async def story(self) -> Story:
        await self._furnish()
        for document in self.scenario.manifests:
            if document["kind"] != "Node":
                await self._do(steps.applied([document], self._namespaces()), document["metadata"]["name"])
        # Only now: on virtual time all of it is there at once, and a busy API server may take seconds.
        self.recorder.begun = begun = self.stage.clock.now()
        self.recorder.nodes.start = len(self.stage.state.objects.get("Node", {}))
        for seconds, moments in by_time(self.scenario.timeline):
            await self._wait_for(begun + seconds)
            for index, moment in moments:
                await self._happen(moment, f"$.timeline[{index}]")
            for _, moment in moments:  # all are cordoned before any is emptied
                if moment.drain is not None:
                    self.stage.drain(moment.drain)
        is_at_rest = await self._rest(begun + (seconds_of(self.scenario.until) or 0))
        stuck, self.stage.is_over = self.recorder.finish(), True
        end = self.stage.last_move if is_at_rest else self.stage.clock.now()
        return Story(
            settled=is_at_rest and not stuck,
            stuck=stuck,
            workloads=dict(sorted(self.recorder.fates.items())),
            nodes=self.recorder.nodes,
            moves=[move for move in self.stage.moves.made if move.workload in self.recorder.fates],
            availability=dict(sorted(self.stage.availability.history.items())),
            writes=len(self.stage.trace),
            virtual_seconds=round(max(0.0, end - begun), 3),
            digest=hashlib.sha256("".join(self.stage.trace).encode()).hexdigest(),
            events=self.recorder.events,
            trace=self.stage.trace,
        )

    # ---- the place

    async def _furnish(self) -> None:
        """Namespaces with the account that pods need, and nodes that are ready."""
        given = {each["metadata"]["name"]: each for each in self.scenario.documents if each["kind"] == "Namespace"}
        for name in sorted(self.plan.new_namespaces):
            bare = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            await self._do(steps.applied([given.get(name, bare)], frozenset()), f"Namespace {name}")
        if self.plan.makes_nodes:
            own = [each for each in self.scenario.manifests if each["kind"] == "Node"]
            made = [*steps.nodes(self.scenario.nodes), *(Create(NODES, each) for each in own)]
            await self._do([hollow(action) for action in made], "$.nodes")
            if not await self.stage.until(self._are_ready, READY_SECONDS):
                raise InputError(
                    f"the nodes were not ready within {READY_SECONDS:.0f} s: no hollow kubelet takes them up. "
                    "--create-nodes is for clusters that have some, such as the test bed or KWOK."
                )
            self._check_silence()
        for name in sorted(self.plan.new_namespaces):
            await self._account(name)

    def _are_ready(self) -> bool:
        found = self.stage.state.all(Node)
        return {each.metadata.name for each in found} >= self.plan.nodes and all(map(_is_usable, found))

    def _check_silence(self) -> None:
        silent = [moment for moment in self.scenario.timeline if moment.not_ready or moment.ready]
        for node in self.stage.state.all(Node) if silent else ():
            info = (node.document.get("status") or {}).get("nodeInfo") or {}
            if not str(info.get("containerRuntimeVersion", "")).startswith("hollow://"):
                raise InputError(
                    "notReady and ready need kubelets that fall silent on demand (annotation testbed.wukong/silent), "
                    f"as those of the test bed do; node {node.metadata.name} has another."
                )

    async def _account(self, namespace: str) -> None:
        """A namespace's default account comes a moment after it; until then pods are refused."""
        deadline = self.stage.clock.now() + READY_SECONDS
        while await found(self.stage.cluster, ACCOUNTS, Key(namespace, "default")) is None:
            if self.stage.clock.now() > deadline:
                raise InputError(f"namespace {namespace} got no default ServiceAccount. Does a controller manager run?")
            await self.stage.news(0.1)

    # ---- what the scenario does

    async def _happen(self, moment: TimelineEntry, place: str) -> None:
        name = moment.drain or moment.uncordon or moment.cordon or ""
        if moment.uncordon is not None:
            self.stage.drains.nodes.discard(name)
        elif name:
            self.stage.cordoned.add(name)
        await self._do(steps.actions(moment, self._namespaces()), f"{place}.{''.join(moment.acts)}")

    async def _do(self, actions: list[Action], place: str) -> None:
        await self.stage.do(actions, place)

    def _namespaces(self) -> frozenset[str]:
        return self.plan.namespaces

    # ---- time

    async def _wait_for(self, moment: float) -> None:
        while (left := moment - self.stage.clock.now()) > 0:
            await self.stage.news(left)

    async def _rest(self, limit: float) -> bool:
        self.stage.last_move = max(self.stage.last_move, self.stage.clock.now())
        while True:
            now = self.stage.clock.now()
            if is_over(self.stage, now - self.stage.last_move):
                return True
            if now >= limit:
                return is_over(self.stage, float("inf"))
            await self.stage.news(min(0.5, limit - now))


def _is_usable(node: Node) -> bool:
    ready = condition_of(node.document, "Ready") or {}
    return ready.get("status") == "True" and not any(taint.key == NOT_READY for taint in node.spec.taints)
