"""Plugins that hang, leave somebody behind, or say too much: nobody waits past the limit, and no secret is told."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import time
from datetime import datetime
from pathlib import Path

import pytest

from wukong.cluster import exec_plugin
from wukong.cluster.credentials import Credentials
from wukong.cluster.kubeconfig import ClusterEntry, Exec, Login, UserEntry
from wukong.errors import Denied, InputError

GRANTED = json.dumps(
    {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "t"}}
)

DEADLINE_SECONDS = 120.0  # a fifth of what those sleep whom nobody may wait for


def a_plugin(folder: Path, program: str) -> Exec:
    """`child(detached)` in the program starts somebody who keeps its output; all of them write down their ids."""
    script = folder / "plugin.py"
    script.write_text(
        "import os, pathlib, subprocess, sys, time\n"
        f"folder = pathlib.Path({str(folder)!r})\n"
        "(folder / f'{os.getpid()}.pid').touch()\n"
        "def child(detached=False):\n"
        "    command = [sys.executable, '-c', 'import time; time.sleep(600)']\n"
        "    started = subprocess.Popen(command, start_new_session=detached)\n"
        "    (folder / f'{started.pid}.pid').touch()\n"
        f"{program}\n"
    )
    return Exec(command=sys.executable, args=[str(script)], interactive_mode="Never")


async def run(plugin: Exec) -> exec_plugin.ExecCredentialStatus:
    """Long before anybody who sleeps wakes up."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        return await exec_plugin.run(plugin, ClusterEntry(server="https://h"), "config")


def pids(folder: Path) -> list[int]:
    return [int(path.stem) for path in folder.glob("*.pid")]


async def are_gone(folder: Path) -> bool:
    """A killed process is gone when its parent, or init, has heard of it."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while any(map(is_alive, pids(folder))):
            await asyncio.sleep(0.01)
    return bool(pids(folder))


def is_alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


async def wait_for_file(path: Path) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not path.exists():
            await asyncio.sleep(0.01)


@pytest.fixture(autouse=True)
def _short_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exec_plugin, "_REST_SECONDS", 0.1)


@pytest.mark.slow
async def test_a_plugin_that_hangs_is_killed_with_its_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exec_plugin, "SECONDS", 5)  # by then it has started, on a busy machine, too
    with pytest.raises(Denied, match="did not end within 5 s"):
        await run(a_plugin(tmp_path, "child()\nchild()\ntime.sleep(600)"))
    assert await are_gone(tmp_path)


async def test_a_credential_counts_though_a_child_keeps_the_output(tmp_path: Path) -> None:
    status = await run(a_plugin(tmp_path, f"child()\nprint({GRANTED!r}, flush=True)"))
    assert status.token == "t"
    assert await are_gone(tmp_path)


async def test_a_child_that_went_its_own_way_is_not_waited_for(tmp_path: Path) -> None:
    status = await run(a_plugin(tmp_path, f"child(detached=True)\nprint({GRANTED!r}, flush=True)"))
    assert status.token == "t"
    (left,) = [pid for pid in pids(tmp_path) if is_alive(pid)]
    os.kill(left, 9)


async def test_whoever_gives_up_waiting_does_not_stop_the_plugin(tmp_path: Path) -> None:
    plugin = a_plugin(tmp_path, f"while not (folder / 'go').exists(): time.sleep(0.01)\nprint({GRANTED!r})")
    credentials = Credentials(Login(place="p", cluster=ClusterEntry(server="http://h"), user=UserEntry(exec=plugin)))
    impatient, patient = (asyncio.create_task(credentials.headers()) for _ in range(2))
    await wait_for_file(tmp_path / "plugin.py")
    await asyncio.sleep(0)
    impatient.cancel()
    with pytest.raises(asyncio.CancelledError):
        await impatient
    (tmp_path / "go").touch()
    assert await patient == (("Authorization", "Bearer t"),)
    assert len(pids(tmp_path)) == 1


async def test_all_who_wait_hear_of_one_failure(tmp_path: Path) -> None:
    plugin = a_plugin(tmp_path, "sys.exit(3)")
    credentials = Credentials(Login(place="p", cluster=ClusterEntry(server="http://h"), user=UserEntry(exec=plugin)))
    results = await asyncio.gather(*(credentials.headers() for _ in range(20)), return_exceptions=True)
    assert {type(result) for result in results} == {Denied}
    assert len(pids(tmp_path)) == 1
    with pytest.raises(Denied):
        await credentials.headers()
    assert len(pids(tmp_path)) == 2


async def test_an_ended_loop_leaves_no_plugin_behind(tmp_path: Path) -> None:
    plugin = a_plugin(tmp_path, "child()\n(folder / 'up').touch()\ntime.sleep(600)")
    running = asyncio.create_task(run(plugin))
    await wait_for_file(tmp_path / "up")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await are_gone(tmp_path)


async def test_a_plugin_that_was_there_and_is_not_now_ends_nothing(tmp_path: Path) -> None:
    """An InputError would end the process; Denied is tried again."""
    plugin = a_plugin(tmp_path, f"print({GRANTED!r})")
    credentials = Credentials(Login(place="p", cluster=ClusterEntry(server="http://h"), user=UserEntry(exec=plugin)))
    headers = await credentials.headers()
    command, plugin.command = plugin.command, "/nowhere/plugin"
    with pytest.raises(Denied, match="cannot run /nowhere/plugin"):
        await credentials.renew(headers)
    plugin.command = command
    assert not await credentials.renew(headers)
    fresh = Credentials(
        Login(place="p", cluster=ClusterEntry(server="http://h"), user=UserEntry(exec=Exec(command="/no")))
    )
    with pytest.raises(InputError):
        await fresh.headers()


@pytest.mark.parametrize("zone", ["UTC", "XXX-5"])
@pytest.mark.parametrize(
    ("text", "expired_at"),
    [
        ("1970-01-01T00:16:40Z", 1000.0),
        ("1970-01-01T02:16:40+02:00", 1000.0),
        ("1970-01-01T00:16:40", 1000.0),  # without a zone it is UTC, wherever we are
    ],
)
def test_a_credential_expires_at_its_moment_in_every_zone(
    text: str, expired_at: float, zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        status = exec_plugin.ExecCredentialStatus(expiration_timestamp=datetime.fromisoformat(text))
        assert [status.is_expired(expired_at + late) for late in (-0.1, 0.0, 0.1)] == [False, True, True]
        assert not exec_plugin.ExecCredentialStatus().is_expired(1e12)
    finally:
        monkeypatch.undo()
        time.tzset()


async def test_output_without_end_is_dropped(tmp_path: Path) -> None:
    with pytest.raises(Denied, match=r"bytes that are none") as caught:
        await run(a_plugin(tmp_path, "sys.stdout.write('x' * (3 << 20))"))
    kept = re.search(r"got (\d+) bytes", str(caught.value))
    assert kept is not None
    assert 1 << 20 < int(kept[1]) <= (1 << 20) + (1 << 16)


@pytest.mark.parametrize(
    ("program", "shown"),
    [
        ('print(\'{"status": {"token": "S3CRET"\')', "expected an ExecCredential as JSON"),
        ("print('S3CRET')", "expected an ExecCredential as JSON"),
        ('print(\'{"apiVersion": 3, "status": {"token": "S3CRET"}}\')', "expected str"),
        ("sys.exit('cannot reach https://me:S3CRET@idp/x')", "cannot reach https://***@idp/x"),
        ("sys.exit('token=S3CRET is no longer good; log in')", "token=*** is no longer good; log in"),
        ("sys.exit('password: S3CRET' + ' ' * 496 + 'end')", "end"),
    ],
)
async def test_no_secret_of_a_plugin_is_told(program: str, shown: str, tmp_path: Path) -> None:
    with pytest.raises(Denied) as caught:
        await run(a_plugin(tmp_path, program))
    assert "S3CRET" not in str(caught.value)
    assert shown in str(caught.value)


async def test_an_argument_that_cannot_be_is_said(tmp_path: Path) -> None:
    plugin = a_plugin(tmp_path, f"print({GRANTED!r})")
    plugin.args.append("a\0b")
    with pytest.raises(InputError, match="cannot run"):
        await run(plugin)
