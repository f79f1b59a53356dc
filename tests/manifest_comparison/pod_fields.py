"""Fragments of pod specs. Each has two valid forms that differ in something: one is the manifest, one its change.

Written so that together they set every field of a pod spec but those named in NOT_SET (test_manifest_table.py checks).
`main` stands for the first container; `{"main": …}` fields are put into it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

Json = dict[str, Any]


class Fragment(NamedTuple):
    title: str
    before: Json
    after: Json


NOT_SET = {
    # of features that are off: the server drops them, whatever they say (`disabled` below sets some)
    "ClusterTrustBundleProjection", "PodCertificateProjection", "WorkloadReference",
    # set by other fields of the same name, or by servers alone
    "ManagedFieldsEntry.meta", "OwnerReference.meta", "PersistentVolumeClaimStatus", "ObjectMeta.meta",
}  # fmt: skip


def volume(title: str, source: str, before: Any, after: Any, **mount: Any) -> Fragment:
    """A volume of this source, mounted into the first container."""
    name = title.replace("_", "-")

    def build(value: Any) -> Json:
        mounts = [{"name": name, "mountPath": f"/mnt/{name}", **mount}]
        return {"volumes": [{"name": name, source: value}], "main": {"volumeMounts": mounts}}

    return Fragment(f"volume {title}", build(before), build(after))


def main(title: str, before: Json, after: Json) -> Fragment:
    return Fragment(title, {"main": before}, {"main": after})


def env(title: str, before: Json, after: Json) -> Fragment:
    def build(source: Json) -> Json:
        return {"main": {"env": [{"name": title.upper(), **source}]}}

    return Fragment(f"env {title}", build(before), build(after))


def probe(title: str, before: Json, after: Json) -> Fragment:
    return main(title, {title: before}, {title: after})


def term(value: str) -> Json:
    return {"matchExpressions": [{"key": "zone", "operator": "In", "values": [value]}]}


def pods(value: str) -> Json:
    return {"labelSelector": {"matchLabels": {"app": value}}, "topologyKey": "kubernetes.io/hostname"}


CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
VOLUMES = [
    volume("none", "emptyDir", {}, {"medium": "Memory", "sizeLimit": "64Mi"}),
    Fragment("volume without a source", {"volumes": [{"name": "bare"}]}, {"volumes": [{"name": "bare2"}]}),
    volume("config", "configMap", {"name": "settings"}, {"name": "settings", "optional": True, "defaultMode": 256}),
    volume("config-items", "configMap", {"name": "a", "items": [{"key": "k", "path": "p"}]},
           {"name": "a", "items": [{"key": "k", "path": "q", "mode": 420}]}),
    volume("secret", "secret", {"secretName": "keys"}, {"secretName": "keys", "optional": False, "defaultMode": 0}),
    volume("secret-items", "secret", {"secretName": "s", "items": [{"key": "k", "path": "p"}]},
           {"secretName": "s", "items": [{"key": "k", "path": "p", "mode": 256}]}),
    volume("downward", "downwardAPI", {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]},
           {"defaultMode": 256, "items": [{"path": "cpu", "mode": 420, "resourceFieldRef": {
               "containerName": "main", "resource": "limits.cpu", "divisor": "1m"}}]}),
    volume("downward-plain", "downwardAPI",
           {"items": [{"path": "m", "resourceFieldRef": {"containerName": "main", "resource": "requests.memory"}}]},
           {"items": [{"path": "m", "resourceFieldRef": {"containerName": "main", "resource": "limits.memory"}}]}),
    volume("projected", "projected",
           {"sources": [{"serviceAccountToken": {"path": "token"}}, {"configMap": {"name": "ca"}},
                        {"secret": {"name": "s"}}, {"downwardAPI": {"items": [
                            {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}}]},
           {"defaultMode": 256, "sources": [
               {"serviceAccountToken": {"path": "token", "expirationSeconds": 7200, "audience": "vault"}},
               {"configMap": {"name": "ca", "optional": True, "items": [{"key": "k", "path": "p"}]}},
               {"secret": {"name": "s", "optional": True, "items": [{"key": "k", "path": "s", "mode": 420}]}}]}),
    volume("host", "hostPath", {"path": "/var/log"}, {"path": "/var/log", "type": "Directory"}),
    volume("claim", "persistentVolumeClaim", {"claimName": "data"}, {"claimName": "data", "readOnly": True}),
    volume("ephemeral", "ephemeral", {"volumeClaimTemplate": {"spec": CLAIM}},
           {"volumeClaimTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": {
               **CLAIM, "storageClassName": "", "volumeMode": "Filesystem", "volumeName": "v",
               "selector": {"matchLabels": {"disk": "ssd"}}, "volumeAttributesClassName": "fast",
               "resources": {"requests": {"storage": "1.5Gi"}, "limits": {"storage": "2Gi"}}}}}),
    volume("ephemeral-source", "ephemeral", {"volumeClaimTemplate": {"spec": {
               **CLAIM, "dataSource": {"kind": "PersistentVolumeClaim", "name": "old"}}}},
           {"volumeClaimTemplate": {"spec": {**CLAIM, "dataSource": {
               "apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "old"}, "dataSourceRef": {
               "apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "old"}}}}),
    volume("image", "image", {"reference": "models:latest"}, {"reference": "models:1", "pullPolicy": "Never"}),
    volume("csi", "csi", {"driver": "csi.example.com"},
           {"driver": "csi.example.com", "readOnly": False, "fsType": "ext4", "volumeAttributes": {"a": "b"},
            "nodePublishSecretRef": {"name": "s"}}),
    volume("nfs", "nfs", {"server": "nfs", "path": "/"}, {"server": "nfs", "path": "/", "readOnly": True}),
    volume("iscsi", "iscsi", {"targetPortal": "1.2.3.4", "iqn": "iqn.2001-04.com.example:storage", "lun": 0},
           {"targetPortal": "1.2.3.4", "iqn": "iqn.2001-04.com.example:storage", "lun": 1, "fsType": "ext4",
            "iscsiInterface": "eth", "portals": ["1.2.3.5"], "readOnly": True, "chapAuthDiscovery": True,
            "chapAuthSession": True, "secretRef": {"name": "s"}, "initiatorName": "iqn.2001-04.com.example:i"}),
    volume("glusterfs", "glusterfs", {"endpoints": "e", "path": "p"},
           {"endpoints": "e", "path": "p", "readOnly": True}),
    volume("rbd", "rbd", {"monitors": ["m"], "image": "i"},
           {"monitors": ["m"], "image": "i", "fsType": "ext4", "pool": "p", "user": "u", "keyring": "/k",
            "secretRef": {"name": "s"}, "readOnly": True}),
    volume("cephfs", "cephfs", {"monitors": ["m"]},
           {"monitors": ["m"], "path": "/p", "user": "u", "secretFile": "/f", "secretRef": {"name": "s"},
            "readOnly": True}),
    volume("cinder", "cinder", {"volumeID": "v"},
           {"volumeID": "v", "fsType": "ext4", "readOnly": True, "secretRef": {"name": "s"}}),
    volume("fc", "fc", {"targetWWNs": ["a"], "lun": 0}, {"wwids": ["w"], "fsType": "ext4", "readOnly": True}),
    volume("flocker", "flocker", {"datasetName": "d"}, {"datasetUUID": "u"}),
    volume("flex", "flexVolume", {"driver": "a/b"},
           {"driver": "a/b", "fsType": "ext4", "secretRef": {"name": "s"}, "readOnly": True, "options": {"a": "b"}}),
    volume("azure-file", "azureFile", {"secretName": "s", "shareName": "n"},
           {"secretName": "s", "shareName": "n", "readOnly": True}),
    volume("azure-disk", "azureDisk", {"diskName": "d", "diskURI": "https://a.blob.core.windows.net/d"},
           {"diskName": "d", "diskURI": "https://a.blob.core.windows.net/d", "cachingMode": "None", "fsType": "xfs",
            "readOnly": True, "kind": "Dedicated"}),
    volume("gce", "gcePersistentDisk", {"pdName": "p"},
           {"pdName": "p", "fsType": "ext4", "partition": 1, "readOnly": True}),
    volume("aws", "awsElasticBlockStore", {"volumeID": "v"},
           {"volumeID": "v", "fsType": "ext4", "partition": 1, "readOnly": True}),
    volume("portworx", "portworxVolume", {"volumeID": "v"}, {"volumeID": "v", "fsType": "ext4", "readOnly": True}),
    volume("scale-io", "scaleIO", {"gateway": "g", "system": "s", "secretRef": {"name": "s"}, "volumeName": "v"},
           {"gateway": "g", "system": "s", "secretRef": {"name": "s"}, "volumeName": "v", "sslEnabled": True,
            "protectionDomain": "d", "storagePool": "p", "storageMode": "ThickProvisioned", "fsType": "ext4",
            "readOnly": True}),
    volume("storageos", "storageos", {"volumeName": "v"},
           {"volumeName": "v", "volumeNamespace": "n", "fsType": "ext4", "readOnly": True,
            "secretRef": {"name": "s"}}),
    volume("quobyte", "quobyte", {"registry": "r:1", "volume": "v"},
           {"registry": "r:1", "volume": "v", "readOnly": True, "user": "u", "group": "g", "tenant": "t"}),
    volume("photon", "photonPersistentDisk", {"pdID": "p"}, {"pdID": "p", "fsType": "ext4"}),
    volume("vsphere", "vsphereVolume", {"volumePath": "p"},
           {"volumePath": "p", "fsType": "ext4", "storagePolicyName": "s", "storagePolicyID": "i"}),
    volume("git", "gitRepo", {"repository": "r"}, {"repository": "r", "revision": "1", "directory": "d"}),
    volume("mount", "emptyDir", {}, {}, readOnly=True, subPath="a/b", mountPropagation="HostToContainer"),
    volume("mount-expr", "emptyDir", {}, {"medium": "Memory"}, subPathExpr="$(A)", readOnly=True),
    volume("mount-recursive", "emptyDir", {}, {"medium": "Memory"}, readOnly=True, recursiveReadOnly="IfPossible"),
    Fragment("volume device",
             {"volumes": [{"name": "raw", "persistentVolumeClaim": {"claimName": "raw"}}],
              "main": {"volumeDevices": [{"name": "raw", "devicePath": "/dev/raw"}]}},
             {"volumes": [{"name": "raw", "persistentVolumeClaim": {"claimName": "raw"}}],
              "main": {"volumeDevices": [{"name": "raw", "devicePath": "/dev/other"}]}}),
]  # fmt: skip
HTTP = {"httpGet": {"port": 8080}}
PROBES = [
    probe("livenessProbe", HTTP, {"httpGet": {
        "port": "http", "path": "/live", "scheme": "HTTPS", "host": "h",
        "httpHeaders": [{"name": "A", "value": "b"}]}, "initialDelaySeconds": 5, "timeoutSeconds": 2,
        "periodSeconds": 3, "failureThreshold": 4, "terminationGracePeriodSeconds": 9}),
    probe("readinessProbe", {"exec": {"command": ["true"]}}, {"tcpSocket": {"port": 80}, "successThreshold": 2}),
    probe("startupProbe", {"grpc": {"port": 80}}, {"grpc": {"port": 80, "service": "health"}}),
    probe("lifecycle", {"preStop": {"httpGet": {"port": 80}}, "postStart": {"exec": {"command": ["a"]}}},
          {"preStop": {"sleep": {"seconds": 3}}, "postStart": {"tcpSocket": {"port": 80, "host": "h"}}}),
    main("stop signal is off", {"lifecycle": {"preStop": {"exec": {"command": ["a"]}}, "stopSignal": "SIGUSR1"}},
         {"lifecycle": {"preStop": {"exec": {"command": ["b"]}}, "stopSignal": "SIGUSR1"}}),
]  # fmt: skip
ENVIRONMENT = [
    env("plain", {"value": "1"}, {"value": ""}),
    env("empty", {}, {"value": "x"}),
    env("field", {"valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"valueFrom": {"fieldRef": {"fieldPath": "status.podIP", "apiVersion": "v1"}}}),
    env("resource", {"valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
        {"valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m", "containerName": "main"}}}),
    env("config", {"valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
        {"valueFrom": {"configMapKeyRef": {"name": "c", "key": "k", "optional": False}}}),
    env("secret", {"valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        {"valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": True}}}),
    Fragment("env file",
             {"volumes": [{"name": "envs", "emptyDir": {}}], "main": {"env": [{"name": "F", "valueFrom": {
                 "fileKeyRef": {"volumeName": "envs", "path": "f", "key": "k"}}}]}},
             {"volumes": [{"name": "envs", "emptyDir": {}}], "main": {"env": [{"name": "F", "valueFrom": {
                 "fileKeyRef": {"volumeName": "envs", "path": "f", "key": "k", "optional": True}}}]}}),
    main("envFrom", {"envFrom": [{"configMapRef": {"name": "c"}}, {"secretRef": {"name": "s"}}]},
         {"envFrom": [{"prefix": "P_", "configMapRef": {"name": "c", "optional": True}},
                      {"secretRef": {"name": "s", "optional": False}}]}),
    main("two variables", {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
         {"env": [{"name": "B", "value": "2"}, {"name": "A", "value": "1"}, {"name": "C"}]}),
]  # fmt: skip
CONTAINER = [
    main("image", {"image": "web:1"}, {"image": "web:2"}),
    main("image latest", {"image": "web"}, {"image": "web:latest"}),
    main("pull policy", {"imagePullPolicy": "Always"}, {"imagePullPolicy": "Never"}),
    main("command", {"command": ["a"], "args": ["b"], "workingDir": "/"}, {"command": ["a", "c"], "workingDir": "/w"}),
    main("ports", {"ports": [{"containerPort": 8080}, {"containerPort": 53, "protocol": "UDP"}]},
         {"ports": [{"containerPort": 8080, "name": "http"}, {"containerPort": 53, "protocol": "UDP"}]}),
    main("host port", {"ports": [{"containerPort": 80, "hostPort": 8081, "hostIP": "127.0.0.1"}]},
         {"ports": [{"containerPort": 80, "hostPort": 8082}]}),
    main("resources", {"resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": 1, "memory": "1Gi"}}},
         {"resources": {"requests": {"cpu": "0.25", "memory": "512Mi"}, "limits": {"memory": "1024Mi"}}}),
    main("fine resources", {"resources": {"requests": {"cpu": "0.0005", "example.com/a": "1"},
                                          "limits": {"example.com/a": 1}}},
         {"resources": {"requests": {"cpu": "1e-3", "ephemeral-storage": "1M"}}}),
    main("resize policy", {"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}]},
         {"resizePolicy": [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]}),
    main("messages", {"terminationMessagePath": "/m"}, {"terminationMessagePolicy": "FallbackToLogsOnError"}),
    main("terminal", {"stdin": True, "tty": True}, {"stdin": True, "stdinOnce": True, "tty": False}),
    main("container security", {"securityContext": {}}, {"securityContext": {
        "privileged": False, "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "runAsUser": 0,
        "runAsGroup": 1, "runAsNonRoot": False, "procMount": "Default",
        "capabilities": {"add": ["NET_ADMIN"], "drop": ["ALL"]},
        "seLinuxOptions": {"level": "s0", "user": "u", "role": "r", "type": "t"},
        "seccompProfile": {"type": "Localhost", "localhostProfile": "p"},
        "appArmorProfile": {"type": "Localhost", "localhostProfile": "p"}}}),
    main("privileged", {"securityContext": {"privileged": True}}, {"securityContext": {"capabilities": {}}}),
    main("restart rules", {"restartPolicy": "Never", "restartPolicyRules": [
             {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]},
         {"restartPolicy": "Never", "restartPolicyRules": [
             {"action": "Restart", "exitCodes": {"operator": "NotIn", "values": [1]}}]}),
    Fragment("init containers",
             {"initContainers": [{"name": "setup", "image": "setup:1"}]},
             {"initContainers": [{"name": "setup", "image": "setup:1", "command": ["x"]},
                                 {"name": "proxy", "image": "proxy", "restartPolicy": "Always",
                                  "startupProbe": HTTP, "ports": [{"containerPort": 1}]}]}),
    Fragment("two containers",
             {"containers": [{"name": "side", "image": "side:1"}]},
             {"containers": [{"name": "side", "image": "side:2"}, {"name": "third", "image": "third"}]}),
]  # fmt: skip
AFFINITY = [
    Fragment("node affinity",
             {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
                 "nodeSelectorTerms": [term("a")]}}}},
             {"affinity": {"nodeAffinity": {
                 "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                     term("b"), {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}]},
                 "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "preference": term("c")}]}}}),
    Fragment("pod affinity",
             {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [pods("a")]}}},
             {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                 {"weight": 9, "podAffinityTerm": {**pods("a"), "namespaces": ["n"], "namespaceSelector": {}}}]}}}),
    Fragment("pod anti-affinity",
             {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [pods("a")]}}},
             {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                 {**pods("a"), "matchLabelKeys": ["v"], "mismatchLabelKeys": ["w"]}]}}}),
    Fragment("preferred anti-affinity",
             {"affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                 {"weight": 1, "podAffinityTerm": pods("a")}]}}},
             {"affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                 {"weight": 100, "podAffinityTerm": pods("b")}]}}}),
    Fragment("empty affinity", {"affinity": {}}, {"affinity": {"nodeAffinity": {}}}),
    Fragment("selectors with expressions",
             {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                 {"topologyKey": "zone", "labelSelector": {"matchExpressions": [
                     {"key": "a", "operator": "Exists"}]}}]}}},
             {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                 {"topologyKey": "zone", "labelSelector": {"matchExpressions": [
                     {"key": "a", "operator": "NotIn", "values": ["b", "c"]}]}}]}}}),
    Fragment("spread",
             {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
                                             "labelSelector": {"matchLabels": {"app": "a"}}}]},
             {"topologySpreadConstraints": [{"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
                                             "labelSelector": {"matchLabels": {"app": "a"}}, "minDomains": 2,
                                             "nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor",
                                             "matchLabelKeys": ["v"]},
                                            {"maxSkew": 1, "topologyKey": "host",
                                             "whenUnsatisfiable": "ScheduleAnyway"}]}),
    Fragment("tolerations", {"tolerations": [{"operator": "Exists"}]},
             {"tolerations": [{"key": "a", "value": "b", "effect": "NoSchedule", "operator": "Equal"},
                              {"key": "c", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}]}),
    Fragment("node selector", {"nodeSelector": {"disk": "ssd"}}, {"nodeSelector": {"disk": "hdd", "b": ""}}),
]  # fmt: skip
POD = [
    Fragment("pod security", {"securityContext": {"runAsUser": 1000, "fsGroup": 2000}},
             {"securityContext": {
                 "runAsUser": 0, "runAsGroup": 1, "runAsNonRoot": False, "fsGroup": 0, "supplementalGroups": [1, 2],
                 "fsGroupChangePolicy": "OnRootMismatch", "supplementalGroupsPolicy": "Strict",
                 "sysctls": [{"name": "kernel.shm_rmid_forced", "value": "0"}],
                 "seLinuxOptions": {"level": "s0"}, "seLinuxChangePolicy": "MountOption",
                 "seccompProfile": {"type": "RuntimeDefault"}, "appArmorProfile": {"type": "RuntimeDefault"}}}),
    Fragment("windows", {"os": {"name": "windows"}, "securityContext": {"windowsOptions": {"runAsUserName": "u"}}},
             {"os": {"name": "windows"}, "securityContext": {"windowsOptions": {
                 "gmsaCredentialSpecName": "g", "gmsaCredentialSpec": "s", "runAsUserName": "u",
                 "hostProcess": False}}}),
    Fragment("windows container", {"os": {"name": "windows"}, "main": {"securityContext": {"windowsOptions": {
                 "runAsUserName": "u"}}}},
             {"os": {"name": "windows"}, "main": {"securityContext": {"windowsOptions": {
                 "runAsUserName": "v", "hostProcess": False}, "runAsNonRoot": True}}}),
    Fragment("scheduling gates", {"schedulingGates": [{"name": "a"}]},
             {"schedulingGates": [{"name": "a"}, {"name": "b.c/d"}]}),
    Fragment("os", {"os": {"name": "linux"}}, {}),
    Fragment("dns", {"dnsPolicy": "Default"}, {"dnsPolicy": "None", "dnsConfig": {
        "nameservers": ["1.1.1.1"], "searches": ["a.b"], "options": [{"name": "ndots", "value": "2"},
                                                                     {"name": "edns0"}]}}),
    Fragment("host names", {"hostname": "h", "subdomain": "s", "hostAliases": [{"ip": "1.2.3.4", "hostnames": ["a"]}]},
             {"hostname": "h", "subdomain": "s", "setHostnameAsFQDN": True,
              "hostAliases": [{"ip": "1.2.3.4", "hostnames": ["a", "b"]}, {"ip": "1.2.3.5"}]}),
    Fragment("host name override", {"hostnameOverride": "a"}, {"hostnameOverride": "b"}),
    Fragment("host spaces", {"hostNetwork": True}, {"hostNetwork": True, "hostPID": True, "hostIPC": True}),
    Fragment("host users", {"hostUsers": True}, {"hostUsers": False}),
    Fragment("shared processes", {"shareProcessNamespace": False}, {"shareProcessNamespace": True}),
    Fragment("service account", {"serviceAccountName": "default"}, {"serviceAccount": "default"}),
    Fragment("service links", {"enableServiceLinks": False}, {"enableServiceLinks": True}),
    Fragment("token", {"automountServiceAccountToken": False}, {}),
    Fragment("pull secrets", {"imagePullSecrets": [{"name": "a"}]},
             {"imagePullSecrets": [{"name": "a"}, {"name": "b"}]}),
    Fragment("readiness gates", {"readinessGates": [{"conditionType": "a.b/c"}]},
             {"readinessGates": [{"conditionType": "a.b/c"}, {"conditionType": "a.b/d"}]}),
    Fragment("scheduler", {"schedulerName": "other"}, {"schedulerName": "another", "priorityClassName": ""}),
    Fragment("grace", {"terminationGracePeriodSeconds": 0}, {"terminationGracePeriodSeconds": 60}),
    Fragment("preemption", {"preemptionPolicy": "PreemptLowerPriority"}, {}),
    Fragment("pod resources", {"resources": {"requests": {"cpu": "2"}}},
             {"resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "1Gi"}}}),
    Fragment("resource claims",
             {"resourceClaims": [{"name": "gpu", "resourceClaimName": "g"}],
              "main": {"resources": {"claims": [{"name": "gpu"}]}}},
             {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "g"}],
              "main": {"resources": {"claims": [{"name": "gpu", "request": "a"}]}}}),
    Fragment("disabled", {"workloadRef": {"name": "w", "podGroup": "g"}},
             {"workloadRef": {"name": "v", "podGroup": "g"}}),
]  # fmt: skip
FRAGMENTS = [*VOLUMES, *PROBES, *ENVIRONMENT, *CONTAINER, *AFFINITY, *POD]
