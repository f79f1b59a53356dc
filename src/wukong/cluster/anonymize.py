"""Renames everything in a snapshot that may say whose it is, so that it can be shown to others and decides the same.

Names of objects, values of labels, images and priority classes become `x-0001`, `x-0002`, ... in the order of the
originals, so that whatever is decided by name order stays so. The same text becomes the same name wherever it stands:
in labels, selectors, node names, owner references. Kept as they are: label keys, resource names, numbers (Gt and Lt
compare them), and words that everybody's cluster has, such as spot, linux and true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from wukong.api.kinds import KINDS, Objects
from wukong.api.meta import Object

_PUBLIC = frozenset(
    {
        "", "true", "false", "spot", "on-demand", "reserved", "SPOT", "ON_DEMAND", "linux", "windows", "amd64", "arm64",
        "default", "kube-system", "kube-public", "kube-node-lease", "system-node-critical", "system-cluster-critical",
    }
)  # fmt: skip
_MAPS = frozenset({"labels", "matchLabels", "nodeSelector"})  # values of these are label values
_SELECTORS = frozenset({"selector"})  # a map of labels in services and replication controllers, else a LabelSelector
_NAMES = frozenset({
    "name", "generateName", "namespace", "nodeName", "nominatedNodeName", "claimName", "volumeName", "value",
    "priorityClassName", "schedulerName", "runtimeClassName", "storageClassName",
})  # fmt: skip
_LISTS = frozenset({"values", "namespaces"})
_IMAGES = frozenset({"image", "reference"})
_DROPPED = frozenset({"uid", "annotations", "message", "resourceVersion", "finalizers"})
Rename = Callable[[str], str]


def anonymize(objects: Objects) -> Objects:
    """The same cluster under other names."""
    documents = [(kind, msgspec.to_builtins(entry)) for kind in KINDS for entry in objects.of(kind)]
    seen: set[str] = set()
    for _, document in documents:
        _walk(document, lambda text: _remember(seen, text))
    width = len(str(len(seen)))
    names = {text: f"x-{number:0{width}}" for number, text in enumerate(sorted(seen), start=1)}
    renamed = Objects()
    for kind, document in documents:
        found: Object = msgspec.convert(_walk(document, lambda text: names.get(text, text)), KINDS[kind])
        renamed.add(found)
    return renamed


def _remember(seen: set[str], text: str) -> str:
    if text not in _PUBLIC and not text.lstrip("+-").isdigit():
        seen.add(text)
    return text


def _walk(value: Any, rename: Rename, field: str = "") -> Any:
    """The document with every private text renamed. `field` is where we are."""
    if isinstance(value, dict):
        if field in _MAPS or (field in _SELECTORS and all(isinstance(entry, str) for entry in value.values())):
            return {key: rename(entry) for key, entry in value.items()}
        return {key: _walk(entry, rename, key) for key, entry in value.items() if key not in _DROPPED}
    if isinstance(value, list):
        return [_walk(entry, rename, field) for entry in value]
    if not isinstance(value, str):
        return value
    if field in _NAMES or field in _LISTS:
        return rename(value)
    if field in _IMAGES or field == "names":
        return _rename_image(value, rename)
    return value


def _rename_image(image: str, rename: Rename) -> str:
    """An image without a tag means :latest, which the new name must go on meaning."""
    tagged = image if image.rfind(":") > image.rfind("/") else f"{image}:latest"
    return f"{rename(tagged)}:x"


def texts(objects: Objects) -> Iterator[str]:
    """Every text a snapshot holds, for checking that nothing private is left."""
    for kind in KINDS:
        for entry in objects.of(kind):
            yield from _texts(msgspec.to_builtins(entry))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, entry in value.items():
            yield key
            yield from _texts(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from _texts(entry)
    elif isinstance(value, str):
        yield value
