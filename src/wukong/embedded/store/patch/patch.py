"""A patch of any of the four types becomes the document it asks for. Called by server.py; pure."""

from __future__ import annotations

from wukong.embedded.store.api_errors import unsupported_request
from wukong.embedded.store.documents import copy_document
from wukong.embedded.store.kinds import Kind
from wukong.embedded.store.patch import json_patch, merge_patch, strategic_merge
from wukong.ports import Document, PatchBody


def apply_patch(kind: Kind, document: Document, patch: PatchBody) -> Document:
    """What json, merge and strategic patches make of a document. Apply needs to know the owners: see ownership.py.

    A new document; what merge and strategic patches do not touch it shares with the old, and nobody changes in place.
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
            return strategic_merge.apply_strategic_patch(kind.resource.kind, document, body)
        case _:
            raise AssertionError("apply is not merged here")
