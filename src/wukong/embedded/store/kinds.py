"""The kinds the store serves: Kubernetes' own that Wukong knows, and those that CustomResourceDefinitions add.

Says of each kind what differs from kind to kind: subresources, what a generation counts, field selectors, whether a
deletion may be graceful. Whoever asks for another kind is told, as by a real server, that there is no such resource.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import msgspec

from wukong.api.crds import Schema
from wukong.api.field_types import Type, type_of
from wukong.api.kind_table import Kind, MergeKeys
from wukong.api.kinds import KINDS, PODS
from wukong.api.resources import Resource, group_kind, group_of
from wukong.embedded.store.api_errors import no_such_kind
from wukong.ports import Document

_NAME_AND_NAMESPACE = frozenset({"metadata.name", "metadata.namespace"})


class ServedKind(msgspec.Struct, frozen=True, dict=True):
    """A kind as the store serves it."""

    resource: Resource
    has_status: bool = True
    has_scale: bool = False
    has_generation: bool = True
    fields: frozenset[str] = _NAME_AND_NAMESPACE
    schema: Schema | None = None  # of a CustomResourceDefinition
    since: int = 0  # the version before which no watch of this kind can begin

    @cached_property
    def name(self) -> str:
        """`pods`, `deployments.apps`: as in messages, and as the key of its objects."""
        return store_name(self.resource)

    @cached_property
    def type(self) -> Type | None:
        """The fields of one of Kubernetes' own kinds. None for custom kinds, which have a schema, and internal ones."""
        return type_of(self.resource) if self.schema is None else None

    @property
    def title(self) -> str:
        """`Pod`, `Deployment.apps`: as in messages about what is wrong with one."""
        return self.resource.group_kind

    @property
    def is_custom(self) -> bool:
        return self.schema is not None

    @cached_property
    def is_graceful(self) -> bool:
        """Of the kinds here only a pod has a kubelet to wait for."""
        return self.resource == PODS


class Kinds:
    """Looked up by group, version and plural, for that is what a path says."""

    def __init__(self) -> None:
        self._served: dict[tuple[str, str, str], ServedKind] = {}
        for entry in KINDS:
            if entry.origin != "ours":  # our own come with their CustomResourceDefinitions
                self.add(_serve(entry))

    def fork(self) -> Kinds:
        copy = Kinds.__new__(Kinds)
        copy._served = dict(self._served)
        return copy

    def of(self, resource: Resource) -> ServedKind:
        kind = self._served.get((resource.group, resource.version, resource.plural))
        if kind is None:
            raise no_such_kind()
        return kind

    def add(self, kind: ServedKind) -> None:
        self._served[(kind.resource.group, kind.resource.version, kind.resource.plural)] = kind

    def remove(self, kind: ServedKind) -> None:
        del self._served[(kind.resource.group, kind.resource.version, kind.resource.plural)]

    def __iter__(self) -> Iterator[ServedKind]:
        return iter(sorted(self._served.values(), key=lambda kind: kind.name))

    def by_owner(self, api_version: str, kind: str) -> ServedKind | None:
        """What an ownerReference names, whatever its version."""
        wanted = group_kind(kind, group_of(api_version))
        return next((served for served in self if served.resource.group_kind == wanted), None)


def custom(definition: Document, since: int) -> list[ServedKind]:
    """The kinds that a CustomResourceDefinition adds, one for each version it serves."""
    spec = definition["spec"]
    names = spec["names"]
    return [
        ServedKind(
            resource=Resource(
                kind=names["kind"],
                version=version["name"],
                group=spec["group"],
                plural=names["plural"],
                namespaced=spec.get("scope") != "Cluster",
            ),
            has_status="status" in (version.get("subresources") or {}),
            has_scale="scale" in (version.get("subresources") or {}),
            schema=(version.get("schema") or {}).get("openAPIV3Schema") or {},
            since=since,
        )
        for version in spec["versions"]
        if version.get("served")
    ]


def store_name(resource: Resource) -> str:
    """`pods`, `deployments.apps`: as in messages, and as the key of the objects of a kind."""
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


def _serve(entry: Kind) -> ServedKind:
    """Somebody else's kind is served as if its CustomResourceDefinition allowed anything."""
    return ServedKind(
        resource=entry.resource,
        has_status=entry.has_status,
        has_scale=entry.has_scale,
        has_generation=entry.has_generation,
        fields=_NAME_AND_NAMESPACE.union(entry.field_selectors),
        schema=_schema_of_anything(entry.merge_keys) if entry.origin == "foreign" else None,
    )


def _schema_of_anything(merge_keys: MergeKeys) -> Schema:
    """A schema that allows any field, and knows only by which keys lists are merged."""
    schema: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    for path, keys in merge_keys.items():
        place = schema
        for name in path.split("."):
            place = place.setdefault("properties", {}).setdefault(name, {"x-kubernetes-preserve-unknown-fields": True})
        items = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        place |= {"type": "array", "items": items, "x-kubernetes-list-type": "map"}
        place["x-kubernetes-list-map-keys"] = list(keys)
    return schema
