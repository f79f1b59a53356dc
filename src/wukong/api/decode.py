"""From bytes to typed objects: JSON and YAML, single objects, Lists and multi-document files.

Pure: bytes in, objects out. Problems are one InputError, raised after the good objects were given: each names its
document or item, its field and, where there is one, the fix. Reading files belongs to wukong.cluster.files.
"""

from __future__ import annotations

import re
from collections import Counter as Tally
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache

import msgspec

from wukong.api.documents import unfold_list, without_nulls
from wukong.api.json_values import check_depth, check_repeated_names, decode_json, load_json
from wukong.api.kind_table import Kind
from wukong.api.kinds import KINDS
from wukong.api.meta import Object
from wukong.api.resources import group_of
from wukong.api.yaml_values import load_documents
from wukong.errors import InputError, nearest

# Kinds of Kubernetes' own groups that the table does not have: any other unknown kind of those groups is a typo.
_UNMODELLED_KINDS = frozenset({
    "Binding", "ComponentStatus", "Endpoints", "Event", "Eviction", "PodGroup", "PodSecurityPolicy",
    "PodTemplate", "Workload",
})  # fmt: skip
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
_USUAL_START = re.compile(rb'\s*\{\s*"apiVersion"\s*:\s*"([\w./-]+)"\s*,\s*"kind"\s*:\s*"(\w+)"', re.ASCII)
_head_decoder = msgspec.json.Decoder(_Head)
_list_decoder = msgspec.json.Decoder(_List)


@cache
def _decoder(struct: type[Object]) -> msgspec.json.Decoder[Object]:
    return msgspec.json.Decoder(struct)


def decode_objects(
    data: bytes | bytearray, *, skipped: Tally[str] | None = None, namespace: str = "default"
) -> Iterator[Object]:
    """Yield every object in a JSON or YAML text, Lists unfolded.

    Objects of kinds we do not model are an error, or, where `skipped` is given, counted there by kind. Those that name
    no namespace and need one get `namespace`.
    """
    if is_json(data):
        yield from _decode_json(data, skipped, namespace)
    else:
        yield from _decode_yaml(data, skipped, namespace)


def is_json(data: bytes | bytearray) -> bool:
    """Tell whether a text is a JSON object; everything else is read as YAML."""
    return _JSON_START.match(data) is not None


def decode_one(data: bytes | bytearray | msgspec.Raw, group_kind: str) -> Object:
    """Decode one JSON object whose kind is known from its place: requests of Kubernetes mostly leave it out."""
    try:
        return _set_defaults(_decode_typed(data, KINDS[group_kind]), KINDS[group_kind])
    except RecursionError:
        raise InputError("nested too deeply to be a Kubernetes object.") from None


def _decode_json(data: bytes | bytearray, skipped: Tally[str] | None, namespace: str) -> Iterator[Object]:
    check_repeated_names(data)
    try:
        head = decode_json(data, _list_decoder)  # one pass over what may be hundreds of megabytes
    except msgspec.ValidationError as error:
        raise InputError(readable(error)) from None
    kind = head.kind or ""
    if not kind.endswith("List"):
        if (subject := _decode_json_object(data, _Head(), skipped, namespace)) is not None:
            yield subject
        return
    # `kubectl get --raw` leaves kind and apiVersion out of a NodeList's items
    implied = _Head(kind.removesuffix("List"), head.api_version if kind != "List" else None)
    problems: list[str] = []
    for index, item in enumerate(head.items or ()):
        try:
            subject = _decode_json_object(item, implied, skipped, namespace)
        except InputError as error:
            problems += error.at(f"items[{index}]").problems
            continue
        if subject is not None:
            yield subject
    if problems:
        raise InputError(*problems)


def _decode_json_object(
    data: bytes | bytearray | msgspec.Raw, implied: _Head, skipped: Tally[str] | None, namespace: str
) -> Object | None:
    text = bytes(data)
    check_depth(text)
    subject = _decode_usual(text, namespace)
    if subject is not None:
        return subject
    try:
        head = decode_json(text, _head_decoder)
    except msgspec.ValidationError as error:
        raise InputError(readable(error)) from None
    kind = find_kind(head.kind or implied.kind or "", head.api_version or implied.api_version or "", skipped)
    return None if kind is None else _set_defaults(_decode_typed(text, kind), kind, namespace)


def _decode_usual(text: bytes, namespace: str) -> Object | None:
    """Decode an object that begins with apiVersion and kind, as kubectl prints it: one pass instead of two.

    Return None where anything is unusual; then the slow way says what.
    """
    beginning = _USUAL_START.match(text)
    if beginning is None or (kind := _find_usual(*beginning.groups())) is None:
        return None
    try:
        subject = _decoder(kind.struct).decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if subject.kind != kind.resource.kind or subject.api_version != kind.resource.api_version:
        return None  # there is another kind or version behind the first
    return _set_defaults(subject, kind, namespace)


@lru_cache(maxsize=256)
def _find_usual(api_version: bytes, kind: bytes) -> Kind | None:
    entry = KINDS.of_document(kind.decode(), api_version.decode())
    return entry if entry is not None and entry.decides else None


def _decode_typed(data: bytes | bytearray | msgspec.Raw, kind: Kind) -> Object:
    try:
        return decode_json(data, _decoder(kind.struct))
    except msgspec.ValidationError:
        # Go writes null where a list or map is empty; only then pay for the slow path.
        return _convert(load_json(data), kind)


def _decode_yaml(data: bytes | bytearray, skipped: Tally[str] | None, namespace: str) -> Iterator[Object]:
    documents = load_documents(bytes(data))
    several = len(documents) > 1
    yield from _collect(
        (f"document {number}" if several else "", _decode_document(document, skipped, namespace))
        for number, document in enumerate(documents, start=1)
        if document is not None
    )


def _decode_document(document: object, skipped: Tally[str] | None, namespace: str) -> Iterator[Object]:
    if not isinstance(document, dict):
        excerpt = f"{document!r:.200}"
        raise InputError(f"expected a Kubernetes object (a mapping with kind and metadata), got {excerpt}.")
    kind, api_version = str(document.get("kind") or ""), str(document.get("apiVersion") or "")
    if kind.endswith("List"):
        if not isinstance(items := document.get("items"), list | None):
            raise InputError(f"$.items: expected a list of objects, got {items!r:.200}.")
        yield from _collect(
            (f"items[{index}]", _decode_document(item, skipped, namespace))
            for index, item in enumerate(unfold_list(document))
        )
    elif (entry := find_kind(kind, api_version, skipped)) is not None:
        yield _set_defaults(_convert(document, entry), entry, namespace)


def _collect(parts: Iterable[tuple[str, Iterator[Object]]]) -> Iterator[Object]:
    """Yield the objects of all parts, each part with its place. Raise all their problems together at the end."""
    problems: list[str] = []
    for place, part in parts:
        try:
            yield from part
        except InputError as error:
            problems += error.at(place).problems if place else error.problems
    if problems:
        raise InputError(*problems)


def find_kind(kind: str, api_version: str, skipped: Tally[str] | None) -> Kind | None:
    """Return the kind of an object that placement reads. Others are an error, or counted in `skipped` if that is given.

    Knative's Service is not Kubernetes' Service, so the group must be right, too.
    """
    if not kind:
        raise InputError('expected a Kubernetes object with a "kind", such as kind: Pod. Add apiVersion and kind.')
    entry = KINDS.of_document(kind, api_version)
    if entry is not None and entry.decides:
        return entry
    candidates = [candidate for candidate in KINDS.find_by_name(kind) if candidate.decides]
    if skipped is not None and (
        entry or kind in _UNMODELLED_KINDS or group_of(api_version) not in _groups_known_in_full()
    ):
        skipped[kind] += 1
        return None
    if candidates:
        right = " or ".join(candidate.resource.api_version for candidate in candidates)
        raise InputError(f"$.apiVersion: expected {right} for kind {kind}, got {api_version!r}.")
    names = list(dict.fromkeys(candidate.resource.kind for candidate in KINDS.list_deciding()))
    raise InputError(f'$.kind: unknown kind "{kind}".{nearest(kind, names)} Wukong reads: {", ".join(names)}.')


def _groups_known_in_full() -> set[str]:
    """Return the groups of which we know all kinds: an unknown kind there is a typo."""
    return {entry.resource.group for entry in KINDS.list_deciding() if entry.origin in ("kubernetes", "ours")}


def _convert(value: object, kind: Kind) -> Object:
    try:
        return msgspec.convert(without_nulls(value), kind.struct)
    except msgspec.ValidationError as error:
        raise InputError(f"{_name_of(value, kind.resource.kind)}: {readable(error)}") from None


def _name_of(value: object, kind: str) -> str:
    meta = value.get("metadata") if isinstance(value, dict) else None
    parts = [meta[field] for field in ("namespace", "name") if meta.get(field)] if isinstance(meta, dict) else []
    return f"{kind} {'/'.join(str(part) for part in parts)}" if parts else kind


def readable(error: msgspec.ValidationError) -> str:
    """Turn msgspec's "Expected `str`, got `int` - at `$.a.b`" into our order: place, expectation, fix."""
    message, _, path = str(error).replace("`", "").partition(" - at ")
    path = path.removeprefix("key in ") or "$"
    field = path.rpartition(".")[2]
    enum_match = re.fullmatch(r"Invalid enum value '(.*)'", message)
    if enum_match and field in _CHOICES:
        choices = (*_CHOICES[field], "Gt", "Lt") if ".nodeAffinity." in path else _CHOICES[field]
        return f"{path}: expected one of {', '.join(choices)}, got {enum_match[1]!r}.{nearest(enum_match[1], choices)}"
    is_text = message.startswith("Expected str, got") and re.search(r"abels|values|nodeSelector|annotations", path)
    return f"{path}: {message[:1].lower()}{message[1:]}.{' Put the value in quotes.' if is_text else ''}"


def _set_defaults(subject: Object, kind: Kind, namespace: str = "default") -> Object:
    subject.kind = kind.resource.kind
    if not subject.metadata.namespace and kind.resource.namespaced:
        subject.metadata.namespace = namespace
    return subject
