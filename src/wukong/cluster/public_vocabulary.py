"""The words that an anonymous snapshot keeps: what everybody's cluster may say, and nothing else.

Used by anonymize.py: every text that is not here is renamed, wherever it stands. A text is public if Kubernetes,
Wukong or a cloud gives it its meaning: names of fields, kinds, operators, effects, phases, reasons, well-known labels,
taints, resources and annotations, instance types with a list price; and numbers, quantities and times. Words are
listed one by one, never by a prefix: `kubernetes.io/our-merger` is nobody's word but its owner's.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from wukong.api.kinds import KINDS
from wukong.api.placement import APPLIES, MODES, RULE_TYPES
from wukong.api.policy_parts import FALLBACKS, PREEMPTION_POLICIES, STRATEGIES
from wukong.api.usage import USAGE_GROUP
from wukong.api.vm import BUSES, EVICTION_STRATEGIES, NAME_LABEL, RESTART_POLICIES, RUN_STRATEGIES
from wukong.cluster.field_shapes import fields_of_struct, values_of_struct
from wukong.placement import leaving_nodes
from wukong.placement.capacity import SPOT_LABELS
from wukong.placement.free_labels import free_label_of
from wukong.placement.pods.mark import MARK
from wukong.placement.price_table import find_list_price
from wukong.placement.prices import PRICE_LABEL, TYPE_LABELS
from wukong.placement.rules import BUILT_IN
from wukong.semantics.volume_claims import READ_ANNOTATIONS as VOLUME_ANNOTATIONS


def _read_words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# In any case of letters: clouds write SPOT, spot and Spot.
ANY_CASE = _read_words(
    """
    true false linux windows amd64 arm64 spot on-demand on_demand reserved preemptible standard od
    """
)
NAMES = _read_words(
    """
    default kube-system kube-public kube-node-lease kubernetes kube-root-ca.crt default-scheduler
    system-node-critical system-cluster-critical
    """
)
ADDRESSES = frozenset({"0.0.0.0", "127.0.0.1", "::", "::1"})  # which are everybody's
RESOURCES = _read_words(
    """
    cpu memory storage ephemeral-storage pods gpu nvidia.com/gpu amd.com/gpu gpu.intel.com/i915 google.com/tpu
    aws.amazon.com/neuron aws.amazon.com/neuroncore habana.ai/gaudi smarter-devices/fuse devices.kubevirt.io/kvm
    devices.kubevirt.io/tun devices.kubevirt.io/vhost-net
    """
)
# What quotas count, by their own names for it.
QUOTA_RESOURCES = _read_words(
    """
    requests.cpu requests.memory requests.storage requests.ephemeral-storage limits.cpu limits.memory
    limits.ephemeral-storage services services.nodeports services.loadbalancers persistentvolumeclaims
    resourcequotas replicationcontrollers secrets configmaps count/pods count/services count/configmaps
    count/secrets count/persistentvolumeclaims count/replicationcontrollers count/resourcequotas
    count/deployments.apps count/replicasets.apps count/statefulsets.apps count/daemonsets.apps count/jobs.batch
    count/cronjobs.batch
    """
)
LABELS = _read_words(
    """
    kubernetes.io/hostname kubernetes.io/os kubernetes.io/arch kubernetes.io/metadata.name beta.kubernetes.io/os
    beta.kubernetes.io/arch topology.kubernetes.io/zone topology.kubernetes.io/region
    failure-domain.beta.kubernetes.io/zone failure-domain.beta.kubernetes.io/region
    node.kubernetes.io/windows-build node.kubernetes.io/exclude-from-external-load-balancers
    node-role.kubernetes.io/control-plane node-role.kubernetes.io/master node-role.kubernetes.io/worker app
    k8s-app app.kubernetes.io/name app.kubernetes.io/instance app.kubernetes.io/version
    app.kubernetes.io/component app.kubernetes.io/part-of app.kubernetes.io/managed-by pod-template-hash
    controller-revision-hash pod-template-generation statefulset.kubernetes.io/pod-name
    apps.kubernetes.io/pod-index batch.kubernetes.io/job-name batch.kubernetes.io/controller-uid
    batch.kubernetes.io/job-completion-index job-name controller-uid eks.amazonaws.com/nodegroup
    eks.amazonaws.com/compute-type karpenter.sh/nodepool cloud.google.com/gke-nodepool
    kubernetes.azure.com/agentpool kubernetes.azure.com/mode sim.novasphere.dev/hollow sim.novasphere.dev/run
    testbed.wukong/hollow placement.novasphere.dev/interruption-percent kubevirt.io kubevirt.io/created-by
    kubevirt.io/domain kubevirt.io/nodeName kubevirt.io/schedulable kubevirt.io/drain vm.kubevirt.io/name
    vmi.kubevirt.io/id kubevirt.io/migrationJobUID kubevirt.io/migrationTargetNodeName kubevirt.io/vmi-name
    cpumanager node-labeller.kubevirt.io/obsolete-host-model pod-security.kubernetes.io/enforce
    pod-security.kubernetes.io/enforce-version pod-security.kubernetes.io/audit
    pod-security.kubernetes.io/audit-version pod-security.kubernetes.io/warn pod-security.kubernetes.io/warn-version
    """
) | {
    *(*SPOT_LABELS, *TYPE_LABELS, PRICE_LABEL, NAME_LABEL),
    *(f"{USAGE_GROUP}/{name}" for name in ("cpu", "memory", "storage")),
    *(free_label_of(name) for name in ("cpu", "memory", "storage", "gpu")),
}
TAINTS = _read_words(
    """
    node.kubernetes.io/not-ready node.kubernetes.io/unreachable node.kubernetes.io/unschedulable
    node.kubernetes.io/memory-pressure node.kubernetes.io/disk-pressure node.kubernetes.io/network-unavailable
    node.kubernetes.io/pid-pressure node.cloudprovider.kubernetes.io/uninitialized karpenter.sh/unregistered
    CriticalAddonsOnly
    """
) | {*leaving_nodes.TAINTS}
ANNOTATIONS = frozenset(
    {
        leaving_nodes.NOTICE, MARK, *VOLUME_ANNOTATIONS,
        "controller.kubernetes.io/pod-deletion-cost", "deprecated.daemonset.template.generation",
        *(f"deployment.kubernetes.io/{name}" for name in (
            "revision", "revision-history", "desired-replicas", "max-replicas",
        )),
        *(f"{prefix}/{name}" for prefix in ("sim.novasphere.dev", "testbed.wukong") for name in (
            "silent", "pull-seconds", "start-seconds", "ready-seconds", "never-ready", "unready-after-seconds",
            "stop-seconds", "pull-fails", "run-seconds", "exit-code", "spread",
            "boot-seconds", "migration-seconds", "migration-fails", "migration-failure-share",
        )),
    }
)  # fmt: skip
# Values of fields, besides those that the structs name.
VALUES = _read_words(
    """
    True False Unknown In NotIn Exists DoesNotExist Gt Lt Equal NoSchedule PreferNoSchedule NoExecute TCP UDP
    SCTP Always OnFailure Never PreemptLowerPriority RollingUpdate Recreate OnDelete OrderedReady Parallel
    Indexed NonIndexed ReadWriteOnce ReadOnlyMany ReadWriteMany ReadWriteOncePod Filesystem Block metadata.name
    Immediate WaitForFirstConsumer Retain Delete yes kubernetes.io/no-provisioner kubernetes.io/aws-ebs
    kubernetes.io/gce-pd kubernetes.io/azure-disk kubernetes.io/cinder ebs.csi.aws.com pd.csi.storage.gke.io
    disk.csi.azure.com cinder.csi.openstack.org
    replace Pending Running Succeeded Failed Active Terminating Bound Available Released Lost Ready
    MemoryPressure DiskPressure PIDPressure NetworkUnavailable VMEventScheduled PodScheduled Initialized
    ContainersReady PodReadyToStartContainers DisruptionTarget PodResizePending PodResizeInProgress Progressing
    ReplicaFailure Complete FailureTarget SuccessCriteriaMet Suspended DisruptionAllowed Accepted KubeletReady
    KubeletNotReady KubeletHasSufficientMemory KubeletHasInsufficientMemory KubeletHasNoDiskPressure
    KubeletHasDiskPressure KubeletHasSufficientPID KubeletHasInsufficientPID NodeStatusUnknown
    NodeStatusNeverUpdated Unschedulable SchedulingGated SchedulerError ContainersNotReady
    ContainersNotInitialized ReadinessGatesNotReady PodCompleted PreemptionByScheduler DeletionByTaintManager
    EvictionByEvictionAPI DeletionByPodGC TerminationByKubelet ContainerCreating PodInitializing
    CrashLoopBackOff ImagePullBackOff ErrImagePull ErrImageNeverPull InvalidImageName CreateContainerConfigError
    CreateContainerError RunContainerError NewReplicaSetCreated FoundNewReplicaSet ReplicaSetUpdated
    NewReplicaSetAvailable MinimumReplicasAvailable MinimumReplicasUnavailable ProgressDeadlineExceeded
    DeploymentPaused DeploymentResumed FailedCreate FailedDelete SufficientPods InsufficientPods SyncFailed
    BackoffLimitExceeded DeadlineExceeded CompletionsReached JobSuspended JobResumed FailedIndexes
    MaxFailedIndexesExceeded PodFailurePolicy SuccessPolicy virt-launcher Provisioning Starting Stopping Stopped
    Migrating Paused WaitingForVolumeBinding WaitingForReceiver ErrorUnschedulable ErrorPvcNotFound
    DataVolumeError Scheduling Scheduled LiveMigratable StorageLiveMigratable EvictionRequested RestartRequired
    Synchronized Bootable Placed host-model host-passthrough none Start Stop PreparingTarget TargetReady Failure
    AgentConnected DataVolumesReady VMINotExists PodNotExists PodTerminating GuestNotRunning PodConditionMissing
    NotPaused FailedPvcNotFound DisksNotLiveMigratable InterfaceNotLiveMigratable HostDeviceNotLiveMigratable
    NodeUnresponsive kubevirt.io/virtual-machine-unpaused kubevirt.io/foregroundDeleteVirtualMachine
    kubevirt.io/virtualMachineControllerFinalize kubevirt.io/migrationJobFinalize
    Container PersistentVolumeClaim NotTerminating BestEffort NotBestEffort PriorityClass CrossNamespacePodAffinity
    privileged baseline restricted latest Resource ContainerResource Object External Utilization AverageValue Value
    Pods Percent Max Min Disabled AbleToScale ScalingActive ScalingLimited SucceededGetScale FailedGetScale
    SucceededRescale FailedUpdateScale ReadyForNewScale ScaleDownStabilized ScaleUpStabilized ScalingDisabled
    ValidMetricFound FailedGetResourceMetric FailedGetContainerResourceMetric FailedGetPodsMetric
    FailedGetObjectMetric FailedGetExternalMetric InvalidSelector DesiredWithinRange TooManyReplicas TooFewReplicas
    ScaleUpLimit ScaleDownLimit ClusterIP NodePort LoadBalancer ExternalName IPv4 IPv6 None http https
    """
) | {
    *(*STRATEGIES, *FALLBACKS, *MODES, *APPLIES, *RULE_TYPES, *PREEMPTION_POLICIES),
    *(*RUN_STRATEGIES, *EVICTION_STRATEGIES, *RESTART_POLICIES, *BUSES),
}
KINDS_OF_OTHERS = _read_words(
    """
    List CronJob HorizontalPodAutoscaler Lease
    """
)
# Names of fields that no struct has: of what a snapshot keeps whole.
FIELDS = _read_words(
    """
    observedGeneration replicas fullyLabeledReplicas readyReplicas availableReplicas unavailableReplicas
    updatedReplicas terminatingReplicas currentReplicas currentRevision updateRevision collisionCount conditions
    lastUpdateTime lastTransitionTime lastProbeTime currentNumberScheduled desiredNumberScheduled
    numberAvailable numberMisscheduled numberReady numberUnavailable updatedNumberScheduled active ready
    succeeded failed terminating startTime completionTime completedIndexes failedIndexes currentHealthy
    desiredHealthy expectedPods disruptionsAllowed start conditionType timeAdded deletionGracePeriodSeconds
    desiredReplicas lastScaleTime currentMetrics current averageValue averageUtilization
    blockOwnerDeletion state waiting reason restartPolicy phase $patch wukongSnapshot version takenAt items
    """
)
# Those of KubeVirt's machines and instances, as far as Wukongs make them or their controllers look at them.
MACHINE_FIELDS = _read_words(
    """
    template domain cores sockets threads maxSockets model guest maxGuest devices disk cdrom bus bootOrder
    interfaces masquerade bridge sriov hostDevices filesystems autoattachPodInterface machine type firmware uuid
    serial bootloader kernelBoot features acpi runStrategy running evictionStrategy volumes cloudInitNoCloud
    cloudInitConfigDrive userData userDataBase64 networkData networkDataBase64 secretRef networkDataSecretRef
    secretName persistentVolumeClaim ephemeral networks pod multus networkName readinessProbe livenessProbe exec
    command guestAgentPing tcpSocket httpGet port path httpHeaders periodSeconds failureThreshold
    successThreshold initialDelaySeconds timeoutSeconds hostname subdomain architecture dnsPolicy
    dataVolumeTemplates terminationGracePeriodSeconds accessCredentials dedicatedCpuPlacement hugepages pageSize
    resources requests limits disks containerDisk image dataVolume claimName hostDisk shared gpus deviceName
    autoattachGraphicsDevice autoattachSerialConsole logSerialConsole policy tpm launchSecurity sev snp tdx
    created printableStatus desiredGeneration startFailure consecutiveFailCount lastFailedVMIUID
    retryAfterTimestamp stateChangeRequests action phaseTransitionTimestamps phaseTransitionTimestamp activePods
    nodeName evacuationNodeName migrationState migrationUid sourceNode targetNode sourcePod targetPod
    targetNodeAddress targetDirectMigrationNodePorts targetNodeDomainDetected targetNodeDomainReadyTimestamp
    startTimestamp endTimestamp completed failureReason abortRequested selinuxContext vmiName addedNodeSelector
    """
)
_NUMBER = r"[+-]?\d+(\.\d+)?"
_PATTERNS = re.compile(
    rf"{_NUMBER}%?"  # numbers, percentages
    rf"|{_NUMBER}([numkMGTPE]|[KMGTPE]i|[eE][+-]?\d+)"  # quantities
    r"|\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d))?"  # times
    r"|hugepages-\d+[KMG]i"
    r"|(wukong|placement)-(minus-)?\d+(-never)?"  # our PriorityClasses
    r"|(machine-type|host-model-cpu|cpu-model|cpu-model-migration|cpu-feature)\.node\.kubevirt\.io/[A-Za-z0-9._-]+"
    r"|(pc-)?(q35|i440fx)(-[a-z0-9.]+)*"  # machine types of virtual machines
)


class Vocabulary(NamedTuple):
    """All public words. `fields` are names of fields: such keys of objects stay; texts that are equal to one do not."""

    words: frozenset[str]
    fields: frozenset[str]

    def is_public(self, text: str) -> bool:
        """Tell whether a text may stay as it is, as a value or as the key of a map of data."""
        return not text or text in self.words or has_public_form(text)


def has_public_form(text: str) -> bool:
    """Tell whether this is a number, a quantity, a time, an instance type, or a word in any case of letters."""
    is_word = text.lower() in ANY_CASE or _PATTERNS.fullmatch(text) is not None
    return is_word or find_list_price(text) is not None


def collect_vocabulary() -> Vocabulary:
    """Return the vocabulary for the kinds that the table has now."""
    return _collect(tuple(kind.group_kind for kind in KINDS))


@cache
def _collect(group_kinds: tuple[str, ...]) -> Vocabulary:
    kinds = [KINDS[group_kind] for group_kind in group_kinds]
    words = {
        *NAMES,
        *ADDRESSES,
        *RESOURCES,
        *QUOTA_RESOURCES,
        *LABELS,
        *TAINTS,
        *ANNOTATIONS,
        *VALUES,
        *KINDS_OF_OTHERS,
        *BUILT_IN,
    }
    fields = {*FIELDS, *MACHINE_FIELDS}
    for kind in kinds:
        words |= {kind.resource.kind, kind.resource.api_version}
        for path in kind.snapshot.more if kind.snapshot is not None else ():
            fields |= {step.removesuffix("[]") for step in path.split(".")}
    for struct in (*(kind.struct for kind in kinds), *(rule.config for rule in BUILT_IN.values())):
        fields |= set(fields_of_struct(struct))
        words |= set(values_of_struct(struct))
    return Vocabulary(frozenset(words), frozenset(fields))
