"""How long the extender holds the event loop at most: policies as large as they may be, questions of every sort.

`python -m bench --holds` runs it: the server of `wukong run` in one thread, its client in another. A hold is the
processor time of the loop's thread between two turns of a task that does nothing else; 50 ms are the limit. The
mirror's snapshot, which floors read, is there before: to build it of a list of all nodes is not part of an answer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

import msgspec

from bench.extender import client, requests
from wukong.api.decode import decode_objects
from wukong.api.kinds import NODE_USAGES, PLACEMENT_POLICIES
from wukong.api.meta import ObjectMeta
from wukong.api.placement import PlacementPolicy
from wukong.api.usage import NodeUsage
from wukong.app.components.extender.server import CountingExtender
from wukong.placement.limits import MOST_BYTES, MOST_EXPRESSIONS, MOST_FLOORS, MOST_RULES
from wukong.replies.extender.usage import UsageSettings
from wukong.replies.extender.verbs import Extender, Settings
from wukong.runtime.metrics import ExtenderMetrics, Metrics
from wukong.runtime.short_collections import keep_collections_short
from wukong.serve.extender.server import build_extender_app
from wukong.serve.site import serve
from wukong.state import State

Json = dict[str, Any]
SIZES = (1_000, 5_000)
LIMIT_MS = 50.0
POLICIES = 10_000
_KEYS = ("kubernetes.io/hostname", "topology.kubernetes.io/zone", "disk", "node.kubernetes.io/instance-type")


class Hold(NamedTuple):
    title: str
    longest_ms: float  # of the loop, at a time
    total_ms: float  # until the answer was there


class WallClock:
    is_synced = True

    def now(self) -> float:
        return time.time()


def main(say: Callable[[str], None]) -> None:
    print(
        f"longest hold of the event loop in ms of processor time (limit {LIMIT_MS:.0f}), and ms until the answer came"
    )
    print(f"{'':52}" + "".join(f"{size:>16,}" for size in SIZES) + "   nodes")
    columns = [measure(size, say) for size in SIZES]
    for holds in zip(*columns, strict=True):
        print(f"{holds[0].title:52}" + "".join(f"{hold.longest_ms:8.1f}{hold.total_ms:8.0f}" for hold in holds))
    longest = max(hold.longest_ms for holds in columns for hold in holds)
    print(f"the longest of all: {longest:.1f} ms")


def measure(size: int, say: Callable[[str], None]) -> list[Hold]:
    with keep_collections_short():  # as `wukong run` does
        return asyncio.run(_measure(size, say))


async def _measure(size: int, say: Callable[[str], None]) -> list[Hold]:
    cluster = CrowdedCluster(size)
    metrics, wall = Metrics(), WallClock()
    app = build_extender_app(CountingExtender(cluster.extender, metrics, wall), wall, ExtenderMetrics(metrics), wall)
    holds = []
    async with AsyncExitStack() as stack:
        port = await serve(stack, app, "127.0.0.1", 0)
        for title, path, body in cluster.list_questions():
            say(f"{size:,} nodes: {title}")
            holds.append(await _ask(title, port, path, body))
    return holds


async def _ask(title: str, port: int, path: str, body: bytes) -> Hold:
    def post() -> float:
        with client.Connection(port) as connection:
            began = time.perf_counter()
            connection.send(path, body)
            return time.perf_counter() - began

    longest = 0.0
    question = asyncio.create_task(asyncio.to_thread(post))
    while not question.done():
        began = time.thread_time()
        await asyncio.sleep(0)
        longest = max(longest, time.thread_time() - began)
    return Hold(title, longest * 1e3, await question * 1e3)


class CrowdedCluster:
    """Nodes as in bench.extender, and tenants who write as much as they are allowed to."""

    def __init__(self, size: int) -> None:
        self.size, self.state, self.version = size, State(), 0
        self.nodes = [requests.a_node(number) for number in range(size)]
        self.names = [node["metadata"]["name"] for node in self.nodes]
        self.state.replace("Node", decode_objects(requests.compact({"kind": "NodeList", "items": self.nodes})))
        self.put_usages()
        self.state.replace(
            PLACEMENT_POLICIES.group_kind,
            [
                *(self.build_policy(f"p{row}", "crowd", {"selector": a_near_miss(row)}) for row in range(POLICIES)),
                self.build_policy("large", "large", a_large_spec()),
            ],
        )
        assert self.state.snapshot.row_of
        self.extender = Extender(self.state, Settings(usage=UsageSettings(stale_seconds=3600)))

    def list_questions(self) -> Iterator[tuple[str, str, bytes]]:
        """Title, path and body; what a title says has happened has, when it comes."""
        names, large = {"NodeNames": self.names}, "large"
        yield f"filter, the first of all, {POLICIES:,} policies", "/filter", a_body("shop", names)
        yield f"filter, {POLICIES:,} policies in the namespace", "/filter", a_body("crowd", names)
        yield f"filter, a policy of {MOST_RULES} rules and {MOST_BYTES // 1024} KiB", "/filter", a_body(large, names)
        yield "filter, the same again", "/filter", a_body(large, names)
        yield "prioritize, the same", "/prioritize", a_body(large, names)
        self.put_usages()
        yield "prioritize, usage measured anew", "/prioritize", a_body(large, names)
        self.relabel()
        yield "filter, a node has another label", "/filter", a_body(large, names)
        self.put_policy()
        yield "filter, another large policy", "/filter", a_body(large, names)
        yield "prioritize, another large policy", "/prioritize", a_body(large, names)
        nodes = {"Nodes": {"metadata": {}, "items": self.nodes}}
        yield "filter, nodes in full", "/filter", a_body(large, nodes)
        new = {"metadata": {}, "items": [*self.nodes, requests.a_node(self.size)]}
        yield "filter, nodes in full, one of them new", "/filter", a_body(large, {"Nodes": new})
        yield "prioritize, nodes in full, one of them new", "/prioritize", a_body(large, {"Nodes": new})
        yield "filter, a pod that asks for much", "/filter", a_body(large, names, an_affinity())
        victims = {name: {"Pods": [{"UID": f"u{index}"} for index in range(20)]} for name in self.names}
        yield "preempt, everywhere", "/preempt", a_body(large, {"NodeNameToMetaVictims": victims})
        # kube-scheduler offers a tenth of the nodes, or a hundred.
        pods = {name: {"Pods": [requests.a_pod()] * 10} for name in self.names[: max(100, self.size // 10)]}
        yield "preempt, on a tenth of the nodes, pods in full", "/preempt", a_body(large, {"NodeNameToVictims": pods})

    def put_usages(self) -> None:
        now = time.time()
        self.state.replace(
            NODE_USAGES.group_kind,
            [
                NodeUsage(metadata=ObjectMeta(name=name), measured_at=now, cpu=float(row * 7 % 100), memory=50.0)
                for row, name in enumerate(self.names)
            ],
        )

    def relabel(self) -> None:
        node = self.nodes[0]
        node["metadata"]["labels"]["disk"] = "nvme"
        node["metadata"]["resourceVersion"] = "1"
        [decoded] = decode_objects(requests.compact({"kind": "NodeList", "items": [node]}))
        self.state.apply("MODIFIED", decoded)

    def put_policy(self) -> None:
        spec = a_large_spec()
        for rule in spec["scheduling"]["schedulingPolicy"]["rules"]:
            rule["config"]["matchExpressions"][0]["values"] = ["others"]
        self.state.apply("MODIFIED", self.build_policy("large", "large", spec))

    def build_policy(self, name: str, namespace: str, spec: Json) -> PlacementPolicy:
        self.version += 1
        metadata = {"name": name, "namespace": namespace, "resourceVersion": str(self.version)}
        return msgspec.convert({"kind": "PlacementPolicy", "metadata": metadata, "spec": spec}, PlacementPolicy)


def a_body(namespace: str, offered: Json, affinity: Json | None = None) -> bytes:
    pod = requests.a_pod()
    pod["metadata"]["namespace"] = namespace
    pod["spec"] |= {} if affinity is None else {"affinity": affinity}
    return requests.compact({"Pod": pod, **offered})


def a_near_miss(number: int) -> Json:
    """A selector as large as may be that selects no pod, which only its last requirement shows."""
    absent = [
        {"key": f"k{index}", "operator": "NotIn", "values": [f"v{number}"]} for index in range(MOST_EXPRESSIONS - 1)
    ]
    return {"matchExpressions": [*absent, {"key": "app", "operator": "In", "values": [f"w{number}"]}]}


def a_large_spec() -> Json:
    """At the limits of rules, expressions, floors and bytes."""
    rules: list[Json] = []
    for number in range(MOST_RULES):
        expressions = [
            {"key": _KEYS[index % len(_KEYS)], "operator": "NotIn", "values": ["v", "hdd" if number % 7 else "x"]}
            for index in range(MOST_EXPRESSIONS - 6)
        ]
        type_ = ("filter", "score", "prioritize")[number % 3]
        rules.append({"name": "label-match", "type": type_, "config": {"matchExpressions": expressions}})
    resources = ("cpu", "memory", "gpu", "storage")
    floors = [{"resourceType": resources[number % 4], "minAvailable": "0"} for number in range(MOST_FLOORS)]
    spec = {
        "selector": {"matchLabels": {"app": "web"}},
        "capacity": {"strategy": "spot-first"},
        "scheduling": {"resourceAffinity": {"requiredResources": floors}, "schedulingPolicy": {"rules": rules}},
    }
    assert MOST_BYTES * 0.9 < len(requests.compact(spec)) < MOST_BYTES, len(requests.compact(spec))
    return spec


def an_affinity() -> Json:
    """Nearly two thousand requirements that no spot node meets: whether it falls back is asked of every node."""
    terms = [
        {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [f"n{number}"]}]}
        for number in range(600)
    ]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
