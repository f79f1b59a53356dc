"""Renames everything in a snapshot that may say whose it is, so that it can be shown to others and decides the same.

Names of objects, values of labels, images and priority classes become `x-0001`, `x-0002`, ... in the order of the
originals, so that whatever is decided by name order stays so. The same text becomes the same name wherever it stands:
in labels, selectors, node names, owner references, and in what policies tell their rules. Kept as they are: label keys,
resource names, numbers (Gt and Lt compare them), instance types with a list price, the names of rules, and words that
everybody's cluster has, such as spot, linux and true. Of annotations only the numbers of versions and costs stay, of
messages and other annotations only that a node is leaving.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from wukong.api.objects import Objects
from wukong.placement.leaving_nodes import NOTICE, SHUTTING_DOWN
from wukong.placement.price_table import find_list_price
from wukong.ports import Document

_PUBLIC = frozenset(
    {
        "", "true", "false", "linux", "windows", "amd64", "arm64", "default-scheduler",
        "spot", "on-demand", "reserved", "on_demand", "preemptible", "standard", "od",
        "default", "kube-system", "kube-public", "kube-node-lease", "system-node-critical", "system-cluster-critical",
    }
)  # fmt: skip
_MAPS = frozenset({"labels", "matchLabels", "nodeSelector"})  # values of these are label values
_SELECTORS = frozenset({"selector"})  # a map of labels in services and replication controllers, else a LabelSelector
_NAMES = frozenset({
    "name", "generateName", "namespace", "nodeName", "nominatedNodeName", "claimName", "volumeName", "value",
    "priorityClassName", "schedulerName", "runtimeClassName", "storageClassName", "serviceName",
    "uid", "currentRevision", "updateRevision",
})  # fmt: skip
_LISTS = frozenset({"values", "namespaces"})
_IMAGES = frozenset({"image", "reference"})
_DROPPED = frozenset({"resourceVersion", "finalizers", "disruptedPods", "uncountedTerminatedPods"})
_NUMBERS = (  # annotations
    *("deployment.kubernetes.io/", "controller.kubernetes.io/pod-deletion-cost"),
    *("sim.novasphere.dev/", "testbed.wukong/"),
)
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?%?")
# What policies tell the built-in rules: maps whose keys are values of node labels, and texts that are none.
_KEYED = frozenset({"byInstanceType", "matrix"})
_PLAIN = frozenset({"key", "operator", "label", "topologyKey", "threshold"})
Rename = Callable[[str], str]


def anonymize(objects: Objects) -> Objects:
    """The same cluster under other names."""
    originals = objects.everything()
    documents = anonymize_documents([msgspec.to_builtins(original) for original in originals])
    renamed = Objects()
    for original, document in zip(originals, documents, strict=True):
        renamed.add(msgspec.convert(document, type(original)))
    return renamed


def anonymize_documents(documents: Sequence[Document]) -> list[Document]:
    """The same objects under other names; owners still find what they own."""
    seen: set[str] = set()
    for document in documents:
        _walk(document, lambda text: _remember(seen, text))
    width = len(str(len(seen)))
    names = {text: f"x-{number:0{width}}" for number, text in enumerate(sorted(seen), start=1)}
    return [_walk(document, lambda text: names.get(text, text)) for document in documents]


def _remember(seen: set[str], text: str) -> str:
    if text.lower() not in _PUBLIC and not _NUMBER.fullmatch(text) and find_list_price(text) is None:
        seen.add(text)
    return text


def _walk(value: Any, rename: Rename, field: str = "") -> Any:
    """The document with every private text renamed. `field` is where we are."""
    if isinstance(value, dict):
        if field in _MAPS or (field in _SELECTORS and all(isinstance(entry, str) for entry in value.values())):
            return {key: rename(entry) for key, entry in value.items()}
        if field == "annotations":
            numbers = {key: text for key, text in value.items() if key.startswith(_NUMBERS)}
            return numbers | ({NOTICE: "true"} if NOTICE in value else {})
        return {key: _walk(entry, rename, key) for key, entry in value.items() if key not in _DROPPED}
    if isinstance(value, list):
        walk = _walk_rule if field == "rules" else _walk
        return [walk(entry, rename, field) for entry in value]
    if not isinstance(value, str):
        return value
    if field == "message":
        return SHUTTING_DOWN if SHUTTING_DOWN in value else ""
    if field in _NAMES or field in _LISTS:
        return rename(value)
    if field in _IMAGES or field == "names":
        return _rename_image(value, rename)
    return value


def _walk_rule(rule: Any, rename: Rename, field: str) -> Any:
    """A policy's rule keeps its name; what it is told may name zones, instance types and labels."""
    return {key: _walk_config(entry, rename) if key == "config" else entry for key, entry in rule.items()}


def _walk_config(value: Any, rename: Rename, field: str = "", are_keys_values: bool = False) -> Any:
    if isinstance(value, dict):
        if field in _MAPS:
            return {key: rename(entry) for key, entry in value.items()}
        deeper = are_keys_values or field in _KEYED
        return {
            rename(key) if deeper else key: _walk_config(entry, rename, key, deeper) for key, entry in value.items()
        }
    if isinstance(value, list):
        return [_walk_config(entry, rename, field) for entry in value]
    return rename(value) if isinstance(value, str) and field not in _PLAIN else value


def _rename_image(image: str, rename: Rename) -> str:
    """An image without a tag means :latest, which the new name must go on meaning."""
    tagged = image if image.rfind(":") > image.rfind("/") else f"{image}:latest"
    return f"{rename(tagged)}:x"


def texts(objects: Objects) -> Iterator[str]:
    """Every text a snapshot holds, for checking that nothing private is left."""
    for subject in objects.everything():
        yield from _texts(msgspec.to_builtins(subject))


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
