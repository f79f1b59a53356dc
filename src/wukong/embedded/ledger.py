"""The ledger of an embedded cluster: objects of the internal kind WorkloadRecord, beside the cluster's own.

    {metadata: {name: deployment.shop.web}, record: what is said now, history: all records, closed: {uid: when}}

So a ledger is mirrored, forked and judged like everything else. Called by the transports for the action Record; it
keeps the same order as the real stores, by the same code, and forgets nothing.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from wukong.api.kinds import WORKLOAD_RECORDS
from wukong.api.ledger import ReplicaRecord
from wukong.api.resources import Key
from wukong.embedded.store import Server
from wukong.errors import NotFound
from wukong.ports import Document, PatchBody
from wukong.semantics.record_order import close, order_of, take_in


def write_record(server: Server, record: ReplicaRecord) -> Document | None:
    """Take in a record. Returns the object that says what is known of its workload; None if nothing is."""
    key = Key("", record.object_name)
    try:
        document: Document | None = server.get(WORKLOAD_RECORDS, key)
    except NotFound:
        document = None
    content = _take_in(document or {}, record)
    if content is None:
        return document
    if document is None:
        head = {"apiVersion": WORKLOAD_RECORDS.api_version, "kind": WORKLOAD_RECORDS.kind}
        return server.create(WORKLOAD_RECORDS, {**head, "metadata": {"name": key.name}, **content})
    return server.patch(WORKLOAD_RECORDS, key, PatchBody("merge", content))


def _take_in(document: Document, record: ReplicaRecord) -> dict[str, Any] | None:
    """What the object holds after this record; None where it stays as it is."""
    latest = msgspec.convert(document["record"], ReplicaRecord) if "record" in document else None
    history = [msgspec.convert(entry, ReplicaRecord) for entry in document.get("history") or ()]
    closed: dict[str, str] = dict(document.get("closed") or {})
    change = take_in(latest, record, is_closed=record.uid in closed)
    if change.latest is None:
        return None
    if change.closed_uid:
        closed[change.closed_uid] = change.closed_at
    is_new = not record.closed_at and all(entry.id != record.id for entry in history)
    if not is_new and not change.closed_uid and not change.opened_uid:
        return None
    history = sorted([*history, record], key=order_of) if is_new else history
    if change.opened_uid:
        history = [replace(entry, closed_at="") if entry.uid == change.opened_uid else entry for entry in history]
        closed[change.opened_uid] = ""
    documents = msgspec.to_builtins([close(entry, closed.get(entry.uid, "")) for entry in [change.latest, *history]])
    uids = {uid: at or None for uid, at in closed.items()}
    return {"record": {**_EMPTY, **documents[0]}, "history": documents[1:], "closed": uids}


# A merge patch keeps what it does not name: every field is named, those that have no value as null.
_EMPTY: dict[str, None] = dict.fromkeys(field.encode_name for field in msgspec.structs.fields(ReplicaRecord))
