"""What every Kubernetes object shares: metadata, owners, label selectors.

Structs read only the fields Wukong decides by; unknown fields are ignored. Names follow Python, JSON keeps camelCase.
"""

from __future__ import annotations

import sys
from typing import ClassVar, Literal

import msgspec

SelectorOperator = Literal["In", "NotIn", "Exists", "DoesNotExist"]


class Base(msgspec.Struct, rename="camel", omit_defaults=True, kw_only=True, gc=False):
    """Common settings of all API structs. They never refer to each other in circles: the collector passes them over."""


class OwnerReference(Base):
    name: str
    kind: str = ""
    api_version: str = ""
    uid: str = ""
    controller: bool | None = None


class ObjectMeta(Base):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: list[str] = []
    owner_references: list[OwnerReference] = []
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None


class LabelSelectorRequirement(Base):
    key: str
    operator: SelectorOperator
    values: list[str] = []


class LabelSelector(Base):
    """`None` selects nothing; an empty selector selects everything. The readers keep them apart."""

    match_labels: dict[str, str] = {}
    match_expressions: list[LabelSelectorRequirement] = []


class Object(Base):
    """The head every object starts with. The JSON of one that is larger than `most_bytes` is not read."""

    most_bytes: ClassVar[int] = sys.maxsize

    kind: str = ""
    api_version: str = ""
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)

    @property
    def key(self) -> str:
        """`namespace/name`, or just the name for cluster-scoped objects."""
        namespace = self.metadata.namespace
        return f"{namespace}/{self.metadata.name}" if namespace else self.metadata.name


def controller_of(meta: ObjectMeta) -> OwnerReference | None:
    """The owner that manages this object, if any."""
    for owner in meta.owner_references:
        if owner.controller:
            return owner
    return None
