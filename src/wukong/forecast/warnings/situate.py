"""Applies a change to a fork of a cluster, and gives the situation that warnings are about. Nobody reacts to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from wukong.actions import Action
from wukong.api.core import Namespace
from wukong.api.resources import Key, Resource
from wukong.app.snapshots import Baseline
from wukong.embedded.scenario.format.fields import TimelineEntry, document_resource
from wukong.embedded.scenario.play import steps
from wukong.embedded.snapshot.presumed_fields import presume_fields
from wukong.embedded.store import Server
from wukong.embedded.world.transport import perform
from wukong.errors import ClusterError
from wukong.forecast.planned_change import PlannedChange
from wukong.forecast.warnings.situation import Situation, WrittenObject
from wukong.ports import Document, PatchBody
from wukong.state import State


def situate(baseline: Baseline, change: PlannedChange) -> Situation:
    """What the API server refuses is left out: whoever makes a plan has said so."""
    world = baseline.fork()[0].world
    presume_fields(world.server, change.documents, steps.MANAGER)
    written = list(_write(change, world.server, world.state))
    drained = tuple(step.drain for step in change.steps if isinstance(step.drain, str))
    return Situation(world.state, tuple(written), drained)


def _write(change: PlannedChange, server: Server, state: State) -> Iterator[WrittenObject]:
    for node in change.nodes:
        _perform(server, steps.apply_documents([node], _list_namespaces(state)))
    for document in change.documents:
        resource, key = document_resource(document), steps.key_of(document)
        before = _read(server, resource, key)
        _perform(server, steps.apply_documents([document], _list_namespaces(state)))
        after = _read(server, resource, key)
        yield WrittenObject(group_kind=resource.group_kind, key=key, applied=document, before=before, after=after)
    for step in change.steps:
        yield from _take_step(step, server, state)


def _take_step(step: TimelineEntry, server: Server, state: State) -> Iterator[WrittenObject]:
    target, patch = step.patch or step.scale, None
    if step.patch is not None:
        patch = PatchBody(step.patch.type, step.patch.patch)  # type: ignore[arg-type]  # read strictly
    elif step.scale is not None:
        patch = PatchBody("merge", {"spec": {"replicas": step.scale.replicas}})
    before = _read(server, target.resource, steps.target_key(target)) if target is not None else None
    _perform(server, steps.build_actions(step, _list_namespaces(state)))
    if target is not None:
        key = steps.target_key(target)
        after = _read(server, target.resource, key)
        yield WrittenObject(group_kind=target.resource.group_kind, key=key, patch=patch, before=before, after=after)


def _perform(server: Server, actions: list[Action]) -> None:
    for action in actions:
        with suppress(ClusterError):
            perform(server, action)


def _read(server: Server, resource: Resource, key: Key) -> Document | None:
    return server.database.get(server.kinds.of(resource).name, key)


def _list_namespaces(state: State) -> frozenset[str]:
    return frozenset(key.name for key in state.of(Namespace))
