"""Fragments of pod specs that a server refuses, and fields of workloads that cannot change, or not to that value."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def main(**fields: Any) -> Json:
    return {"main": fields}


def port(**fields: Any) -> Json:
    return main(ports=[fields])


def mount(name: str, path: str, **fields: Any) -> Json:
    return {"name": name, "mountPath": path, **fields}


def spread(**fields: Any) -> Json:
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", **fields}
    return {"topologySpreadConstraints": [constraint]}


def anti(**fields: Any) -> Json:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}, **fields}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def node(**expression: Any) -> Json:
    terms = [{"matchExpressions": [{"key": "a", "operator": "Exists", **expression}]}]
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    }


def volumes(*entries: Json) -> Json:
    return {"volumes": list(entries)}


REFUSALS: list[tuple[str, Json]] = [
    ("no image name", main(name="Main_1")),
    ("two containers of one name", {"containers": [{"name": "a", "image": "a"}, {"name": "a", "image": "b"}]}),
    ("container without image", {"containers": [{"name": "main"}]}),
    ("container without name", {"containers": [{"image": "a"}]}),
    ("no containers", {"containers": []}),
    ("pull policy", main(imagePullPolicy="Sometimes")),
    ("message policy", main(terminationMessagePolicy="Never")),
    ("mount of no volume", main(volumeMounts=[mount("gone", "/a")])),
    ("mount without path", {**volumes({"name": "v"}), "main": {"volumeMounts": [{"name": "v"}]}}),
    ("two mounts at one path", {**volumes({"name": "v"}),
                                "main": {"volumeMounts": [mount("v", "/a"), mount("v", "/a", subPath="b")]}}),
    ("mount below", {**volumes({"name": "v"}), "main": {"volumeMounts": [mount("v", "/a", subPath="../b")]}}),
    ("mount propagation", {**volumes({"name": "v"}),
                           "main": {"volumeMounts": [mount("v", "/a", mountPropagation="Often")]}}),
    ("device of no volume", main(volumeDevices=[{"name": "gone", "devicePath": "/d"}])),
    ("two volumes of one name", volumes({"name": "v"}, {"name": "v"})),
    ("volume of two types", volumes({"name": "v", "emptyDir": {}, "hostPath": {"path": "/a"}})),
    ("volume name", volumes({"name": "V"})),
    ("volume without name", volumes({"emptyDir": {}})),
    ("host path type", volumes({"name": "v", "hostPath": {"path": "/a", "type": "Folder"}})),
    ("host path without path", volumes({"name": "v", "hostPath": {}})),
    ("secret without name", volumes({"name": "v", "secret": {}})),
    ("config map without name", volumes({"name": "v", "configMap": {}})),
    ("file mode", volumes({"name": "v", "configMap": {"name": "a", "defaultMode": 1000}})),
    ("claim without name", volumes({"name": "v", "persistentVolumeClaim": {}})),
    ("size limit", volumes({"name": "v", "emptyDir": {"sizeLimit": "-1"}})),
    ("item without path", volumes({"name": "v", "configMap": {"name": "a", "items": [{"key": "k"}]}})),
    ("nfs without server", volumes({"name": "v", "nfs": {"path": "/a"}})),
    ("nfs path", volumes({"name": "v", "nfs": {"server": "s", "path": "a"}})),
    ("port 0", port(containerPort=0)),
    ("port 70000", port(containerPort=70000)),
    ("host port 70000", port(containerPort=80, hostPort=70000)),
    ("protocol", port(containerPort=80, protocol="HTTP")),
    ("port name", port(containerPort=80, name="Web_Port")),
    ("two ports of one name", main(ports=[{"containerPort": 80, "name": "a"}, {"containerPort": 81, "name": "a"}])),
    ("host ip", port(containerPort=80, hostPort=80, hostIP="home")),
    ("env name", main(env=[{"name": "", "value": "a"}])),
    ("env with equals", main(env=[{"name": "A=B", "value": "a"}])),
    ("env twice", main(env=[{"name": "A", "value": "a", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}])),
    ("env field", main(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.secret"}}}])),
    ("env key", main(env=[{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s"}}}])),
    ("env from nothing", main(env=[{"name": "A", "valueFrom": {}}])),
    ("envFrom nothing", main(envFrom=[{"prefix": "a"}])),
    ("probe of nothing", main(livenessProbe={"periodSeconds": 5})),
    ("probe of two", main(readinessProbe={"exec": {"command": ["a"]}, "tcpSocket": {"port": 80}})),
    ("probe port", main(livenessProbe={"httpGet": {"port": 0}})),
    ("probe scheme", main(livenessProbe={"httpGet": {"port": 80, "scheme": "FTP"}})),
    ("probe period", main(livenessProbe={"tcpSocket": {"port": 80}, "periodSeconds": -1})),
    ("liveness twice", main(livenessProbe={"tcpSocket": {"port": 80}, "successThreshold": 2})),
    ("exec of nothing", main(livenessProbe={"exec": {"command": []}})),
    ("lifecycle of nothing", main(lifecycle={"preStop": {}})),
    ("capability of privileged", main(securityContext={"privileged": True, "allowPrivilegeEscalation": False})),
    ("user", main(securityContext={"runAsUser": -1})),
    ("proc mount", main(securityContext={"procMount": "All"})),
    ("seccomp", main(securityContext={"seccompProfile": {"type": "Mine"}})),
    ("request above limit", main(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}})),
    ("negative request", main(resources={"requests": {"cpu": "-1"}})),
    ("resource name", main(resources={"requests": {"gpu": "1"}})),
    ("half a device", main(resources={"limits": {"example.com/a": "0.5"}, "requests": {"example.com/a": "0.5"}})),
    ("device without limit", main(resources={"requests": {"example.com/a": "1"}})),
    ("resize policy", main(resizePolicy=[{"resourceName": "cpu", "restartPolicy": "Maybe"}])),
    ("init container name", {"initContainers": [{"name": "main", "image": "a"}]}),
    ("init container policy", {"initContainers": [{"name": "i", "image": "a", "restartPolicy": "OnFailure"}]}),
    ("init container probe", {"initContainers": [{"name": "i", "image": "a", "readinessProbe": {
        "tcpSocket": {"port": 80}}}]}),
    ("restart policy", {"restartPolicy": "Sometimes"}),
    ("dns policy", {"dnsPolicy": "Best"}),
    ("dns none", {"dnsPolicy": "None"}),
    ("dns nameserver", {"dnsConfig": {"nameservers": ["one"]}}),
    ("grace", {"terminationGracePeriodSeconds": -1}),
    ("deadline", {"activeDeadlineSeconds": 0}),
    ("host alias", {"hostAliases": [{"ip": "home", "hostnames": ["a"]}]}),
    ("host name", {"hostname": "A_B"}),
    ("subdomain", {"subdomain": "A_B"}),
    ("os", {"os": {"name": "plan9"}}),
    ("scheduler name", {"schedulerName": "A B"}),
    ("readiness gate", {"readinessGates": [{"conditionType": "a b"}]}),
    ("node selector", {"nodeSelector": {"a b": "c"}}),
    ("node selector value", {"nodeSelector": {"a": "b c"}}),
    ("node operator", node(operator="Like")),
    ("node values", node(operator="In")),
    ("node exists values", node(values=["a"])),
    ("node gt", node(operator="Gt", values=["a"])),
    ("node key", node(key="")),
    ("no node terms", {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": []}}}}),
    ("topology key", anti(topologyKey="")),
    ("anti operator", anti(labelSelector={"matchExpressions": [{"key": "a", "operator": "Like"}]})),
    ("anti values", anti(labelSelector={"matchExpressions": [{"key": "a", "operator": "In"}]})),
    ("anti namespaces", anti(namespaces=["A"])),
    ("weight", {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 0, "podAffinityTerm": {"topologyKey": "zone"}}]}}}),
    ("skew", spread(maxSkew=0)),
    ("spread key", spread(topologyKey="")),
    ("spread action", spread(whenUnsatisfiable="Hope")),
    ("spread domains", spread(minDomains=0)),
    ("spread policy", spread(nodeTaintsPolicy="Never")),
    ("spread keys", spread(matchLabelKeys=["v"])),
    ("toleration operator", {"tolerations": [{"key": "a", "operator": "Like"}]}),
    ("toleration effect", {"tolerations": [{"key": "a", "operator": "Exists", "effect": "Never"}]}),
    ("toleration value", {"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]}),
    ("toleration seconds", {"tolerations": [{"key": "a", "operator": "Exists", "tolerationSeconds": 5}]}),
    ("toleration without key", {"tolerations": [{"operator": "Equal", "value": "b"}]}),
    ("preemption", {"preemptionPolicy": "Always"}),
    ("sysctl", {"securityContext": {"sysctls": [{"name": "A B", "value": "1"}]}}),
    ("fs group", {"securityContext": {"fsGroup": -1}}),
    ("overhead", {"overhead": {"cpu": "-1"}}),
    ("gates", {"schedulingGates": [{"name": "a b"}]}),
    ("claims", main(resources={"claims": [{"name": "gone"}]})),
]  # fmt: skip
FIELDS: dict[str, list[tuple[str, Any]]] = {
    "Deployment": [
        ("spec.selector", {"matchLabels": {"app": "other"}}), ("spec.replicas", -1), ("spec.replicas", 0),
        ("spec.strategy", {"type": "Slow"}), ("spec.strategy", {"rollingUpdate": {"maxSurge": "many"}}),
        ("spec.template.metadata.labels", {"app": "other"}), ("spec.minReadySeconds", -1),
        ("spec.progressDeadlineSeconds", 0), ("spec.template.metadata.annotations", {"a": "b"}),
        ("spec.revisionHistoryLimit", -1), ("spec.strategy", {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}),
        ("spec.template.spec.ephemeralContainers", [{"name": "debug", "image": "a"}]), ("metadata.name", "other"),
        ("spec.strategy", {"type": "Recreate", "rollingUpdate": None}), ("spec.template.spec.restartPolicy", "Never"),
        ("spec.template.spec.activeDeadlineSeconds", 5),
    ],
    "StatefulSet": [
        ("spec.serviceName", "other"), ("spec.volumeClaimTemplates", None), ("spec.podManagementPolicy", "Parallel"),
        ("spec.selector", {"matchLabels": {"app": "other"}}), ("spec.replicas", 0), ("spec.ordinals", {"start": 5}),
        ("spec.updateStrategy", {"type": "Slow"}), ("spec.updateStrategy", {"rollingUpdate": {"partition": -1}}),
        ("spec.ordinals", {"start": -1}), ("spec.persistentVolumeClaimRetentionPolicy", {"whenScaled": "Maybe"}),
        ("spec.revisionHistoryLimit", 2), ("spec.minReadySeconds", -1), ("spec.template.spec.restartPolicy", "Never"),
        ("spec.volumeClaimTemplates", [{"metadata": {"name": "more"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]),
    ],
    "DaemonSet": [
        ("spec.selector", {"matchLabels": {"app": "other"}}), ("spec.updateStrategy", {"type": "Slow"}),
        ("spec.updateStrategy", {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 0}}), ("spec.minReadySeconds", -1),
        ("spec.template.metadata.labels", {"a": "b"}), ("spec.template.spec.restartPolicy", "OnFailure"),
        ("spec.updateStrategy", {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "50%", "maxSurge": 0}}),
    ],
    "ReplicaSet": [
        ("spec.selector", {"matchLabels": {"app": "other"}}), ("spec.replicas", -1), ("spec.minReadySeconds", 3),
        ("spec.template.metadata.labels", {"app": None}), ("spec.template.spec.restartPolicy", "Never"),
    ],
    "ReplicationController": [
        ("spec.selector", {"app": "other"}), ("spec.replicas", -1), ("spec.minReadySeconds", 3),
        ("spec.template", None), ("spec.template.spec.restartPolicy", "Never"),
    ],
    "Job": [
        ("spec.completions", 4), ("spec.parallelism", 2), ("spec.parallelism", -1), ("spec.backoffLimit", -1),
        ("spec.completionMode", "Indexed"), ("spec.completionMode", "Other"), ("spec.backoffLimit", 2),
        ("spec.selector", {"matchLabels": {"a": "b"}}), ("spec.template.spec.restartPolicy", "Always"),
        ("spec.podReplacementPolicy", "Never"), ("spec.ttlSecondsAfterFinished", -1),
        ("spec.template.metadata.annotations", {"a": "b"}), ("spec.activeDeadlineSeconds", 5),
    ],
    "Pod": [
        ("spec.nodeName", "other"), ("spec.restartPolicy", "Never"), ("spec.hostNetwork", True),
        ("spec.tolerations", []), ("spec.tolerations", [{"operator": "Exists"}]), ("spec.activeDeadlineSeconds", 5),
        ("spec.terminationGracePeriodSeconds", 5), ("spec.serviceAccountName", "other"),
        ("spec.priority", 5), ("spec.nodeSelector", {"a": "b"}), ("spec.schedulingGates", [{"name": "late"}]),
        ("spec.ephemeralContainers", [{"name": "debug", "image": "a"}]), ("spec.dnsPolicy", "Default"),
    ],
}  # fmt: skip
