"""What was installed is deleted in the order of `kubectl delete -f`, under a process that still runs: nothing is stuck.

The last file that uses the webhooks: nothing of them is left.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from live.accounts import DEADLINE_SECONDS, service_account
from live.admitting import CONFIGURATIONS, INSTALLATION, OPEN, Webhooks, a_pod, create_pod, is_marked, put_policy
from live.test_manifests import PATHS
from live.test_policies import DEFINITIONS, running
from testbed.client import ApiError, Client
from wukong.api.crds import build_crds
from wukong.app.component import list_permissions
from wukong.app.components.admission.install import build_manifests
from wukong.app.components.policy import POLICY
from wukong.app.install.installation import NAMESPACE

Json = dict[str, Any]
SHOP = "leaving"
BUDGET = f"/apis/policy/v1/namespaces/{SHOP}/poddisruptionbudgets/wukong-web"
SPLIT = {
    "selector": {"matchLabels": {"app": "web"}},
    "capacity": {"strategy": "spot-preferred", "onDemandBase": 1},
    "disruption": {"maxUnavailable": 1},
    "priority": {"value": 7},
}


async def test_what_is_uninstalled_leaves_nothing_stuck(webhooks: Webhooks, tmp_path: Path) -> None:
    async with webhooks.bed.client() as client:
        policies = await use_it(client, webhooks, tmp_path)
        for document in build_manifests(INSTALLATION):
            await delete(client, document)
            await create_pod(client, SHOP)
            # Whoever asks for another policy now is not stopped by a webhook that nobody serves any more.
            edit = {"spec": {"capacity": {"onDemandBase": 2}}}
            assert (await client.patch(f"{policies}/web", edit))["spec"]["capacity"]["onDemandBase"] == 2
        assert not is_marked(await create_pod(client, SHOP))
        webhooks.end()  # it has no rights any more, and ends as it should
        await client.delete(f"{policies}/web")
        await client.wait_until_gone(BUDGET, DEADLINE_SECONDS)
        for namespace in (SHOP, NAMESPACE):
            await delete_path(client, f"/api/v1/namespaces/{namespace}")
            await client.wait_until_gone(f"/api/v1/namespaces/{namespace}", DEADLINE_SECONDS)
        await put_policy(client, "late", SPLIT)
        for document in build_crds():
            path = f"{DEFINITIONS}/{document['metadata']['name']}"
            await client.delete(path)
            await client.wait_until_gone(path, DEADLINE_SECONDS)
        assert not is_marked(await create_pod(client, OPEN))


async def use_it(client: Client, webhooks: Webhooks, folder: Path) -> str:
    """A policy with all that we make for it, and pods that it holds for; gives the path of policies."""
    await client.create("/api/v1/namespaces", {"metadata": {"name": SHOP}})
    await client.wait_until(f"/api/v1/namespaces/{SHOP}/serviceaccounts/default", lambda account: True)
    policies = f"/apis/placement.novasphere.dev/v1alpha1/namespaces/{SHOP}/placementpolicies"
    head = {"apiVersion": "placement.novasphere.dev/v1alpha1", "kind": "PlacementPolicy"}
    await client.create(policies, {**head, "metadata": {"name": "web"}, "spec": SPLIT})
    kubeconfig = await service_account(client, webhooks.bed, SHOP, "policy", list_permissions([POLICY]), folder)
    with running(kubeconfig, SHOP, folder / "policy.log"):
        await client.wait_until(BUDGET, bool, DEADLINE_SECONDS)
    await webhooks.until_patched()
    pods = [await create_pod(client, SHOP, a_pod()) for _ in range(3)]
    assert any(map(is_marked, pods))
    return policies


async def delete(client: Client, document: Json) -> None:
    kind, meta = document["kind"], document["metadata"]
    folder = PATHS.get(kind, f"{CONFIGURATIONS}/{kind.lower()}s").format(meta.get("namespace", ""))
    await delete_path(client, f"{folder}/{meta['name']}")
    if kind == "Namespace":
        await client.wait_until_gone(f"{folder}/{meta['name']}", DEADLINE_SECONDS)


async def delete_path(client: Client, path: str) -> None:
    """What the test never made, or went with its namespace, is gone already."""
    try:
        await client.delete(path)
    except ApiError as error:
        if error.status != 404:
            raise
