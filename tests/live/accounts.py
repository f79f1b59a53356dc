"""Service accounts with exactly a component's rights, and what the API server saw them do with them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.client import Client
from testbed.pytest_plugin import Bed
from wukong.app.permissions import Permission

DEADLINE_SECONDS = 120.0


async def service_account(
    client: Client, bed: Bed, namespace: str, name: str, permissions: Sequence[Permission], folder: Path
) -> Path:
    """A kubeconfig of a new service account that has these rights and no others."""
    core, rbac = f"/api/v1/namespaces/{namespace}", "/apis/rbac.authorization.k8s.io/v1"
    await client.create(f"{core}/serviceaccounts", {"metadata": {"name": name}})
    subjects = [{"kind": "ServiceAccount", "name": name, "namespace": namespace}]
    for kind, is_local, place in (("ClusterRole", False, rbac), ("Role", True, f"{rbac}/namespaces/{namespace}")):
        role = f"{namespace}-{name}"
        documents = [it.build_rule() for it in permissions if it.in_own_namespace == is_local]
        await client.create(f"{place}/{kind.lower()}s", {"metadata": {"name": role}, "rules": documents})
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role}
        binding = {"metadata": {"name": role}, "roleRef": reference, "subjects": subjects}
        await client.create(f"{place}/{kind.lower()}bindings", binding)
    answer = await client.create(f"{core}/serviceaccounts/{name}/token", {"spec": {"expirationSeconds": 3600}})
    config = yaml.safe_load(bed.kubeconfig.read_text())
    for user in config["users"]:
        user["user"] = {"token": answer["status"]["token"]}
    path = folder / f"{name}.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


def audited(bed: Bed, account: str) -> Iterator[dict[str, Any]]:
    """What this account did, as the API server wrote it down."""
    for line in bed.audit_log.read_text().splitlines():
        if account not in line:  # of most lines no more need be read
            continue
        entry = json.loads(line)
        if entry["user"]["username"] == account and entry.get("objectRef") and entry["stage"] != "Panic":
            yield entry


def used_by(bed: Bed, account: str) -> set[tuple[str, str, str]]:
    """Group, resource (as `nodes` or `nodes/status`) and verb of everything it was allowed to do and did."""
    return {
        (entry["objectRef"].get("apiGroup", ""), _resource(entry["objectRef"]), entry["verb"])
        for entry in audited(bed, account)
        if entry.get("responseStatus", {}).get("code", 200) < 400 or entry["responseStatus"]["code"] == 404
    }


def _resource(reference: dict[str, str]) -> str:
    return "/".join(filter(None, (reference["resource"], reference.get("subresource"))))


async def when(is_so: Callable[[], bool], why_not: Callable[[], str]) -> None:
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not is_so():
                await asyncio.sleep(0.1)
    except TimeoutError:
        pytest.fail(why_not())
