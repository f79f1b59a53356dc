"""Renames everything in a snapshot that may say whose it is, so that it can be shown to others and decides the same.

Every text is renamed, be it a value or the key of a map, unless it is public vocabulary (public_vocabulary.py). Names
are `x-0001`, `x-0002`, ... in the order of the originals, so that whatever is decided by name order stays so. The same
text becomes the same name wherever it stands: in labels, selectors, node names, owner references and the config of
policies' rules. What a text is read for is kept by its form:

    example.com/fpga         x-0001/x                   an extended resource has a slash
    a.kubernetes.io/x        kubernetes.io/x-0001       and is Kubernetes' own with this, hugepages-, ...
    shop/web, shop/web:1     x-0001/x:x, x-0002/x:x     an image without a tag means :latest
    web-3, web-5d8           x-0001-3, x-0001-x-0002    a pod of StatefulSet web, its revision: both are taken apart;
                                                        and a machine of Wukong web
    free…/example.com_fpga   free…/x-0001_x             the label with what is free of a resource

Of annotations only public ones with public values stay, and what was decided for a pod at admission; of messages only
that a node is leaving, of a kubelet's version its numbers; finalizers, and names of pods in the statuses of budgets and
Jobs, go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from wukong.api.kinds import CLUSTER_PLACEMENT_POLICIES, KINDS, PLACEMENT_POLICIES
from wukong.api.meta import Object
from wukong.api.objects import Objects
from wukong.cluster.field_shapes import DATA, Shape, shape_of_document, shape_within
from wukong.cluster.public_vocabulary import ANNOTATIONS, Vocabulary, collect_vocabulary
from wukong.placement.free_labels import find_resource_type, free_label_of
from wukong.placement.leaving_nodes import NOTICE, SHUTTING_DOWN
from wukong.placement.pods.mark import MARK, Mark, format_mark, read_mark
from wukong.ports import Document
from wukong.semantics.volume_claims import CLASS_ANNOTATION, PROVISIONED_BY, SELECTED_NODE, STORAGE_PROVISIONER

_IMAGES = frozenset({"image", "reference", "names"})
_DROPPED = frozenset({"resourceVersion", "finalizers", "disruptedPods", "uncountedTerminatedPods", "managedFields"})
_NUMBER_LISTS = frozenset({"completedIndexes", "failedIndexes"})  # `1,3-5`
_FORMS = ("hugepages-", "attachable-volumes-", "requests.")  # what resources of such a name begin with
_POLICIES = frozenset({PLACEMENT_POLICIES.kind, CLUSTER_PLACEMENT_POLICIES.kind})
_NAMES = frozenset({CLASS_ANNOTATION, SELECTED_NODE, PROVISIONED_BY, STORAGE_PROVISIONER})  # annotations that name
_VERSION = re.compile(r"v\d+\.\d+\.\d+")
_NUMBERS = re.compile(r"[\d,-]*")


def anonymize(objects: Objects) -> Objects:
    """Return the same cluster under other names."""
    originals = objects.everything()
    documents = anonymize_documents([_document_of(original) for original in originals])
    renamed = Objects()
    for original, document in zip(originals, documents, strict=True):
        renamed.add(msgspec.convert(document, type(original)))
    return renamed


def _document_of(original: Object) -> Document:
    """With its kind, which objects of a typed list lack."""
    kind = KINDS.of_struct(type(original))
    head = {"kind": kind.resource.kind, "apiVersion": kind.resource.api_version} if kind is not None else {}
    return {**head, **msgspec.to_builtins(original)}


def anonymize_documents(documents: Sequence[Document]) -> list[Document]:
    """Return the same objects under other names; owner references still match."""
    vocabulary = collect_vocabulary()
    names = choose_names(documents, vocabulary)
    renamer = _Renamer(vocabulary, lambda text: names.get(text, text))
    return [renamer.rename_document(document) for document in documents]


def choose_names(documents: Sequence[Document], vocabulary: Vocabulary) -> dict[str, str]:
    """Return the new name of every text of these documents that is not public."""
    texts: set[str] = set()

    def collect(text: str) -> str:
        texts.add(text)
        if resource := find_resource_type(text):
            texts.add(resource)
        if text.startswith("requests.") and "/" in text:
            texts.add(text.removeprefix("requests."))
        return text

    collector, derived_names = _Renamer(vocabulary, collect), list[_DerivedName]()
    for document in documents:
        collector.rename_document(document)
        if (derived := _read_derived_name(document)) is not None:
            derived_names.append(derived)
            texts.add(derived.rest)
    private_texts = sorted(text for text in texts if not vocabulary.is_public(text))
    width = len(str(len(private_texts)))
    names = {text: _shape(text, f"x-{number:0{width}}") for number, text in enumerate(private_texts, start=1)}
    for name, owner, rest in derived_names:
        if name in names:
            names[name] = f"{names.get(owner, owner)}-{names.get(rest, rest)}"
    for text in names:
        resource = text.removeprefix("requests.")
        if resource != text and resource in names:  # a quota on a resource is named after it
            names[text] = f"requests.{names[resource]}"
    for text in names:
        if resource := find_resource_type(text):  # a label that is named after a resource
            names[text] = free_label_of(names.get(resource, resource))
    return names


def _shape(text: str, name: str) -> str:
    """Return the name in the form of the text, as far as that decides what kind of resource it is."""
    if "kubernetes.io/" in text:
        return f"kubernetes.io/{name}"
    form = next((form for form in _FORMS if text.startswith(form)), "")
    return f"{form}{name}/x" if "/" in text else f"{form}{name}"


class _DerivedName(NamedTuple):
    name: str
    owner: str
    rest: str  # behind the owner's name: a pod's number, a revision's hash


def _read_derived_name(document: Document) -> _DerivedName | None:
    """Read a name that controllers take apart: of StatefulSets' pods, of Wukongs' machines, and of revisions.

    None if it is another.
    """
    numbered = {"Pod": "StatefulSet", "VirtualMachine": "Wukong"}.get(str(document.get("kind")))
    if numbered is None and document.get("kind") != "ControllerRevision":
        return None
    meta = document.get("metadata") or {}
    name = str(meta.get("name") or "")
    for reference in meta.get("ownerReferences") or ():
        owner = str(reference.get("name") or "")
        rest = name.removeprefix(f"{owner}-")
        if rest != name and (numbered is None or (reference.get("kind") == numbered and rest.isdecimal())):
            return _DerivedName(name, owner, rest)
    return None


class _Renamer:
    """Renames every text of a document, keys too, but the names of fields."""

    def __init__(self, vocabulary: Vocabulary, rename: Callable[[str], str]) -> None:
        self.vocabulary, self.rename, self.fields = vocabulary, rename, vocabulary.fields

    def rename_document(self, document: Document) -> Document:
        renamed: Document = self._rename(document, shape_of_document(document), "")
        return renamed

    def _rename(self, value: Any, shape: Shape, field: str) -> Any:
        """Return the value with every text renamed. `field` is the name of the field that holds it."""
        if isinstance(value, dict):
            if field == "annotations":
                return self._reduce_annotations(value)
            if shape == DATA:
                return self._rename_map(value)
            return {
                key if key in self.fields else self.rename(key): self._rename(
                    entry, shape_within(shape, value, key), key
                )
                for key, entry in value.items()
                if key not in _DROPPED
            }
        if isinstance(value, list):
            return [self._rename(entry, shape, field) for entry in value]
        return self._rename_text(value, field) if isinstance(value, str) else value

    def _rename_map(self, value: Any) -> Any:
        """Rename a map whose keys are data: labels, amounts of resources, prices by type, a matrix of zones."""
        if isinstance(value, dict):
            return {self.rename(key): self._rename_map(entry) for key, entry in value.items()}
        if isinstance(value, list):
            return [self._rename_map(entry) for entry in value]
        return self.rename(value) if isinstance(value, str) else value

    def _rename_text(self, text: str, field: str) -> str:
        if field == "message":
            return SHUTTING_DOWN if SHUTTING_DOWN in text else ""
        if field == "kubeletVersion":
            version = _VERSION.match(text)
            return version[0] if version else ""
        if field in _NUMBER_LISTS and _NUMBERS.fullmatch(text):
            return text
        return self._rename_image(text) if field in _IMAGES and text else self.rename(text)

    def _rename_image(self, image: str) -> str:
        """Rename an image. One without a tag means :latest, and must still mean it under its new name."""
        tagged = image if image.rfind(":") > image.rfind("/") else f"{image}:latest"
        return f"{self.rename(tagged)}:x"

    def _reduce_annotations(self, annotations: dict[str, str]) -> dict[str, str]:
        """Keep the numbers and switches of public annotations, and that there is a notice, whatever it says."""
        names = {key: self.rename(annotations[key]) for key in _NAMES if key in annotations}
        kept = names | {
            key: text
            for key, text in annotations.items()
            if key in ANNOTATIONS and key != NOTICE and (self.vocabulary.is_public(text) or _NUMBERS.fullmatch(text))
        }
        return kept | ({NOTICE: "true"} if NOTICE in annotations else {}) | self._rename_mark(annotations)

    def _rename_mark(self, annotations: dict[str, str]) -> dict[str, str]:
        """Rename the policy of a pod's mark as the policy itself: `PlacementPolicy shop/web`."""
        mark = read_mark(annotations)
        kind, _, key = mark.policy.partition(" ") if mark is not None else ("", "", "")
        if mark is None or kind not in _POLICIES:
            return {}
        names = "/".join(self.rename(name) for name in key.split("/"))
        return {MARK: format_mark(Mark(f"{kind} {names}", mark.generation, mark.capacity))}


def texts_of(objects: Objects) -> Iterator[str]:
    """Yield every text of a snapshot, for checking that nothing private is left."""
    for subject in objects.everything():
        yield from texts_in(msgspec.to_builtins(subject))


def texts_in(value: Any) -> Iterator[str]:
    """Yield every text of a document, keys too."""
    if isinstance(value, dict):
        for key, entry in value.items():
            yield key
            yield from texts_in(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from texts_in(entry)
    elif isinstance(value, str):
        yield value
