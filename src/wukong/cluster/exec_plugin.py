"""Runs the program a kubeconfig names and reads the ExecCredential it prints. Called by credentials.py only."""

from __future__ import annotations

import asyncio
import os
import sys
from datetime import UTC, datetime
from typing import Any

import msgspec

from wukong.api.decode import readable
from wukong.cluster.kubeconfig import ClusterEntry, Exec
from wukong.errors import Denied, InputError

SECONDS = 60.0  # for a program that talks to nobody; a person may take as long as they like
_MOST_CHARACTERS = 500


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
    try:
        process = await asyncio.create_subprocess_exec(
            plugin.command,
            *plugin.args,
            env=env,
            stdin=None if is_interactive else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=None if is_interactive else asyncio.subprocess.PIPE,
        )
    except OSError as error:
        hint = f" {plugin.install_hint.strip()}" if plugin.install_hint else " Install it, or put it on PATH."
        raise InputError(f"{place}: cannot run {plugin.command}: {error.strerror or error}.{hint}") from None
    try:
        async with asyncio.timeout(None if is_interactive else SECONDS):
            stdout, stderr = await process.communicate()
    except TimeoutError:
        raise Denied(f"{place}: {plugin.command} did not end within {SECONDS:.0f} s.") from None
    finally:
        if process.returncode is None:  # timed out, or we were cancelled
            process.kill()
            await process.wait()
    if process.returncode:
        message = " ".join((stderr or b"").decode(errors="replace").split())[-_MOST_CHARACTERS:]
        raise Denied(f"{place}: {plugin.command} ended with code {process.returncode}: {message or 'no message'}")
    return _read_credential(stdout, plugin, place)


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
    except msgspec.DecodeError:
        beginning = stdout[:80].decode(errors="replace")
        raise Denied(f"{place}: expected an ExecCredential as JSON, got {beginning!r}.") from None
    if credential.kind != "ExecCredential" or credential.api_version != plugin.api_version:
        expected = f"expected an ExecCredential of {plugin.api_version}"
        raise Denied(
            f"{place}: {expected}, got {credential.kind or 'no kind'} of {credential.api_version or 'no version'}."
        )
    status = credential.status or ExecCredentialStatus()
    if not status.token and not (status.client_certificate_data and status.client_key_data):
        raise Denied(f"{place}: $.status: expected a token, or a client certificate with its key, got neither.")
    return status
