"""Renames everything in a snapshot that may say whose it is, so that it can be shown to others and decides the same.

Names of objects, values of labels, images and priority classes become `x-0001`, `x-0002`, ... in the order of the
originals, so that whatever is decided by name order stays so. The same text becomes the same name wherever it stands:
in labels, selectors, node names, owner references and the config of policies' rules. Kept as they are: label keys,
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

_PUBLIC_WORDS = frozenset(
    {
        "", "true", "false", "linux", "windows", "amd64", "arm64", "default-scheduler",
        "spot", "on-demand", "reserved", "on_demand", "preemptible", "standard", "od",
        "default", "kube-system", "kube-public", "kube-node-lease", "system-node-critical", "system-cluster-critical",
    }
)  # fmt: skip
_LABEL_MAPS = frozenset({"labels", "matchLabels", "nodeSelector"})  # values of these are label values
_SELECTORS = frozenset({"selector"})  # a map of labels in services and replication controllers, else a LabelSelector
_NAMES = frozenset({
    "name", "generateName", "namespace", "nodeName", "nominatedNodeName", "claimName", "volumeName", "value",
    "priorityClassName", "schedulerName", "runtimeClassName", "storageClassName", "serviceName",
    "uid", "currentRevision", "updateRevision",
})  # fmt: skip
_LISTS = frozenset({"values", "namespaces"})
_IMAGES = frozenset({"image", "reference"})
_DROPPED = frozenset({"resourceVersion", "finalizers", "disruptedPods", "uncountedTerminatedPods"})
_KEPT_ANNOTATIONS = (
    *("deployment.kubernetes.io/", "controller.kubernetes.io/pod-deletion-cost"),
    *("sim.novasphere.dev/", "testbed.wukong/"),
)
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?%?")
# In the config of built-in rules: maps whose keys are values of node labels, and fields whose texts are kept.
_FIELDS_KEYED_BY_LABEL_VALUE = frozenset({"byInstanceType", "matrix"})
_LABEL_KEY_FIELDS = frozenset({"key", "operator", "label", "topologyKey", "threshold"})
Rename = Callable[[str], str]


def anonymize(objects: Objects) -> Objects:
    """Return the same cluster under other names."""
    originals = objects.everything()
    documents = anonymize_documents([msgspec.to_builtins(original) for original in originals])
    renamed = Objects()
    for original, document in zip(originals, documents, strict=True):
        renamed.add(msgspec.convert(document, type(original)))
    return renamed


def anonymize_documents(documents: Sequence[Document]) -> list[Document]:
    """Return the same objects under other names; owner references still match."""
    private_texts: set[str] = set()
    for document in documents:
        _rename_texts(document, lambda text: _collect_private(private_texts, text))
    width = len(str(len(private_texts)))
    names = {text: f"x-{number:0{width}}" for number, text in enumerate(sorted(private_texts), start=1)}
    return [_rename_texts(document, lambda text: names.get(text, text)) for document in documents]


def _collect_private(private_texts: set[str], text: str) -> str:
    if text.lower() not in _PUBLIC_WORDS and not _NUMBER.fullmatch(text) and find_list_price(text) is None:
        private_texts.add(text)
    return text


def _rename_texts(value: Any, rename: Rename, field: str = "") -> Any:
    """Return the value with every private text renamed. `field` is the name of the field that holds it."""
    if isinstance(value, dict):
        if field in _LABEL_MAPS or (field in _SELECTORS and all(isinstance(entry, str) for entry in value.values())):
            return {key: rename(entry) for key, entry in value.items()}
        if field == "annotations":
            numbers = {key: text for key, text in value.items() if key.startswith(_KEPT_ANNOTATIONS)}
            return numbers | ({NOTICE: "true"} if NOTICE in value else {})
        return {key: _rename_texts(entry, rename, key) for key, entry in value.items() if key not in _DROPPED}
    if isinstance(value, list):
        rename_entry = _rename_rule if field == "rules" else _rename_texts
        return [rename_entry(entry, rename, field) for entry in value]
    if not isinstance(value, str):
        return value
    if field == "message":
        return SHUTTING_DOWN if SHUTTING_DOWN in value else ""
    if field in _NAMES or field in _LISTS:
        return rename(value)
    if field in _IMAGES or field == "names":
        return _rename_image(value, rename)
    return value


def _rename_rule(rule: Any, rename: Rename, field: str) -> Any:
    """Rename texts in a rule's config, which may hold zones, instance types and labels. The rule's name is kept."""
    return {key: _rename_config(entry, rename) if key == "config" else entry for key, entry in rule.items()}


def _rename_config(value: Any, rename: Rename, field: str = "", are_keys_values: bool = False) -> Any:
    if isinstance(value, dict):
        if field in _LABEL_MAPS:
            return {key: rename(entry) for key, entry in value.items()}
        deeper = are_keys_values or field in _FIELDS_KEYED_BY_LABEL_VALUE
        return {
            rename(key) if deeper else key: _rename_config(entry, rename, key, deeper) for key, entry in value.items()
        }
    if isinstance(value, list):
        return [_rename_config(entry, rename, field) for entry in value]
    return rename(value) if isinstance(value, str) and field not in _LABEL_KEY_FIELDS else value


def _rename_image(image: str, rename: Rename) -> str:
    """Rename an image. One without a tag means :latest, and must still mean it under its new name."""
    tagged = image if image.rfind(":") > image.rfind("/") else f"{image}:latest"
    return f"{rename(tagged)}:x"


def texts_of(objects: Objects) -> Iterator[str]:
    """Yield every text of a snapshot, for checking that nothing private is left."""
    for subject in objects.everything():
        yield from _texts_in(msgspec.to_builtins(subject))


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, entry in value.items():
            yield key
            yield from _texts_in(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from _texts_in(entry)
    elif isinstance(value, str):
        yield value
