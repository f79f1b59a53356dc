"""The component ledger put together for a real cluster: its file, its dry run, and what its probes say."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from ledgers import a_record
from wukong.actions import Action, Record
from wukong.app.assemble import Assembly, assemble
from wukong.app.component import Context, list_permissions
from wukong.app.components.ledger import LEDGER
from wukong.app.components.ledger.install import build_ledger_manifests, check_ledger_installation, make_installation
from wukong.app.components.ledger.options import LedgerOptions, find_problems
from wukong.app.components.load import LOAD
from wukong.app.live import WallClock
from wukong.cluster.ledger.sqlite import open_sqlite
from wukong.embedded.store import Store
from wukong.embedded.world.clock import VirtualClock
from wukong.errors import InputError
from wukong.runtime import Loop, Metrics
from wukong.runtime.ledger_source import LedgerSource, WatchedLedger
from wukong.state import State


def an_assembly(path: Path) -> Assembly:
    options = {LEDGER.name: LedgerOptions(file=str(path), keep=7)}
    return assemble([LEDGER], Context(State(), Metrics(), WallClock(), {}, options))


def test_its_file_is_opened_once_and_closed_with_the_stack(tmp_path: Path) -> None:
    async def story() -> None:
        async with AsyncExitStack() as stack:
            assembly = await an_assembly(tmp_path / "ledger.db").open_ledger(stack)
            ledger = assembly.context.ledger
            assert ledger is not None
            await ledger.write(a_record())
            (source,) = assembly.build_sources(Store(VirtualClock()))
            assert isinstance(source, LedgerSource)
            assert source.ledger is ledger
        with pytest.raises(RuntimeError):
            await ledger.write(a_record(2))

    asyncio.run(story())


def test_a_dry_run_makes_no_file_and_says_each_record_once(tmp_path: Path) -> None:
    path, said = tmp_path / "ledger.db", list[Action]()

    async def story(record_twice: bool) -> list[str]:
        async with AsyncExitStack() as stack:
            ledger = (await an_assembly(path).open_ledger(stack, said.append)).context.ledger
            assert ledger is not None
            for _ in range(1 + record_twice):
                await ledger.write(a_record(4))
            return [entry.metadata.name for entry in await ledger.list_latest()]

    assert asyncio.run(story(record_twice=True)) == []
    assert (said, path.exists()) == ([Record(a_record(4))], False)

    async def fill() -> None:
        store = await open_sqlite(str(path), "default")
        await store.write(a_record(3))
        await store.close()

    asyncio.run(fill())
    assert asyncio.run(story(record_twice=False)) == ["deployment.shop.web"]


def test_components_that_record_nothing_open_nothing() -> None:
    async def story() -> None:
        assembly = assemble([LOAD], Context(State(), Metrics(), WallClock(), {}, {}))
        async with AsyncExitStack() as stack:
            assert (await assembly.open_ledger(stack)).context.ledger is None

    asyncio.run(story())


def test_a_process_whose_ledger_fails_is_not_ready(tmp_path: Path) -> None:
    async def story() -> None:
        async with AsyncExitStack() as stack:
            assembly = await an_assembly(tmp_path / "ledger.db").open_ledger(stack)
            ledger = assembly.context.ledger
            assert isinstance(ledger, WatchedLedger)
            cluster, clock = Store(VirtualClock()), WallClock()
            loop = Loop(cluster, (), lambda *_: None, clock=clock, random=lambda: 0.0, ledger=ledger)  # type: ignore[arg-type]
            assert loop.list_troubles() == []
            ledger.trouble = "ledger.db: its disk is full."
            assert loop.list_troubles() == ["the ledger fails: ledger.db: its disk is full."]

    asyncio.run(story())


def test_it_reads_workloads_and_keeps_its_lease_and_nothing_else() -> None:
    granted = {(rule.group, rule.resource, rule.verbs) for rule in list_permissions([LEDGER])}
    assert granted == {
        ("apps", "deployments", ("list", "watch")),
        ("apps", "statefulsets", ("list", "watch")),
        ("coordination.k8s.io", "leases", ("create",)),
        ("coordination.k8s.io", "leases", ("get", "patch")),
    }


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (LedgerOptions(file=""), "--file: expected the path of a file"),
        (LedgerOptions(file="firestore://p/c"), "--file: expected the path of a file"),
        (LedgerOptions(cluster_name="a\nb"), "--cluster_name: expected a name"),
    ],
)
def test_bad_options_are_named(options: LedgerOptions, problem: str) -> None:
    (found,) = find_problems(options, lambda field: f"--{field}")
    assert found.startswith(problem)


def test_its_volume_is_mounted_by_one_pod() -> None:
    good = make_installation(image="x", components=(LEDGER,), replicas=1)
    check_ledger_installation(good)
    kinds = [document["kind"] for document in build_ledger_manifests(good)]
    assert kinds.index("PersistentVolumeClaim") == kinds.index("Deployment") - 1
    assert "PodDisruptionBudget" not in kinds
    bad = make_installation(image="x", components=(LEDGER,), replicas=2, storage="much")
    with pytest.raises(InputError) as caught:
        check_ledger_installation(bad)
    assert [problem.partition(":")[0] for problem in caught.value.problems] == ["--replicas", "--storage"]
