"""What each of our controllers may ask to be written: judged from outside while faults strike and a tenant is hostile.

    controller ─► kinds, verbs and subresources that it may write at all; one that is not listed may write nothing
    a key      ─► a decision about an object of one namespace writes into that namespace, and nowhere else

Schedulers alone cross namespaces: whom they preempt is the checkers' to judge. Used by sickness.py; shares no code with
who decides.
"""

from __future__ import annotations

from collections.abc import Sequence

from hostile.neighbourhood import judge_write
from wukong.actions import Action, Bind, Create, Delete, Evict, Note, Patch
from wukong.api.resources import Key
from wukong.embedded.actors import make_actors
from wukong.embedded.scenario.play.steps import Drains
from wukong.embedded.store import Server
from wukong.embedded.world.clock import VirtualClock
from wukong.embedded.world.process import Process
from wukong.embedded.world.world import World
from wukong.runtime.dispatch import Item

KUBE_SCHEDULER, OUR_SCHEDULER = "scheduler", "wukong-scheduler"
_POLICY_STATUS = {("Patch", "PlacementPolicy/status"), ("Patch", "ClusterPlacementPolicy/status")}
_CLASSES = {(verb, "PriorityClass") for verb in ("Create", "Patch", "Delete")}
RIGHTS: dict[str, set[tuple[str, str]]] = {
    "load": {("Patch", "Node")},
    "policy": _POLICY_STATUS,
    "policy-split": {*_POLICY_STATUS, ("Evict", "Pod")},
    "policy-budget": {(verb, "PodDisruptionBudget") for verb in ("Create", "Patch", "Delete")},
    "policy-priority": _CLASSES,
    "vm": {
        ("Patch", "Wukong/status"),
        ("Patch", "VirtualMachine"),
        ("Delete", "VirtualMachine"),
        ("Delete", "VirtualMachineInstance"),
        ("Create", "VirtualMachineInstanceMigration"),
    },
    "vm-priority": _CLASSES,
    "ledger": {("Record", "WorkloadRecord")},
    "rollout": {
        ("Patch", "Rollout/status"),
        *((verb, "ReplicaSet") for verb in ("Create", "Patch", "Scale", "Delete")),
        ("Patch", "Service"),
        ("Delete", "Pod"),
    },
    "spot-node": {("Patch", "Node")},
    "spot-load-balancer": {("Patch", "Node")},
    "spot-history": {
        *((verb, "NodeNotice") for verb in ("Create", "Patch", "Delete")),
        ("Patch", "NodeNotice/status"),
    },
    "spot-move": {
        *((verb, "Move") for verb in ("Create", "Patch", "Delete")),
        ("Patch", "Move/status"),
        ("Patch", "Pod"),
        ("Patch", "HorizontalPodAutoscaler"),
        ("Scale", "Deployment"),
        ("Scale", "ReplicaSet"),
    },
    "spot-eviction": {("Evict", "Pod"), ("Patch", "Pod"), ("Delete", "Pod")},
    OUR_SCHEDULER: {("Bind", "Pod"), ("Delete", "Pod"), ("Patch", "Pod/status")},
}
LEAVING = "placement.novasphere.dev/leaving"
MARKS = {
    "placement.novasphere.dev/moving",
    "placement.novasphere.dev/deletion-cost-before",
    "controller.kubernetes.io/pod-deletion-cost",
}
IN_DETAIL = ("Node", "PlacementPolicy", "ClusterPlacementPolicy", "PodDisruptionBudget", "PriorityClass")


def list_foreign_controllers() -> frozenset[str]:
    """Kubernetes' and KubeVirt's own, and the admin's drains: nothing of what they write is ours."""
    actors = make_actors(Server(VirtualClock()))
    return frozenset({KUBE_SCHEDULER, Drains.name, *(actor.name for actor in actors)})


class WriteJudge:
    """Hears of every decision, and keeps what our components should not have asked for."""

    def __init__(self, world: World) -> None:
        self.wrong: list[str] = []
        self.writes: dict[str, int] = {}  # of each of our controllers: who wrote nothing shows nothing
        self._foreign = list_foreign_controllers()
        world.listen_to_decisions(self.observe)

    def observe(self, _: Process, item: Item, actions: Sequence[Action]) -> None:
        if item.controller in self._foreign:
            return
        for action in actions:
            self.writes[item.controller] = self.writes.get(item.controller, 0) + 1
            try:
                judge_action(item.controller, item.key, action)
            except (AssertionError, TypeError, ValueError, LookupError) as error:
                self.wrong.append(f"{item} asked for {action!r:.300}: {error}")


def judge_action(controller: str, key: Key, action: Action) -> None:
    """Raises AssertionError, or what a malformed action makes of it, for what a controller may not write."""
    verb, subject, target = describe(action)
    if isinstance(action, Note):
        judge_write(action)
        return
    assert (verb, subject) in RIGHTS.get(controller, ()), f"{controller} may not {verb} {subject}"
    if controller != OUR_SCHEDULER and key.namespace:
        assert target.namespace in (key.namespace, ""), f"{key} is none of the business of {target}"
    if controller == "vm" and isinstance(action, Patch) and subject == "VirtualMachine":
        (owner,) = action.patch.body["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"]) == ("Wukong", key.name), "made for another Wukong"
    if controller == "spot-node":
        judge_closing(action)
    elif controller in ("spot-move", "spot-eviction") and isinstance(action, Patch) and subject == "Pod":
        assert set(action.patch.body["metadata"]["annotations"]) <= MARKS, "more than a mark"
    elif subject.partition("/")[0] in IN_DETAIL:
        judge_write(action)


def judge_closing(action: Action) -> None:
    """Of a leaving node only the record, our taint and the cordon are written, at the version that was read."""
    assert isinstance(action, Patch)
    version, *operations = action.patch.body
    assert version["path"] == "/metadata/resourceVersion"
    for operation in operations:
        path, value = operation["path"], operation.get("value")
        if path.startswith("/spec/taints"):
            taints = value if isinstance(value, list) else [] if value is None else [value]
            assert all(taint["key"] == LEAVING for taint in taints), "somebody else's taint"
        elif path == "/metadata/annotations":
            assert set(value) == {LEAVING}
        else:
            assert path in ("/spec/unschedulable", "/metadata/annotations/" + LEAVING.replace("/", "~1"))


def describe(action: Action) -> tuple[str, str, Key]:
    """The verb, kind and subresource, and the object."""
    verb = type(action).__name__
    match action:
        case Patch(resource=resource, key=key, subresource=subresource):
            return verb, f"{resource.kind}/{subresource}".rstrip("/"), key
        case Create(resource=resource, body=body, namespace=namespace):
            return verb, resource.kind, Key(namespace, body["metadata"].get("name", ""))
        case Delete(resource=resource, key=key):
            return verb, resource.kind, key
        case Evict(key=key) | Bind(key=key):
            return verb, "Pod", key
        case Note(about=about, key=key):
            return verb, about.kind, key
        case _:
            return verb, action.resource.kind, action.key
