"""From the text of a scenario file to a Scenario: every problem at once, each with place, expectation and fix.

Pure: the documents of `files` are handed in by whoever can read files. Called by `wukong sim run` and by tests.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import msgspec
import yaml

from wukong.api.decode import find_kind, readable
from wukong.api.kinds import KINDS
from wukong.api.quantity import parse_quantity
from wukong.api.strict import unknown_fields
from wukong.embedded.faults.catalogue import TYPES, describe_unknown
from wukong.embedded.scenario.format.fields import (
    ACTS,
    RESOURCE_OF,
    EventExpected,
    Fault,
    NodeGroup,
    Scenario,
    TimelineEntry,
    as_list,
    bound_of,
    seconds_of,
)
from wukong.errors import InputError, nearest
from wukong.ports import Document

Entry = TypeVar("Entry", NodeGroup, TimelineEntry)
_LISTS = ("nodes", "timeline")
_DURATION = 'expected a duration such as "90s", "10m" or "1h"'
_PATCHES = ("strategic", "merge", "json")


def read_scenario(text: str | bytes) -> Scenario:
    """Raises InputError with all that is wrong."""
    document = parse(text)
    if not isinstance(document, dict):
        raise InputError(f"expected a scenario (a mapping with nodes, manifests, timeline), got {document!r:.100}.")
    problems = unknown_fields(document, Scenario)
    wrong, scenario = _convert(document)
    problems += wrong
    if scenario is not None:
        problems += _checks(scenario)
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
    try:
        return [_plain(each) for each in yaml.safe_load_all(text) if each is not None]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise InputError(f"broken YAML: {place}{getattr(error, 'problem', None) or error}.") from None


def read_manifests(text: str | bytes, skipped: Tally[str]) -> list[Document]:
    """The objects of a file, Lists unfolded. Kinds that do not decide placement are left out and counted."""
    found: list[Document] = []
    problems: list[str] = []
    for index, each in enumerate(_unfolded(parse_all(text))):
        if not _is_skipped(each, skipped):
            problems += _document(each, f"object {index + 1}")
            found.append(each)
    if problems:
        raise InputError(*problems)
    return found


def _unfolded(documents: list[Any]) -> Iterator[Any]:
    for each in documents:
        is_list = isinstance(each, dict) and each.get("kind") == "List" and isinstance(each.get("items"), list)
        yield from each["items"] if is_list else [each]


def _is_skipped(document: Any, skipped: Tally[str]) -> bool:
    if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
        return False
    kind = KINDS.of_document(document["kind"], str(document.get("apiVersion") or ""))
    if kind is not None and kind.loads and kind.is_manifest:
        return False
    try:
        return find_kind(document["kind"], str(document.get("apiVersion") or ""), skipped) is None
    except InputError:
        return False  # a typo: told with the others


def check_documents(documents: list[Any], place: str) -> list[str]:
    """What a server cannot be asked because it would not know what about."""
    return [problem for index, each in enumerate(documents) for problem in _document(each, f"{place}[{index}]")]


def _convert(document: Document) -> tuple[list[str], Scenario | None]:
    """Nodes and moments one by one, so that each tells its own problem; then the rest."""
    nodes, problems = _entries(document.get("nodes"), NodeGroup, _group, "$.nodes")
    moments, more = _entries(document.get("timeline"), TimelineEntry, _moment, "$.timeline")
    problems += more
    rest = {name: value for name, value in document.items() if name not in _LISTS or not isinstance(value, list)}
    try:
        scenario = msgspec.convert(rest, Scenario)
    except msgspec.ValidationError as error:
        return [*problems, readable(error)], None
    scenario.nodes, scenario.timeline = nodes, moments
    return problems, scenario


def _entries(
    entries: Any, struct: type[Entry], check: Callable[[Entry], Iterable[str]], place: str
) -> tuple[list[Entry], list[str]]:
    read: list[Entry] = []
    problems: list[str] = []
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        try:
            read.append(msgspec.convert(entry, struct))
            problems += [f"{place}[{index}]{problem}" for problem in check(read[-1])]
        except msgspec.ValidationError as error:
            problems.append(f"{place}[{index}]{readable(error).removeprefix('$')}")
    return read, problems


def _checks(scenario: Scenario) -> Iterator[str]:
    yield from _until(scenario)
    names = [name for group in scenario.nodes for name in group.names()]
    for twice in sorted({name for name in names if names.count(name) > 1}):
        yield f'$.nodes: the name "{twice}" is there twice. Rename one of the two.'
    yield from check_documents(scenario.manifests, "$.manifests")
    yield from _bounds(msgspec.to_builtins(scenario.expect), "$.expect")
    for index, event in enumerate(scenario.expect.events):
        yield from _event(event, f"$.expect.events[{index}]")


def _bounds(expected: dict[str, Any], place: str) -> Iterator[str]:
    """Texts stand for bounds here, but for what is a text in the story, too."""
    for name, value in expected.items():
        if isinstance(value, dict):
            yield from _bounds(value, f"{place}.{name}")
        elif isinstance(value, str) and name not in ("kind", "stuck") and bound_of(value) is None:
            yield f'{place}.{name}: expected a number or a bound such as ">=2", got {value!r}.'


def _event(event: EventExpected, place: str) -> Iterator[str]:
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


def _until(scenario: Scenario) -> Iterator[str]:
    limit = seconds_of(scenario.until)
    if limit is None:
        yield f"$.until: {_DURATION}, got {scenario.until!r}. Add a unit."
        return
    for moment in scenario.timeline:
        if moment.seconds > limit:
            yield f"$.until: something happens at {moment.at}, after {scenario.until}. Make until longer."


def _group(group: NodeGroup) -> Iterator[str]:
    if bool(group.name) == bool(group.name_prefix):
        yield ": expected either name, or namePrefix with count. Give one of the two."
    if group.name_prefix and (group.count is None or group.count < 1):
        yield f".count: expected how many nodes, at least 1, got {group.count}."
    if group.name and group.count is not None:
        yield ".count: goes with namePrefix, not with name. Use namePrefix."
    for field in ("capacity", "allocatable"):
        for resource, amount in getattr(group, field).items():
            try:
                parse_quantity(amount)
            except InputError as error:
                yield f".{field}.{resource}: {error}"


def _moment(moment: TimelineEntry) -> Iterator[str]:
    if seconds_of(moment.at) is None:
        yield f".at: {_DURATION}, got {moment.at!r}. Add a unit."
    if len(moment.acts) != 1:
        yield f": expected at and one of {', '.join(ACTS.values())}, found {', '.join(moment.acts) or 'none'}."
    for index, each in enumerate(as_list(moment.apply)):
        yield from _document(each, f".apply[{index}]" if isinstance(moment.apply, list) else ".apply")
    for name, target in (("patch", moment.patch), ("delete", moment.delete), ("scale", moment.scale)):
        if target is not None and target.kind not in RESOURCE_OF:
            yield f".{name}.kind: {_kinds(target.kind)}"
    if moment.fault is not None:
        yield from _fault(moment.fault)
    if moment.patch is not None:
        if moment.patch.type not in _PATCHES:
            yield f".patch.type: expected one of {', '.join(_PATCHES)}, got {moment.patch.type!r}."
        if moment.patch.patch is None:
            yield ".patch.patch: expected what to change, such as {spec: {replicas: 2}}."
    if moment.delete is not None and (moment.delete.grace_period_seconds or 0) < 0:
        yield ".delete.gracePeriodSeconds: expected 0 or more seconds. 0 removes it at once."


def _fault(fault: Fault) -> Iterator[str]:
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


def _document(document: Any, place: str) -> Iterator[str]:
    if not isinstance(document, dict):
        yield f"{place}: expected a Kubernetes object, got {document!r:.100}."
        return
    kind, meta = str(document.get("kind") or ""), document.get("metadata")
    if kind not in RESOURCE_OF:
        yield f"{place}.kind: {_kinds(kind)}"
    elif document.get("apiVersion") != RESOURCE_OF[kind].api_version:
        right = RESOURCE_OF[kind].api_version
        yield f"{place}.apiVersion: expected {right} for kind {kind}, got {document.get('apiVersion')!r}."
    if not isinstance(meta, dict) or not isinstance(meta.get("name"), str) or not meta["name"]:
        yield f"{place}.metadata.name: expected a name. Give the object one."


def _kinds(kind: str) -> str:
    return f'unknown kind "{kind}".{nearest(kind, RESOURCE_OF)} Scenarios know: {", ".join(RESOURCE_OF)}.'


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    return value.isoformat() if hasattr(value, "isoformat") else value
