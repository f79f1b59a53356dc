"""A small world for tests of the scheduler controller: a State, a Dispatch and a clock; actions are performed at once.

The effect that each action would have on an API server is put into the state: a bound pod gets its node, a patched one
its condition, a deleted one goes (or stays, terminating, until `end` is called).
"""

from __future__ import annotations

from typing import Any

import msgspec

from wukong.actions import Action, Bind, Delete, Note, Patch
from wukong.api.core import Pod, PodCondition
from wukong.api.kinds import PODS
from wukong.api.meta import Object
from wukong.api.resources import Key
from wukong.controllers.scheduler.controller import Scheduler
from wukong.errors import ClusterError
from wukong.ports import EventType
from wukong.runtime.dispatch import Dispatch, Item
from wukong.state import State

OURS = "ours"
replace = msgspec.structs.replace


class World:
    def __init__(self, scheduler: Scheduler | None = None, *, lingers: bool = False) -> None:
        self.state = State()
        self.scheduler = scheduler or Scheduler([OURS])
        self.dispatch = Dispatch([self.scheduler], self.state)
        self.now = 1000.0
        self.lingers = lingers  # whether deleted pods take their time
        self.done: list[Action] = []
        self.fails: list[type[Action]] = []  # what goes wrong next
        self._version = 0

    # ---- what happens

    def put(self, *subjects: Object) -> None:
        """Add or change objects. Pods without a scheduler get ours."""
        for subject in subjects:
            key = Key(subject.metadata.namespace, subject.metadata.name)
            current = self.state.of(type(subject)).get(key)
            self._apply("ADDED" if current is None else "MODIFIED", self._stamp(subject, current))

    def end(self, kind: str, name: str, namespace: str = "") -> None:
        self._apply("DELETED", self.state.objects[kind][Key(namespace, name)])

    def settle(self, seconds: float = 0.0) -> World:
        """Let time pass and reconcile what is due at its time, until nothing is."""
        end = self.now + seconds
        for _ in range(10_000):
            self.dispatch.expire(self.now)
            for item in self.dispatch.queue.take_due(self.now, 1):
                self._work(item)
            due = self.dispatch.next_due()
            if due is None or due > end:
                self.now = end
                return self
            self.now = max(self.now, due)
        raise AssertionError("the scheduler never comes to rest")

    # ---- what came of it

    def pod(self, name: str) -> Pod:
        pod = self.state.get(Pod, Key("default", name))
        assert pod is not None
        return pod

    def node_of(self, name: str) -> str:
        return self.pod(name).spec.node_name

    def message(self, name: str) -> str:
        return next(
            (condition.message for condition in self.pod(name).status.conditions if condition.type == "PodScheduled"),
            "",
        )

    def binds(self) -> list[tuple[str, str]]:
        return [(action.key.name, action.node) for action in self.done if isinstance(action, Bind)]

    def notes(self, reason: str = "") -> list[Note]:
        return [action for action in self.done if isinstance(action, Note) and reason in ("", action.reason)]

    # ---- carrying out

    def _work(self, item: Item) -> None:
        outcome = self.dispatch.reconcile(item, self.now)
        for position, action in enumerate(outcome.actions):
            if type(action) in self.fails:
                self.fails.remove(type(action))
                undone = outcome.actions[position:]
                self.dispatch.fail(item, ClusterError("no"), self.now, 0.0, undone)
                return
            self.done.append(action)
            self._perform(action)
        self.dispatch.finish(item, outcome, self.now)

    def _perform(self, action: Action) -> None:
        if isinstance(action, Note):
            return
        assert isinstance(action, Bind | Patch | Delete)
        if isinstance(action, Patch) and action.resource != PODS:
            self._patch(action)
            return
        pod = self.state.get(Pod, action.key)
        assert pod is not None
        if isinstance(action, Bind):
            assert not pod.spec.node_name
            self.put(replace(pod, spec=replace(pod.spec, node_name=action.node)))
        elif isinstance(action, Delete):
            assert action.uid == pod.metadata.uid
            if self.lingers:
                self.put(replace(pod, metadata=replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z")))
            else:
                self.end("Pod", action.key.name, action.key.namespace)
        else:
            self.put(replace(pod, status=_patch_status(pod, action.patch.body)))

    def _patch(self, action: Patch) -> None:
        """A merge patch of a claim or a volume."""
        subject = self.state.objects[action.resource.group_kind][action.key]
        merged = apply_merge_patch(msgspec.to_builtins(subject), action.patch.body)
        self.put(msgspec.convert(merged, type(subject)))

    def _stamp(self, subject: Object, current: Object | None) -> Object:
        self._version += 1
        uid = current.metadata.uid if current else subject.metadata.uid or f"uid-{self._version}"
        stamped = replace(subject, metadata=replace(subject.metadata, uid=uid, resource_version=str(self._version)))
        if isinstance(stamped, Pod) and not stamped.spec.scheduler_name:
            return replace(stamped, spec=replace(stamped.spec, scheduler_name=OURS))
        return stamped

    def _apply(self, event_type: EventType, subject: Object) -> None:
        self.dispatch.observe(self.state.apply(event_type, subject), self.now)


def apply_merge_patch(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = apply_merge_patch(merged.get(name), value)
    return merged


def _patch_status(pod: Pod, body: Any) -> Any:
    assert body["metadata"] == {"uid": pod.metadata.uid}
    status = pod.status
    if "nominatedNodeName" in body["status"]:
        status = replace(status, nominated_node_name=body["status"]["nominatedNodeName"] or "")
    for raw in body["status"].get("conditions", ()):
        new = msgspec.convert(raw, PodCondition)
        others = [condition for condition in status.conditions if condition.type != new.type]
        status = replace(status, conditions=[*others, new])
    return status
