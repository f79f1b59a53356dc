"""Builders for the tests of the ledger: workloads as their controllers leave them, and records of them."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from wukong.api.apps import Deployment, ReplicaStatus, StatefulSet, WorkloadMeta, WorkloadSpec
from wukong.api.ledger import ReplicaRecord

CREATED = "2026-01-01T00:00:00Z"


def a_deployment(
    replicas: int | None = 3, generation: int = 1, uid: str = "a", available: int | None = None
) -> Deployment:
    """Complete, unless only so many of its replicas are available."""
    wanted = 1 if replicas is None else replicas
    return Deployment(
        metadata=WorkloadMeta(
            namespace="shop",
            name="web",
            uid=uid,
            generation=generation,
            creation_timestamp=CREATED,
            annotations={"deployment.kubernetes.io/revision": "7"},
        ),
        spec=WorkloadSpec(replicas=replicas),
        status=ReplicaStatus(
            observed_generation=generation,
            replicas=wanted,
            updated_replicas=wanted,
            available_replicas=wanted if available is None else available,
        ),
    )


def a_stateful_set(replicas: int = 2, **status: Any) -> StatefulSet:
    twin = a_deployment(replicas)
    return StatefulSet(metadata=twin.metadata, spec=twin.spec, status=replace(twin.status, **status))


def a_record(generation: int = 1, replicas: int = 3, uid: str = "a", **more: Any) -> ReplicaRecord:
    fields = {"created": CREATED, "at": "2026-01-01T00:01:00Z", "revision": "7", **more}
    return ReplicaRecord(
        cluster="default",
        namespace="shop",
        kind="Deployment",
        name="web",
        uid=uid,
        generation=generation,
        replicas=replicas,
        available=replicas,
        **fields,
    )
