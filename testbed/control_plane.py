"""Starts, watches over and ends the processes of one control plane. supervisor.py runs one; a test may run its own.

Plain and synchronous: it starts etcd, then the API server, then both the controller manager and the scheduler, each as
soon as what it needs answers. The processes die with the one that started them; their pids are also written down, for
`python -m testbed down`.
"""

from __future__ import annotations

import http.client
import shutil
import ssl
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

import msgspec

from testbed import certificates, components, processes
from testbed.components import Layout, Ports
from testbed.errors import TestbedError
from testbed.processes import Identity
from testbed.programs import Programs

START_SECONDS = 180.0  # on a machine with much else to do; else a few
ATTEMPTS = 3  # a program that is not ours may take a port between our choosing and using it
PROCESSES_FILE = "processes.json"
# The controller manager calls itself healthy long before its controllers run, and gives up if it loses the API server
# meanwhile. All of them are set up before the first one runs, so this object says that all do.
FIRST_DEED = "/api/v1/namespaces/default/serviceaccounts/default"
PORT_TAKEN = "address already in use"


class Addition(msgspec.Struct, frozen=True):
    """A component that runs beside those of Kubernetes and is started before them: it has to wait for what it needs.

    It keeps nothing that an orderly end would save.
    """

    argv: list[str]
    health_url: str  # answers 200 once the component does its work
    health_words: bytes = b""  # and says this


class ControlPlane:
    """etcd, API server, controller manager and scheduler below one folder. Use it in a `with`, or start and stop it."""

    def __init__(
        self,
        folder: Path,
        programs: Programs,
        *,
        scheduler_config: Path | None = None,
        extra_flags: Mapping[str, Sequence[str]] | None = None,
        has_controllers: bool = True,
    ) -> None:
        """Without controllers there is nobody but etcd and the API server."""
        self.folder = folder.resolve()
        self.programs = programs
        self.given_scheduler_config = scheduler_config
        self.extra_flags = extra_flags or {}
        self.has_controllers = has_controllers
        self.layout = Layout(self.folder, Ports.free())
        self.additions: dict[str, Addition] = {}
        self.on_api_server: Callable[[], None] = lambda: None  # called when it answers, while others still start
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def kubeconfig(self) -> Path:
        """Of a cluster admin."""
        return self.layout.kubeconfig()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> float:
        """Bring everything up; gives the seconds it took."""
        began = time.monotonic()
        for attempt in range(1, ATTEMPTS + 1):
            try:
                self.start_once()
                break
            except TestbedError as error:
                self.stop()
                if PORT_TAKEN not in str(error) or attempt == ATTEMPTS:
                    raise
                self.layout = Layout(self.folder, Ports.free())
        return time.monotonic() - began

    def start_once(self) -> None:
        layout = self.layout
        layout.logs.mkdir(parents=True, exist_ok=True)
        for folder in (layout.data, layout.keys):
            shutil.rmtree(folder, ignore_errors=True)
        for name in self.additions:
            self.launch(name)
        self.launch("etcd")  # while it starts the keys are made
        certificates.make(layout.keys, layout.server, components.SERVICE_ADDRESS)
        layout.audit_policy.write_text(components.AUDIT_POLICY)
        layout.scheduler_config.write_text(components.scheduler_configuration(layout, self.given_scheduler_config))
        self.await_ready("etcd")
        self.launch("apiserver")
        self.await_ready("apiserver")
        if not self.has_controllers:
            self.on_api_server()
            return
        for name in ("controller-manager", "scheduler"):
            self.launch(name)
        self.on_api_server()
        for name in ("controller-manager", "scheduler"):
            self.await_ready(name)
        self.await_answer("controller-manager", f"{layout.server}{FIRST_DEED}")

    def stop(self) -> None:
        """End whatever runs, clients first, and drop etcd's data. The logs stay.

        The API server is killed: told to end it waits a second for its clients, and all it has stored is dropped.
        """
        for name in self.additions.keys() & self.running.keys():
            self.kill(name)
        for name in ("scheduler", "controller-manager"):
            self.end(name)
        if "apiserver" in self.running:
            self.kill("apiserver")
        self.end("etcd")
        shutil.rmtree(self.layout.data, ignore_errors=True)

    def restart(self, component: str) -> None:
        """Kill -9 and start again on the same port, with the same data; returns when it answers."""
        self.kill(component)
        self.launch(component)
        self.await_ready(component)
        for name, process in self.running.items():
            if process.poll() is not None:
                raise TestbedError(f"{name} ended while {component} was restarted.\n{tail(self.log(name))}")

    def kill(self, component: str) -> None:
        """As a crash would: nothing is tidied up."""
        process = self.running.pop(component, None)
        if process is None:
            raise TestbedError(f"{component} is not running; running: {', '.join(self.running) or 'nothing'}")
        process.kill()
        process.wait()

    def end(self, component: str) -> None:
        process = self.running.pop(component, None)
        if process is None:
            return
        process.terminate()
        try:
            process.wait(processes.TERM_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def launch(self, component: str) -> None:
        """By a thread that goes on: what it starts dies with the thread, and not only with its process."""
        if component in self.additions:
            argv = [*self.additions[component].argv]
        else:
            argv = [*self.programs.argv[component], *components.flags(component, self.layout)]
        argv += self.extra_flags.get(component, ())
        self.running[component] = processes.spawn(argv, self.log(component), environment=components.ENVIRONMENT)
        self.record()

    def log(self, component: str) -> Path:
        return self.layout.logs / f"{component}.log"

    def record(self) -> None:
        found = {name: Identity.of(process.pid) for name, process in self.running.items()}
        write_whole(self.folder / PROCESSES_FILE, msgspec.json.encode({name: it for name, it in found.items() if it}))

    def await_ready(self, component: str) -> None:
        addition = self.additions.get(component)
        if addition:
            self.await_answer(component, addition.health_url, addition.health_words)
        else:
            self.await_answer(component, components.health_url(component, self.layout))

    def await_answer(self, component: str, url: str, words: bytes = b"") -> None:
        """Until the address answers 200 with these words; shows the component's log if it gives up before that."""
        process, deadline = self.running[component], time.monotonic() + START_SECONDS
        answers = self.asker(url, words)
        while not answers():
            code = process.poll()
            if code is not None:
                self.running.pop(component)
                raise TestbedError(f"{component} ended with {code} before it was ready.\n{tail(self.log(component))}")
            if time.monotonic() > deadline:
                raise TestbedError(
                    f"{component} was not ready after {START_SECONDS:.0f} s.\n{tail(self.log(component))}"
                )
            time.sleep(0.03)

    def asker(self, url: str, words: bytes = b"") -> Callable[[], bool]:
        """A function that tells whether this address answers 200 now, with these words."""
        parts = urlsplit(url)
        assert parts.hostname
        assert parts.port
        host, port = parts.hostname, parts.port
        # The controller manager and the scheduler sign their own certificates: no authority is read, let alone all
        # that the system trusts, which takes longer than all the asking.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if url.startswith(self.layout.server):
            context.load_cert_chain(self.layout.keys / "admin.crt", self.layout.keys / "admin.key")

        connection = (
            http.client.HTTPSConnection(host, port, timeout=5, context=context)
            if parts.scheme == "https"
            else http.client.HTTPConnection(host, port, timeout=5)
        )

        def answers() -> bool:
            """Who is not ready yet is asked again on the same connection: to shake hands takes longer than to ask."""
            is_so = False
            try:
                connection.request("GET", parts.path)
                response = connection.getresponse()
                is_so = words in response.read() and response.status == 200
            except (OSError, http.client.HTTPException):
                connection.close()
            if is_so:
                connection.close()
            return is_so

        return answers


def recorded(folder: Path) -> dict[str, Identity]:
    """The processes last written down for the control plane in this folder, living or not."""
    try:
        content = (folder / PROCESSES_FILE).read_bytes()
    except FileNotFoundError:
        return {}
    return msgspec.json.decode(content, type=dict[str, Identity])


def write_whole(path: Path, content: bytes) -> None:
    """Readers see the old file or the new one."""
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_bytes(content)
    unfinished.replace(path)


def tail(log: Path, lines: int = 15) -> str:
    try:
        text = log.read_text("utf-8", errors="replace")
    except FileNotFoundError:
        return f"{log} is missing"
    return "\n".join([f"the end of {log}:", *text.splitlines()[-lines:]])
