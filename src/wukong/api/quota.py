"""ResourceQuota, as far as it tells which pods it counts. Read by replies.admission."""

from __future__ import annotations

from msgspec import field

from wukong.api.meta import Base, Object
from wukong.api.resources import Resource

RESOURCE_QUOTAS = Resource(kind="ResourceQuota", plural="resourcequotas")


class ScopedSelectorRequirement(Base):
    scope_name: str = ""
    operator: str = ""
    values: list[str] = []


class ScopeSelector(Base):
    match_expressions: list[ScopedSelectorRequirement] = []


class ResourceQuotaSpec(Base):
    scopes: list[str] = []
    scope_selector: ScopeSelector | None = None


class ResourceQuota(Object):
    spec: ResourceQuotaSpec = field(default_factory=ResourceQuotaSpec)
