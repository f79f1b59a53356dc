"""KubeVirt in the test bed: its real virt-api and virt-controller, webhooks on, with hollow virt-handlers.

    python -m testbed up --kubevirt --nodes 5       for people; `make test` builds it before the tests

In tests (fixtures of testbed/pytest_plugin.py; one control plane per run, started by the first test that asks):

    async def test_a_vm_runs(kubevirt_bed: Bed, vm_namespace: str, vm_nodes: HollowNodes) -> None:
        await vm_nodes(2, labels={"topology.kubernetes.io/zone": "zone-a"})        # only for VMs of this namespace
        async with kubevirt_bed.client() as client:
            vms = VirtualMachines(client, vm_namespace)
            await vms.create(a_vm("web", spec=nodes.on_reserved(vm_namespace)))     # spec: laid over the template's
            vmi = await vms.wait_until_running("web")
            pod = await vms.launcher_pod("web")
            await vms.evict(pod)             # raises ApiError 429 "Eviction triggered evacuation of VMI …"
            moved = await vms.wait_until_migrated("web", away_from=vmi["status"]["nodeName"])

What the guests do is said by annotations of the VM's template, or of a running VirtualMachineInstance (behaviour.py):

    sim.novasphere.dev/boot-seconds: "1"       so, too: migration-seconds, migration-fails: "true", stop-seconds
    sim.novasphere.dev/run-seconds: "0"        of the virt-launcher pod: its guest shuts down (exit-code "1": crashes)

Whether a VM is migratable is decided as virt-handler decides it (migratability.py): `a_vm("web", binding="bridge")`
is not, nor is one with a GPU, a host device or a claim that is not ReadWriteMany.

    program/              virt-api and virt-controller in one Go program, built by build.py
    installation.py       installs and starts them beside a control plane
    vm_nodes.py           Nodes that virt-launcher pods can run on
    handler.py            the hollow virt-handlers
    guests.py             what they write next, as a function of what they see
    migratability.py      whether a VirtualMachineInstance can be migrated, and why not
    virtual_machines.py   objects and waiting, for tests

There is no CDI: dataVolumes are never filled. Console, pause and guest agent need a real virt-handler.
"""
