"""From bytes to typed objects: JSON and YAML, single objects, Lists and multi-document files.

Pure: bytes in, objects out. Problems are one InputError, raised after the good objects were given: each names its
document or item, its field and, where there is one, the fix. Reading files belongs to wukong.cluster.files.
"""

from __future__ import annotations

import re
from collections import Counter as Tally
from collections.abc import Iterable, Iterator

import msgspec
import yaml

from wukong.api.kinds import CLUSTER_SCOPED, GROUPS, KINDS, version_of
from wukong.api.meta import Object
from wukong.errors import InputError, nearest

# The other kinds of the API groups that hold ours. Kinds of other groups may be anything; here the rest is a typo.
_NEIGHBOURS = frozenset({
    "Binding", "ComponentStatus", "ConfigMap", "ControllerRevision", "Endpoints", "Event", "Eviction", "LimitRange",
    "PodGroup", "PodSecurityPolicy", "PodTemplate", "ResourceQuota", "Secret", "ServiceAccount", "Workload",
})  # fmt: skip
_OUR_GROUPS = frozenset({"", *GROUPS.values()})
# What msgspec calls an "enum" without saying which values it has.
_CHOICES: dict[str, tuple[str, ...]] = {
    "operator": ("In", "NotIn", "Exists", "DoesNotExist"),
    "whenUnsatisfiable": ("DoNotSchedule", "ScheduleAnyway"),
    "nodeAffinityPolicy": ("Honor", "Ignore"),
    "nodeTaintsPolicy": ("Honor", "Ignore"),
    "unhealthyPodEvictionPolicy": ("IfHealthyBudget", "AlwaysAllow"),
}


class _Head(msgspec.Struct, rename="camel"):
    kind: str | None = None
    api_version: str | None = None


class _List(_Head):
    items: list[msgspec.Raw] | None = None  # Go writes null for a typed list without items


_JSON_START = re.compile(rb'\s*\{\s*["}]')  # {kind: Pod} is YAML
_head = msgspec.json.Decoder(_Head)
_list = msgspec.json.Decoder(_List)
_typed = {kind: msgspec.json.Decoder(struct) for kind, struct in KINDS.items()}


def decode_objects(data: bytes | bytearray, *, skipped: Tally[str] | None = None) -> Iterator[Object]:
    """Every object in a JSON or YAML text, Lists unfolded.

    Objects of kinds we do not model are an error, or, where `skipped` is given, counted there by kind.
    """
    try:
        if _JSON_START.match(data):
            yield from _from_json(data, skipped)
        else:
            yield from _from_yaml(data, skipped)
    except RecursionError:
        raise InputError("nested too deeply to be a Kubernetes object.") from None


def decode_one(data: bytes | bytearray | msgspec.Raw, kind: str) -> Object:
    """One JSON object whose kind is known from the place it came in: what Kubernetes asks us mostly leaves it out."""
    try:
        return _complete(_typed_or_converted(data, kind), kind)
    except RecursionError:
        raise InputError("nested too deeply to be a Kubernetes object.") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"broken JSON: {error}.") from None


def _from_json(data: bytes | bytearray, skipped: Tally[str] | None) -> Iterator[Object]:
    try:
        head = _list.decode(data)  # one pass over what may be hundreds of megabytes
    except msgspec.ValidationError as error:
        raise InputError(readable(error)) from None
    except msgspec.DecodeError as error:
        raise InputError(f"broken JSON: {error}. Was it cut off while being written?") from None
    kind = head.kind or ""
    if not kind.endswith("List"):
        yield from _one_json(data, _Head(), skipped)
        return
    # `kubectl get --raw` leaves kind and apiVersion out of a NodeList's items
    implied = _Head(kind.removesuffix("List"), head.api_version if kind != "List" else None)
    yield from _all(
        (f"items[{index}]", _one_json(item, implied, skipped)) for index, item in enumerate(head.items or ())
    )


def _one_json(data: bytes | bytearray | msgspec.Raw, implied: _Head, skipped: Tally[str] | None) -> Iterator[Object]:
    try:
        head = _head.decode(data)
    except msgspec.ValidationError as error:
        raise InputError(readable(error)) from None
    kind = head.kind or implied.kind or ""
    if not is_ours(kind, head.api_version or implied.api_version or "", skipped):
        return
    yield _complete(_typed_or_converted(data, kind), kind)


def _typed_or_converted(data: bytes | bytearray | msgspec.Raw, kind: str) -> Object:
    try:
        found: Object = _typed[kind].decode(data)
    except msgspec.ValidationError:
        # Go writes null where a list or map is empty; only then pay for the slow way.
        return _convert(msgspec.json.decode(data), kind)
    return found


def _from_yaml(data: bytes | bytearray, skipped: Tally[str] | None) -> Iterator[Object]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        documents = list(yaml.load_all(bytes(data), Loader=loader))
    except yaml.YAMLError as error:
        raise InputError(f"broken YAML: {_yaml_place(error)}") from None
    except (ValueError, TypeError, LookupError, AttributeError) as error:  # what PyYAML trips over: !!bool maybe
        raise InputError(f"broken YAML: a value that is not what it looks like or is tagged as: {error}.") from None
    several = len(documents) > 1
    yield from _all(
        (f"document {number}" if several else "", _one_document(document, skipped))
        for number, document in enumerate(documents, start=1)
        if document is not None
    )


def _one_document(document: object, skipped: Tally[str] | None) -> Iterator[Object]:
    if not isinstance(document, dict):
        shown = f"{document!r:.200}"
        raise InputError(f"expected a Kubernetes object (a mapping with kind and metadata), got {shown}.")
    kind, api_version = str(document.get("kind") or ""), str(document.get("apiVersion") or "")
    if kind.endswith("List"):
        items = document.get("items") or []
        if not isinstance(items, list):
            raise InputError(f"$.items: expected a list of objects, got {items!r:.200}.")
        implied = {"kind": kind.removesuffix("List"), "apiVersion": api_version} if kind != "List" else {}
        yield from _all(
            (f"items[{index}]", _one_document({**implied, **item} if isinstance(item, dict) else item, skipped))
            for index, item in enumerate(items)
        )
    elif is_ours(kind, api_version, skipped):
        yield _complete(_convert(document, kind), kind)


def _all(parts: Iterable[tuple[str, Iterator[Object]]]) -> Iterator[Object]:
    """The objects of all parts, each with its place; what was wrong with any of them is raised at the end, together."""
    problems: list[str] = []
    for place, part in parts:
        try:
            yield from part
        except InputError as error:
            problems += error.at(place).problems if place else error.problems
    if problems:
        raise InputError(*problems)


def is_ours(kind: str, api_version: str, skipped: Tally[str] | None) -> bool:
    """Whether we read this kind. Knative's Service is not Kubernetes' Service, so the group must be right, too."""
    if not kind:
        raise InputError('expected a Kubernetes object with a "kind", such as kind: Pod. Add apiVersion and kind.')
    group = api_version.rpartition("/")[0]
    if kind in KINDS and (not api_version or group == GROUPS.get(kind, "")):
        return True
    if skipped is not None and (group not in _OUR_GROUPS or kind in _NEIGHBOURS):
        skipped[kind] += 1
        return False
    if kind in KINDS:
        right = f"{GROUPS[kind]}/{version_of(kind)}" if kind in GROUPS else "v1"
        raise InputError(f"$.apiVersion: expected {right} for kind {kind}, got {api_version!r}.")
    raise InputError(f'$.kind: unknown kind "{kind}".{nearest(kind, KINDS)} Wukong reads: {", ".join(KINDS)}.')


def _convert(value: object, kind: str) -> Object:
    try:
        found: Object = msgspec.convert(_without_nulls(value), KINDS[kind])
    except msgspec.ValidationError as error:
        raise InputError(f"{_name(value, kind)}: {readable(error)}") from None
    return found


def _name(value: object, kind: str) -> str:
    meta = value.get("metadata") if isinstance(value, dict) else None
    known = [meta[field] for field in ("namespace", "name") if meta.get(field)] if isinstance(meta, dict) else []
    return f"{kind} {'/'.join(str(part) for part in known)}" if known else kind


def readable(error: msgspec.ValidationError) -> str:
    """msgspec's "Expected `str`, got `int` - at `$.a.b`" the way all our messages are: place, expectation, fix."""
    message, _, path = str(error).replace("`", "").partition(" - at ")
    path = path.removeprefix("key in ") or "$"
    field = path.rpartition(".")[2]
    got = re.fullmatch(r"Invalid enum value '(.*)'", message)
    if got and field in _CHOICES:
        choices = (*_CHOICES[field], "Gt", "Lt") if "nodeAffinity" in path else _CHOICES[field]
        return f"{path}: expected one of {', '.join(choices)}, got {got[1]!r}.{nearest(got[1], choices)}"
    is_text = message.startswith("Expected str, got") and re.search(r"abels|values|nodeSelector|annotations", path)
    return f"{path}: {message[:1].lower()}{message[1:]}.{' Put the value in quotes.' if is_text else ''}"


def _complete(found: Object, kind: str) -> Object:
    found.kind = kind
    if not found.metadata.namespace and kind not in CLUSTER_SCOPED:
        found.metadata.namespace = "default"
    return found


def _without_nulls(value: object) -> object:
    """Kubernetes reads an explicit null as an absent field. Timestamps YAML understood become text again."""
    if isinstance(value, dict):
        return {key: _without_nulls(entry) for key, entry in value.items() if entry is not None}
    if isinstance(value, list):
        return [_without_nulls(entry) for entry in value if entry is not None]
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return value


def _yaml_place(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}" if mark else str(problem)
