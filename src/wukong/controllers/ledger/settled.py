"""When a number of replicas is true: what is recorded of a workload, or nothing as long as it is on its way. Pure.

    observedGeneration = generation, and status.replicas (old and new) = updated = available = spec.replicas

So the dips and surges of a rollout, pods that are Pending and pods that crash never show. Deployments and StatefulSets
have these fields. A StatefulSet that keeps pods of two revisions on purpose (a partition, OnDelete) is on its way until
all its pods have one.
"""

from __future__ import annotations

from wukong.api.apps import Deployment, StatefulSet
from wukong.api.ledger import ReplicaRecord
from wukong.api.times import format_time, parse_time
from wukong.semantics.label_syntax import parse_integer

REVISION = "deployment.kubernetes.io/revision"
MOST_REPLICAS = (1 << 31) - 1
MOST_GENERATIONS = (1 << 63) - 1
_LONGEST_REVISION = 253  # the name of a ControllerRevision

RecordedWorkload = Deployment | StatefulSet


def find_record(workload: RecordedWorkload, cluster: str) -> ReplicaRecord | None:
    """What is true of the workload now; None while it is on its way, or being deleted. `at` is left open."""
    meta, status = workload.metadata, workload.status
    created = parse_time(meta.creation_timestamp)
    if not meta.uid or created is None or meta.deletion_timestamp is not None:
        return None
    replicas = 1 if workload.spec.replicas is None else workload.spec.replicas
    counts = (status.replicas, status.updated_replicas, status.available_replicas)
    is_settled = status.observed_generation == meta.generation and counts == (replicas, replicas, replicas)
    is_sensible = 0 <= replicas <= MOST_REPLICAS and 1 <= meta.generation <= MOST_GENERATIONS
    if not is_settled or not is_sensible:
        return None
    return ReplicaRecord(
        cluster=cluster,
        namespace=meta.namespace,
        kind=kind_of(workload),
        name=meta.name,
        uid=meta.uid,
        created=format_time(created),
        generation=meta.generation,
        revision=_find_revision(workload),
        replicas=replicas,
        available=status.available_replicas,
    )


def kind_of(workload: RecordedWorkload) -> str:
    return "Deployment" if isinstance(workload, Deployment) else "StatefulSet"


def _find_revision(workload: RecordedWorkload) -> str:
    """The number of a Deployment's revision, the name of a StatefulSet's; "" if there is none that makes sense."""
    if isinstance(workload, StatefulSet):
        return workload.status.update_revision[:_LONGEST_REVISION]
    number = parse_integer(workload.metadata.annotations.get(REVISION, ""))
    return "" if number is None else str(number)
