"""From bytes to typed objects: JSON and YAML, single objects, Lists and multi-document files.

Pure: bytes in, objects out, problems as InputError with the document and the field. Reading files belongs to
wukong.cluster.files.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import yaml

from wukong.api.kinds import CLUSTER_SCOPED, KINDS
from wukong.api.meta import Object
from wukong.errors import InputError, nearest

_SKIPPED_IN_SNAPSHOTS = frozenset({"Event", "Lease", "Endpoints", "EndpointSlice", "ConfigMap"})


class _Head(msgspec.Struct):
    kind: str = ""


class _List(msgspec.Struct):
    kind: str = ""
    items: list[msgspec.Raw] = []


_head = msgspec.json.Decoder(_Head)
_list = msgspec.json.Decoder(_List)
_typed = {kind: msgspec.json.Decoder(struct) for kind, struct in KINDS.items()}


def decode_objects(data: bytes, *, others: bool = False) -> Iterator[Object]:
    """Every object in a JSON or YAML text, Lists unfolded. Kinds we do not model: an error, or skipped (`others`)."""
    if data.lstrip()[:1] == b"{":
        yield from _from_json(data, others)
    else:
        yield from _from_yaml(data, others)


def _from_json(data: bytes, others: bool) -> Iterator[Object]:
    try:
        head = _head.decode(data)
    except msgspec.ValidationError as error:
        raise InputError(str(error)) from None
    except msgspec.DecodeError as error:
        raise InputError(f"broken JSON: {error}") from None
    if not head.kind.endswith("List"):
        yield from _one_json(data, "", others)
        return
    try:
        items = _list.decode(data).items
    except msgspec.DecodeError as error:
        raise InputError(f"broken JSON: {error}") from None
    implied = head.kind.removesuffix("List")  # `kubectl get --raw` leaves the kind out of a NodeList's items
    for index, item in enumerate(items):
        try:
            yield from _one_json(bytes(item), implied, others)
        except InputError as error:
            raise error.at(f"items[{index}]") from None


def _one_json(data: bytes, implied: str, others: bool) -> Iterator[Object]:
    kind = _head.decode(data).kind or implied
    if not _is_known(kind, others):
        return
    try:
        found: Object = _typed[kind].decode(data)
    except msgspec.ValidationError:
        # Go writes null where a list or map is empty; only then pay for the slow way.
        found = _convert(msgspec.json.decode(data), kind)
    except msgspec.DecodeError as error:
        raise InputError(f"broken JSON: {error}") from None
    yield _complete(found, kind)


def _from_yaml(data: bytes, others: bool) -> Iterator[Object]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        documents = list(yaml.load_all(data, Loader=loader))
    except yaml.YAMLError as error:
        raise InputError(f"broken YAML: {_yaml_place(error)}") from None
    except (ValueError, UnicodeDecodeError) as error:
        raise InputError(f"broken YAML: {error}") from None
    several = len(documents) > 1
    for number, document in enumerate(documents, start=1):
        if document is None:
            continue
        try:
            yield from _one_document(document, others)
        except InputError as error:
            raise error.at(f"document {number}") if several else error from None


def _one_document(document: object, others: bool) -> Iterator[Object]:
    if not isinstance(document, dict):
        raise InputError(f"expected a Kubernetes object (a mapping with kind and metadata), got {document!r}"[:300])
    kind = str(document.get("kind") or "")
    if kind.endswith("List") and isinstance(document.get("items"), list):
        for index, item in enumerate(document["items"]):
            try:
                yield from _one_document(_with_kind(item, kind.removesuffix("List")), others)
            except InputError as error:
                raise error.at(f"items[{index}]") from None
        return
    if _is_known(kind, others):
        yield _complete(_convert(document, kind), kind)


def _with_kind(item: object, implied: str) -> object:
    return {"kind": implied, **item} if implied and isinstance(item, dict) else item


def _is_known(kind: str, others: bool) -> bool:
    if kind in KINDS:
        return True
    if not kind:
        raise InputError('expected a Kubernetes object with a "kind", such as kind: Pod. Add apiVersion and kind.')
    if others or kind in _SKIPPED_IN_SNAPSHOTS:
        return False
    raise InputError(f'unknown kind "{kind}".{nearest(kind, KINDS)} Wukong reads: {", ".join(KINDS)}.')


def _convert(value: object, kind: str) -> Object:
    try:
        found: Object = msgspec.convert(_without_nulls(value), KINDS[kind])
    except msgspec.ValidationError as error:
        raise InputError(_with_fix(str(error))) from None
    return found


def _with_fix(message: str) -> str:
    if "Expected `str`, got" in message and ("labels" in message or "matchLabels" in message or "values" in message):
        return f"{message}. Put the value in quotes."
    return message


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
