"""Fixtures of tests that want a real control plane. Loaded by tests/conftest.py.

    bed                 one control plane with three hollow Nodes per run, started by the first test that asks, shared
                        by all xdist workers; ends with the run, however that ends, or with the last test that needs
                        one (worker_groups.py)
    namespace           a fresh namespace in it, pods welcome, removed afterwards
    hollow_nodes        `await hollow_nodes(2, capacity={"cpu": "4"})`: Nodes that only pods of the test's namespace may
                        use, with `nodes.on_reserved(namespace)` in their spec; removed afterwards
    own_bed             `own_bed(nodes=5, scheduler_config=file)`: a whole cluster for one test, in about 5 s
    kubevirt_bed        another shared control plane, with KubeVirt and no Nodes of its own: kubevirt/__init__.py has an
                        example; `kubevirt_program` besides `own_bed(kubevirt=True)` for one of a test's own
    vm_namespace        a fresh namespace in that one
    vm_nodes            `await vm_nodes(2)`: Nodes in that one, for virtual machines of the test's namespace alone
    prometheus          `with prometheus([exporter.address]) as url`: a real Prometheus, fed by exporter.Exporter
    open_page           `open_page(file)`: a page of a real Chromium without network; closed afterwards
    own_control_plane   `with own_control_plane() as plane`: no kubelets, but `plane.restart("apiserver")`
    lone_api_server     etcd and an API server, and nobody else, for tests that kill it: one per worker, and without
                        ConfigMaps and Nodes of the test before

Where a machine can have none these tests skip and say why; where CI=true they fail instead. Tests may be `async def`.
Tests that use any of them are marked `control_plane` by a hook below. worker_groups.py lets them start first: much of
it is waiting, which goes on beside what other workers compute. Those that use `kubevirt_bed` run on one worker:
KubeVirt limits the migrations of a cluster, so tests at once would wait for one another.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import re
import secrets
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import msgspec
import pytest

from testbed import chromium as chromium_program
from testbed import connections, nodes, supervisor
from testbed import programs as available
from testbed import prometheus as prometheus_program
from testbed.build import Say, locked
from testbed.client import ApiError, Client, Json
from testbed.control_plane import ControlPlane
from testbed.errors import NotUpError, UnavailableError
from testbed.kubevirt.vm_nodes import a_vm_node
from testbed.processes import Identity
from testbed.programs import Programs
from testbed.supervisor import Order

if TYPE_CHECKING:
    from playwright.sync_api import Page

NODES = 3
JSON_IN_ETCD = {"apiserver": ["--storage-media-type=application/json"]}  # so that tests can read there
# Fixtures: whoever uses one, directly or not, needs what is built.
REAL_PROGRAMS = {"testbed_programs", "prometheus", "chromium"}


class Run(msgspec.Struct, frozen=True):
    """One test run: where its control plane would be, and the process whose end is the run's end."""

    folder: Path
    owner: Identity

    @property
    def lock(self) -> Path:
        return self.folder.with_suffix(".lock")

    @property
    def kubevirt(self) -> Run:
        """The same run, and where its control plane with KubeVirt would be."""
        return Run(self.folder.with_name(f"{self.folder.name}-kubevirt"), self.owner)


class Bed(msgspec.Struct, frozen=True):
    """The shared control plane, as a test sees it."""

    kubeconfig: Path
    up_seconds: float

    @property
    def audit_log(self) -> Path:
        """Every write so far and who made it, a JSON line each."""
        return self.kubeconfig.parents[1] / "logs" / "audit.log"

    def client(self) -> Client:
        """To be used in an `async with`."""
        return Client.of(self.kubeconfig)


class SharedUse:
    """The tests that may still use something. When none is left it is ended, once."""

    def __init__(self, tests: set[str], end: Callable[[], None]) -> None:
        self.tests, self.end = set(tests), end

    def finish(self, nodeid: str) -> None:
        if nodeid in self.tests:
            self.tests.remove(nodeid)
            if not self.tests:
                self.end()


class HollowNodes(Protocol):
    def __call__(self, count: int = 1, **like: Any) -> Awaitable[list[str]]: ...


class OwnBed(Protocol):
    def __call__(self, **order: Any) -> Bed: ...


RunPrometheus = Callable[[list[str]], AbstractContextManager[str]]


class OpenPage(Protocol):
    def __call__(self, file: Path, **options: Any) -> Page: ...


class OwnControlPlane(Protocol):
    def __call__(self, **options: Any) -> ControlPlane: ...


RUN = pytest.StashKey[Run]()
USES = pytest.StashKey[list[SharedUse]]()


@pytest.fixture(scope="session")
def testbed_programs(request: pytest.FixtureRequest) -> Programs:
    try:
        return available.find(progress_printer(request.config))
    except UnavailableError as reason:
        give_up("control plane", reason)


@pytest.fixture(scope="session")
def kubevirt_program(request: pytest.FixtureRequest) -> Path:
    try:
        return available.find_kubevirt(progress_printer(request.config))
    except UnavailableError as reason:
        give_up("KubeVirt", reason)


@pytest.fixture(scope="session")
def kubectl_program(request: pytest.FixtureRequest) -> Path:
    try:
        return available.find_kubectl(progress_printer(request.config))
    except UnavailableError as reason:
        give_up("kubectl", reason)


def progress_printer(config: pytest.Config) -> Say:
    """Prints past pytest's capturing: a build takes minutes."""
    capture = config.pluginmanager.getplugin("capturemanager")
    assert capture, "pytest has it"

    def say(line: str) -> None:
        with capture.global_and_fixture_disabled():
            print(line, file=sys.stderr, flush=True)  # noqa: T201

    return say


def give_up(missing: str, reason: UnavailableError) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(f"no {missing}, and CI=true forbids to skip: {reason}", pytrace=False)
    pytest.skip(f"no {missing}: {reason}")


@pytest.fixture
def prometheus(tmp_path: Path) -> RunPrometheus:
    """`with prometheus([exporter.address]) as url`: a real one, for this test."""
    try:
        program = prometheus_program.find(lambda line: None)
    except UnavailableError as reason:
        give_up("Prometheus", reason)
    return lambda targets: prometheus_program.running(program, tmp_path, targets)


@pytest.fixture
def chromium() -> Path:
    """The program of a real one."""
    try:
        return chromium_program.find(lambda line: None)
    except UnavailableError as reason:
        give_up("Chromium", reason)


@pytest.fixture
def open_page(chromium: Path) -> Iterator[OpenPage]:
    """`open_page(file, color_scheme="dark")`: a page as `Browser.new_page` makes it, with a file from the disk.

    Each test has a browser of its own: playwright's loop would be in the way of every other test that has one.
    """
    with chromium_program.running(chromium) as browser:

        def open_file(file: Path, **options: Any) -> Page:
            page = browser.new_page(offline=True, **options)
            page.goto(file.absolute().as_uri())
            return page

        yield open_file


@pytest.fixture(scope="session")
def bed(request: pytest.FixtureRequest, testbed_programs: Programs) -> Bed:
    run = request.config.stash[RUN]
    return find_or_start(run, Order(nodes=NODES, owner=run.owner))


@pytest.fixture(scope="session")
def kubevirt_bed(request: pytest.FixtureRequest, testbed_programs: Programs, kubevirt_program: Path) -> Bed:
    run = request.config.stash[RUN].kubevirt
    return find_or_start(run, Order(nodes=0, kubevirt=True, owner=run.owner))


def find_or_start(run: Run, order: Order) -> Bed:
    with locked(run.lock):
        try:
            state = supervisor.state_of(run.folder)
        except NotUpError:
            state = supervisor.up(run.folder, order, lambda line: None)
    return Bed(state.kubeconfig, state.seconds)


def close_with_last_use(request: pytest.FixtureRequest) -> contextlib.ExitStack:
    """For a fixture of a whole session: a stack that is closed with the last test of the session that uses it.

    At the latest it is closed with the session, where other workers run some of these tests.
    """
    stack, name = contextlib.ExitStack(), request.fixturename
    tests = {item.nodeid for item in request.session.items if name in getattr(item, "fixturenames", ())}
    request.config.stash.setdefault(USES, []).append(SharedUse(tests, stack.close))
    request.addfinalizer(stack.close)
    return stack


def end_shared(run: Run, *, keep_logs: bool) -> None:
    with locked(run.lock):
        supervisor.down(run.folder, keep_logs=keep_logs)


@pytest.fixture
def namespace(request: pytest.FixtureRequest, bed: Bed) -> Iterator[str]:
    with fresh_namespace(request, bed) as name:
        yield name


@pytest.fixture
def vm_namespace(request: pytest.FixtureRequest, kubevirt_bed: Bed) -> Iterator[str]:
    with fresh_namespace(request, kubevirt_bed) as name:
        yield name


@contextmanager
def fresh_namespace(request: pytest.FixtureRequest, bed: Bed) -> Iterator[str]:
    words = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower()).strip("-")
    name = f"{words[:40].strip('-')}-{secrets.token_hex(4)}"
    asyncio.run(make_namespace(bed, name))
    yield name
    asyncio.run(remove(bed, [f"/api/v1/namespaces/{name}"]))


@pytest.fixture
def hollow_nodes(bed: Bed, namespace: str) -> Iterator[HollowNodes]:
    with reserved_nodes(bed, namespace, nodes.a_node) as make:
        yield make


@pytest.fixture
def vm_nodes(kubevirt_bed: Bed, vm_namespace: str) -> Iterator[HollowNodes]:
    with reserved_nodes(kubevirt_bed, vm_namespace, a_vm_node) as make:
        yield make


@contextmanager
def reserved_nodes(bed: Bed, namespace: str, a_node: Callable[..., Json]) -> Iterator[HollowNodes]:
    made: list[str] = []
    reserved = nodes.reserved(namespace)

    async def make(count: int = 1, **like: Any) -> list[str]:
        """Names of new Nodes, ready to be used; `like` is what nodes.a_node takes besides."""
        names = [f"hollow-{secrets.token_hex(4)}" for _ in range(count)]
        made.extend(names)
        like["labels"] = {**like.get("labels", {}), **reserved["labels"]}
        like["taints"] = [*like.get("taints", ()), *reserved["taints"]]
        async with bed.client() as client:
            await nodes.create(client, [a_node(name, now=time.time(), **like) for name in names])
            for name in names:
                await client.wait_until(f"/api/v1/nodes/{name}", nodes.is_usable)
        return names

    yield make
    asyncio.run(remove(bed, [f"/api/v1/nodes/{name}" for name in made]))


@pytest.fixture
def own_bed(request: pytest.FixtureRequest, testbed_programs: Programs, tmp_path: Path) -> Iterator[OwnBed]:
    made: list[Path] = []
    owner = request.config.stash[RUN].owner

    def make(**order: Any) -> Bed:
        """`order` is that of supervisor.Order: nodes, scheduler_config, lease_seconds, kubevirt, extra_flags."""
        made.append(tmp_path / f"bed-{len(made)}")
        state = supervisor.up(made[-1], Order(owner=owner, **order), lambda line: None)
        return Bed(state.kubeconfig, state.seconds)

    yield make
    for folder in made:
        supervisor.down(folder, keep_logs=True)


@pytest.fixture
def own_control_plane(testbed_programs: Programs, tmp_path: Path) -> Iterator[OwnControlPlane]:
    made: list[ControlPlane] = []

    def make(**options: Any) -> ControlPlane:
        """Not started yet; `options` are those of ControlPlane."""
        made.append(ControlPlane(tmp_path / f"control-plane-{len(made)}", testbed_programs, **options))
        return made[-1]

    yield make
    for plane in made:
        plane.stop()


@pytest.fixture(scope="session")
def shared_api_server(
    request: pytest.FixtureRequest, testbed_programs: Programs, tmp_path_factory: pytest.TempPathFactory
) -> ControlPlane:
    folder = tmp_path_factory.mktemp("api-server")
    plane = ControlPlane(folder, testbed_programs, extra_flags=JSON_IN_ETCD, has_controllers=False)
    close_with_last_use(request).callback(plane.stop)
    plane.start()
    return plane


@pytest.fixture
def lone_api_server(shared_api_server: ControlPlane) -> Iterator[ControlPlane]:
    yield shared_api_server
    if "apiserver" not in shared_api_server.running:  # the test failed before it came back
        shared_api_server.launch("apiserver")
        shared_api_server.await_ready("apiserver")
    asyncio.run(delete_all(shared_api_server, ("/api/v1/namespaces/default/configmaps", "/api/v1/nodes")))


async def delete_all(plane: ControlPlane, folders: tuple[str, ...]) -> None:
    async with Client.of(plane.kubeconfig) as client:
        for folder in folders:
            await client.delete(folder)


async def make_namespace(bed: Bed, name: str) -> None:
    async with bed.client() as client:
        await client.create("/api/v1/namespaces", {"metadata": {"name": name}})
        # It is made about a second later, and until then pods are refused.
        await client.wait_until(f"/api/v1/namespaces/{name}/serviceaccounts/default", lambda account: True)


async def remove(bed: Bed, paths: list[str]) -> None:
    """Start their deletion; nobody waits for it."""
    async with bed.client() as client:
        for path in paths:
            try:
                await client.delete(path)
            except ApiError as error:
                if error.status not in (404, 409):
                    raise


# Hooks ------------------------------------------------------------------------------------------------------------


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "control_plane: needs a real control plane, Prometheus or Chromium; set by fixture use"
    )
    config.addinivalue_line(
        "markers",
        "slow(waits=0, real_time=False): two seconds of work or longer waiting; not in `make quick`. Who waits for the "
        "most seconds starts first, and before all others what compares a real cluster in real time",
    )
    given = getattr(config, "workerinput", None)
    if given:
        config.stash[RUN] = msgspec.json.decode(given["testbed"], type=Run, dec_hook=supervisor.as_path)
        return
    own = Identity.of(os.getpid())
    assert own, "we are alive"
    name = f"wukong-testbed-{own.pid}-{secrets.token_hex(4)}"
    config.stash[RUN] = Run(Path(tempfile.gettempdir(), name), own)


def is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """xdist is about to start a worker: it is told where the run's one control plane is."""
    node.workerinput["testbed"] = msgspec.json.encode(node.config.stash[RUN], enc_hook=str).decode()


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any, exitstatus: int, config: pytest.Config) -> None:
    """The run is over: end the control plane, keep the logs of a failure."""
    if is_worker(config):  # it may be the first of several to finish
        return
    for run in (config.stash[RUN], config.stash[RUN].kubevirt):
        if run.folder.exists():
            has_failed = exitstatus != pytest.ExitCode.OK
            end_shared(run, keep_logs=has_failed)
            if has_failed:
                terminalreporter.write_line(f"logs of the control plane are kept in {run.folder}")
        run.lock.unlink(missing_ok=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs a control plane, before `-m` chooses."""
    for item in items:
        if REAL_PROGRAMS.intersection(getattr(item, "fixturenames", ())):
            item.add_marker("control_plane")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    yield
    for use in item.config.stash.get(USES, []):
        use.finish(item.nodeid)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is `async def`."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    asyncio.run(to_the_end(pyfuncitem.obj(**arguments)))
    return True


async def to_the_end(test: Awaitable[None]) -> None:
    try:
        await test
    finally:
        await connections.cut()
