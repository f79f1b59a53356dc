"""What `wukong ledger` shows: records and comparisons as tables, and as documents for programs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from wukong.api.ledger import ReplicaRecord
from wukong.cli.views.table import Table
from wukong.controllers.ledger.comparison import Comparison

VERSION = 1


def build_records_table(records: Iterable[ReplicaRecord], *, is_wide: bool = False) -> Table:
    headings = ["NAMESPACE", "KIND", "NAME", "REPLICAS", "REVISION", "GENERATION", "AT", "CLOSED"]
    table = Table(
        *headings,
        *(["UID"] if is_wide else []),
        numbers=("REPLICAS", "GENERATION"),
        names=("NAMESPACE", "NAME"),
        drops=("REVISION", "GENERATION", "KIND"),
        is_wide=is_wide,
    )
    for record in records:
        place = (record.namespace, record.kind, record.name, str(record.replicas), record.revision)
        times = (str(record.generation), record.at, record.closed_at or "-")
        table.add_row(*place, *times, *([record.uid] if is_wide else []))
    return table


def build_comparison_table(comparisons: Iterable[Comparison], *, is_wide: bool = False) -> Table:
    table = Table("WORKLOAD", "VERDICT", "SINCE", "WHAT", names=("WORKLOAD",), drops=("SINCE",), is_wide=is_wide)
    for entry in comparisons:
        title = f"{entry.kind} {entry.namespace}/{entry.name}"
        table.add_row(title, entry.verdict, entry.since or "-", entry.text)
    return table


def build_records_document(records: Iterable[ReplicaRecord]) -> dict[str, Any]:
    """Every field of every record, those included that have no value: a scale to 0 is a number."""
    return {"version": VERSION, "records": [build_record(record) for record in records]}


def build_record(record: ReplicaRecord) -> dict[str, Any]:
    fields = msgspec.structs.fields(ReplicaRecord)
    return {"id": record.id, **{field.encode_name: getattr(record, field.name) for field in fields}}


def build_comparison_document(comparisons: Iterable[Comparison]) -> dict[str, Any]:
    return {"version": VERSION, "workloads": [msgspec.to_builtins(entry) for entry in comparisons]}
