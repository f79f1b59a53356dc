"""What is found where somebody asks for, creates or deletes nodes without the right to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import pytest

from wukong.actions import DONE, Action, Create, Delete, Outcome
from wukong.api.kinds import NODE_REQUESTS, NODES, PODS
from wukong.api.node_groups import NodeGroup
from wukong.api.resources import Key
from wukong.embedded.actors.autoscaler.new_node import build_node
from wukong.embedded.checkers import Checkers
from wukong.embedded.store import Server
from wukong.embedded.world.clock import VirtualClock
from wukong.embedded.world.world import World
from wukong.ports import Document
from wukong.state import Change, State
from wukong.state.controller import NodeRight, Watch

GROUP = NodeGroup(name="workers", min=1, max=2)
ALL_RIGHTS = frozenset(NodeRight)


class Actor:
    """Does one thing, by the rights that it declares."""

    name = "actor"
    node_groups: ClassVar[dict[str, NodeGroup]] = {GROUP.name: GROUP}

    def __init__(self, action: Action, rights: Iterable[NodeRight]) -> None:
        self.action, self.node_rights = action, frozenset(rights)
        self.watches = (Watch(NODES, self._keys), Watch(PODS), Watch(NODE_REQUESTS))

    def _keys(self, change: Change, _: State) -> list[Key]:
        return [Key("", "go")] if change.key.name == "workers-1" and change.old is None else []

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        return Outcome((self.action,)) if key.name == "go" else DONE


def findings_of(
    action: Action,
    rights: Iterable[NodeRight] = ALL_RIGHTS,
    *,
    nodes: int = 2,
    has_request: bool = False,
    has_pod: bool = False,
) -> str:
    server = Server(VirtualClock())
    world = World([Actor(action, rights)], server=server, clock=server.clock)  # type: ignore[arg-type]
    checkers = Checkers(world)
    if has_request:
        server.create(NODE_REQUESTS, a_request("workers-9"))
    for number in range(nodes, 0, -1):
        if number == 1 and has_pod:
            spec = {"nodeName": "workers-1", "containers": [{"name": "c", "image": "i"}]}
            server.create(PODS, {"metadata": {"name": "p"}, "spec": spec}, "default")
        server.create(NODES, build_node(GROUP, f"workers-{number}"))
    world.run()
    return "; ".join(str(finding) for finding in checkers.finish(is_at_rest=False))


def a_request(name: str) -> Document:
    return {"metadata": {"name": name}, "group": "workers"}


CREATION = Create(NODES, build_node(GROUP, "workers-9"))
REQUEST = Create(NODE_REQUESTS, a_request("workers-8"))
DELETION = Delete(NODES, Key("", "workers-1"))


@pytest.mark.parametrize(
    ("action", "present", "nodes", "text"),
    [
        (CREATION, "request", 1, ""),
        (CREATION, "", 1, "created by actor, although nobody asked for it"),
        (REQUEST, "", 1, ""),
        (REQUEST, "", 2, "asked for by actor, although its group may have 2 nodes"),
        (REQUEST, "request", 1, "asked for by actor, although its group may have 2 nodes"),
        (DELETION, "", 2, ""),
        (DELETION, "pod", 2, "deleted by actor, although pod default/p is there"),
        (DELETION, "", 1, "deleted by actor, although its group must have 1 nodes"),
    ],
)
def test_a_right_holds_only_where_its_reason_does(action: Action, present: str, nodes: int, text: str) -> None:
    findings = findings_of(action, nodes=nodes, has_request=present == "request", has_pod=present == "pod")
    assert text in findings
    assert bool(text) == bool(findings)


@pytest.mark.parametrize("action", [CREATION, REQUEST, DELETION])
def test_nodes_are_not_the_business_of_who_declares_nothing(action: Action) -> None:
    assert "by actor, whose business it is not" in findings_of(action, ())
