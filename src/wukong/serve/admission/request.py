"""What an API server sends a webhook, from bytes: an AdmissionReview of admission.k8s.io/v1. server.py calls it.

Whatever the bytes, the result is a question, or an InputError that says what is wrong with them. A review that cannot
be read but has a uid is a question about nothing: it can be answered, so that nobody waits. Objects stay raw.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import msgspec
from msgspec import Raw

from wukong.api.documents import without_nulls
from wukong.api.json_values import check_depth, load_json
from wukong.api.meta import Base, ObjectMeta
from wukong.api.resources import group_kind
from wukong.errors import InputError
from wukong.replies.admission.reply import ObjectRequest, PodRequest

_T = TypeVar("_T")
_NULL = Raw(b"null")
_POD = ("", "Pod")
_LONGEST_UID = 1024  # it is sent back


class Question(NamedTuple):
    """`about` is None where there is nothing for us to say; `problem` says why it could not be read."""

    uid: str
    about: PodRequest | ObjectRequest | None = None
    problem: str = ""


class _Kind(Base):
    group: str = ""
    kind: str = ""


class _Request(Base):
    uid: str = ""
    kind: _Kind | None = None
    sub_resource: str | None = None
    namespace: str | None = None
    operation: str = ""
    dry_run: bool | None = None
    object: Raw = _NULL
    old_object: Raw = _NULL


class _Review(Base):
    request: _Request | None = None


class _Uid(Base):
    uid: str = ""


class _Head(Base):
    request: _Uid | None = None


class _Pod(Base):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: dict[str, Raw] = {}


class _PodRequest(Base):
    """As _Request, with a pod that is read in the same pass."""

    uid: str
    kind: _Kind
    operation: str
    object: _Pod
    sub_resource: str | None = None
    namespace: str | None = None
    dry_run: bool | None = None


class _PodReview(Base):
    request: _PodRequest


_pod_review = msgspec.json.Decoder(_PodReview)
_review = msgspec.json.Decoder(_Review)
_head = msgspec.json.Decoder(_Head)
_pod = msgspec.json.Decoder(_Pod)


def read_pod_review(body: bytes) -> Question:
    """A question about a pod that is to be created; about anything else there is nothing to say."""
    return _read_usual_pod_review(body) or _read_any_pod_review(body)


def _read_usual_pod_review(body: bytes) -> Question | None:
    """The same in one pass, for a review as it should be; None for anything that is not."""
    try:
        request = _pod_review.decode(body).request
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not 0 < len(request.uid) <= _LONGEST_UID or not body.isascii():
        return None
    kind, pod = request.kind, request.object
    if (kind.group, kind.kind) != _POD or request.sub_resource or request.operation != "CREATE":
        return None
    namespace = request.namespace or pod.metadata.namespace
    return Question(request.uid, PodRequest(namespace, pod.metadata, pod.spec, bool(request.dry_run)))


def _read_any_pod_review(body: bytes) -> Question:
    uid, request, problem = _read_review(body)
    if request is None or not _is_new_pod(request):
        return Question(uid, problem=problem)
    try:
        pod = _read_pod(request.object)
    except InputError as error:
        return Question(uid, problem=str(error))
    namespace = request.namespace or pod.metadata.namespace
    return Question(uid, PodRequest(namespace, pod.metadata, pod.spec, bool(request.dry_run)))


def read_object_review(body: bytes) -> Question:
    """A question about an object, of whatever kind, that is to be created or updated."""
    uid, request, problem = _read_review(body)
    if request is None or request.kind is None or request.sub_resource or _is_null(request.object):
        return Question(uid, problem=problem)
    if request.operation not in ("CREATE", "UPDATE"):
        return Question(uid)
    about = ObjectRequest(group_kind(request.kind.kind, request.kind.group), request.object, request.old_object)
    return Question(uid, about)


def _read_review(body: bytes) -> tuple[str, _Request | None, str]:
    """The uid, and the request or what is wrong with it."""
    _check_text(body)
    problem = "request: is missing."
    try:
        request = _read(_review, body).request
    except InputError as error:
        request, problem = None, str(error)
    uid = request.uid if request is not None else _read_uid(body, problem)
    if not uid or len(uid) > _LONGEST_UID:
        raise InputError(f"request.uid: expected a text of 1 to {_LONGEST_UID} characters.")
    return uid, request, "" if request is not None else problem


def _read_uid(body: bytes, problem: str) -> str:
    """Of a review that cannot be read as a whole."""
    try:
        head = _read(_head, body).request
    except InputError:
        head = None
    if head is None:
        raise InputError(problem)
    return head.uid


def _is_new_pod(request: _Request) -> bool:
    kind = request.kind
    is_pod = kind is not None and (kind.group, kind.kind) == _POD and not request.sub_resource
    return is_pod and request.operation == "CREATE" and not _is_null(request.object)


def _read_pod(raw: Raw) -> _Pod:
    try:
        return _pod.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass  # Go may write null where a list or map is empty
    check_depth(raw)
    document = without_nulls(load_json(raw))
    try:
        return _pod.decode(msgspec.json.encode(document))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise InputError(f"request.object: {error}.") from None


def _read(decoder: msgspec.json.Decoder[_T], body: bytes) -> _T:
    try:
        return decoder.decode(body)
    except RecursionError:
        raise InputError("nested too deeply.") from None
    except msgspec.ValidationError as error:
        raise InputError(f"expected an AdmissionReview: {error}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"broken JSON: {error}.") from None


def _check_text(body: bytes) -> None:
    """Raw values are not looked at on the way through."""
    if body.isascii():
        return
    try:
        body.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"the body is not UTF-8: {error}.") from None


def _is_null(raw: Raw) -> bool:
    return len(memoryview(raw)) == 4 and bytes(raw) == b"null"
