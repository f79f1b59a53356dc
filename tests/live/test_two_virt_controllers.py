"""What KubeVirt does while two instances of virt-controller lead: why a checker lets the played one do so, too."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from live.second_leader import LeaseKeeper, second_virt_controller
from testbed.client import DEADLINE_SECONDS, Client, Listed, as_json
from testbed.kubevirt.virtual_machines import VirtualMachines, a_vm
from testbed.nodes import on_reserved
from testbed.pytest_plugin import Bed, HollowNodes
from wukong.api.kinds import VIRTUAL_MACHINES
from wukong.embedded.checkers.object_writes import MOST_WRITES

MOST = MOST_WRITES[VIRTUAL_MACHINES.group_kind]


@pytest.mark.slow
async def test_leaders_of_whom_one_is_behind_with_instances_write_a_machine_in_turns_without_end(
    kubevirt_bed: Bed, kubevirt_program: Path, vm_namespace: str, vm_nodes: HollowNodes, tmp_path: Path
) -> None:
    """Each sees the other's status at once, at a version that nobody else has changed, and writes its own over it."""
    proxy = LeaseKeeper(kubevirt_bed.kubeconfig.with_name("kubevirt-controller.kubeconfig"))
    proxy.hold("virtualmachineinstances")
    async with kubevirt_bed.client() as client, proxy.kubeconfig(tmp_path) as kubeconfig:
        vms = VirtualMachines(client, vm_namespace, DEADLINE_SECONDS)
        await vms.create(a_vm("web", spec=on_reserved(vm_namespace)))
        await vms.wait_for_status("web", "ErrorUnschedulable")
        with second_virt_controller(kubevirt_bed, kubeconfig, kubevirt_program, tmp_path / "second.log"):
            async with asyncio.timeout(DEADLINE_SECONDS):
                await proxy.wait_for_watch("virtualmachineinstances")  # the list before it has the instance as it is
                await vm_nodes(1)
                words = await read_status_words(client, vms.path("virtualmachines"), MOST + 1)
    assert {"Running", "ErrorUnschedulable"} <= set(words)


async def read_status_words(client: Client, path: str, count: int) -> list[str]:
    """What the only machine there says of itself, until it has changed its word so many times."""
    words: list[str] = []
    async for change in client.follow(path):
        for raw in change.items if isinstance(change, Listed) else [change.object]:
            word = as_json(raw)["status"].get("printableStatus", "")
            words += [word] if words[-1:] != [word] else []
        if len(words) > count:
            return words
    raise AssertionError("follow never ends")
