"""Admission reviews as an API server sends them for the pods of Deployments: defaulted, with a token, unnamed."""

from __future__ import annotations

from typing import Any

import msgspec

POLICIES = 1_000
TEMPLATES = 32  # owners whose pods come at the same time
# Pods of Deployments are alike. Those of StatefulSets and Jobs have names, numbers and labels of their own. Strangers
# have nothing in common that a patch depends on: each has affinity, tolerations and a selector of its own.
KINDS = DEPLOYMENTS, ORDINALS, STRANGERS = "deployments", "ordinals", "strangers"
Json = dict[str, Any]


def app_of(number: int) -> str:
    return f"app-{number:04d}"


def bodies(count: int, pods: str) -> list[bytes]:
    """Reviews of pods of one of the KINDS."""
    return [msgspec.json.encode(_build_review(number, pods)) for number in range(count)]


def _build_review(number: int, pods: str) -> Json:
    pod = _build_pod(number, app_of(number % TEMPLATES * 31))
    if pods == ORDINALS:
        _make_ordinal(pod, number)
    elif pods == STRANGERS:
        _make_stranger(pod, number)
    return {
        "kind": "AdmissionReview",
        "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": f"705ab4f5-6393-11e8-b7cc-{number:012d}",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "requestKind": {"group": "", "version": "v1", "kind": "Pod"},
            "requestResource": {"group": "", "version": "v1", "resource": "pods"},
            "namespace": "shop",
            "operation": "CREATE",
            "userInfo": {
                "username": "system:serviceaccount:kube-system:replicaset-controller",
                "uid": "1c6c2a52-1f1e-4d4b-9a2d-2f6b0b2d9d4e",
                "groups": ["system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"],
            },
            "object": pod,
            "oldObject": None,
            "dryRun": False,
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        },
    }


def _make_ordinal(pod: Json, number: int) -> None:
    """Of a StatefulSet, or of a Job of its own."""
    meta, name = pod["metadata"], f"{pod['metadata']['labels']['app']}-{number // TEMPLATES}"
    meta["labels"].pop("pod-template-hash")
    if number % 2:
        job = {"batch.kubernetes.io/controller-uid": f"job-{number}", "batch.kubernetes.io/job-name": name}
        meta["labels"] |= {**job, "controller-uid": f"job-{number}", "job-name": name}
        meta["ownerReferences"][0] |= {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": f"job-{number}"}
        pod["spec"]["restartPolicy"] = "Never"
        return
    meta.pop("generateName")
    meta["name"] = pod["spec"]["hostname"] = name
    index = str(number // TEMPLATES)
    meta["labels"] |= {
        "apps.kubernetes.io/pod-index": index,
        "controller-revision-hash": "web-5d9f",
        "statefulset.kubernetes.io/pod-name": name,
    }
    meta["ownerReferences"][0] |= {"kind": "StatefulSet"}


def _make_stranger(pod: Json, number: int) -> None:
    spec = pod["spec"]
    spec["nodeSelector"]["pool"] = f"pool-{number}"
    spec["tolerations"].append({"key": "pool", "operator": "Equal", "value": f"pool-{number}", "effect": "NoSchedule"})
    machines = {"key": "machine", "operator": "In", "values": [f"m-{number}", "any"]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [machines]}]}
    spec["affinity"]["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": required}


def _build_pod(number: int, app: str) -> Json:
    token = f"kube-api-access-{number:05d}"
    mount = {"name": token, "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": f"{app}-5d9f",
        "uid": f"rs-{app}",
        "controller": True,
    }
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "generateName": f"{app}-5d9f-",
            "namespace": "shop",
            "creationTimestamp": None,
            "labels": {"app": app, "tier": "front", "pod-template-hash": "5d9f"},
            "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "8080"},
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
            "managedFields": [_build_managed_fields(number)],
        },
        "spec": {
            "volumes": [
                {"name": "config", "configMap": {"name": app, "defaultMode": 420}},
                {"name": token, "projected": {"sources": _build_token_sources(), "defaultMode": 420}},
            ],
            "containers": [_build_container(name, mount) for name in ("main", "sidecar")],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default",
            "serviceAccount": "default",
            "nodeSelector": {"kubernetes.io/os": "linux"},
            "securityContext": {"runAsNonRoot": True},
            "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [_build_term(app)]}},
            "schedulerName": "default-scheduler",
            "tolerations": [_build_toleration(reason) for reason in ("not-ready", "unreachable")],
            "priority": 0,
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
        },
        "status": {},
    }


def _build_toleration(reason: str) -> Json:
    key = f"node.kubernetes.io/{reason}"
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}


def _build_container(name: str, mount: Json) -> Json:
    probe = {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "timeoutSeconds": 1, "periodSeconds": 10}
    return {
        "name": name,
        "image": "registry.example.com/shop/web:1.27.3",
        "args": ["--listen=:8080", "--log-format=json"],
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "env": [{"name": f"SETTING_{number}", "value": f"value-{number}"} for number in range(12)],
        "resources": {"limits": {"memory": "512Mi"}, "requests": {"cpu": "250m", "memory": "256Mi"}},
        "volumeMounts": [{"name": "config", "mountPath": "/etc/web"}, mount],
        "livenessProbe": {**probe, "failureThreshold": 3},
        "readinessProbe": {**probe, "failureThreshold": 3},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }


def _build_token_sources() -> list[Json]:
    field = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    return [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [field]}},
    ]


def _build_term(app: str) -> Json:
    selector = {"matchLabels": {"app": app}}
    return {"weight": 100, "podAffinityTerm": {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}}


def _build_managed_fields(number: int) -> Json:
    names: Json = {f"f:{name}": {} for name in ("affinity", "containers", "dnsPolicy", "nodeSelector", "restartPolicy")}
    return {
        "manager": "kube-controller-manager",
        "operation": "Update",
        "apiVersion": "v1",
        "time": f"2026-11-16T12:{number // 60 % 60:02d}:{number % 60:02d}Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {"f:generateName": {}, "f:labels": {".": {}, "f:app": {}}}, "f:spec": names},
    }
