"""KubeVirt's labels, annotations and finalizers. Read by the webhooks here and by actors/kubevirt."""

from __future__ import annotations

LAUNCHER_LABEL, LAUNCHER = "kubevirt.io", "virt-launcher"  # on the pods in which virtual machines run
CREATED_BY_LABEL = "kubevirt.io/created-by"
MIGRATION_JOB_LABEL = "kubevirt.io/migrationJobUID"
NODE_NAME_LABEL = "kubevirt.io/nodeName"
MIGRATION_TARGET_LABEL = "kubevirt.io/migrationTargetNodeName"
VMI_NAME_LABEL = "kubevirt.io/vmi-name"  # on migrations
NAME_LABEL, ID_LABEL = "vm.kubevirt.io/name", "vmi.kubevirt.io/id"
SCHEDULABLE_LABEL = "kubevirt.io/schedulable"  # on nodes with a virt-handler
MACHINE_TYPE_PREFIX = "machine-type.node.kubevirt.io/"
HOST_MODEL_PREFIX, MIGRATION_MODEL_PREFIX = "host-model-cpu.node.kubevirt.io/", "cpu-model-migration.node.kubevirt.io/"
CPU_FEATURE_PREFIX, CPU_MODEL_PREFIX = "cpu-feature.node.kubevirt.io/", "cpu-model.node.kubevirt.io/"
OBSOLETE_HOST_MODEL_LABEL = "node-labeller.kubevirt.io/obsolete-host-model"
CPU_MANAGER_LABEL = "cpumanager"

DOMAIN_ANNOTATION = "kubevirt.io/domain"  # on a pod: the name of its instance
MIGRATION_JOB_ANNOTATION = "kubevirt.io/migrationJobName"
EVACUATION_ANNOTATION = "kubevirt.io/evacuationMigration"  # on a migration: the node that is emptied
GENERATION_ANNOTATION = "kubevirt.io/vm-generation"
BRIDGE_MIGRATION_ANNOTATION = "kubevirt.io/allow-pod-bridge-network-live-migration"

VMI_FINALIZER = "kubevirt.io/foregroundDeleteVirtualMachine"
VM_FINALIZER = "kubevirt.io/virtualMachineControllerFinalize"
MIGRATION_FINALIZER = "kubevirt.io/migrationJobFinalize"

UNPAUSED = "kubevirt.io/virtual-machine-unpaused"  # a readiness gate of every virt-launcher pod
ARCHITECTURE, MACHINE_TYPE = "amd64", "q35"
FINAL_PHASES = ("Succeeded", "Failed")
RESERVED_LABELS = frozenset(  # that nobody but KubeVirt may put on a template
    {
        *(CREATED_BY_LABEL, MIGRATION_JOB_LABEL, NODE_NAME_LABEL, MIGRATION_TARGET_LABEL),
        *(SCHEDULABLE_LABEL, "kubevirt.io/install-strategy"),
    }
)
