"""The namespace of what is given without one: -n, else that of the context, else default; as with kubectl.

Used by the verbs that take manifests or names. A snapshot has no context: there it is default where -n says nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from wukong.api.kinds import KINDS, group_kind_of
from wukong.api.meta import Object
from wukong.cli.inputs.source import Source
from wukong.cli.views.console import note
from wukong.cli.views.table import name_some
from wukong.cluster import place_name
from wukong.errors import InputError
from wukong.ports import Document

DEFAULT = "default"


class Namespace(NamedTuple):
    """The chosen namespace, and who says so."""

    name: str
    origin: str  # for people
    is_required: bool = False  # -n: what names another one is refused


def choose_namespace(namespace: str | None, source: Source | None) -> Namespace:
    """`source` is the cluster; None where there is none. Raises InputError where the kubeconfig is wrong."""
    if namespace:
        return Namespace(namespace, "--namespace", is_required=True)
    if source is not None and source.snapshot is None:
        from wukong.cluster.credentials import find_namespace

        return Namespace(find_namespace(source.kubeconfig, source.context), "the context's")
    return Namespace(DEFAULT, "nothing says otherwise")


class NamespaceWriter:
    """Writes the namespace into objects of one file that name none, and says so; refuses what -n contradicts."""

    def __init__(self, namespace: Namespace, path: str) -> None:
        self.namespace, self.place = namespace, place_name(path)
        self.without_namespace: list[str] = []
        self.problems: list[str] = []

    def set_namespace(self, subject: Object) -> None:
        if KINDS[group_kind_of(subject)].resource.namespaced:
            name = f"{subject.kind} {subject.metadata.name or subject.metadata.generate_name}"
            subject.metadata.namespace = self.choose(subject.metadata.namespace, name)

    def fill_document(self, document: Document) -> Document:
        """The same for an object as it is written, which is left as it is."""
        kind = KINDS.of_document(str(document.get("kind") or ""), str(document.get("apiVersion") or ""))
        metadata = document.get("metadata")
        if kind is None or not kind.resource.namespaced or not isinstance(metadata, dict):
            return document
        if not isinstance(namespace := metadata.get("namespace") or "", str):
            return document  # whoever reads it says what is wrong
        name = f"{kind.resource.kind} {metadata.get('name') or metadata.get('generateName')}"
        return {**document, "metadata": {**metadata, "namespace": self.choose(namespace, name)}}

    def choose(self, named: str, name: str) -> str:
        """The namespace of an object that names this one, or none; `name` is what it is called."""
        if not named:
            self.without_namespace.append(name)
            return self.namespace.name
        if self.namespace.is_required and named != self.namespace.name:
            self.problems.append(
                f"{self.place}: {name} is of namespace {named}, and --namespace says {self.namespace.name}. "
                "Leave one of them out."
            )
        return named

    def finish(self) -> None:
        """Say what was taken into which namespace. Raises InputError where -n contradicts."""
        if self.problems:
            raise InputError(*self.problems)
        if self.without_namespace:
            namespace, origin, _ = self.namespace
            verb = "names" if len(self.without_namespace) == 1 else "name"
            subject = f"{name_some(self.without_namespace)} {verb} no namespace"
            note(f"{self.place}: {subject}: taken into {namespace} ({origin}).")
