"""ResourceQuota and LimitRange: how much a namespace may hold, and what each pod in it may ask for.

Quotas are read by replies.admission, which must not make a pod one that is counted; both kinds by the admission of the
embedded cluster.
"""

from __future__ import annotations

from msgspec import field

from wukong.api.core import Quantities
from wukong.api.meta import Base, Object


class ScopedSelectorRequirement(Base):
    scope_name: str = ""
    operator: str = ""
    values: list[str] = []


class ScopeSelector(Base):
    match_expressions: list[ScopedSelectorRequirement] = []


class ResourceQuotaSpec(Base):
    hard: Quantities = {}
    scopes: list[str] = []
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(Base):
    hard: Quantities = {}
    used: Quantities = {}


class ResourceQuota(Object):
    spec: ResourceQuotaSpec = field(default_factory=ResourceQuotaSpec)
    status: ResourceQuotaStatus = field(default_factory=ResourceQuotaStatus)


class LimitRangeItem(Base):
    type: str = ""
    default: Quantities = {}
    default_request: Quantities = {}
    min: Quantities = {}
    max: Quantities = {}
    max_limit_request_ratio: Quantities = {}


class LimitRangeSpec(Base):
    limits: list[LimitRangeItem] = []


class LimitRange(Object):
    spec: LimitRangeSpec = field(default_factory=LimitRangeSpec)
