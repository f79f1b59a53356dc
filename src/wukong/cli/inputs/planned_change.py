"""What `wukong plan` is asked to do to the cluster: manifests, and the options that stand for kubectl's own verbs.

    --image deploy/web=web:2     kubectl set image        --drain NODE          kubectl drain
    --scale deploy/web=5         kubectl scale            --remove-node NODE    drained, then taken away
    --prune -l app=web           kubectl apply --prune    --add-nodes GROUP=N   --lose zone=a

Texts and documents in, a PlannedChange out; every problem is an InputError that names its option. Reads no files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from wukong.api.kinds import DAEMON_SETS, KINDS, NODES, PODS
from wukong.api.resources import Key, Resource
from wukong.cli.inputs.workload_names import read_named_value, read_workload_in
from wukong.embedded.scenario.format.fields import (
    DeleteTarget,
    PatchTarget,
    ScaleTarget,
    TimelineEntry,
    document_resource,
)
from wukong.embedded.scenario.play.steps import key_of
from wukong.embedded.snapshot.load import LoadedSnapshot
from wukong.embedded.store.documents import meta_of, value_at
from wukong.embedded.store.selectors import parse_label_selector
from wukong.errors import ClusterError, InputError, nearest
from wukong.forecast.node_copies import copy_node
from wukong.forecast.planned_change import PlannedChange
from wukong.placement.prices import ZONE_LABEL
from wukong.ports import Document
from wukong.semantics.selectors import selects

GROUP_LABELS = (
    "karpenter.sh/nodepool",
    "eks.amazonaws.com/nodegroup",
    "alpha.eksctl.io/nodegroup-name",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
    "node.kubernetes.io/instance-type",
)
_NOW = "0s"
_MOST_NODES = 1000  # added at once
_MOST_REPLICAS = 100_000


class Wishes(msgspec.Struct, kw_only=True):
    """The options, as they were given."""

    namespace: str = "default"
    image: tuple[str, ...] = ()
    scale: tuple[str, ...] = ()
    drain: tuple[str, ...] = ()
    remove_node: tuple[str, ...] = ()
    add_nodes: tuple[str, ...] = ()
    lose: tuple[str, ...] = ()
    prune: bool = False
    selector: str = ""

    @property
    def is_empty(self) -> bool:
        return not (
            self.image or self.scale or self.drain or self.remove_node or self.add_nodes or self.lose or self.prune
        )


def build_change(wishes: Wishes, documents: list[Document], start: LoadedSnapshot) -> PlannedChange:
    """The change as a whole. Raises InputError with every problem of every option."""
    return _Builder(wishes, documents, start).build()


class _Builder:
    def __init__(self, wishes: Wishes, documents: list[Document], start: LoadedSnapshot) -> None:
        self._wishes, self._documents = wishes, documents
        self._objects = {resource.group_kind: items for resource, items in start.objects}
        self._nodes = {meta_of(node)["name"]: node for node in self._objects.get(NODES.group_kind, ())}
        self._problems: list[str] = []

    def build(self) -> PlannedChange:
        wishes = self._wishes
        drained = [*self._each("--drain", wishes.drain, self._find_node)]
        removed = [*self._each("--remove-node", wishes.remove_node, self._find_node)]
        lost = [name for names in self._each("--lose", wishes.lose, self._find_lost) for name in names]
        steps = [
            *self._each("--image", wishes.image, self._set_image),
            *self._each("--scale", wishes.scale, self._scale),
            *self._prune(),
            *(TimelineEntry(at=_NOW, drain=name) for name in dict.fromkeys([*drained, *removed])),
            *(TimelineEntry(at=_NOW, kill=name) for name in dict.fromkeys(lost)),
        ]
        nodes = [node for nodes in self._each("--add-nodes", wishes.add_nodes, self._add_nodes) for node in nodes]
        if self._problems:
            raise InputError(*self._problems)
        return PlannedChange(
            documents=tuple(self._documents),
            nodes=tuple(_copy_nodes(nodes, self._nodes)),
            steps=tuple(steps),
            removed_nodes=frozenset(removed),
        )

    def _each(self, option: str, texts: Iterable[str], read: Any) -> Iterator[Any]:
        for text in texts:
            try:
                yield read(text)
            except InputError as error:
                self._problems += error.at(option).problems

    # ---- workloads

    def _set_image(self, text: str) -> TimelineEntry:
        name, image = read_named_value(text, "deploy/web=web:2 or deploy/web:app=web:2")
        name, _, container = name.partition(":")
        resource, key = read_workload_in(name, self._wishes.namespace)
        path = "spec" if resource == PODS else "spec.template.spec"
        containers = value_at(self._find_object(resource, key), f"{path}.containers") or []
        names = [str(entry.get("name", "")) for entry in containers]
        if not container and len(names) == 1:
            container = names[0]
        if container not in names:
            found = f'got "{container}".{nearest(container, names)}' if container else "got none."
            raise InputError(f"{name}: expected one of its containers, {', '.join(names)}, after a colon; {found}")
        patch: Document = {"containers": [{"name": container, "image": image}]}
        body = {"spec": patch} if resource == PODS else {"spec": {"template": {"spec": patch}}}
        return TimelineEntry(at=_NOW, patch=PatchTarget(**_target_of(resource, key), type="strategic", patch=body))

    def _scale(self, text: str) -> TimelineEntry:
        name, number = read_named_value(text, "deploy/web=5")
        resource, key = read_workload_in(name, self._wishes.namespace)
        kind = KINDS[resource.group_kind]
        if not kind.has_scale:
            hint = " A DaemonSet has a pod on every node that its pods fit." if resource == DAEMON_SETS else ""
            raise InputError(f"{name}: a {resource.kind} has no replicas.{hint}")
        if not number.isascii() or not number.isdigit() or int(number) > _MOST_REPLICAS:
            raise InputError(f'{name}: expected replicas from 0 to {_MOST_REPLICAS:,}, got "{number:.50}".')
        self._find_object(resource, key)
        return TimelineEntry(at=_NOW, scale=ScaleTarget(**_target_of(resource, key), replicas=int(number)))

    def _find_object(self, resource: Resource, key: Key) -> Document:
        """That which is applied counts, else that of the cluster."""
        applied = [document for document in self._documents if document_resource(document) == resource]
        present = self._objects.get(resource.group_kind, ())
        known: dict[str, Document] = {str(_key_of(document, resource)): document for document in (*present, *applied)}
        if str(key) not in known:
            raise InputError(
                f"there is no {resource.kind} {key}.{nearest(str(key), known)} Name its namespace with -n."
            )
        return known[str(key)]

    # ---- what the files no longer have

    def _prune(self) -> Iterator[TimelineEntry]:
        """As `kubectl apply --prune -l`: in the namespaces of the files, what has the labels and is in none of them."""
        wishes = self._wishes
        if wishes.prune != bool(wishes.selector):
            missing = "-l SELECTOR" if wishes.prune else "--prune"
            self._problems.append(f"--prune -l SELECTOR: both are needed, and {missing} is missing.")
            return
        if not wishes.prune:
            return
        if not self._documents:
            self._problems.append("--prune: expected -f with what is to stay, got none.")
            return
        kept = {(document_resource(document), key_of(document)) for document in self._documents}
        namespaces = {key.namespace for _, key in kept} - {""} | {wishes.namespace}
        for entry in KINDS.manifests():
            if not entry.resource.namespaced or entry.resource == PODS:
                continue
            for key in self._find_selected(entry.resource, namespaces):
                if (entry.resource, key) not in kept:
                    yield TimelineEntry(at=_NOW, delete=DeleteTarget(**_target_of(entry.resource, key)))

    def _find_selected(self, resource: Resource, namespaces: set[str]) -> list[Key]:
        try:
            requirements = parse_label_selector(self._wishes.selector)
        except ClusterError as error:
            problem = f"-l: {error}"
            self._problems += [problem] if problem not in self._problems else []
            return []
        documents = self._objects.get(resource.group_kind, ())
        return [
            _key_of(document, resource)
            for document in documents
            if meta_of(document).get("namespace") in namespaces
            and not meta_of(document).get("ownerReferences")
            and selects(requirements, meta_of(document).get("labels") or {})
        ]

    # ---- nodes

    def _find_node(self, name: str) -> str:
        if name not in self._nodes:
            raise InputError(f'expected a node of the cluster, got "{name:.200}".{nearest(name, self._nodes)}')
        return name

    def _find_lost(self, text: str) -> list[str]:
        label, value = read_named_value(text, "zone=eu-1a, node=NAME, or a label of nodes and its value")
        if label == "node":
            return [self._find_node(value)]
        label = ZONE_LABEL if label == "zone" else label
        names = [name for name, node in self._nodes.items() if _labels_of(node).get(label) == value]
        if not names:
            known = sorted({_labels_of(node)[label] for node in self._nodes.values() if label in _labels_of(node)})
            there = f"there are {', '.join(known[:10])}" if known else "no node has that label"
            raise InputError(f'{text:.200}: no node has {label}="{value:.100}"; {there}.{nearest(value, known)}')
        return sorted(names)

    def _add_nodes(self, text: str) -> list[Document]:
        name, number = read_named_value(text, "od-a1=2: a node or a group of nodes, and how many more of them")
        if not number.isascii() or not number.isdigit() or not 1 <= int(number) <= _MOST_NODES:
            raise InputError(f'{name}: expected a number of nodes from 1 to {_MOST_NODES:,}, got "{number:.50}".')
        return [self._find_example(name)] * int(number)

    def _find_example(self, name: str) -> Document:
        if name in self._nodes:
            return self._nodes[name]
        groups: dict[str, Document] = {}
        for node in self._nodes.values():
            for label in GROUP_LABELS:
                if label in _labels_of(node):
                    groups.setdefault(_labels_of(node)[label], node)
        if name not in groups:
            hint = nearest(name, [*self._nodes, *groups])
            raise InputError(f'expected a node of the cluster, or a group or instance type of one, got "{name}".{hint}')
        return groups[name]


def _key_of(document: Document, resource: Resource) -> Key:
    meta = meta_of(document)
    return Key((meta.get("namespace") or "default") if resource.namespaced else "", meta["name"])


def _target_of(resource: Resource, key: Key) -> dict[str, Any]:
    return {"kind": resource.kind, "name": key.name, "namespace": key.namespace, "api_version": resource.api_version}


def _labels_of(node: Document) -> dict[str, str]:
    labels: dict[str, str] = meta_of(node).get("labels") or {}
    return labels


def _copy_nodes(examples: Iterable[Document], present: Mapping[str, Document]) -> Iterator[Document]:
    """New nodes like these, each under a name of its own."""
    taken = set(present)
    for example in examples:
        number = 1
        while (name := f"{meta_of(example)['name']}-new-{number}") in taken:
            number += 1
        taken.add(name)
        yield copy_node(example, name)
