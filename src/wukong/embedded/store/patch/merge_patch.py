"""JSON merge patches (RFC 7386): maps are merged, null removes, everything else replaces. Pure; knows no kinds."""

from __future__ import annotations

from typing import Any

from wukong.api.documents import without_nulls
from wukong.embedded.store.api_errors import bad_request
from wukong.embedded.store.documents import has_same_values, is_same_json
from wukong.ports import Document


def apply_merge_patch(document: Document, patch: Any) -> Document:
    """Return the patched document, which shares unchanged parts with the old. Raises Invalid if the patch is no map."""
    if not isinstance(patch, dict):
        raise bad_request("error decoding patch: expected an object")
    return _merge(document, patch)


def _merge(document: Any, patch: Document) -> Document:
    """Return the merged map; unchanged values stay the same objects."""
    result: Document = dict(document) if isinstance(document, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            result[name] = _merge(result.get(name), value)
        elif name not in result or not is_same_json(result[name], value):
            result[name] = without_nulls(value)  # in lists, too: so does the API server's library, if not the RFC
    return document if isinstance(document, dict) and has_same_values(document, result) else result
