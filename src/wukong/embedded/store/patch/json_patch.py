"""JSON patches (RFC 6902): operations one after the other, all of them or none.

Where the API server's library (evanphx/json-patch v4) departs from the RFC, so do we: a missing field is null, so it
can be replaced, copied and tested for null; only to remove or move it is an error.

Called by patching.py with a copy that may be changed. Raises Invalid for what cannot be carried out.
"""

from __future__ import annotations

from typing import Any

from wukong.embedded.store.api_errors import bad_request, unfit_patch
from wukong.ports import Document


def patched(document: Document, operations: Any) -> Document:
    if not isinstance(operations, list) or not all(isinstance(each, dict) for each in operations):
        raise bad_request("error decoding patch: expected a list of operations")
    root: dict[str, Any] = {"": document}  # so that the whole document has a parent, too
    for operation in operations:
        _do(root, operation)
    result = root[""]
    if not isinstance(result, dict):
        raise unfit_patch("the patch leaves no object")
    return result


def _do(root: Document, operation: Document) -> None:
    kind, path = operation.get("op"), operation.get("path")
    if not isinstance(path, str):
        raise bad_request("error decoding patch: an operation has no path")
    match kind:
        case "test":
            if _found(root, path) != operation.get("value"):
                raise unfit_patch(f"testing path {path} failed: its value is another")
        case "remove":
            _remove(root, path)
        case "add":
            _add(root, path, operation.get("value"))
        case "replace":
            _found(root, path)
            _set(root, path, operation.get("value"))
        case "move":
            _add(root, path, _remove(root, str(operation.get("from"))))
        case "copy":
            _add(root, path, _copy(_found(root, str(operation.get("from")))))
        case _:
            raise unfit_patch(f"Unexpected kind: {kind}")


def _found(root: Document, path: str) -> Any:
    parent, last = _parent(root, path)
    if isinstance(parent, dict):
        return parent.get(last)
    try:
        return parent[_index(parent, last)]
    except IndexError:
        raise unfit_patch(f"Unable to access invalid index: {last}") from None


def _add(root: Document, path: str, value: Any) -> None:
    parent, last = _parent(root, path)
    if isinstance(parent, dict):
        parent[last] = value
        return
    index = len(parent) if last == "-" else _index(parent, last)
    if index > len(parent):
        raise unfit_patch(f"Unable to access invalid index: {last}")
    parent.insert(index, value)


def _set(root: Document, path: str, value: Any) -> None:
    parent, last = _parent(root, path)
    if isinstance(parent, dict):
        parent[last] = value
    else:
        parent[_index(parent, last)] = value


def _remove(root: Document, path: str) -> Any:
    found = _found(root, path)
    parent, last = _parent(root, path)
    if isinstance(parent, dict) and last not in parent:
        raise unfit_patch(f"Unable to remove nonexistent key: {last}")
    del parent[last if isinstance(parent, dict) else _index(parent, last)]
    return found


def _parent(root: Document, path: str) -> tuple[Any, str]:
    """What holds the value of this path, and under which name."""
    steps = [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")]
    held: Any = root
    for step in steps[:-1]:
        try:
            held = held[_index(held, step)] if isinstance(held, list) else held[step]
        except (KeyError, IndexError, TypeError):
            raise unfit_patch(f"doc is missing path: {path}") from None
    if not isinstance(held, dict | list):
        raise unfit_patch(f"doc is missing path: {path}")
    return held, steps[-1]


def _index(within: list[Any], step: str) -> int:
    try:
        index = int(step)
    except ValueError:
        raise unfit_patch(f"{step} is no index of a list") from None
    return index + len(within) if index < 0 else index  # evanphx/json-patch counts from the end, too


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copy(entry) for name, entry in value.items()}
    return [_copy(entry) for entry in value] if isinstance(value, list) else value
