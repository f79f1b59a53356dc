"""Which lists are merged by keys, which are sets, and what is one field: what server-side apply must know of a kind.

For Kubernetes' own kinds by the names of fields, from the `listType`, `mapType` and `structType` marks of its API; for
custom kinds from the `x-kubernetes-…` words of their schema. Used by ownership/.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Protocol

import msgspec

from wukong.api.crds import Schema
from wukong.embedded.store.kinds import OwnKeys
from wukong.embedded.store.normalize import MAPS

_KEYS: dict[str, tuple[str, ...]] = {  # field, or parent.field → the keys of its items
    "containers": ("name",),
    "initContainers": ("name",),
    "ephemeralContainers": ("name",),
    "volumes": ("name",),
    "env": ("name",),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "imagePullSecrets": ("name",),
    "hostAliases": ("ip",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "schedulingGates": ("name",),
    "spec.resourceClaims": ("name",),
    "conditions": ("type",),
    "addresses": ("type",),
    "podIPs": ("ip",),
    "ownerReferences": ("uid",),
    "ports": ("containerPort", "protocol"),
}
_SETS = frozenset({"metadata.finalizers"})
_ATOMIC = frozenset(
    {
        "selector", "labelSelector", "namespaceSelector", "nodeSelector", "configMapKeyRef", "secretKeyRef", "fieldRef",
        "resourceFieldRef", "regarding", "requiredDuringSchedulingIgnoredDuringExecution",
    }
)  # fmt: skip
_DEFAULTS = {"protocol": "TCP"}  # of keys that may be left out


class Shape(Protocol):
    @property
    def keys(self) -> tuple[str, ...]: ...

    @property
    def is_set(self) -> bool: ...

    @property
    def is_atomic(self) -> bool: ...

    @property
    def is_map(self) -> bool:
        """Whether its names are data, like those of labels."""
        ...

    def child(self, name: str) -> Shape: ...

    def item(self) -> Shape: ...

    def default_of(self, key: str) -> Any: ...


class Named:
    """A field of one of Kubernetes' own kinds, known by its name and its parent's. `own` are keys of its kind alone."""

    def __init__(self, name: str = "", parent: str = "", own: OwnKeys = ()) -> None:
        place, keys = f"{parent}.{name}", {**_KEYS, **dict(own)}
        self.name, self.own = name, own
        self.keys = keys.get(place, keys.get(name, ()))
        self.is_set = place in _SETS
        self.is_atomic = name in _ATOMIC
        self.is_map = name in MAPS

    def child(self, name: str) -> Shape:
        return _named(name, self.name, self.own)

    def item(self) -> Shape:
        return _named("", self.name, self.own)  # its fields see the list as their grandparent, as no table minds

    def default_of(self, key: str) -> Any:
        return _DEFAULTS.get(key)


_named = lru_cache(4096)(Named)  # there are few, but for the names in maps


class Described(msgspec.Struct, frozen=True):
    """A field of a custom kind, as its schema describes it."""

    schema: Schema

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(self.schema.get("x-kubernetes-list-map-keys") or ())

    @property
    def is_set(self) -> bool:
        return self.schema.get("x-kubernetes-list-type") == "set"

    @property
    def is_atomic(self) -> bool:
        return self.schema.get("x-kubernetes-map-type") == "atomic"

    @property
    def is_map(self) -> bool:
        return "additionalProperties" in self.schema

    def child(self, name: str) -> Shape:
        if name == "metadata":
            return Named("metadata")
        more = self.schema.get("additionalProperties")
        return Described((self.schema.get("properties") or {}).get(name) or (more if isinstance(more, dict) else {}))

    def item(self) -> Shape:
        return Described(self.schema.get("items") or {})

    def default_of(self, key: str) -> Any:
        return ((self.item_properties()).get(key) or {}).get("default")

    def item_properties(self) -> Schema:
        properties: Schema = (self.schema.get("items") or {}).get("properties") or {}
        return properties
