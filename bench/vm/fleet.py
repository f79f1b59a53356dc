"""How long many Wukongs take from being applied until their VirtualMachines are there. `python -m bench --vm-fleet`.

On a real control plane with KubeVirt, beside what the API server itself needs, in the same run, for the same
VirtualMachines sent by a plain client with as many requests at a time as the component has:

    created     POST, as `kubectl create` does
    applied     server-side apply, as the component does
    Wukongs     from the first Wukong that is created to the last VirtualMachine that a watch sees; how long it took
                until all Wukongs were created; until the last one said of itself that it was looked at

Wukongs are created as fast as the API server takes them. Their machines are halted: what virt-controller and the
scheduler would do with running ones is no part of it. Both kinds pass the webhooks of virt-api.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from testbed import supervisor
from testbed.client import Client, Json, Listed, as_json
from testbed.kubevirt.installation import COLLECTIONS, is_established
from testbed.supervisor import Order
from wukong.api.crds import build_crds
from wukong.api.kinds import VIRTUAL_MACHINES, WUKONGS
from wukong.api.vm import Wukong
from wukong.placement.vm import VmSettings, build_virtual_machine
from wukong.runtime import LoopSettings

COUNT, WARM_UP = 1_000, 20
AT_ONCE = LoopSettings().workers
APPLY = "application/apply-patch+yaml"
DISKS = [{"name": "root", "containerDisk": {"image": "quay.io/containerdisks/fedora:42"}}]

Say = Callable[[str], None]


class Figures(NamedTuple):
    """Seconds."""

    accepted: float  # until all Wukongs were created
    built: float  # until all VirtualMachines were seen
    observed: float  # until all Wukongs had a status about their generation


def main(say: Say, count: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="wukong-bench-"))
    say(f"control plane with KubeVirt; logs in {folder}")
    state = supervisor.up(folder / "bed", Order(nodes=0, kubevirt=True), say)
    try:
        asyncio.run(measure(state.kubeconfig, folder / "vm.log", count, say))
    finally:
        supervisor.down(folder / "bed", keep_logs=True)


async def measure(kubeconfig: Path, log: Path, count: int, say: Say) -> None:
    async with Client.of(kubeconfig) as client:
        await install_kinds(client)
        for namespace in ("warm-up", "created", "applied", "wukongs"):
            await client.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
        await time_sending(client, "warm-up", "POST", WARM_UP)
        say(f"{count:,} VirtualMachines, created and applied")
        created = await time_sending(client, "created", "POST", count)
        applied = await time_sending(client, "applied", "PATCH", count)
        with component_running(kubeconfig, log):
            await time_wukongs(client, "warm-up", WARM_UP)
            say(f"{count:,} Wukongs")
            figures = await time_wukongs(client, "wukongs", count)
    print(f"{count:,} VirtualMachines by a plain client, {AT_ONCE} requests at a time:")
    print(f"  created                {created:6.1f} s  {count / created:6.0f}/s")
    print(f"  applied                {applied:6.1f} s  {count / applied:6.0f}/s")
    print(f"{count:,} Wukongs of one VirtualMachine each:")
    print(f"  all Wukongs created    {figures.accepted:6.1f} s")
    print(
        f"  all VirtualMachines    {figures.built:6.1f} s  {count / figures.built:6.0f}/s  "
        f"({figures.built / created:.2f}× of created, {figures.built / applied:.2f}× of applied)"
    )
    print(f"  every status written   {figures.observed:6.1f} s")


async def install_kinds(client: Client) -> None:
    path = COLLECTIONS["CustomResourceDefinition"]
    for crd in build_crds():
        await client.create(path, crd)
    for crd in build_crds():
        await client.wait_until(f"{path}/{crd['metadata']['name']}", is_established)


@contextlib.contextmanager
def component_running(kubeconfig: Path, log: Path) -> Iterator[None]:
    """`wukong run --components vm` until the context ends."""
    argv = [sys.executable, "-m", "wukong", "run", "--components", "vm", "--kubeconfig", str(kubeconfig)]
    with log.open("wb") as output:
        process = subprocess.Popen(argv, stdout=output, stderr=output)
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


async def time_sending(client: Client, namespace: str, method: str, count: int) -> float:
    """Seconds until the API server has stored so many VirtualMachines, by POST or by apply."""
    machines = [build_machine(number, namespace) for number in range(count)]

    async def send(machine: Json) -> None:
        name, params = machine["metadata"]["name"], {"fieldManager": "bench"}
        if method == "POST":
            await client.create(VIRTUAL_MACHINES.path(namespace), machine)
        else:
            await client.send(
                method, VIRTUAL_MACHINES.path(namespace, name), machine, params=params, content_type=APPLY
            )

    began = time.perf_counter()
    await send_all(send(machine) for machine in machines)
    return time.perf_counter() - began


async def time_wukongs(client: Client, namespace: str, count: int) -> Figures:
    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        machines = group.create_task(wait_for(client, VIRTUAL_MACHINES.path(namespace), count, is_of_wukong))
        observed = group.create_task(wait_for(client, WUKONGS.path(namespace), count, is_observed))
        await send_all(client.create(WUKONGS.path(namespace), a_wukong(number, namespace)) for number in range(count))
        accepted = time.perf_counter()
    return Figures(accepted - began, machines.result() - began, observed.result() - began)


async def send_all(requests: Iterable[Awaitable[object]]) -> None:
    """All of them, AT_ONCE at a time."""
    pending = iter(requests)

    async def work() -> None:
        for request in pending:
            await request

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))


async def wait_for(client: Client, path: str, count: int, is_so: Callable[[Json], bool]) -> float:
    """When so many objects there were seen to be so."""
    names: set[str] = set()
    async for item in follow_objects(client, path):
        if is_so(item):
            names.add(item["metadata"]["name"])
            if len(names) == count:
                return time.perf_counter()
    raise AssertionError("follow never ends")


async def follow_objects(client: Client, path: str) -> AsyncIterator[Json]:
    async for change in client.follow(path):
        for raw in change.items if isinstance(change, Listed) else [change.object]:
            yield as_json(raw)


def is_of_wukong(machine: Json) -> bool:
    return bool(machine["metadata"].get("ownerReferences"))


def is_observed(wukong: Json) -> bool:
    return bool(wukong.get("status", {}).get("observedGeneration") == wukong["metadata"]["generation"])


def a_wukong(number: int, namespace: str) -> Json:
    return {
        "apiVersion": WUKONGS.api_version,
        "kind": WUKONGS.kind,
        "metadata": {"name": f"web-{number}", "namespace": namespace},
        "spec": {
            "memory": "128Mi",
            "runStrategy": "Halted",
            "disks": DISKS,
            "highAvailability": {"antiAffinity": True},
            "scheduling": {"nodeSelector": {"disk": "ssd"}},
        },
    }


def build_machine(number: int, namespace: str) -> Json:
    """What the component makes of that Wukong, but owned by nobody."""
    wukong = msgspec.convert(a_wukong(number, namespace), Wukong)
    machine = build_virtual_machine(wukong, f"plain-{number}", VmSettings())
    metadata = {name: value for name, value in machine["metadata"].items() if name != "ownerReferences"}
    return {**machine, "metadata": metadata}
