"""The batch API group: Jobs, as far as their pods are played."""

from __future__ import annotations

from msgspec import field

from wukong.api.meta import Base, LabelSelector, Object


class JobSpec(Base):
    parallelism: int | None = None
    completions: int | None = None
    backoff_limit: int | None = None
    selector: LabelSelector | None = None
    suspend: bool = False


class Job(Object):
    spec: JobSpec = field(default_factory=JobSpec)
