"""A case by seed: a namespace with quotas, limit ranges and a pod security level; pods, claims, a workload."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec

from wukong.ports import Document

CLASSES = {"quota-high": 1000, "quota-low": 10}
_CPU = ("50m", "100m", "250m", "0.5", "1", "1500m")
_MEMORY = ("32Mi", "64Mi", "128Mi", "256Mi", "1Gi", "1.5Gi")
_DISK = ("100Mi", "1Gi")
_EXTENDED = "example.com/fpga"
_AMOUNTS = {"cpu": _CPU, "memory": _MEMORY, "ephemeral-storage": _DISK}
_SCOPES = ("Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "PriorityClass", "CrossNamespacePodAffinity")


class Case(msgspec.Struct, frozen=True):
    seed: int
    labels: dict[str, str]
    limit_ranges: list[Document]
    quotas: list[Document]
    objects: list[Document]  # pods, claims and Services, created one after the other
    workload: Document
    raised: dict[str, str]  # how the first quota is raised in the end


def draw_case(seed: int) -> Case:
    random = Random(f"quota {seed}")
    quotas = [_draw_quota(random, f"quota-{number}") for number in range(random.choice((0, 1, 1, 1, 2)))]
    raised = dict.fromkeys(quotas[0]["spec"]["hard"], "1000Gi") if quotas and random.random() < 0.5 else {}
    objects = [_draw_object(random, number) for number in range(random.randint(3, 6))]
    return Case(
        seed,
        _draw_labels(random),
        [_draw_limit_range(random)] if random.random() < 0.6 else [],
        quotas,
        objects,
        _draw_workload(random),
        raised,
    )


def _draw_labels(random: Random) -> dict[str, str]:
    if random.random() < 0.65:
        return {}
    prefix = "pod-security.kubernetes.io"
    labels = {f"{prefix}/enforce": random.choice(("privileged", "baseline", "baseline", "restricted"))}
    if random.random() < 0.4:
        version = random.choice(("latest", "v1.18", "v1.24", "v1.30", "v1.33", "v1.34", "v1.35"))
        labels[f"{prefix}/enforce-version"] = version
    if random.random() < 0.3:
        labels[f"{prefix}/warn"] = "restricted"
    return labels


def _draw_limit_range(random: Random) -> Document:
    """A valid one, of low and high amounts in order."""
    items = [
        _draw_item(random, type_) for type_ in ("Container", "Pod", "PersistentVolumeClaim") if random.random() < 0.6
    ]
    return {"metadata": {"name": "limits"}, "spec": {"limits": items or [_draw_item(random, "Container")]}}


def _draw_item(random: Random, type_: str) -> Document:
    if type_ == "PersistentVolumeClaim":
        return {"type": type_, "min": {"storage": "500Mi"}, "max": {"storage": "2Gi"}}
    item: Document = {"type": type_}
    names = [name for name in ("cpu", "memory", "ephemeral-storage") if random.random() < 0.5] or ["cpu"]
    for name in names:
        least, request, limit, most = sorted(random.choices(_AMOUNTS[name], k=4), key=_AMOUNTS[name].index)
        for field, amount in (("min", least), ("max", most)):
            if random.random() < 0.5:
                item.setdefault(field, {})[name] = amount
        if type_ == "Container":
            for field, amount in (("defaultRequest", request), ("default", limit)):
                if random.random() < 0.6:
                    item.setdefault(field, {})[name] = amount
        if random.random() < 0.2 and name not in {*item.get("min", {}), *item.get("max", {})}:
            item.setdefault("maxLimitRequestRatio", {})[name] = random.choice(("1", "1500m", "2", "4"))
    return item


def _draw_quota(random: Random, name: str) -> Document:
    spec: Document = {}
    scope = random.choice(_SCOPES) if random.random() < 0.4 else ""
    pools: dict[str, tuple[str, ...]] = {
        "pods": ("0", "1", "2", "4"),
        "requests.cpu": ("500m", "1", "2"),
        "limits.cpu": ("1", "2", "4"),
        "cpu": ("500m", "2"),
        "requests.memory": ("128Mi", "512Mi", "2Gi"),
        "memory": ("256Mi", "2Gi"),
        "limits.memory": ("512Mi", "4Gi"),
        "requests.ephemeral-storage": ("1Gi",),
        f"requests.{_EXTENDED}": ("0", "2"),
        "count/pods": ("2", "5"),
        "count/replicasets.apps": ("0", "3"),
        "count/deployments.apps": ("0", "2"),
        "services": ("1",),
        "services.nodeports": ("0", "2"),
        "persistentvolumeclaims": ("0", "1"),
        "requests.storage": ("1Gi", "3Gi"),
        "gold.storageclass.storage.k8s.io/requests.storage": ("1Gi",),
    }
    if scope:
        allowed = ["pods"] if scope == "BestEffort" else list(pools)[:7]
        spec |= _draw_scope(random, scope)
    else:
        allowed = list(pools)
    chosen = random.sample(allowed, k=min(len(allowed), random.randint(1, 3)))
    return {
        "metadata": {"name": name},
        "spec": {"hard": {entry: random.choice(pools[entry]) for entry in chosen}, **spec},
    }


def _draw_scope(random: Random, scope: str) -> Document:
    if scope == "PriorityClass":
        operator = random.choice(("In", "NotIn", "Exists", "DoesNotExist"))
        values = {"values": ["quota-high"]} if operator in ("In", "NotIn") else {}
        return {"scopeSelector": {"matchExpressions": [{"scopeName": scope, "operator": operator, **values}]}}
    if random.random() < 0.5:
        return {"scopes": [scope]}
    return {"scopeSelector": {"matchExpressions": [{"scopeName": scope, "operator": "Exists"}]}}


def _draw_object(random: Random, number: int) -> Document:
    chance = random.random()
    if chance < 0.12:
        ports = [{"name": f"p{port}", "port": port} for port in range(80, 80 + random.randint(1, 3))]
        type_ = random.choice(("ClusterIP", "NodePort"))
        return {"kind": "Service", "metadata": {"name": f"object-{number}"}, "spec": {"type": type_, "ports": ports}}
    if chance < 0.25:
        spec: Document = {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": random.choice(("100Mi", "1Gi", "1.5Gi", "3Gi"))}},
            "storageClassName": random.choice(("", "gold")),
        }
        return {"kind": "PersistentVolumeClaim", "metadata": {"name": f"object-{number}"}, "spec": spec}
    return {"kind": "Pod", "metadata": {"name": f"object-{number}"}, "spec": draw_pod_spec(random)}


def draw_pod_spec(random: Random) -> Document:
    spec: Document = {
        "containers": [_draw_container(random, f"c{number}") for number in range(random.choice((1, 1, 2)))],
        "schedulerName": "nobody",  # no kubelet ends what is counted
    }
    if random.random() < 0.2:
        spec["initContainers"] = [_draw_container(random, "init")]
        spec["initContainers"][0].pop("livenessProbe", None)  # only sidecars may have one
        if random.random() < 0.4:
            spec["initContainers"][0]["restartPolicy"] = "Always"
    if random.random() < 0.15:
        spec["activeDeadlineSeconds"] = 3000
    if random.random() < 0.3:
        spec["priorityClassName"] = random.choice(list(CLASSES))
    if random.random() < 0.12:
        term: Document = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"no": "one"}}}
        term |= random.choice(({"namespaces": ["default"]}, {"namespaceSelector": {}}, {}))
        required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        spec["affinity"] = {"podAntiAffinity": required}
    spec |= _draw_pod_security(random)
    return spec


def _draw_container(random: Random, name: str) -> Document:
    resources: Document = {}
    for resource in ("cpu", "memory", "ephemeral-storage"):
        low, high = sorted(random.choices(_AMOUNTS[resource], k=2), key=_AMOUNTS[resource].index)
        share = 0.15 if resource == "ephemeral-storage" else 0.55
        if random.random() < share:
            resources.setdefault("requests", {})[resource] = low
        if random.random() < share:
            resources.setdefault("limits", {})[resource] = high
    if random.random() < 0.1:
        resources.setdefault("requests", {})[_EXTENDED] = resources.setdefault("limits", {})[_EXTENDED] = "1"
    container: Document = {"name": name, "image": "app:1", **({"resources": resources} if resources else {})}
    if random.random() < 0.1:
        port = random.choice((80, 8080))
        container["ports"] = [{"containerPort": port, "hostPort": port}]
    if random.random() < 0.06:
        container["livenessProbe"] = {"tcpSocket": {"port": 80, "host": "10.0.0.1"}}
    context = _draw_security_context(random)
    return {**container, **({"securityContext": context} if context else {})}


def _draw_security_context(random: Random) -> Document:
    if random.random() < 0.35:
        return {}
    good: Document = {
        "allowPrivilegeEscalation": False,
        "runAsNonRoot": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    for name in list(good):
        if random.random() < 0.12:
            del good[name]
    odd: dict[str, tuple[Any, ...]] = {
        "privileged": (False, True),
        "runAsNonRoot": (False,),
        "runAsUser": (0, 1000),
        "capabilities": ({"add": ["NET_ADMIN", "CHOWN"]}, {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]}),
        "seccompProfile": ({"type": "Unconfined"},),
        "appArmorProfile": ({"type": "Unconfined"}, {"type": "RuntimeDefault"}),
        "seLinuxOptions": ({"type": "spc_t", "user": "u"}, {"type": "container_engine_t"}),
        "procMount": ("Default",),
    }
    for name, values in odd.items():
        if random.random() < 0.06:
            good[name] = random.choice(values)
    if good.get("privileged"):
        good.pop("allowPrivilegeEscalation", None)
    return good


def _draw_pod_security(random: Random) -> Document:
    spec: Document = {}
    context: Document = {}
    if random.random() < 0.2:
        context["runAsNonRoot"] = random.random() < 0.7
    if random.random() < 0.2:
        context["seccompProfile"] = {"type": random.choice(("RuntimeDefault", "Unconfined"))}
    if random.random() < 0.05:
        context["sysctls"] = [{"name": name, "value": "1"} for name in ("kernel.msgmax", "net.ipv4.tcp_rmem")]
    if random.random() < 0.05:
        context["runAsUser"] = random.choice((0, 5))
    if random.random() < 0.08:
        spec[random.choice(("hostPID", "hostIPC", "hostNetwork"))] = True
        context.pop("sysctls", None)  # of the host's namespaces they are invalid
    if context:
        spec["securityContext"] = context
    if random.random() < 0.12:
        sources: tuple[Document, ...] = (
            {"emptyDir": {}},
            {"hostPath": {"path": "/x"}},
            {"nfs": {"server": "s", "path": "/"}},
        )
        spec["volumes"] = [{"name": f"v{index}", **random.choice(sources)} for index in range(random.randint(1, 2))]
    return spec


def _draw_workload(random: Random) -> Document:
    kind = random.choice(("Deployment", "Deployment", "ReplicaSet", "StatefulSet", "Job"))
    pod_spec = draw_pod_spec(random)
    for name in ("activeDeadlineSeconds", "hostNetwork"):
        pod_spec.pop(name, None)
    for container in (*pod_spec["containers"], *pod_spec.get("initContainers", ())):
        container.pop("ports", None)  # pods that cannot be side by side would wait
        for amounts in (container.get("resources") or {}).values():
            amounts.pop(_EXTENDED, None)
    pod_spec.pop("affinity", None)
    replicas, labels = random.randint(1, 5), {"app": "load"}
    if kind == "Job":
        template = {"metadata": {"labels": labels}, "spec": {**pod_spec, "restartPolicy": "Never"}}
        return {
            "apiVersion": "batch/v1",
            "kind": kind,
            "metadata": {"name": "load"},
            "spec": {"parallelism": replicas, "completions": replicas, "template": template},
        }
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod_spec},
        **({"serviceName": "none", "podManagementPolicy": "Parallel"} if kind == "StatefulSet" else {}),
    }
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "load"}, "spec": spec}
