"""Applies a JSON, merge or strategic merge patch to a document. Called by server.py; pure."""

from __future__ import annotations

from wukong.embedded.store.api_errors import unsupported_request
from wukong.embedded.store.documents import copy_document
from wukong.embedded.store.kinds import ServedKind
from wukong.embedded.store.patch import json_patch, merge_patch, strategic_merge
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
            return strategic_merge.apply_strategic_patch(kind.resource.group_kind, document, body, kind.merge_keys)
        case _:
            raise AssertionError("apply is not merged here")
