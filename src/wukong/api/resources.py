"""Names of objects and of kinds: the key of an object within its kind, and where a kind lives in the API.

Every kind is known by its group and kind together, written as Kubernetes does: `Pod`, `Deployment.apps`,
`Rollout.argoproj.io`. The table of kinds is in kinds.py. Used by everything that speaks to a cluster.
"""

from __future__ import annotations

import sys
from functools import cached_property
from urllib.parse import quote

import msgspec

from wukong.api.meta import Object, OwnerReference


class Key(msgspec.Struct, frozen=True, order=True):
    """The name of an object within its kind. `namespace` is "" for cluster-scoped objects."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Resource(msgspec.Struct, frozen=True, dict=True):
    """Where a kind lives in the API."""

    kind: str
    version: str = "v1"
    group: str = ""
    plural: str = ""
    namespaced: bool = True

    @cached_property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @cached_property
    def group_kind(self) -> str:
        return group_kind(self.kind, self.group)

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """`/apis/apps/v1/namespaces/shop/deployments/web/scale`; without a namespace, all namespaces."""
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", quote(namespace, safe="")]
        parts += [self.plural, *(quote(part, safe="") for part in (name, subresource) if part)]
        return "/".join(parts)


def group_kind(kind: str, group: str = "") -> str:
    """`Pod`, `Deployment.apps`: a kind with its API group, as Kubernetes writes it."""
    return f"{kind}.{group}" if group else kind


def group_of(api_version: str) -> str:
    """The group in an apiVersion: `apps` of `apps/v1`, "" of `v1`."""
    return api_version.rpartition("/")[0]


def refers_to(owner: OwnerReference, resource: Resource) -> bool:
    """Whether an owner reference names an object of this kind. One written by hand may lack its apiVersion."""
    return owner.kind == resource.kind and (not owner.api_version or group_of(owner.api_version) == resource.group)


def plural_of(kind: str) -> str:
    """The lower-case plural resource name: Node → nodes, PriorityClass → priorityclasses."""
    word = kind.lower()
    if word.endswith("y"):
        return f"{word[:-1]}ies"
    return word + ("es" if word.endswith("s") else "s")


def key_of(subject: Object) -> Key:
    """The key of a typed object."""
    return Key(sys.intern(subject.metadata.namespace), subject.metadata.name)
