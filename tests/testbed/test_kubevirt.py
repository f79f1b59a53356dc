"""Real virt-api and virt-controller, hollow virt-handlers: what becomes of virtual machines in the test bed."""

from typing import Any

import pytest

from testbed.client import ApiError, Client, Json
from testbed.kubevirt.virtual_machines import VirtualMachines, a_vm, has_condition
from testbed.nodes import on_reserved
from testbed.pytest_plugin import Bed, HollowNodes

ZONE = "topology.kubernetes.io/zone"


async def start_vm(
    client: Client, namespace: str, name: str = "web", spec: Json | None = None, **like: Any
) -> tuple[VirtualMachines, Json]:
    """A VM on the nodes of its namespace, and its VirtualMachineInstance once that runs."""
    vms = VirtualMachines(client, namespace)
    await vms.create(a_vm(name, spec={**on_reserved(namespace), **(spec or {})}, **like))
    return vms, await vms.wait_until_running(name)


async def test_a_vm_runs_in_a_pod_with_its_rules_and_what_kubevirt_adds(
    kubevirt_bed: Bed, vm_namespace: str, vm_nodes: HollowNodes
) -> None:
    await vm_nodes(1)
    apart = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
    rule = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    async with kubevirt_bed.client() as client:
        spec = {"affinity": rule}
        vms, vmi = await start_vm(client, vm_namespace, spec=spec, memory="512Mi", labels={"app": "web"})
        pod = await vms.launcher_pod("web")
        vm = await vms.wait_for_status("web", "Running")
    assert vm["status"]["ready"]
    assert pod["spec"]["affinity"]["podAntiAffinity"] == rule["podAntiAffinity"]
    labels = {"app": "web", "kubevirt.io": "virt-launcher", "kubevirt.io/created-by": vmi["metadata"]["uid"]}
    assert pod["metadata"]["labels"].items() >= {**labels, "vm.kubevirt.io/name": "web"}.items()
    selector = {"kubevirt.io/schedulable": "true", "kubernetes.io/arch": "amd64"}
    assert pod["spec"]["nodeSelector"].items() >= selector.items()
    requests = pod["spec"]["containers"][0]["resources"]["requests"]
    assert (requests["cpu"], requests["memory"], requests["ephemeral-storage"]) == ("100m", "780Mi", "50M")
    assert pod["spec"]["readinessGates"] == [{"conditionType": "kubevirt.io/virtual-machine-unpaused"}]


async def test_an_evicted_vm_is_migrated_to_another_node(
    kubevirt_bed: Bed, vm_namespace: str, vm_nodes: HollowNodes
) -> None:
    await vm_nodes(2)
    async with kubevirt_bed.client() as client:
        vms, before = await start_vm(client, vm_namespace, eviction_strategy="LiveMigrate")
        source = await vms.launcher_pod("web")
        with pytest.raises(ApiError, match=rf'429 .* Eviction triggered evacuation of VMI "{vm_namespace}/web"'):
            await vms.evict(source)
        moved = await vms.wait_until_migrated("web", away_from=before["status"]["nodeName"])
        migration = await vms.wait_for_migration("web", "Succeeded")
        target = await vms.launcher_pod("web")
        over = await client.wait_until(
            vms.path("pods", source["metadata"]["name"]), lambda pod: pod["status"]["phase"] == "Succeeded"
        )
    assert moved["metadata"]["uid"] == before["metadata"]["uid"]
    assert target["metadata"]["labels"]["kubevirt.io/migrationJobUID"] == migration["metadata"]["uid"]
    phases = [step["phase"] for step in migration["status"]["phaseTransitionTimestamps"]]
    assert phases[-4:] == ["PreparingTarget", "TargetReady", "Running", "Succeeded"]
    assert "deletionTimestamp" not in over["metadata"]


async def test_a_vm_without_eviction_strategy_dies_and_is_started_elsewhere(
    kubevirt_bed: Bed, vm_namespace: str, vm_nodes: HollowNodes
) -> None:
    (first,) = await vm_nodes(1)
    async with kubevirt_bed.client() as client:
        vms, before = await start_vm(client, vm_namespace)
        await client.patch(f"/api/v1/nodes/{first}", {"spec": {"unschedulable": True}})
        (second,) = await vm_nodes(1)
        await vms.evict(await vms.launcher_pod("web"))
        after = await vms.wait_until_running("web", after=before["metadata"]["uid"])
    assert (before["status"]["nodeName"], after["status"]["nodeName"]) == (first, second)


@pytest.mark.parametrize(
    ("strategy", "answer"),
    [
        ("LiveMigrate", "VMI web is configured with an eviction strategy but is not live-migratable"),
        ("LiveMigrateIfPossible", ""),
    ],
)
async def test_a_vm_that_cannot_be_migrated_is_refused_eviction_only_by_live_migrate(
    strategy: str, answer: str, kubevirt_bed: Bed, vm_namespace: str, vm_nodes: HollowNodes
) -> None:
    await vm_nodes(2)
    async with kubevirt_bed.client() as client:
        vms, vmi = await start_vm(client, vm_namespace, binding="bridge", eviction_strategy=strategy)
        assert has_condition(vmi, "LiveMigratable", "False")
        pod = await vms.launcher_pod("web")
        if answer:
            with pytest.raises(ApiError, match=answer):
                await vms.evict(pod)
        else:
            await vms.evict(pod)
            await vms.wait_until_running("web", after=vmi["metadata"]["uid"])


async def test_a_migration_that_fails_leaves_the_vm_where_it_was(
    kubevirt_bed: Bed, vm_namespace: str, vm_nodes: HollowNodes
) -> None:
    await vm_nodes(2)
    annotations = {"sim.novasphere.dev/migration-fails": "true"}
    async with kubevirt_bed.client() as client:
        vms, before = await start_vm(client, vm_namespace, annotations=annotations)
        await vms.act("web", "migrate")
        failed = await vms.wait_for_migration("web", "Failed")
        after = await vms.wait_until_running("web")
        await client.wait_until(
            vms.path("pods", after["status"]["migrationState"]["targetPod"]),
            lambda pod: pod["status"]["phase"] == "Succeeded",
        )
        await vms.annotate_guest("web", migration_fails="false", migration_seconds="0.5")
        await vms.act("web", "migrate")
        await vms.wait_until_migrated("web", away_from=before["status"]["nodeName"])
    assert after["status"]["migrationState"]["migrationUid"] == failed["metadata"]["uid"]
    assert after["status"]["migrationState"]["failureReason"] == "Live migration failed: told to fail"
    assert after["status"]["nodeName"] == before["status"]["nodeName"]


async def test_a_guest_that_shuts_down_is_started_again_only_where_the_run_strategy_says_so(
    kubevirt_bed: Bed, vm_namespace: str, vm_nodes: HollowNodes
) -> None:
    await vm_nodes(1)
    async with kubevirt_bed.client() as client:
        vms, always = await start_vm(client, vm_namespace, "always")
        _, once = await start_vm(client, vm_namespace, "once", run_strategy="RerunOnFailure")
        for name in ("always", "once"):
            await vms.shut_down_guest(name)
        await vms.wait_until_running("always", after=always["metadata"]["uid"])
        await vms.wait_for_status("once", "Stopped")
        await vms.act("once", "start")
        again = await vms.wait_until_running("once", after=once["metadata"]["uid"])
        await vms.shut_down_guest("once", exit_code=1)
        await vms.wait_until_running("once", after=again["metadata"]["uid"])


async def test_a_vm_that_fits_nowhere_says_so_and_runs_when_a_node_appears(
    kubevirt_bed: Bed, vm_namespace: str, vm_nodes: HollowNodes
) -> None:
    spec = {**on_reserved(vm_namespace)}
    spec["nodeSelector"] = {**spec["nodeSelector"], ZONE: "zone-b"}
    await vm_nodes(1, labels={ZONE: "zone-a"})
    async with kubevirt_bed.client() as client:
        vms = VirtualMachines(client, vm_namespace)
        await vms.create(a_vm("web", spec=spec))
        await vms.wait_for_status("web", "ErrorUnschedulable")
        (node,) = await vm_nodes(1, labels={ZONE: "zone-b"})
        vmi = await vms.wait_until_running("web")
    assert vmi["status"]["nodeName"] == node


async def test_virt_api_refuses_a_wrong_spec_by_its_path(kubevirt_bed: Bed, vm_namespace: str) -> None:
    term = {"labelSelector": {}, "topologyKey": ""}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    async with kubevirt_bed.client() as client:
        vms = VirtualMachines(client, vm_namespace)
        with pytest.raises(ApiError, match=r"(?s)virtualmachine-validator.*topologyKey: Required value"):
            await vms.create(a_vm("web", spec={"affinity": affinity}))


async def test_a_stopped_vm_keeps_nothing_and_a_deleted_one_is_gone(
    kubevirt_bed: Bed, vm_namespace: str, vm_nodes: HollowNodes
) -> None:
    await vm_nodes(1)
    async with kubevirt_bed.client() as client:
        vms, _ = await start_vm(client, vm_namespace)
        await vms.act("web", "stop")
        await vms.wait_for_status("web", "Stopped")
        await client.wait_until_gone(vms.path("virtualmachineinstances", "web"))
        assert await vms.launcher_pods("web") == []
        await client.delete(vms.path("virtualmachines", "web"))
        await client.wait_until_gone(vms.path("virtualmachines", "web"))
