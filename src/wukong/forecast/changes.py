"""What a change does to objects, field by field, and whether that starts a rollout: it is applied to a fork, unplayed.

Called by plan.py before anything is played, so that what the API server refuses is an InputError. Both sides are read
as the server stores them, defaults filled in: a field that a manifest leaves out is no change.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from wukong.actions import Action, Delete
from wukong.api.kinds import NAMESPACES
from wukong.api.resources import Key, Resource
from wukong.app.snapshots import Baseline
from wukong.embedded.scenario.format.fields import TimelineEntry, document_resource
from wukong.embedded.scenario.play import steps
from wukong.embedded.snapshot.presumed_fields import presume_fields
from wukong.embedded.store import Server
from wukong.embedded.store.documents import is_same_json
from wukong.embedded.world.transport import perform
from wukong.errors import ClusterError, InputError
from wukong.forecast.course import list_active_pods
from wukong.forecast.fields import FieldChange, ObjectChange
from wukong.forecast.planned_change import PlannedChange
from wukong.forecast.rollouts import judge_deletion, judge_rollout
from wukong.ports import Document

_BOOKKEEPING = frozenset({"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"})
_KEPT_BY_OTHERS = frozenset({
    "kubectl.kubernetes.io/last-applied-configuration",
    "deprecated.daemonset.template.generation",
    "deployment.kubernetes.io/revision",
})  # fmt: skip
_Target = tuple[Resource, Key]


def find_changes(baseline: Baseline, change: PlannedChange) -> list[ObjectChange]:
    """What becomes of every object that the change names, in its order. Raises InputError for what is refused."""
    server = baseline.fork()[0].world.server
    presume_fields(server, change.documents, steps.MANAGER)
    targets = _list_targets(change)
    before = {target: _read(server, target) for target in targets}
    _apply(server, change)
    changes = [_compare(target, before[target], _read(server, target), server) for target in targets]
    for deletion, (resource, key) in zip(changes, targets, strict=True):
        if deletion.action == "delete":
            workload = baseline.state.objects.get(resource.group_kind, {}).get(key)
            deletion.rollout = judge_deletion(list(list_active_pods(workload, baseline.state)) if workload else [])
    return [*(_describe_new_node(node) for node in change.nodes), *changes, *_describe_node_steps(change)]


def _list_targets(change: PlannedChange) -> list[_Target]:
    documents = [(document_resource(document), steps.key_of(document)) for document in change.documents]
    targets = [
        (target.resource, steps.target_key(target))
        for step in change.steps
        for target in (step.patch, step.scale, step.delete)
        if target is not None
    ]
    return list(dict.fromkeys([*documents, *targets]))


def _read(server: Server, target: _Target) -> Document | None:
    resource, key = target
    return server.database.get(server.kinds.of(resource).name, key)


def _apply(server: Server, change: PlannedChange) -> None:
    problems: list[str] = []
    for document in change.documents:
        place = f"{document['kind']} {steps.key_of(document)}"
        _perform(server, steps.apply_documents([document], _list_namespaces(server)), place, problems)
    for step in change.steps:
        _perform(server, steps.build_actions(step, _list_namespaces(server)), _name_step(step), problems)
    if problems:
        raise InputError(*problems)


def _perform(server: Server, actions: list[Action], place: str, problems: list[str]) -> None:
    try:
        for action in actions:
            if isinstance(action, Delete):
                server.get(action.resource, action.key)  # what is not there cannot be what was meant
            perform(server, action)
    except ClusterError as error:
        problems.append(f"{place}: the API server refuses it: {error}")


def _list_namespaces(server: Server) -> frozenset[str]:
    return frozenset(namespace["metadata"]["name"] for namespace in server.list(NAMESPACES).items)


def _name_step(step: TimelineEntry) -> str:
    target = step.patch or step.scale or step.delete
    return f"{target.kind} {steps.target_key(target)}" if target is not None else "".join(step.actions)


def _compare(target: _Target, before: Document | None, after: Document | None, server: Server) -> ObjectChange:
    resource, key = target
    if before is None:
        return ObjectChange(action="create", kind=resource.kind, name=str(key))
    if after is None or "deletionTimestamp" in after["metadata"]:
        return ObjectChange(action="delete", kind=resource.kind, name=str(key))
    fields = list(compare_documents(before, after))
    rollout = judge_rollout(resource, before, after, fields, server)
    return ObjectChange(
        action="change" if fields else "none", kind=resource.kind, name=str(key), fields=fields, rollout=rollout
    )


def compare_documents(before: Document, after: Document) -> Iterator[FieldChange]:
    """The fields in which two stored documents differ, but for what the server itself writes."""
    for part in sorted((before.keys() | after.keys()) - {"status", "kind", "apiVersion"}):
        yield from _compare_values(_without_bookkeeping(part, before), _without_bookkeeping(part, after), part)


def _without_bookkeeping(part: str, document: Document) -> Any:
    value = document.get(part, msgspec.UNSET)
    if part != "metadata" or not isinstance(value, dict):
        return value
    kept = {name: field for name, field in value.items() if name not in _BOOKKEEPING}
    if isinstance(annotations := kept.pop("annotations", None), dict):
        annotations = {name: text for name, text in annotations.items() if name not in _KEPT_BY_OTHERS}
    return {**kept, "annotations": annotations} if annotations else kept


def _compare_values(before: Any, after: Any, path: str) -> Iterator[FieldChange]:
    if is_same_json(before, after):
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted(before.keys() | after.keys()):
            values = before.get(name, msgspec.UNSET), after.get(name, msgspec.UNSET)
            yield from _compare_values(*values, f"{path}{_format_step(name)}")
    elif (names := _names_of(before)) is not None and (names_after := _names_of(after)) is not None:
        for name in [*names, *(name for name in names_after if name not in names)]:
            values = names.get(name, msgspec.UNSET), names_after.get(name, msgspec.UNSET)
            yield from _compare_values(*values, f"{path}[{name}]")
        if list(names) != list(names_after) and names.keys() == names_after.keys():
            yield FieldChange(path=path, before=list(names), after=list(names_after))  # only their order differs
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, values in enumerate(zip(before, after, strict=True)):
            yield from _compare_values(*values, f"{path}[{index}]")
    else:
        yield FieldChange(path=path, before=before, after=after)


def _format_step(name: str) -> str:
    return f'["{name}"]' if "." in name or "/" in name else f".{name}"


def _names_of(value: Any) -> dict[str, Any] | None:
    """Items of a list by their names, such as containers; None for any other value."""
    if not isinstance(value, list) or not all(
        isinstance(item, dict) and isinstance(item.get("name"), str) for item in value
    ):
        return None
    names = {item["name"]: item for item in value}
    return names if len(names) == len(value) else None


def _describe_new_node(node: Document) -> ObjectChange:
    return ObjectChange(action="add", kind="Node", name=node["metadata"]["name"])


def _describe_node_steps(change: PlannedChange) -> Iterator[ObjectChange]:
    for step in change.steps:
        name = step.drain or step.kill
        if isinstance(name, str):
            action: Any = "remove" if name in change.removed_nodes else "drain" if step.drain else "lose"
            yield ObjectChange(action=action, kind="Node", name=name)
