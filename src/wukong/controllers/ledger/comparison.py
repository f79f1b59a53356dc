"""Whether the ledger says what the cluster has: for each workload the same, still changing, or different. Pure.

Asked by `wukong ledger verify`. What is on its way is no difference: the ledger says what was true before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from wukong.api.ledger import ReplicaRecord, object_name_of
from wukong.controllers.ledger.settled import RecordedWorkload, find_record, kind_of

Verdict = Literal["Same", "Changing", "Differs"]


class Comparison(msgspec.Struct, frozen=True, rename="camel"):
    """One workload, what the cluster and the ledger say of it, and since when that is so."""

    kind: str
    namespace: str
    name: str
    verdict: Verdict
    text: str = ""
    since: str = ""


class ObservedWorkload(msgspec.Struct, frozen=True):
    """A workload, and when its status last changed; "" if that is not known."""

    workload: RecordedWorkload
    changed_at: str = ""


def compare(observed: Iterable[ObservedWorkload], records: Mapping[str, ReplicaRecord]) -> list[Comparison]:
    """All workloads of the cluster, and those that the ledger has open and the cluster has not. Sorted by name."""
    comparisons: dict[str, Comparison] = {}
    for entry in observed:
        meta = entry.workload.metadata
        name = object_name_of(kind_of(entry.workload), meta.namespace, meta.name)
        comparisons[name] = _compare_workload(entry, records.get(name))
    for name, record in records.items():
        if name not in comparisons and not record.closed_at:
            text = f"is gone, and the ledger says {_describe(record)}"
            comparisons[name] = _build(record.kind, record.namespace, record.name, "Differs", text, record.at)
    return [comparison for _, comparison in sorted(comparisons.items())]


def _compare_workload(entry: ObservedWorkload, record: ReplicaRecord | None) -> Comparison:
    workload, meta = entry.workload, entry.workload.metadata
    said = "the ledger has nothing of it" if record is None else f"the ledger says {_describe(record)}"
    true = find_record(workload, "")
    verdict: Verdict
    if true is None:
        verdict, text = "Changing", f"{_describe_progress(workload)}; {said}"
    elif record is not None and not record.closed_at and _is_same(true, record):
        verdict, text = "Same", _describe(record)
    else:
        verdict, text = "Differs", f"has {_describe(true)}, and {said}"
    since = record.at if verdict == "Same" and record is not None else entry.changed_at
    return _build(kind_of(workload), meta.namespace, meta.name, verdict, text, since)


def _build(kind: str, namespace: str, name: str, verdict: Verdict, text: str, since: str) -> Comparison:
    return Comparison(kind=kind, namespace=namespace, name=name, verdict=verdict, text=text, since=since)


def _is_same(true: ReplicaRecord, record: ReplicaRecord) -> bool:
    return (true.uid, true.generation, true.replicas) == (record.uid, record.generation, record.replicas)


def _describe(record: ReplicaRecord) -> str:
    """`3 replicas at generation 4`, and whether it is closed."""
    noun = "replica" if record.replicas == 1 else "replicas"
    closed = f", closed at {record.closed_at}" if record.closed_at else ""
    return f"{record.replicas} {noun} at generation {record.generation}{closed}"


def _describe_progress(workload: RecordedWorkload) -> str:
    status, replicas = workload.status, workload.spec.replicas
    wanted = 1 if replicas is None else replicas
    if workload.metadata.deletion_timestamp is not None:
        return "is being deleted"
    if status.observed_generation != workload.metadata.generation:
        return f"generation {workload.metadata.generation} is not observed yet"
    return (
        f"of {wanted} {status.updated_replicas} are updated and {status.available_replicas} available, "
        f"{status.replicas} there"
    )
