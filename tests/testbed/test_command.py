"""The command and the fixtures from outside: up and down, after crashes, on machines without Go."""

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from testbed import control_plane, processes, supervisor
from testbed.__main__ import folder_of
from testbed.client import Client
from testbed.errors import NotUpError
from testbed.processes import Identity
from testbed.programs import COMPONENTS, Programs

ROOT = Path(__file__).parents[2]
GONE_SECONDS = 120.0

KILLED_RUN = """
import signal

def test_it(bed, own_control_plane):
    with own_control_plane() as plane:
        print("UP", bed.kubeconfig, plane.folder, flush=True)
        signal.pause()
"""
SIMPLE_RUN = "def test_it(bed): pass"


@pytest.fixture
def name(testbed_programs: Programs) -> Iterator[str]:
    name = f"test-{secrets.token_hex(4)}"
    yield name
    supervisor.down(folder_of(name))


def run_testbed(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "testbed", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def own_processes(folder: Path) -> list[Identity]:
    """Supervisor and components: five."""
    found = [supervisor.state_of(folder).supervisor, *control_plane.recorded(folder).values()]
    assert len(found) == 1 + len(COMPONENTS)
    assert all(process.is_alive for process in found)
    return found


async def test_up_prints_a_kubeconfig_that_works_until_down(name: str) -> None:
    up = run_testbed("up", "--name", name, "--nodes", "2")
    assert up.returncode == 0, up.stderr
    started = own_processes(folder_of(name))
    kubeconfig = Path(up.stdout.strip().removeprefix("export KUBECONFIG="))
    async with Client.of(kubeconfig) as client:
        nodes = (await client.get("/api/v1/nodes"))["items"]
    assert [node["metadata"]["name"] for node in nodes] == ["node-0", "node-1"]
    assert "already up" in run_testbed("up", "--name", name).stderr
    assert run_testbed("status", "--name", name).stdout.count("running") == len(COMPONENTS)
    assert run_testbed("down", "--name", name).returncode == 0
    assert not any(process.is_alive for process in started)
    assert not folder_of(name).exists()
    assert run_testbed("status", "--name", name).returncode == 3


def test_down_clears_up_after_a_supervisor_that_was_killed(name: str) -> None:
    assert run_testbed("up", "--name", name, "--nodes", "0").returncode == 0
    started = own_processes(folder_of(name))
    os.kill(started[0].pid, signal.SIGKILL)
    assert run_testbed("down", "--name", name).returncode == 0
    assert processes.all_gone(started, GONE_SECONDS)
    assert not folder_of(name).exists()
    assert "nothing was up" in run_testbed("down", "--name", name).stderr


def start_pytest(test: str, folder: Path, **environment: str) -> subprocess.Popen[str]:
    (folder / "test_inner.py").write_text(test)
    plain = ["-p", "testbed.pytest_plugin", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(folder)]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-s",
        "-rs",
        *plain,
        f"--basetemp={folder / 'tmp'}",
        str(folder / "test_inner.py"),
    ]
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "CI"))}
    return subprocess.Popen(command, cwd=ROOT, env={**kept, **environment}, stdout=subprocess.PIPE, text=True)


def test_nothing_is_left_of_a_test_run_that_was_killed(testbed_programs: Programs, tmp_path: Path) -> None:
    with start_pytest(KILLED_RUN, tmp_path) as run:
        assert run.stdout is not None
        line = next(line for line in run.stdout if "UP " in line)
        kubeconfig, own_folder = (Path(text) for text in line.partition("UP ")[2].split())
        shared_folder = kubeconfig.parents[1]
        started = [*own_processes(shared_folder), *control_plane.recorded(own_folder).values()]
        run.kill()
    assert processes.all_gone(started, GONE_SECONDS)
    supervisor.down(shared_folder)
    shared_folder.with_suffix(".lock").unlink()


@pytest.mark.slow
@pytest.mark.parametrize(("ci", "code", "words"), [("", 0, "SKIPPED"), ("true", 1, "CI=true forbids to skip")])
def test_without_go_and_programs_tests_skip_and_in_ci_they_fail(ci: str, code: int, words: str, tmp_path: Path) -> None:
    with start_pytest(SIMPLE_RUN, tmp_path, CI=ci, PATH=str(tmp_path), XDG_CACHE_HOME=str(tmp_path)) as run:
        said, _ = run.communicate()
    assert run.returncode == code, said
    assert words in said
    assert "Install Go" in said


def test_the_state_of_a_supervisor_survives_being_written(tmp_path: Path) -> None:
    own = Identity.of(os.getpid())
    assert own is not None
    state = supervisor.State(supervisor=own, kubeconfig=tmp_path / "admin", is_ready=True, seconds=3.5)
    supervisor.write_state(tmp_path, state)
    assert supervisor.state_of(tmp_path) == state
    supervisor.write_state(tmp_path, msgspec.structs.replace(state, supervisor=Identity(own.pid, "another start")))
    with pytest.raises(NotUpError):
        supervisor.state_of(tmp_path)
