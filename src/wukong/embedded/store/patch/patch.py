"""Applies a JSON, merge or strategic merge patch to a document. Called by server.py and writes.py; pure."""

from __future__ import annotations

from functools import cache

from wukong.api.field_types import Type
from wukong.embedded.store.api_errors import unsupported_request
from wukong.embedded.store.documents import copy_document
from wukong.embedded.store.kinds import ServedKind
from wukong.embedded.store.patch import json_patch, merge_patch, strategic_merge
from wukong.embedded.store.patch.plain_merge import NotPlainError, merge_plain
from wukong.errors import Invalid
from wukong.ports import Document, PatchBody


def apply_patch(kind: ServedKind, document: Document, patch: PatchBody) -> Document:
    """Return the patched document. After merge and strategic patches it shares unchanged parts with the old one.

    Server-side apply needs to know the owners of fields: see ownership/field_managers.py.
    """
    body = copy_document({"body": patch.body})["body"]
    match patch.type:
        case "json":
            return json_patch.apply_json_patch(copy_document(document), body)
        case "merge":
            return merge_patch.apply_merge_patch(document, body)
        case "strategic":
            if kind.is_custom:
                accepted = "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
                message = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
                raise unsupported_request(message, 415, "UnsupportedMediaType")
            return strategic_merge.apply_strategic_patch(kind.type, document, body)
        case _:
            raise AssertionError("apply is not merged here")


def apply_plain_patch(kind: ServedKind, document: Document, patch: PatchBody) -> Document | None:
    """Return the patched document in normal form, or None where only `apply_patch` can tell.

    `document` is of a built-in kind and in normal form. It is returned itself if the patch changes nothing.
    """
    if patch.type not in ("merge", "strategic") or (patch.type == "strategic" and _replaces_maps(kind.type)):
        return None
    try:
        return merge_plain(document, patch.body, kind.type, is_strategic=patch.type == "strategic")
    except (NotPlainError, Invalid):
        return None


@cache
def _replaces_maps(type_: Type | None) -> bool:
    """Whether a strategic patch replaces maps of this kind, which only the general way knows."""
    spec = type_.fields.get("spec") if type_ is not None else None
    fields = spec.type.fields.values() if spec is not None else ()
    return any(field.is_replaced for field in fields)
