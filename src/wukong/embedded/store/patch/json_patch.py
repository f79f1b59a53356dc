"""JSON patches (RFC 6902): operations one after the other, all of them or none.

Where the API server's library (evanphx/json-patch v4) departs from the RFC, so do we: a missing field is null, so it
can be replaced, copied and tested for null; only removing or moving it is an error. Called by patch.py.
"""

from __future__ import annotations

from typing import Any

from wukong.embedded.store.api_errors import bad_request, unprocessable_patch
from wukong.errors import Invalid
from wukong.ports import Document


def apply_json_patch(document: Document, operations: Any) -> Document:
    """Apply the operations to `document`, which may be changed. Raises Invalid where one cannot be performed."""
    if not isinstance(operations, list) or not all(isinstance(operation, dict) for operation in operations):
        raise bad_request("error decoding patch: expected a list of operations")
    root: dict[str, Any] = {"": document}  # so that the whole document has a parent, too
    for operation in operations:
        _perform(root, operation)
    result = root[""]
    if not isinstance(result, dict):
        raise unprocessable_patch("the patch leaves no object")
    return result


def _perform(root: Document, operation: Document) -> None:
    kind, path = operation.get("op"), operation.get("path")
    if not isinstance(path, str):
        raise bad_request("error decoding patch: an operation has no path")
    match kind:
        case "test":
            if _get(root, path) != operation.get("value"):
                raise unprocessable_patch(f"testing path {path} failed: its value is another")
        case "remove":
            _remove(root, path)
        case "add":
            _add(root, path, operation.get("value"))
        case "replace":
            _get(root, path)
            _set(root, path, operation.get("value"))
        case "move":
            _add(root, path, _remove(root, str(operation.get("from"))))
        case "copy":
            _add(root, path, _copy_value(_get(root, str(operation.get("from")))))
        case _:
            raise unprocessable_patch(f"Unexpected kind: {kind}")


def _get(root: Document, path: str) -> Any:
    parent, last = _find_parent(root, path)
    if isinstance(parent, dict):
        return parent.get(last)
    return parent[_index_of(last, len(parent))]


def _add(root: Document, path: str, value: Any) -> None:
    parent, last = _find_parent(root, path)
    if isinstance(parent, dict):
        parent[last] = value
        return
    parent.insert(len(parent) if last == "-" else _index_of(last, len(parent) + 1), value)


def _set(root: Document, path: str, value: Any) -> None:
    parent, last = _find_parent(root, path)
    if isinstance(parent, dict):
        parent[last] = value
    else:
        parent[_index_of(last, len(parent))] = value


def _remove(root: Document, path: str) -> Any:
    value = _get(root, path)
    parent, last = _find_parent(root, path)
    if isinstance(parent, dict) and last not in parent:
        raise unprocessable_patch(f"Unable to remove nonexistent key: {last}")
    del parent[last if isinstance(parent, dict) else _index_of(last, len(parent))]
    return value


def _find_parent(root: Document, path: str) -> tuple[Any, str]:
    """Return the map or list that holds the value of this path, and the last step to it."""
    steps = [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")]
    parent: Any = root
    for step in steps[:-1]:
        try:
            parent = parent[_index_of(step, len(parent))] if isinstance(parent, list) else parent[step]
        except (KeyError, TypeError, Invalid):
            raise unprocessable_patch(f"doc is missing path: {path}") from None
    if not isinstance(parent, dict | list):
        raise unprocessable_patch(f"doc is missing path: {path}")
    return parent, steps[-1]


def _index_of(step: str, length: int) -> int:
    """The place in a list of this length. evanphx/json-patch counts from the end, too: -1 is the last."""
    try:
        index = int(step)
    except ValueError:
        raise unprocessable_patch(f"{step} is no index of a list") from None
    if not -length <= index < length:
        raise unprocessable_patch(f"Unable to access invalid index: {step}")
    return index % length


def _copy_value(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copy_value(entry) for name, entry in value.items()}
    return [_copy_value(entry) for entry in value] if isinstance(value, list) else value
