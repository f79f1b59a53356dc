"""The process behind `python -m testbed up` and the tests: a control plane and its hollow kubelets, until told to end.
With KubeVirt also virt-api, virt-controller and hollow virt-handlers.

    up()   finds the programs, writes order.json, starts this module as a process of its own, waits for state.json
    down() ends that process, and by their recorded pids whatever a crash left of it

The supervisor ends by itself when its owner (the pytest process that asked for it) is gone, and its children end with
it, so nothing outlives a killed test run.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import signal
import sys
import time
from pathlib import Path

import msgspec

from testbed import control_plane, nodes, processes, programs
from testbed.build import Say
from testbed.client import Client
from testbed.control_plane import ControlPlane, tail, write_whole
from testbed.errors import NotUpError, TestbedError
from testbed.kubelet import Kubelets
from testbed.kubevirt.handler import Handlers
from testbed.kubevirt.installation import Installation
from testbed.kubevirt.vm_nodes import a_vm_node
from testbed.processes import Identity

log = logging.getLogger(__name__)

ORDER_FILE, STATE_FILE, LOG_FILE = "order.json", "state.json", "supervisor.log"
UP_SECONDS, NODES_SECONDS, STOP_SECONDS = 240.0, 120.0, 30.0
LOOK_SECONDS = 0.5


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What the supervisor is to run."""

    nodes: int = 3
    scheduler_config: Path | None = None
    lease_seconds: float | None = None
    kubevirt: bool = False  # virt-api, virt-controller and hollow virt-handlers besides
    extra_flags: dict[str, list[str]] = {}  # component → flags after ours
    owner: Identity | None = None  # it ends when this process does


class State(msgspec.Struct, frozen=True, kw_only=True):
    """What a supervisor says about itself; written anew whenever it changes."""

    supervisor: Identity
    kubeconfig: Path
    is_ready: bool = False
    seconds: float = 0.0  # from the start of the supervisor until everything was ready
    error: str = ""


def up(folder: Path, order: Order, say: Say) -> State:
    """Start a test bed in `folder` and wait until it is ready; raises with its words if it fails."""
    folder = folder.resolve()
    with contextlib.suppress(NotUpError):
        raise TestbedError(f"already up: export KUBECONFIG={state_of(folder).kubeconfig}")
    down(folder)  # what a crash may have left
    programs.find(say)
    if order.kubevirt:
        programs.find_kubevirt(say)
    folder.mkdir(parents=True, mode=0o700)
    (folder / ORDER_FILE).write_bytes(msgspec.json.encode(order, enc_hook=str))
    argv = [sys.executable, "-m", "testbed.supervisor", str(folder)]
    process = processes.spawn(argv, folder / LOG_FILE, cwd=Path(__file__).parents[1], outlives=True)
    deadline = time.monotonic() + UP_SECONDS
    while time.monotonic() < deadline:
        state = read_state(folder)
        if state is not None and state.is_ready:
            return state
        if process.poll() is not None:
            raise TestbedError(state.error if state and state.error else tail(folder / LOG_FILE))
        time.sleep(0.05)
    down(folder, keep_logs=True)
    raise TestbedError(f"the test bed was not up after {UP_SECONDS:.0f} s. {tail(folder / LOG_FILE)}")


def down(folder: Path, *, keep_logs: bool = False) -> bool:
    """End what runs in `folder`, also after a crash, and remove it; tells whether anything ran."""
    state = read_state(folder)
    supervisor = [state.supervisor] if state else []
    everything = [*supervisor, *control_plane.recorded(folder).values()]
    was_up = any(process.is_alive for process in everything)
    processes.end(supervisor, term_seconds=STOP_SECONDS)  # it ends its children in order
    processes.end(everything)
    processes.reap()
    if keep_logs:
        for path in (folder / "etcd", folder / "keys"):
            shutil.rmtree(path, ignore_errors=True)
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return was_up


def state_of(folder: Path) -> State:
    """Of the test bed that is up in this folder; raises NotUpError where there is none."""
    state = read_state(folder)
    if state is None or not state.is_ready or not state.supervisor.is_alive:
        raise NotUpError(f"no test bed is up in {folder}")
    return state


def read_state(folder: Path) -> State | None:
    try:
        content = (folder / STATE_FILE).read_bytes()
    except FileNotFoundError:
        return None
    return msgspec.json.decode(content, type=State, dec_hook=as_path)


def as_path(kind: type, value: object) -> object:
    assert kind is Path
    return Path(str(value))


# The process itself ---------------------------------------------------------------------------------------------------


def supervise(folder: Path) -> None:
    """Run what order.json asks for until told to end."""
    own = Identity.of(os.getpid())
    assert own, "we are alive"
    order = msgspec.json.decode((folder / ORDER_FILE).read_bytes(), type=Order, dec_hook=as_path)
    found = programs.find(log.info)
    plane = ControlPlane(folder, found, scheduler_config=order.scheduler_config, extra_flags=order.extra_flags)
    state = State(supervisor=own, kubeconfig=plane.kubeconfig)
    write_state(folder, state)
    try:
        asyncio.run(run(plane, order, state))
    except TestbedError as error:
        write_state(folder, msgspec.structs.replace(state, is_ready=False, error=str(error)))
        raise SystemExit(str(error)) from None
    finally:
        plane.stop()


async def run(plane: ControlPlane, order: Order, state: State) -> None:
    began = time.monotonic()
    told_to_end = asyncio.Event()
    kubevirt = Installation(plane, programs.find_kubevirt(log.info)) if order.kubevirt else None
    plane.start()  # nothing else runs yet that it could hold up
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told_to_end.set)
    async with contextlib.AsyncExitStack() as stack:
        client = await stack.enter_async_context(Client.of(plane.kubeconfig))
        kubelets = Kubelets(client, lease_seconds=order.lease_seconds, await_guests=order.kubevirt)
        hollow = [loop.create_task(kubelets.run())]
        a_node = a_vm_node if order.kubevirt else nodes.a_node
        await nodes.create(client, nodes.spread_nodes(order.nodes, time.time(), a_node))
        if kubevirt:
            await kubevirt.install(client)
            handler = Client.of(plane.layout.kubeconfig("kubevirt-handler"))
            hollow.append(loop.create_task(Handlers(await stack.enter_async_context(handler), client).run()))
        await nodes.all_usable(client, order.nodes, NODES_SECONDS)
        write_state(plane.folder, msgspec.structs.replace(state, is_ready=True, seconds=time.monotonic() - began))
        watching = loop.create_task(watch(plane, order.owner, told_to_end))
        await asyncio.wait([*hollow, watching], return_when=asyncio.FIRST_COMPLETED)
        for task in (*hollow, watching):
            task.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        for task in hollow:
            with contextlib.suppress(asyncio.CancelledError):
                await task  # if they failed, that is why we end: say so


async def watch(plane: ControlPlane, owner: Identity | None, told_to_end: asyncio.Event) -> None:
    """Until told to end or the owner is gone. A component that ends is noted, not restarted: a test may want it so."""
    noted: set[str] = set()
    while not told_to_end.is_set() and (owner is None or owner.is_alive):
        for name, process in plane.running.items():
            if process.poll() is not None and name not in noted:
                noted.add(name)
                log.error("%s ended with %s", name, process.returncode)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(told_to_end.wait(), LOOK_SECONDS)


def write_state(folder: Path, state: State) -> None:
    write_whole(folder / STATE_FILE, msgspec.json.encode(state, enc_hook=str))


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    supervise(Path(sys.argv[1]))
