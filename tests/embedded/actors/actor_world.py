"""What the tests of the actors share: a small world with nodes, a controller that binds pods, and manifests."""

from __future__ import annotations

from typing import Any

from wukong.actions import DONE, Bind, Outcome
from wukong.api.core import Node, Pod
from wukong.api.kinds import (
    NAMESPACES,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
)
from wukong.api.resources import Key
from wukong.embedded.actors import Behaviour, make_actors
from wukong.embedded.store import Server
from wukong.embedded.world.clock import VirtualClock
from wukong.embedded.world.world import World
from wukong.ports import Document, PatchBody
from wukong.state import State
from wukong.state.controller import Watch

NAMESPACE = "shop"
BUDGETS = POD_DISRUPTION_BUDGETS
LABELS = {"app": "web"}


class Binder:
    """Binds each pod to the node without taints that has the fewest pods: no scheduler, but enough."""

    name = "binder"
    watches = (Watch(PODS), Watch(NODES, lambda _, state: _keys_of_unbound(state)))

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        pod = state.get(Pod, key)
        if pod is None or pod.spec.node_name or pod.is_terminating or pod.spec.scheduler_name == "nobody":
            return DONE
        if pod.spec.affinity is not None:  # of a DaemonSet, which names its node
            return self._bind_to_named(key, pod, state)
        usable = [node for node in state.all(Node) if not node.spec.taints and not node.spec.unschedulable]
        if not usable:
            return DONE
        node = min(usable, key=lambda node: (len(state.pods_on(node.metadata.name)), node.metadata.name))
        return Outcome((Bind(key, node.metadata.name, pod.metadata.uid),))

    def _bind_to_named(self, key: Key, pod: Pod, state: State) -> Outcome:
        affinity = pod.spec.affinity
        assert affinity is not None
        assert affinity.node_affinity is not None
        assert affinity.node_affinity.required
        name = affinity.node_affinity.required.node_selector_terms[0].match_fields[0].values[0]
        return Outcome((Bind(key, name, pod.metadata.uid),)) if state.get(Node, Key("", name)) else DONE


def _keys_of_unbound(state: State) -> list[Key]:
    return [Key(NAMESPACE, pod.metadata.name) for pod in state.all(Pod) if not pod.spec.node_name]


def a_world(nodes: int = 3, *, seed: int = 0, behaviour: Behaviour | None = None) -> World:
    clock = VirtualClock()
    server = Server(clock)
    world = World(
        [*make_actors(server, seed=seed, behaviour=behaviour), Binder()], server=server, clock=clock, seed=seed
    )
    server.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    for number in range(nodes):
        add_node(world, f"n{number}")
    world.run()
    return world


def add_node(world: World, name: str, **labels: str) -> None:
    ready = {"type": "Ready", "status": "True"}
    status = {"capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"}, "conditions": [ready]}
    meta = {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}}
    world.server.create(NODES, {"metadata": meta, "status": status})


def a_template(image: str = "app:1", **annotations: str) -> Document:
    meta: Document = {"labels": LABELS, **({"annotations": annotations} if annotations else {})}
    return {"metadata": meta, "spec": {"containers": [{"name": "main", "image": image}]}}


def a_workload(name: str = "web", replicas: int | None = 3, template: Document | None = None, **spec: Any) -> Document:
    size = {} if replicas is None else {"replicas": replicas}
    selector = {"matchLabels": LABELS}
    body = {**size, "selector": selector, "template": template or a_template(), **spec}
    return {"metadata": {"name": name}, "spec": body}


def merge(world: World, resource: Any, name: str, body: Document, subresource: str = "") -> Document:
    return world.server.patch(resource, Key(NAMESPACE, name), PatchBody("merge", body), subresource)


def scale(world: World, resource: Any, replicas: int, name: str = "web") -> None:
    merge(world, resource, name, {"spec": {"replicas": replicas}})


def get_object(world: World, resource: Any, name: str = "web") -> Document:
    return world.server.get(resource, Key(NAMESPACE, name))


def status_of(world: World, resource: Any, name: str = "web") -> Document:
    status: Document = get_object(world, resource, name).get("status") or {}
    return status


def list_pods(world: World) -> list[Document]:
    return world.server.list(PODS).items


def is_ready(pod: Document) -> bool:
    conditions = pod["status"].get("conditions") or []
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def names_of(documents: list[Document]) -> list[str]:
    return [document["metadata"]["name"] for document in documents]
