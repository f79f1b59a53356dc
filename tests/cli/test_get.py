"""`wukong get wk`: the tree of a Wukong from a snapshot, for people and for programs; and as it changes."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from cli.conftest import Wukong
from cli.manifests import node, write_json
from vms import LONG_AGO, a_launcher, a_migration, a_vm, an_instance, migratable, running
from vms import a_wukong as wukong_object
from wukong.api.kinds import KINDS, NAMESPACES, WUKONGS, group_kind_of
from wukong.api.meta import Object, ObjectMeta
from wukong.api.resources import Resource
from wukong.api.vm import Wukong as WukongKind
from wukong.cli.inputs import machine_source
from wukong.cli.inputs.machine_source import KINDS_READ, LAUNCHERS, _list_all, follow_cluster
from wukong.embedded.store import Store
from wukong.embedded.world.clock import VirtualClock
from wukong.errors import NotFound
from wukong.placement.vm import VmSettings, build_virtual_machine
from wukong.ports import Cluster, Page, Selection
from wukong.state import State

NO_NODE = f"0/2 nodes are available: 2 Insufficient memory.{' preemption: not helpful.' * 4}"
CUT = f"{NO_NODE[:99]}…"
TREE = """\
NAME                                READY  STATUS              REASON         MESSAGE
wk/web                              1/2
├─ vm/web-0                         yes    Migrating
│  └─ vmi/web-0                            Running
│     ├─ migration/move                    Running
│     └─ pod/virt-launcher-web-0-a         Running
│        └─ node/a
└─ vm/web-1                         no     ErrorUnschedulable  Unschedulable  {cut}
   └─ vmi/web-1                            Scheduling
      └─ pod/virt-launcher-web-1-a         Pending             Unschedulable  {cut}
"""


def a_document(subject: Object) -> dict[str, Any]:
    resource = KINDS[group_kind_of(subject)].resource
    return {**msgspec.to_builtins(subject), "kind": resource.kind, "apiVersion": resource.api_version}


def objects_of(wukong: WukongKind) -> list[Object]:
    """One virtual machine that migrates, and one that has no node."""
    names = [f"{wukong.metadata.name}-{index}" for index in range(2)]
    documents = [build_virtual_machine(wukong, name, VmSettings()) for name in names]
    first = a_vm(documents[0], status=running(printableStatus="Migrating"))
    second = a_vm(documents[1], status={"printableStatus": "ErrorUnschedulable"})
    instances = an_instance(first, "a", conditions=migratable()), an_instance(second)
    pods = a_launcher(instances[0], "a"), a_launcher(instances[1], refusal=NO_NODE, created_at=LONG_AGO)
    return [wukong, first, second, *instances, *pods, a_migration(instances[0])]


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> None:
    documents = [a_document(subject) for subject in objects_of(wukong_object(replicas=2))]
    write_json(tmp_path / "cluster.json", node("a"), node("b"), *documents)


def test_the_tree_tells_of_every_object_and_of_what_is_wrong(wukong: Wukong) -> None:
    run = wukong("get", "wk", "-n", "shop", "-s", "cluster.json")
    assert run.code == 0, run.err
    assert run.out == TREE.format(cut=CUT)


def test_wide_cuts_nothing_and_all_namespaces_names_them(wukong: Wukong) -> None:
    out = wukong("get", "wk", "-A", "-s", "cluster.json", "-o", "wide").out
    assert NO_NODE in out
    assert out.splitlines()[0].split()[:2] == ["NAMESPACE", "NAME"]
    assert out.splitlines()[1].split()[:2] == ["shop", "wk/web"]


def test_programs_get_the_same_as_a_document(wukong: Wukong) -> None:
    (tree,) = wukong("get", "wk/web", "-n", "shop", "-s", "cluster.json", "-o", "json").document["items"]
    assert (tree["namespace"], tree["kind"], tree["name"], tree["ready"]) == ("shop", "wk", "web", "1/2")
    first, second = tree["children"]
    assert first["children"][0]["children"][1]["children"] == [{"kind": "node", "name": "a"}]
    assert (second["reason"], second["message"]) == ("Unschedulable", NO_NODE)


def test_names_are_as_kubectl_writes_them(wukong: Wukong) -> None:
    assert wukong("get", "wk", "-n", "shop", "-s", "cluster.json", "-o", "name").out == "wukong.vm.novasphere.dev/web\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("wk", "wep", "-n", "shop", "-s", "cluster.json"), 'no Wukong shop/wep there. Did you mean "web"?'),
        (("wm", "-s", "cluster.json"), "wm: expected wk, the Wukongs, or moves."),
        (("wk/web", "web", "-s", "cluster.json"), "Name it once"),
        (("wk", "web", "-A", "-s", "cluster.json"), "leave out --all-namespaces"),
        (("wk", "-w", "-s", "cluster.json"), "leave out --snapshot"),
    ],
)
def test_what_cannot_be_shown_is_said(wukong: Wukong, words: tuple[str, ...], message: str) -> None:
    run = wukong("get", *words)
    assert run.code == 2
    assert message in run.err


def test_a_namespace_without_any_is_told_so(wukong: Wukong) -> None:
    run = wukong("get", "wk", "-s", "cluster.json")
    assert (run.code, run.out) == (0, "")
    assert run.notes == ["note: no Wukongs in namespace default."]


def test_what_is_watched_is_shown_again_when_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_source, "_QUIET_SECONDS", 0.0)
    shown: list[list[str]] = []

    async def story() -> None:
        async with Store(VirtualClock()) as store:
            await store.create(NAMESPACES, {"metadata": {"name": "shop"}})
            is_shown = asyncio.Event()

            def show(state: State) -> None:
                shown.append([wukong.metadata.name for wukong in state.all(WukongKind)])
                is_shown.set()

            task = asyncio.create_task(follow_cluster(store, "shop", show))
            for name in ("web", "db"):
                await is_shown.wait()
                is_shown.clear()
                await store.create(WUKONGS, {"metadata": {"name": name}, "spec": {}}, "shop")
            await is_shown.wait()
            for _ in range(50):  # nothing changes any more, and nothing is shown again
                await asyncio.sleep(0)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    asyncio.run(story())
    assert [names for names, _ in groupby(shown)] == [[], ["web"], ["db", "web"]]
    assert len(shown) < 10


class Pages:
    """A cluster whose lists come page by page; kinds that are not named are not installed."""

    def __init__(self, **names: list[list[str]]) -> None:
        self.names, self.asked = names, list[tuple[str, str, str, int, str]]()

    async def list(
        self, resource: Resource, read: type[Object], selection: Selection, *, limit: int, token: str
    ) -> Any:
        self.asked.append((resource.kind, selection.namespace, selection.labels, limit, token))
        if resource.kind not in self.names:
            raise NotFound("no such kind")
        number = int(token or 0)
        pages = self.names[resource.kind]
        items = [read(metadata=ObjectMeta(name=name)) for name in pages[number]]
        return Page(items, "1", str(number + 1) if number + 1 < len(pages) else "")


def test_machines_are_read_page_by_page_and_kinds_of_kubevirt_may_be_missing() -> None:
    cluster = Pages(Wukong=[["a", "b"], ["c"]], Pod=[["p"]])
    names = {}
    for watch in KINDS_READ:
        items = asyncio.run(_list_all(cast(Cluster, cluster), watch, "shop"))
        names[watch.resource.kind] = [item.metadata.name for item in items]
    assert names["Wukong"] == ["a", "b", "c"]
    assert names["Pod"] == ["p"]
    assert {kind: found for kind, found in names.items() if kind not in ("Wukong", "Pod")} == {
        "VirtualMachine": [],
        "VirtualMachineInstance": [],
        "VirtualMachineInstanceMigration": [],
    }
    assert [entry for entry in cluster.asked if entry[0] == "Wukong"] == [
        ("Wukong", "shop", "", 500, ""),
        ("Wukong", "shop", "", 500, "1"),
    ]
    assert [entry[2] for entry in cluster.asked if entry[0] == "Pod"] == [LAUNCHERS]
    (wukongs,) = [watch for watch in KINDS_READ if watch.resource.kind == "Wukong"]
    with pytest.raises(NotFound):
        asyncio.run(_list_all(cast(Cluster, Pages()), wukongs, "shop"))
