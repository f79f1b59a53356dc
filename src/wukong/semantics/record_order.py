"""What a ledger says of a workload once it has taken in another record, however late that comes. Pure.

Every store does this inside one transaction: the embedded one and SQLite. So a late or a repeated writer
cannot take a ledger back in time.

    of the workload that the ledger has (uid)   the higher generation holds; what is closed stays closed, unless the
                                                record says that it was there after that: it was closed by mistake
    of another workload of the same name        the one created later holds, and the one before it is closed by that;
                                                of two created in the same second the first, until it is closed
    of a workload that was closed before        it is part of the history and nothing else
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from wukong.api.ledger import ReplicaRecord


class Change(NamedTuple):
    """What a record changes: what is said now, and the workload that is closed or opened again by it, if any."""

    latest: ReplicaRecord | None
    closed_uid: str = ""
    closed_at: str = ""
    opened_uid: str = ""


def take_in(latest: ReplicaRecord | None, record: ReplicaRecord, *, is_closed: bool) -> Change:
    """What a ledger says after `record`, where it said `latest` before.

    `is_closed`: the workload of the record's uid has been closed before.
    """
    if latest is not None and latest.uid == record.uid:
        return _close(latest, record) if record.closed_at else _continue(latest, record)
    if record.closed_at:
        return Change(latest) if is_closed or latest is None else Change(latest, record.uid, record.closed_at)
    if is_closed:
        return Change(latest)
    if latest is None or latest.closed_at:
        return Change(record)
    return Change(record, latest.uid, record.created) if record.created > latest.created else Change(latest)


def _close(latest: ReplicaRecord, record: ReplicaRecord) -> Change:
    if latest.closed_at:
        return Change(latest)
    return Change(close(latest, record.closed_at), record.uid, record.closed_at)


def _continue(latest: ReplicaRecord, record: ReplicaRecord) -> Change:
    is_later = record.generation > latest.generation
    if latest.closed_at and record.generation >= latest.generation and record.at > latest.closed_at:
        return Change(record if is_later else msgspec.structs.replace(latest, closed_at=""), opened_uid=record.uid)
    return Change(close(record, latest.closed_at) if is_later else latest)


def close(record: ReplicaRecord, closed_at: str) -> ReplicaRecord:
    """The same record, closed; one that was closed before stays as it was."""
    return record if record.closed_at or not closed_at else msgspec.structs.replace(record, closed_at=closed_at)


def order_of(record: ReplicaRecord) -> tuple[str, str, int]:
    """By which the history of a workload is sorted."""
    return record.created, record.uid, record.generation
