"""What it costs to plan where 300 pods go, and to decide about a node that got notice. `python -m bench --spot`.

On 5,000 nodes, of which ten with 30 pods each leave at once. Processor time, in milliseconds:

    plan       `plan_departure`: the pods of all ten nodes placed one after the other on a copy of the snapshot
    cordon     from the event that shows a notice to the decision to close its node, in a mirror of all nodes; what the
               API server and the network take comes on top
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import TypeVar

import msgspec

from wukong.api.apps import Deployment, ReplicaSet
from wukong.api.core import (
    Container,
    Node,
    NodeStatus,
    Pod,
    PodCondition,
    PodSpec,
    PodStatus,
    Quantities,
    ResourceRequirements,
)
from wukong.api.meta import ObjectMeta, OwnerReference
from wukong.api.resources import Key
from wukong.controllers.spot.nodes import SpotNodes
from wukong.controllers.spot.plan import plan_departure
from wukong.placement.leaving_nodes import NOTICE
from wukong.state import State

NODES, LEAVING, PODS_PER_NODE = 5_000, 10, 30
WORKLOADS = (10, 60, 300)
ROUNDS, NOTICES = 7, 1_000
NOW = 1_800_000_000.0

W = TypeVar("W", Deployment, ReplicaSet)


def main(say: Callable[[str], None]) -> None:
    print(f"milliseconds of processor time; {NODES:,} nodes, {LEAVING} of them leave with {PODS_PER_NODE} pods each")
    for workloads in WORKLOADS:
        say(f"{workloads} workloads")
        times = time_plans(build_state(workloads))
        print(f"  plan, {workloads:>3} workloads   median {statistics.median(times):6.0f}  slowest {max(times):6.0f}")
    say(f"{NOTICES:,} notices")
    times = sorted(time_notices(build_state(WORKLOADS[0])))
    print(f"  notice to cordon      median {statistics.median(times):6.2f}  p99 {times[len(times) * 99 // 100]:9.2f}")


def time_plans(state: State) -> list[float]:
    """Of several plans from the same mirror, each on a fork of it."""
    times = []
    for _ in range(ROUNDS):
        fork = state.fork()
        nodes = [node for number in range(LEAVING) if (node := fork.get(Node, Key("", f"node-{number}"))) is not None]
        before = time.process_time()
        moves = plan_departure(nodes, fork, NOW)
        times.append((time.process_time() - before) * 1000)
        assert len(moves) == LEAVING * PODS_PER_NODE
        assert all(move.is_safe for move in moves)
    return times


def time_notices(state: State) -> list[float]:
    """Of nodes that get notice one after the other."""
    controller, times = SpotNodes(), []
    (watch,) = controller.watches
    for number in range(NOTICES):
        node = build_node(number, {NOTICE: "2m"})
        before = time.process_time()
        outcomes = [
            controller.reconcile(key, state, NOW)
            for change in state.apply("MODIFIED", node)
            for key in watch.keys(change, state)
        ]
        times.append((time.process_time() - before) * 1000)
        assert any(outcome.actions for outcome in outcomes)
    return times


def build_state(workloads: int) -> State:
    """A mirror with all nodes, and pods of so many Deployments on those that will leave."""
    state = State()
    for number in range(NODES):
        state.apply("ADDED", build_node(number))
    for number in range(workloads):
        replicas = LEAVING * PODS_PER_NODE // workloads
        deployment = _build_workload(Deployment, f"web-{number}", replicas)
        replica_set = _build_workload(ReplicaSet, f"web-{number}-1", replicas)
        replica_set.metadata.owner_references = [_refer_to("Deployment", f"web-{number}")]
        state.apply("ADDED", deployment)
        state.apply("ADDED", replica_set)
    for number in range(LEAVING * PODS_PER_NODE):
        state.apply("ADDED", build_pod(number, f"web-{number % workloads}"))
    assert len(state.snapshot.rows) == NODES
    return state


def build_node(number: int, annotations: dict[str, str] | None = None) -> Node:
    size: Quantities = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    name = f"node-{number}"
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{number % 3}"}
    meta = ObjectMeta(name=name, labels=labels, annotations=annotations or {}, resource_version=str(bool(annotations)))
    return Node(kind="Node", metadata=meta, status=NodeStatus(allocatable=size, capacity=size))


def build_pod(number: int, workload: str) -> Pod:
    meta = ObjectMeta(name=f"pod-{number}", namespace="shop", uid=f"pod-{number}", labels={"app": workload})
    meta.owner_references = [_refer_to("ReplicaSet", f"{workload}-1")]
    requests: Quantities = {"cpu": "200m", "memory": "256Mi"}
    container = Container(name="app", image="app:1", resources=ResourceRequirements(requests=requests))
    spec = PodSpec(containers=[container], node_name=f"node-{number // PODS_PER_NODE}")
    ready = [PodCondition(type="Ready", status="True")]
    return Pod(kind="Pod", metadata=meta, spec=spec, status=PodStatus(phase="Running", conditions=ready))


def _build_workload(kind: type[W], name: str, replicas: int) -> W:
    meta = {"name": name, "namespace": "shop", "uid": name}
    return msgspec.convert({"metadata": meta, "spec": {"replicas": replicas}}, kind)


def _refer_to(kind: str, name: str) -> OwnerReference:
    return OwnerReference(name=name, kind=kind, api_version="apps/v1", uid=name, controller=True)
