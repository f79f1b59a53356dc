"""Runs the program a kubeconfig names and reads the ExecCredential it prints. Called by credentials.py only.

A program that talks to nobody has a process group of its own, and a limit. When the limit is reached the whole group is
killed. What it leaves behind on purpose may keep its output open: that is not waited for once the program itself has
ended. Nothing it printed on stdout is ever shown, and what it said on stderr is shown without secrets.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import msgspec

from wukong.api.decode import readable
from wukong.cluster.kubeconfig import ClusterEntry, Exec, is_header_value
from wukong.cluster.redaction import redact
from wukong.errors import Denied, InputError

SECONDS = 60.0  # for a program that talks to nobody; a person may take as long as they like
_REST_SECONDS = 1.0  # for what is still in its pipes once it has ended
_KILLED_SECONDS = 2.0  # for a killed program to be gone; one that hangs in the kernel is left to it
_MOST_BYTES = 1 << 20  # of its output; a credential has some kilobytes
_MOST_CHARACTERS = 500
_PIECE = 1 << 16


class ExecCredentialStatus(msgspec.Struct, rename="camel"):
    """The status of an ExecCredential. The certificate and its key are PEM text, not base64."""

    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None

    def is_expired(self, now: float) -> bool:
        until = self.expiration_timestamp
        if until is None:
            return False
        return (until if until.tzinfo else until.replace(tzinfo=UTC)).timestamp() <= now


class _ExecCredential(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: ExecCredentialStatus | None = None


async def run(plugin: Exec, cluster: ClusterEntry, place: str) -> ExecCredentialStatus:
    """Run the plugin and return its credential. Raises InputError if it cannot be run, Denied if it gives none."""
    is_interactive = plugin.interactive_mode != "Never" and sys.stdin is not None and sys.stdin.isatty()
    if plugin.interactive_mode == "Always" and not is_interactive:
        raise InputError(f"{place}: {plugin.command} wants a terminal, and there is none. Log in with it beforehand.")
    env = {**os.environ, **{variable.name: variable.value for variable in plugin.env}}
    env["KUBERNETES_EXEC_INFO"] = msgspec.json.encode(_build_request(plugin, cluster, is_interactive)).decode()
    stdout, stderr = _Output(), _Output()
    try:
        process = await _start(plugin, env, stdout, stderr, is_interactive, place)
        try:
            async with asyncio.timeout(None if is_interactive else SECONDS):
                await process.wait()
            with suppress(TimeoutError):
                async with asyncio.timeout(_REST_SECONDS):
                    await stdout.is_over.wait()
                    await stderr.is_over.wait()
        except TimeoutError:
            raise Denied(f"{place}: {plugin.command} did not end within {SECONDS:g} s.") from None
        finally:  # it timed out, we were cancelled, or it left somebody behind who keeps its output
            if process.returncode is None or not (stdout.is_over.is_set() and stderr.is_over.is_set()):
                await _kill(process, is_group=not is_interactive)
    finally:
        stdout.close()
        stderr.close()
    if process.returncode:
        message = _describe_complaint(stderr.content)
        raise Denied(f"{place}: {plugin.command} ended with code {process.returncode}: {message}")
    return _read_credential(bytes(stdout.content), plugin, place)


class _Output:
    """Reads what a program prints, while the event loop turns. What is too much is dropped.

    Pipes of asyncio would not do: with them a process has not ended before everybody has who inherited one.
    """

    def __init__(self) -> None:
        self.content = bytearray()
        self.is_over = asyncio.Event()
        self._read_end, self._write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        asyncio.get_running_loop().add_reader(self._read_end, self._read)

    def hand_over(self) -> int:
        """The end to write to, for the program alone: call `forget_write_end` when it has it."""
        return self._write_end

    def forget_write_end(self) -> None:
        if self._write_end >= 0:
            os.close(self._write_end)
            self._write_end = -1

    def close(self) -> None:
        self.forget_write_end()
        asyncio.get_running_loop().remove_reader(self._read_end)
        os.close(self._read_end)

    def _read(self) -> None:
        try:
            piece = os.read(self._read_end, _PIECE)
        except BlockingIOError:
            return
        if not piece:
            asyncio.get_running_loop().remove_reader(self._read_end)
            self.is_over.set()
        elif len(self.content) <= _MOST_BYTES:
            self.content += piece


async def _start(
    plugin: Exec, env: dict[str, str], stdout: _Output, stderr: _Output, is_interactive: bool, place: str
) -> asyncio.subprocess.Process:
    try:
        return await asyncio.create_subprocess_exec(
            plugin.command,
            *plugin.args,
            env=env,
            stdin=None if is_interactive else asyncio.subprocess.DEVNULL,
            stdout=stdout.hand_over(),
            stderr=None if is_interactive else stderr.hand_over(),
            start_new_session=not is_interactive,  # whoever asks a person must stay with the terminal
        )
    except (OSError, ValueError) as error:  # ValueError: NUL in what it is called with
        hint = f" {plugin.install_hint.strip()}" if plugin.install_hint else " Install it, or put it on PATH."
        problem = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise InputError(f"{place}: cannot run {plugin.command}: {problem}.{hint}") from None
    finally:
        stdout.forget_write_end()
        stderr.forget_write_end()


async def _kill(process: asyncio.subprocess.Process, *, is_group: bool) -> None:
    """Kill it, or its whole group, and wait a moment for it: one that hangs in the kernel is left to it."""
    with suppress(ProcessLookupError, PermissionError):
        if is_group:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    with suppress(TimeoutError):
        async with asyncio.timeout(_KILLED_SECONDS):
            await process.wait()


def _describe_complaint(stderr: bytearray) -> str:
    """What it said last, on one line and without secrets: redacted before it is cut, or a name might be cut off."""
    text = bytes(stderr[-8 * _MOST_CHARACTERS :]).decode(errors="replace")
    return " ".join(redact(text).split())[-_MOST_CHARACTERS:] or "no message"


def _build_request(plugin: Exec, cluster: ClusterEntry, is_interactive: bool) -> dict[str, Any]:
    spec: dict[str, Any] = {"interactive": is_interactive}
    if plugin.provide_cluster_info:
        cluster_info = {
            "server": cluster.server,
            "certificate-authority-data": cluster.certificate_authority_data,
            "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
            "tls-server-name": cluster.tls_server_name,
            "proxy-url": cluster.proxy_url,
        }
        spec["cluster"] = {name: value for name, value in cluster_info.items() if value}
    return {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}


def _read_credential(stdout: bytes, plugin: Exec, place: str) -> ExecCredentialStatus:
    place = f"{place}: what {plugin.command} printed"
    try:
        credential = msgspec.json.decode(stdout, type=_ExecCredential)
    except msgspec.ValidationError as error:
        raise Denied(f"{place}: {readable(error)}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # Not a word of it: half of a credential is a secret, too.
        raise Denied(f"{place}: expected an ExecCredential as JSON, got {len(stdout)} bytes that are none.") from None
    if credential.kind != "ExecCredential" or credential.api_version != plugin.api_version:
        expected = f"expected an ExecCredential of {plugin.api_version}"
        kind, version = credential.kind[:80] or "no kind", credential.api_version[:80] or "no version"
        raise Denied(f"{place}: {expected}, got {kind} of {version}.")
    status = credential.status or ExecCredentialStatus()
    if not status.token and not (status.client_certificate_data and status.client_key_data):
        raise Denied(f"{place}: $.status: expected a token, or a client certificate with its key, got neither.")
    if not is_header_value(status.token):
        raise Denied(f"{place}: $.status.token: expected one line of text, got control characters in it.")
    return status
