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
_SHOWN = 500


class Granted(msgspec.Struct, rename="camel"):
    """What a plugin gave us. The certificate and its key are PEM text, not base64."""

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
    status: Granted | None = None


async def run(plugin: Exec, cluster: ClusterEntry, place: str) -> Granted:
    is_interactive = plugin.interactive_mode != "Never" and sys.stdin is not None and sys.stdin.isatty()
    if plugin.interactive_mode == "Always" and not is_interactive:
        raise InputError(f"{place}: {plugin.command} wants a terminal, and there is none. Log in with it beforehand.")
    env = {**os.environ, **{each.name: each.value for each in plugin.env}}
    env["KUBERNETES_EXEC_INFO"] = msgspec.json.encode(_question(plugin, cluster, is_interactive)).decode()
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
            printed, complaints = await process.communicate()
    except TimeoutError:
        raise Denied(f"{place}: {plugin.command} did not end within {SECONDS:.0f} s.") from None
    finally:
        if process.returncode is None:  # timed out, or we were cancelled
            process.kill()
            await process.wait()
    if process.returncode:
        said = " ".join((complaints or b"").decode(errors="replace").split())[-_SHOWN:]
        raise Denied(f"{place}: {plugin.command} ended with code {process.returncode}: {said or 'no message'}")
    return _answer(printed, plugin, place)


def _question(plugin: Exec, cluster: ClusterEntry, is_interactive: bool) -> dict[str, Any]:
    spec: dict[str, Any] = {"interactive": is_interactive}
    if plugin.provide_cluster_info:
        told = {
            "server": cluster.server,
            "certificate-authority-data": cluster.certificate_authority_data,
            "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
            "tls-server-name": cluster.tls_server_name,
            "proxy-url": cluster.proxy_url,
        }
        spec["cluster"] = {name: value for name, value in told.items() if value}
    return {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}


def _answer(printed: bytes, plugin: Exec, place: str) -> Granted:
    place = f"{place}: what {plugin.command} printed"
    try:
        found = msgspec.json.decode(printed, type=_ExecCredential)
    except msgspec.ValidationError as error:
        raise Denied(f"{place}: {readable(error)}") from None
    except msgspec.DecodeError:
        shown = printed[:80].decode(errors="replace")
        raise Denied(f"{place}: expected an ExecCredential as JSON, got {shown!r}.") from None
    if found.kind != "ExecCredential" or found.api_version != plugin.api_version:
        expected = f"expected an ExecCredential of {plugin.api_version}"
        raise Denied(f"{place}: {expected}, got {found.kind or 'no kind'} of {found.api_version or 'no version'}.")
    granted = found.status or Granted()
    if not granted.token and not (granted.client_certificate_data and granted.client_key_data):
        raise Denied(f"{place}: $.status: expected a token, or a client certificate with its key, got neither.")
    return granted
