"""The ledger in a file of SQLite: one transaction per record, in a thread of its own, so that the loop never waits.

    latest     one row per workload: what is said of it now, and `version`, which grows with every change of the file
    history    one row per generation of a workload, the newest `keep` of each
    closed     the uids of workloads that are gone
    settings   the version of this layout

Opened by the component ledger and by `wukong ledger`. Write-ahead logging lets others read meanwhile; it needs a disk
of the machine, not one that several share over a network. Several clusters may be in one file.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import msgspec

from wukong.api.ledger import ReplicaRecord, WorkloadRecord
from wukong.api.meta import ObjectMeta
from wukong.cluster.ledger.sqlite_errors import explain_error
from wukong.errors import InputError, LedgerFailed, OutcomeUnknown
from wukong.semantics.record_order import take_in

T = TypeVar("T")
LAYOUT = 1
BUSY_SECONDS = 5.0  # how long another writer is waited for
ANSWER_SECONDS = 30.0
_FIELDS = tuple(field.name for field in msgspec.structs.fields(ReplicaRecord))
_COLUMNS = ", ".join(_FIELDS)
_TYPES = ", ".join(
    f"{name} {'INTEGER' if name in ('generation', 'replicas', 'available') else 'TEXT'} NOT NULL" for name in _FIELDS
)
_VALUES = ", ".join("?" for _ in _FIELDS)
_TABLES = (
    "CREATE TABLE settings (layout INTEGER NOT NULL)",
    f"CREATE TABLE latest ({_TYPES}, object_name TEXT NOT NULL, version INTEGER NOT NULL,"
    " PRIMARY KEY (cluster, object_name))",
    "CREATE UNIQUE INDEX latest_by_version ON latest (version)",
    f"CREATE TABLE history ({_TYPES}, object_name TEXT NOT NULL, PRIMARY KEY (cluster, uid, generation))",
    "CREATE INDEX history_by_workload ON history (cluster, object_name, created, uid, generation)",
    "CREATE TABLE closed (cluster TEXT NOT NULL, uid TEXT NOT NULL, closed_at TEXT NOT NULL,"
    " PRIMARY KEY (cluster, uid))",
)


async def open_sqlite(path: str, cluster: str, *, keep: int = 1000, is_read_only: bool = False) -> SqliteLedger:
    """Raises InputError if the file cannot be opened, or is no ledger of ours. It is made unless `is_read_only`."""
    ledger = SqliteLedger(path, cluster, keep)
    try:
        await ledger.connect(is_read_only=is_read_only)
    except BaseException:
        await ledger.close()
        raise
    return ledger


def exists(path: str) -> bool:
    return os.path.exists(path)


class SqliteLedger:
    def __init__(self, path: str, cluster: str, keep: int) -> None:
        self.path, self.cluster, self.keep = path, cluster, keep
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ledger")
        self._connection: sqlite3.Connection | None = None

    async def connect(self, *, is_read_only: bool) -> None:
        try:
            await self._run(lambda: self._connect(is_read_only))
        except LedgerFailed as error:
            raise InputError(str(error)) from None

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        self._thread.shutdown(wait=False)

    async def write(self, record: ReplicaRecord) -> WorkloadRecord:
        return await self._run(lambda: self._write(record))

    async def list_latest(self) -> list[WorkloadRecord]:
        return await self._run(self._list_latest)

    async def list_history(self, object_name: str) -> list[ReplicaRecord]:
        return await self._run(lambda: self._list_history(object_name))

    async def read_version(self) -> int:
        """Grows with every change of the file, by whomever."""
        return await self._run(self._read_version)

    async def _run(self, work: Callable[[], T]) -> T:
        """In the thread. Raises LedgerFailed, or OutcomeUnknown if there is no answer in time."""
        answer = asyncio.get_running_loop().run_in_executor(self._thread, work)
        try:
            return await asyncio.wait_for(asyncio.shield(answer), ANSWER_SECONDS)
        except TimeoutError:
            answer.add_done_callback(lambda late: late.cancelled() or late.exception())
            raise OutcomeUnknown(f"{self.path}: no answer within {ANSWER_SECONDS:g} s. Is its disk slow?") from None
        except (sqlite3.Error, OSError, UnicodeError, OverflowError) as error:
            raise LedgerFailed(explain_error(self.path, error)) from error

    # ---- in the thread

    @property
    def _database(self) -> sqlite3.Connection:
        assert self._connection is not None, "opened first"
        return self._connection

    def _connect(self, is_read_only: bool) -> None:
        if is_read_only and not exists(self.path):
            raise FileNotFoundError(2, "there is no such file")
        path = f"file:{_quote(self.path)}?mode={'ro' if is_read_only else 'rwc'}"
        self._connection = sqlite3.connect(path, uri=True, timeout=BUSY_SECONDS, isolation_level=None)
        if is_read_only:
            self._check_layout()
            return
        mode = self._database.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        if mode != "wal":
            raise sqlite3.OperationalError(f"write-ahead logging is not possible there, only {mode}")
        self._database.execute("PRAGMA synchronous = FULL")  # what was answered survives a power cut
        with _Transaction(self._database):
            if not self._database.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
                for table in _TABLES:
                    self._database.execute(table)
                self._database.execute("INSERT INTO settings VALUES (?)", (LAYOUT,))
        self._check_layout()

    def _check_layout(self) -> None:
        try:
            row = self._database.execute("SELECT layout FROM settings").fetchone()
        except sqlite3.OperationalError as error:
            if "no such table" not in str(error):
                raise
            row = None
        if row is None:
            raise sqlite3.DatabaseError("it is a database, but no ledger. Name another file")
        if row[0] != LAYOUT:
            raise sqlite3.DatabaseError(f"it has layout {row[0]}, this Wukong reads {LAYOUT}. Use the newer Wukong")

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _write(self, record: ReplicaRecord) -> WorkloadRecord:
        assert record.cluster == self.cluster, "a ledger is opened for one cluster"
        with _Transaction(self._database):
            latest = self._find_latest(record.object_name)
            is_closed = self._has_row("closed WHERE cluster = ? AND uid = ?", record.uid)
            change = take_in(latest.record if latest else None, record, is_closed=is_closed)
            if not record.closed_at and not self._has_row(
                "history WHERE cluster = ? AND uid = ? AND generation = ?", record.uid, record.generation
            ):
                self._insert_history(record)
            if change.closed_uid:
                self._mark_closed(change.closed_uid, change.closed_at)
            if change.opened_uid:
                self._mark_open(change.opened_uid)
            if change.latest is None or (latest is not None and change.latest == latest.record):
                return latest or WorkloadRecord(metadata=ObjectMeta(name=record.object_name), record=record)
            version = self._read_version() + 1
            values = (*_values_of(change.latest), record.object_name, version)
            self._database.execute(
                f"REPLACE INTO latest ({_COLUMNS}, object_name, version) VALUES ({_VALUES}, ?, ?)", values
            )
            return _build_object(change.latest, version)

    def _has_row(self, rest: str, *values: str | int) -> bool:
        return self._database.execute(f"SELECT 1 FROM {rest}", (self.cluster, *values)).fetchone() is not None

    def _insert_history(self, record: ReplicaRecord) -> None:
        row = self._database.execute(
            "SELECT closed_at FROM closed WHERE cluster = ? AND uid = ?", (self.cluster, record.uid)
        ).fetchone()
        entry = msgspec.structs.replace(record, closed_at=row[0] if row else "")
        values = (*_values_of(entry), record.object_name)
        self._database.execute(f"INSERT INTO history ({_COLUMNS}, object_name) VALUES ({_VALUES}, ?)", values)
        self._database.execute(
            "DELETE FROM history WHERE rowid IN (SELECT rowid FROM history WHERE cluster = ? AND object_name = ?"
            " ORDER BY created DESC, uid DESC, generation DESC LIMIT -1 OFFSET ?)",
            (self.cluster, record.object_name, self.keep),
        )

    def _mark_closed(self, uid: str, closed_at: str) -> None:
        self._database.execute("REPLACE INTO closed VALUES (?, ?, ?)", (self.cluster, uid, closed_at))
        self._set_closed(uid, closed_at)

    def _mark_open(self, uid: str) -> None:
        self._database.execute("DELETE FROM closed WHERE cluster = ? AND uid = ?", (self.cluster, uid))
        self._set_closed(uid, "")

    def _set_closed(self, uid: str, closed_at: str) -> None:
        values = (closed_at, self.cluster, uid)
        self._database.execute("UPDATE history SET closed_at = ? WHERE cluster = ? AND uid = ?", values)

    def _find_latest(self, object_name: str) -> WorkloadRecord | None:
        row = self._database.execute(
            f"SELECT {_COLUMNS}, version FROM latest WHERE cluster = ? AND object_name = ?", (self.cluster, object_name)
        ).fetchone()
        return _build_object(_read(row), row[-1]) if row else None

    def _list_latest(self) -> list[WorkloadRecord]:
        rows = self._database.execute(
            f"SELECT {_COLUMNS}, version FROM latest WHERE cluster = ? ORDER BY object_name", (self.cluster,)
        )
        return [_build_object(_read(row), row[-1]) for row in rows]

    def _list_history(self, object_name: str) -> list[ReplicaRecord]:
        rows = self._database.execute(
            f"SELECT {_COLUMNS} FROM history WHERE cluster = ? AND object_name = ? ORDER BY created, uid, generation",
            (self.cluster, object_name),
        )
        return [_read(row) for row in rows]

    def _read_version(self) -> int:
        return int(self._database.execute("SELECT coalesce(max(version), 0) FROM latest").fetchone()[0])


class _Transaction:
    """Nobody else writes until it is over: it is all in the file, or nothing of it is."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def __enter__(self) -> None:
        self._database.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._database.execute("COMMIT")
        elif self._database.in_transaction:
            self._database.execute("ROLLBACK")


def _values_of(record: ReplicaRecord) -> tuple[str | int, ...]:
    return tuple(getattr(record, name) for name in _FIELDS)


def _read(row: tuple[str | int, ...]) -> ReplicaRecord:
    return ReplicaRecord(**dict(zip(_FIELDS, row, strict=False)))  # type: ignore[arg-type]


def _build_object(record: ReplicaRecord, version: int) -> WorkloadRecord:
    return WorkloadRecord(metadata=ObjectMeta(name=record.object_name, resource_version=str(version)), record=record)


def _quote(path: str) -> str:
    return path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
