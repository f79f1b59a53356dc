"""From the text of a scenario file to a Scenario: every problem at once, each with place, expectation and fix.

Pure: the documents of `files` are handed in by whoever can read files. Called by `wukong sim run` and by tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import yaml

from wukong.api.decode import readable
from wukong.api.quantity import parse_quantity
from wukong.api.resources import RESOURCES
from wukong.api.strict import unknown_fields
from wukong.embedded.scenario.shape import WRITTEN, Moment, NodeGroup, Scenario, as_list, seconds_of
from wukong.errors import InputError, nearest
from wukong.ports import Document

_LISTS = ("nodes", "timeline")  # read entry by entry, so that each tells its own problem
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


def check_documents(documents: list[Any], place: str) -> list[str]:
    """What a server cannot be asked because it would not know what about."""
    return [problem for index, each in enumerate(documents) for problem in _document(each, f"{place}[{index}]")]


def _convert(document: Document) -> tuple[list[str], Scenario | None]:
    problems: list[str] = []
    parts: dict[str, list[Any]] = {name: [] for name in _LISTS}
    for name, struct in zip(_LISTS, (NodeGroup, Moment), strict=True):
        entries = document.get(name)
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            try:
                parts[name].append(msgspec.convert(entry, struct))
            except msgspec.ValidationError as error:
                problems.append(_placed(readable(error), f"$.{name}[{index}]"))
    rest = {name: value for name, value in document.items() if name not in _LISTS or not isinstance(value, list)}
    try:
        scenario = msgspec.convert(rest, Scenario)
    except msgspec.ValidationError as error:
        return [*problems, readable(error)], None
    scenario.nodes, scenario.timeline = scenario.nodes or parts["nodes"], scenario.timeline or parts["timeline"]
    return problems, scenario


def _checks(scenario: Scenario) -> Iterator[str]:
    yield from _until(scenario)
    names: list[str] = []
    for index, group in enumerate(scenario.nodes):
        yield from (f"$.nodes[{index}]{problem}" for problem in _group(group))
        names += group.names()
    for twice in sorted({name for name in names if names.count(name) > 1}):
        yield f'$.nodes: the name "{twice}" is there twice. Rename one of the two.'
    yield from check_documents(scenario.manifests, "$.manifests")
    for index, moment in enumerate(scenario.timeline):
        yield from (f"$.timeline[{index}]{problem}" for problem in _moment(moment))


def _until(scenario: Scenario) -> Iterator[str]:
    limit = seconds_of(scenario.until)
    if limit is None:
        yield f"$.until: {_DURATION}, got {scenario.until!r}. Add a unit."
        return
    for index, moment in enumerate(scenario.timeline):
        if moment.seconds > limit:
            yield f"$.timeline[{index}].at: {moment.at} is after until, {scenario.until}. Make until longer."


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


def _moment(moment: Moment) -> Iterator[str]:
    if seconds_of(moment.at) is None:
        yield f".at: {_DURATION}, got {moment.at!r}. Add a unit."
    if len(moment.acts) != 1:
        yield f": expected at and one of {', '.join(WRITTEN)}, found {', '.join(moment.acts) or 'none'}."
    for index, each in enumerate(as_list(moment.apply)):
        yield from _document(each, f".apply[{index}]" if isinstance(moment.apply, list) else ".apply")
    for name, target in (("patch", moment.patch), ("delete", moment.delete), ("scale", moment.scale)):
        if target is not None and target.kind not in RESOURCES:
            yield f".{name}.kind: {_kinds(target.kind)}"
    if moment.patch is not None:
        if moment.patch.type not in _PATCHES:
            yield f".patch.type: expected one of {', '.join(_PATCHES)}, got {moment.patch.type!r}."
        if moment.patch.patch is None:
            yield ".patch.patch: expected what to change, such as {spec: {replicas: 2}}."


def _document(document: Any, place: str) -> Iterator[str]:
    if not isinstance(document, dict):
        yield f"{place}: expected a Kubernetes object, got {document!r:.100}."
        return
    kind, meta = document.get("kind"), document.get("metadata")
    if kind not in RESOURCES:
        yield f"{place}.kind: {_kinds(str(kind or ''))}"
    elif document.get("apiVersion") != RESOURCES[kind].api_version:
        right = RESOURCES[kind].api_version
        yield f"{place}.apiVersion: expected {right} for kind {kind}, got {document.get('apiVersion')!r}."
    if not isinstance(meta, dict) or not isinstance(meta.get("name"), str) or not meta["name"]:
        yield f"{place}.metadata.name: expected a name. Give the object one."


def _kinds(kind: str) -> str:
    return f'unknown kind "{kind}".{nearest(kind, RESOURCES)} Scenarios know: {", ".join(RESOURCES)}.'


def _placed(problem: str, place: str) -> str:
    return place + problem.removeprefix("$")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    return value.isoformat() if hasattr(value, "isoformat") else value
