"""From the text of a scenario file to a Scenario: every problem at once, each with place, expectation and fix.

Pure: the documents of `files` are handed in by whoever can read files. Called by `wukong sim run` and by tests.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import msgspec

from wukong.api.decode import find_kind, readable
from wukong.api.documents import unfold_list
from wukong.api.kinds import KINDS
from wukong.api.node_groups import NodeGroup
from wukong.api.quantity import parse_quantity
from wukong.api.strict import unknown_fields
from wukong.api.yaml_values import load_documents
from wukong.cluster.document_shapes import find_shape_problems
from wukong.embedded.actors.kubelet.behaviour import BadAnnotationError, Behaviour, apply_annotations
from wukong.embedded.faults.catalogue import TYPES, describe_unknown
from wukong.embedded.scenario.format.durations import find_duration_problems
from wukong.embedded.scenario.format.fields import (
    ENTRY_ACTIONS,
    NODE_ACTIONS,
    ExpectedEvent,
    Fault,
    NodeEntry,
    NodeSelection,
    Scenario,
    TimelineEntry,
    UsageTarget,
    as_list,
    bound_of,
    find_resource,
    seconds_of,
)
from wukong.embedded.store.documents import value_at
from wukong.errors import InputError, nearest
from wukong.placement.node_groups.checks import check_group, find_double_names
from wukong.ports import Document

Item = TypeVar("Item", NodeEntry, NodeGroup, TimelineEntry)
_MOST_PERCENT = 10_000.0  # of what a pod requests: it may use more
_LISTS = ("nodes", "nodeGroups", "timeline")
_DURATION = 'expected a duration such as "90s", "10m" or "1h"'
_PATCHES = ("strategic", "merge", "json")
# Many times what Kubernetes supports (5,000 nodes, 150,000 pods). Beyond, a number of one line takes all the memory.
MOST_NODES = 100_000
MOST_REPLICAS = 1_000_000


def read_scenario(text: str | bytes) -> Scenario:
    """Raises InputError with all that is wrong."""
    document = parse(text)
    if not isinstance(document, dict):
        raise InputError(f"expected a scenario (a mapping with nodes, manifests, timeline), got {document!r:.100}.")
    problems = unknown_fields(document, Scenario)
    more_problems, scenario = _convert(document)
    problems += more_problems
    if scenario is not None:
        problems += _check(scenario)
    if problems or scenario is None:
        raise InputError(*problems)
    return scenario


def parse(text: str | bytes) -> Any:
    documents = parse_all(text)
    if not documents:
        raise InputError(
            "expected a scenario, found nothing in it. Begin with nodes: [{name: a}], or with examples/sim."
        )
    if len(documents) != 1:
        raise InputError(f"expected one YAML document, found {len(documents)}.")
    return documents[0]


def parse_all(text: str | bytes) -> list[Any]:
    """The documents of a YAML or JSON text, as plain values; times stay texts."""
    return [document for document in load_documents(text) if document is not None]


def read_manifests(text: str | bytes, skipped: Tally[str]) -> list[Document]:
    """The objects of a file, Lists unfolded. Kinds that do not decide placement are left out and counted."""
    manifests: list[Document] = []
    problems: list[str] = []
    for index, document in enumerate(_unfold_lists(parse_all(text))):
        if not _is_skipped(document, skipped):
            problems += _check_document(document, f"object {index + 1}")
            manifests.append(document)
    if problems:
        raise InputError(*problems)
    return manifests


def _unfold_lists(documents: list[Any]) -> Iterator[Any]:
    for document in documents:
        yield from unfold_list(document) if isinstance(document, dict) and "items" in document else [document]


def _is_skipped(document: Any, skipped: Tally[str]) -> bool:
    if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
        return False
    kind = KINDS.of_document(document["kind"], str(document.get("apiVersion") or ""))
    if kind is not None and kind.loads and kind.is_manifest:
        return False
    try:
        return find_kind(document["kind"], str(document.get("apiVersion") or ""), skipped) is None
    except InputError:
        return False  # a typo: reported with the others


def check_documents(documents: list[Any], place: str) -> list[str]:
    """Problems of documents that could not even be sent to an API server."""
    return [
        problem
        for index, document in enumerate(documents)
        for problem in _check_document(document, f"{place}[{index}]")
    ]


def _convert(document: Document) -> tuple[list[str], Scenario | None]:
    """Nodes and timeline entries one by one, so that each has its own problem; then the rest."""
    nodes, problems = _convert_items(document.get("nodes"), NodeEntry, _check_nodes, "$.nodes")
    timeline, more_problems = _convert_items(document.get("timeline"), TimelineEntry, _check_entry, "$.timeline")
    problems += more_problems
    groups, more_problems = _convert_items(document.get("nodeGroups"), NodeGroup, check_group, "$.nodeGroups")
    problems += more_problems
    rest = {name: value for name, value in document.items() if name not in _LISTS or not isinstance(value, list)}
    try:
        scenario = msgspec.convert(rest, Scenario)
    except msgspec.ValidationError as error:
        return [*problems, readable(error)], None
    scenario.nodes, scenario.timeline, scenario.node_groups = nodes, timeline, groups
    return problems, scenario


def _convert_items(
    documents: Any, struct: type[Item], check: Callable[[Item], Iterable[str]], place: str
) -> tuple[list[Item], list[str]]:
    items: list[Item] = []
    problems: list[str] = []
    for index, document in enumerate(documents if isinstance(documents, list) else ()):
        try:
            items.append(msgspec.convert(document, struct))
            problems += [f"{place}[{index}]{problem}" for problem in check(items[-1])]
        except msgspec.ValidationError as error:
            problems.append(f"{place}[{index}]{readable(error).removeprefix('$')}")
    return items, problems


def _check(scenario: Scenario) -> Iterator[str]:
    yield from _check_until(scenario)
    yield from find_duration_problems(scenario)
    names = Tally(name for group in scenario.nodes if (group.count or 0) <= MOST_NODES for name in group.names())
    for name in sorted(name for name, times in names.items() if times > 1):
        yield f'$.nodes: the name "{name}" is there twice. Rename one of the two.'
    yield from find_double_names(scenario.node_groups, "$.nodeGroups")
    known = [group.name for group in scenario.node_groups]
    for index, entry in enumerate(scenario.nodes):
        if entry.group and entry.group not in known:
            yield f'$.nodes[{index}].group: no node group "{entry.group}".{nearest(entry.group, known)}'
    yield from check_documents(scenario.manifests, "$.manifests")
    yield from _check_bounds(msgspec.to_builtins(scenario.expect), "$.expect")
    for index, event in enumerate(scenario.expect.events):
        yield from _check_event(event, f"$.expect.events[{index}]")


def _check_bounds(expected: dict[str, Any], place: str) -> Iterator[str]:
    """Texts stand for bounds here, but for what is a text in the story, too."""
    for name, value in expected.items():
        if isinstance(value, dict):
            yield from _check_bounds(value, f"{place}.{name}")
        elif isinstance(value, str) and name not in ("kind", "stuck") and bound_of(value) is None:
            yield f'{place}.{name}: expected a number or a bound such as ">=2", got {value!r}.'


def _check_event(event: ExpectedEvent, place: str) -> Iterator[str]:
    if not event.text:
        yield f'{place}.text: expected a part of what happened, such as "not ready".'
    times = {
        name: (text, seconds_of(text)) for name in ("after", "before") if (text := getattr(event, name)) is not None
    }
    for name, (text, seconds) in times.items():
        if seconds is None:
            yield f"{place}.{name}: {_DURATION}, got {text!r}. Add a unit."
    after, before = (times.get(name, ("", None))[1] for name in ("after", "before"))
    if after is not None and before is not None and after > before:
        yield f"{place}: nothing is after {event.after} and before {event.before}. Exchange the two."
    if isinstance(event.count, str) and bound_of(event.count) is None:
        yield f'{place}.count: expected a number or a bound such as ">=2", got {event.count!r}.'


def _check_until(scenario: Scenario) -> Iterator[str]:
    limit = seconds_of(scenario.until)
    if limit is None:
        yield f"$.until: {_DURATION}, got {scenario.until!r}. Add a unit."
        return
    for entry in scenario.timeline:
        if entry.seconds > limit:
            yield f"$.until: something happens at {entry.at}, after {scenario.until}. Make until longer."


def _check_nodes(group: NodeEntry) -> Iterator[str]:
    if bool(group.name) == bool(group.name_prefix):
        yield ": expected either name, or namePrefix with count. Give one of the two."
    if group.name_prefix and (group.count is None or group.count < 1):
        yield f".count: expected how many nodes, at least 1, got {group.count}."
    if (group.count or 0) > MOST_NODES:
        yield f".count: expected at most {MOST_NODES:,} nodes, got {group.count:,}. Have fewer."
    if group.name and group.count is not None:
        yield ".count: goes with namePrefix, not with name. Use namePrefix."
    for field in ("capacity", "allocatable"):
        for resource, amount in getattr(group, field).items():
            try:
                parse_quantity(amount)
            except InputError as error:
                yield f".{field}.{resource}: {error}"


def _check_entry(entry: TimelineEntry) -> Iterator[str]:
    if seconds_of(entry.at) is None:
        yield f".at: {_DURATION}, got {entry.at!r}. Add a unit."
    if len(entry.actions) != 1:
        known = ", ".join(ENTRY_ACTIONS.values())
        yield f": expected at and one of {known}, found {', '.join(entry.actions) or 'none'}."
    for index, document in enumerate(as_list(entry.apply)):
        yield from _check_document(document, f".apply[{index}]" if isinstance(entry.apply, list) else ".apply")
    for name, target in (("patch", entry.patch), ("delete", entry.delete), ("scale", entry.scale)):
        if target is not None and find_resource(target.kind, target.api_version) is None:
            yield from _describe_unknown_kind(f".{name}", target.kind, target.api_version)
    if isinstance(entry.lose, str):
        yield f".lose: expected {{zone: a}} or {{selector: …}}, got {entry.lose!r:.100}. Use kill for a single node."
    for name in NODE_ACTIONS:
        if isinstance(selection := getattr(entry, name), NodeSelection):
            yield from _check_selection(selection, f".{ENTRY_ACTIONS[name]}")
    if entry.fault is not None:
        yield from _check_fault(entry.fault)
    if entry.usage is not None:
        yield from _check_usage(entry.usage)
    if entry.patch is not None:
        if entry.patch.type not in _PATCHES:
            yield f".patch.type: expected one of {', '.join(_PATCHES)}, got {entry.patch.type!r}."
        if entry.patch.patch is None:
            yield ".patch.patch: expected what to change, such as {spec: {replicas: 2}}."
    if entry.scale is not None and entry.scale.replicas > MOST_REPLICAS:
        yield f".scale.replicas: expected at most {MOST_REPLICAS:,} pods, got {entry.scale.replicas:,}. Have fewer."
    if entry.delete is not None and (entry.delete.grace_period_seconds or 0) < 0:
        yield ".delete.gracePeriodSeconds: expected 0 or more seconds. 0 removes it at once."


def _check_selection(selection: NodeSelection, place: str) -> Iterator[str]:
    if bool(selection.zone) == (selection.selector is not None):
        yield f"{place}: expected nodes as {{selector: {{matchLabels: …}}}} or {{zone: a}}. Give one of the two."
    for requirement in selection.selector.match_expressions if selection.selector is not None else ():
        takes_values = requirement.operator in ("In", "NotIn")
        if takes_values != bool(requirement.values):
            expected = "expected at least one" if takes_values else "expected none"
            yield f"{place}.selector: values of {requirement.key}: {expected} with {requirement.operator}."


def _check_usage(usage: UsageTarget) -> Iterator[str]:
    if bool(usage.node) == bool(usage.workload):
        yield ".usage: expected the name of a node, or a workload such as default/web."
    most = 100.0 if usage.node else _MOST_PERCENT
    for resource in ("cpu", "memory", "storage"):
        percent = getattr(usage, resource)
        if percent is not None and not 0 <= percent <= most:
            yield f".usage.{resource}: expected percent from 0 to {most:g}, got {percent:g}."
    if usage.total and usage.node:
        yield ".usage.total: expected none of a node. It is what the pods of a workload use together."
    for resource, amount in usage.total.items():
        try:
            parse_quantity(amount)
        except InputError as error:
            yield f".usage.total.{resource}: {error}"


def _check_fault(fault: Fault) -> Iterator[str]:
    if fault.type not in TYPES:
        yield f".fault.type: {describe_unknown(fault.type)}"
        return
    if not seconds_of(fault.for_):
        yield f".fault.for: {_DURATION}, got {fault.for_!r}."
    if fault.rate is None:
        return
    per = TYPES[fault.type].per
    if fault.rate <= 0 or (per != "minute" and fault.rate > 1):
        wanted = (
            "how often per minute, more than 0" if per == "minute" else f"a share of each {per}, 0.2 for one in five"
        )
        yield f".fault.rate: expected {wanted}, got {fault.rate:g}."


def _check_document(document: Any, place: str) -> Iterator[str]:
    if not isinstance(document, dict):
        yield f"{place}: expected a Kubernetes object, got {document!r:.100}."
        return
    kind, meta = str(document.get("kind") or ""), document.get("metadata")
    version = document.get("apiVersion")
    if not isinstance(version, str) or not version or find_resource(kind, version) is None:
        yield from _describe_unknown_kind(place, kind, version)
    if not isinstance(meta, dict) or not isinstance(meta.get("name"), str) or not meta["name"]:
        yield f"{place}.metadata.name: expected a name. Give the object one."
    elif kind and isinstance(version, str):
        yield from (f"{place}{problem.removeprefix('$')}" for problem in find_shape_problems(document))
    yield from (f"{place}{problem}" for problem in _find_bad_annotations(document))
    for field, number in find_oversized_workloads(document):
        yield f"{place}.spec.{field}: expected at most {MOST_REPLICAS:,} pods, got {number:,}. Have fewer."


def _find_bad_annotations(document: Document) -> Iterator[str]:
    """Yield the annotations for kubelets that none can read. Its pods would fail, and be replaced for ever."""
    for path in ("metadata.annotations", "spec.template.metadata.annotations"):
        annotations = value_at(document, path)
        if not isinstance(annotations, dict):
            continue
        for key, text in annotations.items():
            try:
                apply_annotations(Behaviour(), {str(key): str(text)})
            except BadAnnotationError as error:
                yield f".{path}: {error}"


def find_oversized_workloads(document: Document) -> Iterator[tuple[str, int]]:
    """Yield the fields of a workload that ask for more pods than anybody can play with."""
    spec = document.get("spec")
    for field in ("replicas", "completions", "parallelism"):
        number = spec.get(field) if isinstance(spec, dict) else None
        if isinstance(number, int) and number > MOST_REPLICAS:
            yield field, number


def _describe_unknown_kind(place: str, kind: str, api_version: object) -> Iterator[str]:
    known = [entry.resource for entry in KINDS.manifests()]
    versions = [resource.api_version for resource in known if resource.kind == kind]
    if versions:
        yield f"{place}.apiVersion: expected {' or '.join(versions)} for kind {kind}, got {api_version!r}."
        return
    names = list(dict.fromkeys(resource.kind for resource in known))
    yield f'{place}.kind: unknown kind "{kind}".{nearest(kind, names)} Scenarios know: {", ".join(names)}.'
