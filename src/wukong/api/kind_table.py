"""What an entry of the table of kinds is, and how entries are looked up. The entries themselves are in kinds.py.

Used by kinds.py, and by whoever adds a kind of somebody else's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from wukong.api.meta import Object
from wukong.api.resources import Resource, group_kind, group_of, plural_of

# Whose kind it is. "kubernetes": every cluster has it. "ours": where our CRD is installed. "foreign": where somebody
# else's CRD is installed. "internal": no API server has it; what comes from outside the cluster is held in such kinds.
Origin = Literal["kubernetes", "ours", "foreign", "internal"]
# A field, or parent.field → the keys by which the items of its list are merged.
MergeKeys = Mapping[str, tuple[str, ...]]


class SnapshotFields(msgspec.Struct, frozen=True):
    """What a snapshot keeps of an object: the fields of its struct, and these paths ([] goes through a list)."""

    more: tuple[str, ...] = ()
    template_in: str = ""  # where a pod template stands that the struct does not read: `spec`, `data.spec`


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the table. Its group, version, plural and scope are in `resource`."""

    resource: Resource
    struct: type[Object] = Object
    origin: Origin = "kubernetes"
    decides: bool = False  # placement reads it: it is in `Objects`, in snapshots, and captured from clusters
    snapshot: SnapshotFields | None = None  # None: `wukong snapshot` does not hold it
    has_strict_types: bool = False  # its struct has all that the API server checks the types of, as of deciding kinds
    loads: bool = False  # a forecast loads it from a snapshot into the embedded cluster
    is_manifest: bool = True  # people write it; False for records that controllers keep
    is_workload: bool = False  # a story tells how its pods fare
    has_pod_template: bool = False  # in spec.template of its struct
    has_status: bool = True  # as a subresource
    has_scale: bool = False
    has_generation: bool = False
    field_selectors: tuple[str, ...] = ()  # besides metadata.name and metadata.namespace
    merge_keys: MergeKeys = {}  # of a foreign kind; those of Kubernetes' own are in the table of field types

    @property
    def group_kind(self) -> str:
        return self.resource.group_kind

    @property
    def is_built_in(self) -> bool:
        return self.origin == "kubernetes"


def make_resource(
    kind: str, group: str = "", *, version: str = "v1", is_namespaced: bool = True, plural: str = ""
) -> Resource:
    """Where a kind lives; its objects have a namespace unless said otherwise."""
    return Resource(kind=kind, version=version, group=group, plural=plural or plural_of(kind), namespaced=is_namespaced)


def make_cluster_resource(kind: str, group: str = "", **more: str) -> Resource:
    """Where a kind lives whose objects have none."""
    return make_resource(kind, group, is_namespaced=False, **more)


class GroupKinds(dict[type[Object], str]):
    """Struct → the group and kind of the objects it reads, filled as it is asked: looked up at every decision."""

    def __init__(self, table: KindTable) -> None:
        super().__init__()
        self._table = table

    def __missing__(self, struct: type[Object]) -> str:
        entry = self._table.of_struct(struct)
        self[struct] = entry.group_kind if entry is not None else struct.__name__
        return self[struct]


_MOST_DOCUMENTS = 1024  # kinds and versions remembered: anybody may write any version


class KindTable:
    """Entries by group and kind, in the order they were added."""

    def __init__(self) -> None:
        self._entries: dict[str, Kind] = {}
        self._by_struct: dict[type[Object], Kind] = {}
        self._by_document: dict[tuple[str, str], Kind] = {}  # kind and apiVersion of documents seen before
        self.group_kinds = GroupKinds(self)

    def add(self, entry: Kind) -> Resource:
        """Add an entry and return where its kind lives. A group and kind, and a struct, may be there once."""
        if entry.group_kind in self._entries:
            raise ValueError(f"the table of kinds has {entry.group_kind} already")
        if entry.struct in self._by_struct:
            raise ValueError(f"{entry.struct.__name__} reads {self._by_struct[entry.struct].group_kind} already")
        self._entries[entry.group_kind] = entry
        if entry.struct is not Object:
            self._by_struct[entry.struct] = entry
        self.group_kinds.clear()  # this struct, or one that derives from it, may have been asked for before
        self._by_document.clear()
        return entry.resource

    def remove(self, entry: Kind) -> None:
        del self._entries[entry.group_kind]
        self._by_struct.pop(entry.struct, None)
        self.group_kinds.clear()
        self._by_document.clear()

    def __iter__(self) -> Iterator[Kind]:
        return iter(tuple(self._entries.values()))

    def __getitem__(self, group_kind: str) -> Kind:
        return self._entries[group_kind]

    def find(self, group_kind: str) -> Kind | None:
        return self._entries.get(group_kind)

    def of_resource(self, resource: Resource) -> Kind | None:
        return self._entries.get(resource.group_kind)

    def of_document(self, kind: str, api_version: str) -> Kind | None:
        """The entry that a document's kind and apiVersion mean. Without an apiVersion, the first kind of that name."""
        entry = self._by_document.get((kind, api_version))
        if entry is not None:
            return entry
        if api_version:
            entry = self._entries.get(group_kind(kind, group_of(api_version)))
        else:
            entry = next(self.find_by_name(kind), None)
        if entry is not None:
            if len(self._by_document) >= _MOST_DOCUMENTS:
                self._by_document.clear()
            self._by_document[kind, api_version] = entry
        return entry

    def group_kind_named(self, kind: str, api_version: str) -> str:
        """The group and kind that a document or an owner reference names, whether the table has it or not."""
        entry = self.of_document(kind, api_version)
        return entry.group_kind if entry is not None else group_kind(kind, group_of(api_version))

    def title_of(self, resource: Resource) -> str:
        """What a kind is called in logs and metrics: `Deployment`, and with its group where it is somebody else's."""
        entry = self.of_resource(resource)
        return resource.group_kind if entry is None or entry.origin == "foreign" else resource.kind

    def resource_named(self, kind: str) -> Resource:
        """Where the first kind of this name lives. KeyError if there is none."""
        entry = next(self.find_by_name(kind), None)
        if entry is None:
            raise KeyError(kind)
        return entry.resource

    def find_by_name(self, kind: str) -> Iterator[Kind]:
        """All entries of this kind, whatever their group."""
        return (entry for entry in self if entry.resource.kind == kind)

    def of_struct(self, struct: type[Object]) -> Kind | None:
        """The entry whose objects this struct, or one it derives from, reads."""
        return next((self._by_struct[base] for base in struct.__mro__ if base in self._by_struct), None)

    def group_kind_of(self, struct: type[Object]) -> str:
        """The group and kind of the objects that a struct reads; the struct's name where the table has none."""
        return self.group_kinds[struct]

    def list_deciding(self) -> list[Kind]:
        """The kinds that placement reads."""
        return [entry for entry in self if entry.decides]

    def workloads(self) -> list[Kind]:
        """The kinds whose pods a story tells of."""
        return [entry for entry in self if entry.is_workload]

    def manifests(self) -> list[Kind]:
        """The kinds that people write and that the embedded cluster acts on."""
        return [entry for entry in self if entry.loads and entry.is_manifest]
