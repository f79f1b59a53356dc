"""What kube-scheduler sends an extender, from bytes: k8s.io/kube-scheduler/extender/v1. serve.extender.server calls it.

Whatever the bytes, the result is a request or an InputError that says what is wrong with them. Nodes stay raw, so that
they can be sent back as they came. As Go does it, keys are found in any case; of keys written twice one counts.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple, TypeVar

import msgspec
from msgspec import Raw

from wukong.api.core import Pod
from wukong.api.decode import decode_one
from wukong.errors import InputError
from wukong.placement.slices import Slices

_T = TypeVar("_T")
_NULL = Raw(b"null")
_INT64 = 1 << 63


class ExtenderArgs(NamedTuple):
    """A pod and the nodes offered for it: either their names or they themselves."""

    pod: Pod
    names: bytes | None  # a JSON list
    items: list[Raw] | None


class Victims(NamedTuple):
    """The pods that would be evicted from one node."""

    pods: list[Pod] | list[str]  # in full, or their uids
    uids: list[str]
    violations: int


class _Nodes(msgspec.Struct):
    items: list[Raw] | None = None


class _Args(msgspec.Struct):
    Pod: Raw = _NULL
    Nodes: _Nodes | None = None
    NodeNames: Raw = _NULL


_args = msgspec.json.Decoder(_Args)
_fields = msgspec.json.Decoder(dict[str, Raw])
_raws = msgspec.json.Decoder(list[Raw])
_text = msgspec.json.Decoder(str)
_count = msgspec.json.Decoder(Annotated[int, msgspec.Meta(ge=-_INT64, le=_INT64 - 1)])


def read_args(body: bytes) -> ExtenderArgs:
    """ExtenderArgs: what filter and prioritize are asked."""
    _check_text(body)
    args = _read(_args, body, "")
    if _is_null(args.Pod) or ((args.Nodes is None or args.Nodes.items is None) and _is_null(args.NodeNames)):
        args = _read_folded_args(body)
    pod = _read_pod(args.Pod)
    if (args.Nodes is None) == _is_null(args.NodeNames):
        raise InputError("expected either Nodes or NodeNames to be there, got both or neither.")
    if args.Nodes is not None:
        return ExtenderArgs(pod, None, args.Nodes.items or [])
    if bytes(memoryview(args.NodeNames)[:1]) != b"[":
        raise InputError("NodeNames: expected a list of names.")
    return ExtenderArgs(pod, bytes(args.NodeNames), None)


def read_preemption(body: bytes) -> Slices[tuple[Pod, dict[str, Victims]]]:
    """ExtenderPreemptionArgs: the pod, and by node name the pods that would be evicted."""
    _check_text(body)
    args = _fold_keys(body, "")
    pod = _read_pod(args.get("pod", _NULL))
    full, meta = (_read_map(args, key) for key in ("NodeNameToVictims", "NodeNameToMetaVictims"))
    if full and meta:
        raise InputError("expected either NodeNameToVictims or NodeNameToMetaVictims, got both.")
    victims = {}
    for node, raw in full.items():
        yield
        victims[node] = _read_full_victims(raw, f"NodeNameToVictims[{node!r}]")
    for node, raw in meta.items():
        yield
        victims[node] = _read_meta_victims(raw, f"NodeNameToMetaVictims[{node!r}]")
    return pod, victims


def _read_full_victims(raw: Raw, place: str) -> Victims:
    pods, violations = _read_victims(raw, place)
    decoded = [_read_pod(pod, f"{place}.Pods[{index}]") for index, pod in enumerate(pods)]
    return Victims(decoded, [pod.metadata.uid for pod in decoded], violations)


def _read_meta_victims(raw: Raw, place: str) -> Victims:
    pods, violations = _read_victims(raw, place)
    uids = [_read(_text, _fold_keys(pod, place).get("uid", Raw(b'""')), f"{place}.Pods.UID") for pod in pods]
    return Victims(uids, uids, violations)


def _read_victims(raw: Raw, place: str) -> tuple[list[Raw], int]:
    if _is_null(raw):
        return [], 0
    fields = _fold_keys(raw, place)
    pods = fields.get("pods", _NULL)
    violations = fields.get("numpdbviolations", _NULL)
    return (
        [] if _is_null(pods) else _read(_raws, pods, f"{place}.Pods"),
        0 if _is_null(violations) else _read(_count, violations, f"{place}.NumPDBViolations"),
    )


def _read_pod(raw: Raw, place: str = "Pod") -> Pod:
    if _is_null(raw):
        raise InputError(f"{place}: expected a pod, got nothing.")
    try:
        pod = decode_one(raw, "Pod")
    except InputError as error:
        raise error.at(place) from None
    assert isinstance(pod, Pod)
    return pod


def _read_folded_args(body: bytes) -> _Args:
    fields = _fold_keys(body, "")
    nodes = fields.get("nodes", _NULL)
    items = _NULL if _is_null(nodes) else _fold_keys(nodes, "Nodes").get("items", _NULL)
    listed = None if _is_null(items) else _read(_raws, items, "Nodes.items")
    return _Args(fields.get("pod", _NULL), None if _is_null(nodes) else _Nodes(listed), fields.get("nodenames", _NULL))


def _read_map(args: dict[str, Raw], key: str) -> dict[str, Raw]:
    raw = args.get(key.lower(), _NULL)
    return {} if _is_null(raw) else _read(_fields, raw, key)


def _fold_keys(data: bytes | Raw, place: str) -> dict[str, Raw]:
    """The fields of an object by their names in lower case; the exact ones of two that differ only in case."""
    fields = _read(_fields, data, place)
    return {key.lower(): raw for key, raw in sorted(fields.items(), reverse=True)}


def _read(decoder: msgspec.json.Decoder[_T], data: bytes | Raw, place: str) -> _T:
    try:
        return decoder.decode(data)
    except RecursionError:
        problem = "nested too deeply"
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        problem = str(error)
    raise InputError(f"{place}: {problem}." if place else f"broken JSON: {problem}.")


def _check_text(body: bytes) -> None:
    """Raw values are not looked at on the way through: what is no text would be sent on."""
    if body.isascii():
        return
    try:
        body.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"the body is not UTF-8: {error}.") from None


def _is_null(raw: Raw) -> bool:
    return len(memoryview(raw)) == 4 and bytes(raw) == b"null"
