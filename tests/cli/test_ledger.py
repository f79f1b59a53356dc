"""`wukong ledger`: what is shown of a file, and what is said where there is none."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from cli.conftest import Wukong
from ledgers import a_deployment, a_record
from wukong.api.ledger import ReplicaRecord
from wukong.cli.verbs.ledger_verify import find_status_time
from wukong.cli.verbs.ledger_watch import render
from wukong.cluster.ledger.sqlite import open_sqlite
from wukong.controllers.ledger.comparison import ObservedWorkload, compare

CLOSED = "2026-01-01T02:00:00Z"


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """Two generations of one workload, and another one that is gone."""
    path = tmp_path / "ledger.db"

    async def fill() -> None:
        store = await open_sqlite(str(path), "default")
        for record in (a_record(1), a_record(2, replicas=0), other(), other(closed_at=CLOSED)):
            await store.write(record)
        await store.close()

    asyncio.run(fill())
    return path


def other(**more: str) -> ReplicaRecord:
    fields = {"kind": "StatefulSet", "name": "db", "uid": "s"}
    record = a_record(3, replicas=2, **more)
    return type(record)(**{name: getattr(record, name) for name in record.__struct_fields__} | fields)


def test_list_has_every_open_workload(wukong: Wukong, ledger: Path) -> None:
    run = wukong("ledger", "list", "--ledger", ledger)
    assert run.code == 0
    assert [line.split()[:4] for line in run.out.splitlines()[1:]] == [["shop", "Deployment", "web", "0"]]
    assert wukong("ledger", "list", "--ledger", ledger, "-n", "nowhere").notes == [
        "note: nothing is recorded in namespace nowhere of cluster default."
    ]


def test_list_has_closed_ones_on_demand_and_every_field_for_programs(wukong: Wukong, ledger: Path) -> None:
    records = wukong("ledger", "list", "--ledger", ledger, "--closed", "-o", "json").document["records"]
    assert [(entry["id"], entry["replicas"], entry["closedAt"]) for entry in records] == [
        ("a-2", 0, ""),
        ("s-3", 2, CLOSED),
    ]


def test_show_has_the_history(wukong: Wukong, ledger: Path) -> None:
    records = wukong("ledger", "show", "deploy/web", "-n", "shop", "--ledger", ledger, "-o", "yaml")
    assert records.out.count("generation:") == 2
    assert "UID" in wukong("ledger", "show", "sts/shop/db", "--ledger", ledger, "-o", "wide").out


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["show", "deploy/nobody"], "nothing is recorded of deployment.default.nobody"),
        (["show", "ds/web"], "expected a Deployment or a StatefulSet"),
        (["list", "--ledger", "nowhere.db"], "nowhere.db: there is no such file"),
        (["list", "--ledger", "firestore://x"], "expected the path of a file"),
    ],
)
def test_bad_input_is_named(wukong: Wukong, ledger: Path, arguments: list[str], problem: str) -> None:
    run = wukong("ledger", *arguments, *([] if "--ledger" in arguments else ["--ledger", ledger]))
    assert run.code == 2
    assert problem in run.err


def test_a_line_of_watch_says_who_has_how_many_since_when() -> None:
    line = "2026-01-01T00:01:00Z Deployment shop/web: 3 replicas (generation 1, revision 7)"
    assert render(a_record(), is_json=False) == line
    assert "closed, 3 replicas at the end" in render(a_record(closed_at=CLOSED), is_json=False)
    assert '"id": "a-1"' in render(a_record(), is_json=True)


def test_verify_tells_what_differs_from_what_is_on_its_way() -> None:
    there, name = ObservedWorkload(a_deployment(3, 2), CLOSED), "deployment.shop.web"

    def verdicts(workload: ObservedWorkload | None, record: ReplicaRecord | None) -> list[tuple[str, str, str]]:
        found = compare([workload] if workload else [], {name: record} if record else {})
        return [(entry.verdict, entry.text, entry.since) for entry in found]

    at = "2026-01-01T00:01:00Z"
    assert verdicts(there, a_record(2)) == [("Same", "3 replicas at generation 2", at)]
    differs = "has 3 replicas at generation 2, and the ledger "
    assert verdicts(there, a_record(1, replicas=1)) == [("Differs", f"{differs}says 1 replica at generation 1", CLOSED)]
    assert verdicts(there, None) == [("Differs", f"{differs}has nothing of it", CLOSED)]
    closed = f"{differs}says 3 replicas at generation 2, closed at {CLOSED}"
    assert verdicts(there, a_record(2, closed_at=CLOSED)) == [("Differs", closed, CLOSED)]
    gone = "is gone, and the ledger says 3 replicas at generation 2"
    assert verdicts(None, a_record(2)) == [("Differs", gone, at)]
    assert verdicts(None, a_record(2, closed_at=CLOSED)) == []
    changing = ObservedWorkload(a_deployment(3, 2, available=1), CLOSED)
    text = "of 3 3 are updated and 1 available, 3 there; the ledger says 3 replicas at generation 1"
    assert verdicts(changing, a_record(1)) == [("Changing", text, CLOSED)]


@pytest.mark.parametrize(
    ("managers", "time"),
    [
        (None, ""),
        ("x", ""),
        ([{"time": "b"}, {"time": "a", "subresource": "status"}, 3], "a"),
        ([{"time": 1, "subresource": "status"}], ""),
    ],
)
def test_the_time_of_a_status_is_what_its_managers_say(managers: object, time: str) -> None:
    assert find_status_time({"metadata": {"managedFields": managers}}) == time
