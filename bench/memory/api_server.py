"""An API server that only lists and watches, for the bench of memory: `python -m bench.memory.api_server PODS NODES`.

A process of its own, so that what it holds is not counted. Its pods are made as they are asked for, page by page, with
all that a real API server writes: nine of ten belong to ReplicaSets of 50, one to StatefulSets, each with labels of its
own. Prints its port. A watch says nothing until `POST /expire`, and then that its version is too old.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import msgspec
from aiohttp import web

Json = dict[str, Any]
PER_SET = 50
_encode = msgspec.json.Encoder().encode


def build_pod(number: int, nodes: int) -> Json:
    workload, ordinal = divmod(number, PER_SET)
    is_stateful = workload % 10 == 9
    kind = "StatefulSet" if is_stateful else "ReplicaSet"
    owner = f"db-{workload}" if is_stateful else f"web-{workload}-7d9c8f6b5d"
    name = f"{owner}-{ordinal}" if is_stateful else f"{owner}-{number:05x}"
    namespace = f"team-{workload % 200}"
    labels = {"app.kubernetes.io/name": f"web-{workload}", "app.kubernetes.io/version": "1.2.3", "team": namespace}
    if is_stateful:
        labels |= {"statefulset.kubernetes.io/pod-name": name, "apps.kubernetes.io/pod-index": str(ordinal)}
    else:
        labels["pod-template-hash"] = "7d9c8f6b5d"
    requests = {"cpu": f"{100 + workload % 7 * 50}m", "memory": f"{128 << workload % 4}Mi"}
    uid = f"{number:08x}-6b1e-4c6f-9d0a-{number:012x}"
    created = f"2026-11-{1 + number % 28:02d}T{number % 24:02d}:{number % 60:02d}:{number * 7 % 60:02d}Z"
    return {
        "metadata": {
            "name": name,
            "generateName": f"{owner}-",
            "namespace": namespace,
            "uid": uid,
            "resourceVersion": str(1_000_000 + number),
            "creationTimestamp": created,
            "labels": labels,
            "annotations": {"prometheus.io/scrape": "true", "checksum/config": f"{workload:064x}"},
            "ownerReferences": [_owner(kind, owner, workload)],
            "managedFields": [_managed(manager, created) for manager in ("kube-controller-manager", "kubelet")],
        },
        "spec": _spec(number, workload, nodes, requests),
        "status": _status(number, created, requests),
    }


def _owner(kind: str, name: str, workload: int) -> Json:
    uid = f"{workload:08x}-aaaa-4c6f-9d0a-{workload:012x}"
    return {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": True}


def _managed(manager: str, at: str) -> Json:
    fields: Json = {f"f:{name}": {".": {}, "f:type": {}, "f:status": {}} for name in ("a", "b", "c", "d", "e", "f")}
    return {"manager": manager, "operation": "Update", "apiVersion": "v1", "time": at, "fieldsV1": {"f:status": fields}}


def _spec(number: int, workload: int, nodes: int, requests: Json) -> Json:
    token = f"kube-api-access-{number:05x}"
    container = {
        "name": "main",
        "image": f"registry.example.com/team/web-{workload}:1.2.3",
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "env": [{"name": f"SETTING_{index}", "value": f"value {index}"} for index in range(8)],
        "resources": {"requests": requests, "limits": requests},
        "volumeMounts": [{"name": token, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": "http"}, "periodSeconds": 5},
        "imagePullPolicy": "IfNotPresent",
    }
    zones = {"labelSelector": {"matchLabels": {"app.kubernetes.io/name": f"web-{workload}"}}}
    spread = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway"}
    toleration = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    return {
        "nodeName": f"node-{number % nodes}",
        "schedulerName": "default-scheduler",
        "serviceAccountName": "default",
        "containers": [container],
        "priority": 0,
        "preemptionPolicy": "PreemptLowerPriority",
        "terminationGracePeriodSeconds": 30,
        "tolerations": [
            {"key": f"node.kubernetes.io/{reason}", **toleration} for reason in ("not-ready", "unreachable")
        ],
        "topologySpreadConstraints": [{**spread, **zones}],
        "volumes": [{"name": token, "projected": {"defaultMode": 420, "sources": [{"configMap": {"name": "ca"}}]}}],
    }


def _status(number: int, created: str, requests: Json) -> Json:
    types = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    container = {
        "name": "main",
        "ready": True,
        "restartCount": 0,
        "containerID": f"containerd://{number:064x}",
        "imageID": f"registry.example.com/team/web@sha256:{number % 3000:064x}",
        "state": {"running": {"startedAt": created}},
        "allocatedResources": requests,
        "resources": {"requests": requests, "limits": requests},
    }
    return {
        "phase": "Running",
        "startTime": created,
        "podIP": f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}",
        "conditions": [{"type": type_, "status": "True", "lastTransitionTime": created} for type_ in types],
        "containerStatuses": [container],
        "qosClass": "Burstable",
    }


def build_node(number: int) -> Json:
    room = {"cpu": "64", "memory": "256Gi", "pods": "250", "ephemeral-storage": "500Gi"}
    labels = {
        "kubernetes.io/hostname": f"node-{number}",
        "topology.kubernetes.io/zone": f"zone-{number % 3}",
        "node.kubernetes.io/instance-type": "m6i.16xlarge",
    }
    meta = {"name": f"node-{number}", "uid": f"node-{number}", "resourceVersion": str(number + 1), "labels": labels}
    images = [{"names": [f"registry.example.com/team/web-{n}:1.2.3"], "sizeBytes": 10**8 + n} for n in range(30)]
    conditions = [{"type": "Ready", "status": "True"}]
    status = {"allocatable": room, "capacity": room, "images": images, "conditions": conditions}
    return {"metadata": meta, "spec": {}, "status": status}


class Server:
    def __init__(self, pods: int, nodes: int) -> None:
        self.pods, self.nodes = pods, nodes
        self.lists = 0  # of pods, completed
        self.expired = asyncio.Event()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        kind = request.path.rpartition("/")[2]
        if request.query.get("watch"):
            return await self.watch(request, is_expiring=kind == "pods")
        total = {"pods": self.pods, "nodes": self.nodes}.get(kind, 0)
        start = int(request.query.get("continue") or 0)
        end = min(total, start + int(request.query.get("limit") or total))
        items = [
            build_pod(number, self.nodes) if kind == "pods" else build_node(number) for number in range(start, end)
        ]
        token = str(end) if end < total else ""
        self.lists += kind == "pods" and not token
        body = {"metadata": {"resourceVersion": "9000000", "continue": token}, "items": items}
        return web.Response(body=_encode(body), content_type="application/json")

    async def watch(self, request: web.Request, *, is_expiring: bool) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        if not is_expiring or self.lists != 1:
            await asyncio.Event().wait()
        await self.expired.wait()
        gone = {"kind": "Status", "status": "Failure", "reason": "Expired", "message": "too old", "code": 410}
        await response.write(_encode({"type": "ERROR", "object": gone}) + b"\n")
        return response

    async def expire(self, request: web.Request) -> web.Response:
        self.expired.set()
        return web.Response()

    async def count(self, request: web.Request) -> web.Response:
        return web.Response(text=str(self.lists))


async def main(pods: int, nodes: int) -> None:
    server, app = Server(pods, nodes), web.Application()
    app.add_routes([web.post("/expire", server.expire), web.get("/lists", server.count)])
    app.router.add_get("/{path:.*}", server.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
