"""The ledger in SQLite: the same as the embedded one, whatever is written in which order, and clear about trouble."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgers import a_record
from wukong.api.kinds import WORKLOAD_RECORDS
from wukong.api.ledger import ReplicaRecord
from wukong.cluster.ledger import sqlite
from wukong.cluster.ledger.sqlite import SqliteLedger, open_sqlite
from wukong.embedded.ledger import write_record
from wukong.embedded.store import Server
from wukong.embedded.world.clock import VirtualClock
from wukong.errors import InputError, LedgerFailed, OutcomeUnknown

T = TypeVar("T")
NAME = "deployment.shop.web"


def use(
    path: Path | str, work: Callable[[SqliteLedger], Awaitable[T]], *, keep: int = 1000, cluster: str = "default"
) -> T:
    async def story() -> T:
        ledger = await open_sqlite(str(path), cluster, keep=keep)
        try:
            return await work(ledger)
        finally:
            await ledger.close()

    return asyncio.run(story())


async def write_all(ledger: SqliteLedger, records: list[ReplicaRecord]) -> list[ReplicaRecord]:
    for record in records:
        await ledger.write(record)
    return [entry.record for entry in await ledger.list_latest()]


def test_what_is_written_is_there_when_it_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    records = [a_record(1), a_record(2, replicas=0)]
    assert use(path, lambda ledger: write_all(ledger, records)) == [records[1]]
    assert use(path, lambda ledger: ledger.list_history(NAME)) == records
    assert use(path, lambda ledger: ledger.list_latest(), cluster="another") == []


def test_the_answer_to_a_late_record_is_what_holds(tmp_path: Path) -> None:
    async def story(ledger: SqliteLedger) -> None:
        second = await ledger.write(a_record(2))
        assert await ledger.write(a_record(1)) == second == await ledger.write(a_record(2))
        assert (second.metadata.name, second.metadata.resource_version) == (NAME, "1")
        third = await ledger.write(a_record(3))
        assert third.metadata.resource_version == "2"
        assert await ledger.read_version() == 2
        assert [record.generation for record in await ledger.list_history(NAME)] == [1, 2, 3]

    use(tmp_path / "ledger.db", story)


def test_the_history_keeps_the_newest_records_of_each_workload(tmp_path: Path) -> None:
    async def story(ledger: SqliteLedger) -> list[int]:
        await write_all(ledger, [a_record(generation) for generation in (1, 2, 4, 3, 1)])
        return [record.generation for record in await ledger.list_history(NAME)]

    assert use(tmp_path / "ledger.db", story, keep=2) == [3, 4]


UIDS = {"a": "2026-01-01T00:00:00Z", "b": "2026-01-01T00:00:00Z", "c": "2026-01-01T00:10:00Z"}
RECORDS = st.builds(
    lambda uid, generation, at, closed_at: a_record(
        generation, replicas=generation + len(uid), uid=uid, created=UIDS[uid], at=at, closed_at=closed_at
    ),
    st.sampled_from(sorted(UIDS)),
    st.integers(1, 4),
    st.sampled_from(["2026-01-01T00:20:00Z", "2026-01-01T00:40:00Z"]),
    st.sampled_from(["", "", "2026-01-01T00:30:00Z"]),
)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.lists(RECORDS, max_size=12))
def test_it_says_what_the_embedded_ledger_says(records: list[ReplicaRecord]) -> None:
    server = Server(VirtualClock())
    for record in records:
        write_record(server, record)
    documents = server.list(WORKLOAD_RECORDS).items

    async def story(ledger: SqliteLedger) -> tuple[list[ReplicaRecord], list[ReplicaRecord]]:
        return await write_all(ledger, records), await ledger.list_history(NAME)

    with TemporaryDirectory() as folder:
        latest, history = use(os.path.join(folder, "ledger.db"), story)
    assert latest == [msgspec.convert(document["record"], ReplicaRecord) for document in documents]
    assert history == [msgspec.convert(entry, ReplicaRecord) for document in documents for entry in document["history"]]


def test_two_writers_of_one_file_lose_and_double_nothing(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    use(path, lambda ledger: ledger.list_latest())

    def write(generations: range) -> None:
        records = [a_record(generation, replicas=generation) for generation in generations]
        use(path, lambda ledger: write_all(ledger, records))

    writers = [threading.Thread(target=write, args=(range(1 + offset, 41, 2),)) for offset in (0, 1)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()

    async def read(ledger: SqliteLedger) -> tuple[list[int], list[int]]:
        latest = [entry.record.generation for entry in await ledger.list_latest()]
        return latest, [record.generation for record in await ledger.list_history(NAME)]

    assert use(path, read) == ([40], list(range(1, 41)))


def test_a_writer_that_is_killed_in_the_middle_leaves_nothing_half_written(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"

    class KilledError(Exception):
        pass

    async def story(ledger: SqliteLedger) -> None:
        await ledger.write(a_record(1))
        with pytest.MonkeyPatch.context() as patch:

            def die(*_: object) -> None:
                raise KilledError

            patch.setattr(sqlite, "_build_object", die)
            with pytest.raises(KilledError):
                await ledger.write(a_record(2))

    use(path, story)
    assert use(path, lambda ledger: write_all(ledger, [])) == [a_record(1)]
    assert use(path, lambda ledger: ledger.list_history(NAME)) == [a_record(1)]


def test_what_a_database_cannot_hold_is_refused_and_the_next_record_is_written(tmp_path: Path) -> None:
    async def story(ledger: SqliteLedger) -> list[ReplicaRecord]:
        for bad in (a_record(1, revision="\ud800"), a_record(1 << 63)):
            with pytest.raises(LedgerFailed):
                await ledger.write(bad)
        return await write_all(ledger, [a_record(1)])

    assert use(tmp_path / "ledger.db", story) == [a_record(1)]


def open_error(path: Path | str) -> str:
    with pytest.raises(InputError) as caught:
        use(path, lambda ledger: ledger.list_latest())
    return str(caught.value)


def test_files_that_are_no_ledger_are_refused_and_left_as_they_are(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("not a database at all, but long enough to be taken for one\n" * 100)
    assert "no database of SQLite" in open_error(text)
    assert text.read_text().startswith("not a database")
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as database:
        database.execute("CREATE TABLE things (name TEXT)")
    assert "but no ledger" in open_error(other)
    assert "cannot be opened. Is its directory there" in open_error(tmp_path / "nowhere" / "ledger.db")
    assert "cannot be opened" in open_error(tmp_path)


def test_a_ledger_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    use(path, lambda ledger: ledger.list_latest())
    with sqlite3.connect(path) as database:
        database.execute("UPDATE settings SET layout = 2")
    assert "it has layout 2, this Wukong reads 1" in open_error(path)


def test_a_damaged_ledger_is_named_and_the_way_out_is_said(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    use(path, lambda ledger: write_all(ledger, [a_record(number) for number in range(1, 60)]))
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(bytes(content))

    async def story(ledger: SqliteLedger) -> None:
        await ledger.write(a_record(1))

    with pytest.raises((LedgerFailed, InputError), match=r"it is damaged\. Move it away"):
        use(path, story)


def test_a_file_that_another_process_keeps_locked_is_said_to_be_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.05)
    path = tmp_path / "ledger.db"

    async def story(ledger: SqliteLedger) -> list[ReplicaRecord]:
        blocker = sqlite3.connect(path, isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerFailed, match="another process is writing"):
            await ledger.write(a_record(1))
        blocker.execute("ROLLBACK")
        blocker.close()
        return await write_all(ledger, [a_record(1)])

    assert use(path, story) == [a_record(1)]


def test_who_only_reads_makes_no_file_and_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"

    async def read_only() -> None:
        ledger = await open_sqlite(str(path), "default", is_read_only=True)
        try:
            assert [entry.record for entry in await ledger.list_latest()] == [a_record(1)]
            with pytest.raises(LedgerFailed, match="cannot be written"):
                await ledger.write(a_record(2))
        finally:
            await ledger.close()

    with pytest.raises(InputError, match="no such file"):
        asyncio.run(read_only())
    assert not path.exists()
    use(path, lambda ledger: write_all(ledger, [a_record(1)]))
    asyncio.run(read_only())


def test_a_slow_disk_stalls_nobody_and_what_was_sent_is_written_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, go_on = tmp_path / "ledger.db", threading.Event()

    async def story(ledger: SqliteLedger) -> list[ReplicaRecord]:
        write = ledger._write

        def write_late(record: ReplicaRecord) -> object:
            go_on.wait()
            return write(record)

        monkeypatch.setattr(ledger, "_write", write_late)
        monkeypatch.setattr(sqlite, "ANSWER_SECONDS", 0.02)
        with pytest.raises(OutcomeUnknown, match="no answer within"):
            await ledger.write(a_record(1))
        go_on.set()
        monkeypatch.setattr(sqlite, "ANSWER_SECONDS", 30.0)
        return await write_all(ledger, [a_record(1)])

    assert use(path, story) == [a_record(1)]
