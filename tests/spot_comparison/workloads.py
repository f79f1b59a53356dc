"""Scenario S1: eight workloads, and where their pods are before two nodes get notice.

Eight nodes of 8 cpu, spot-0 … spot-5, od-0 and od-1. Of every workload with three replicas one pod is on spot-0, one on
spot-1 and one on spot-2; solo is on spot-0, solo-pdb on spot-1. There is room enough elsewhere.

Scenario S2: the same, but all other nodes are full. Two more nodes are asked for as soon as a pod waits, and are there
40 s later.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

NAMESPACE = "shop"
SPOT = [f"spot-{index}" for index in range(6)]
ON_DEMAND = ["od-0", "od-1"]
DOOMED = ("spot-0", "spot-1")
ROUNDS = ("spot-0", "spot-1", "spot-2")  # where the first, second and third pod of each goes
READY_SECONDS, STOP_SECONDS = 20, 10
REPLICAS = {"web-a": 3, "web-b": 3, "strict": 3, "solo": 1, "solo-pdb": 1, "spread": 3, "db": 3}
BUDGETS: dict[str, Json] = {
    "web-a": {"maxUnavailable": 1},
    "web-b": {"maxUnavailable": 1},
    "strict": {"minAvailable": 3},
    "solo-pdb": {"minAvailable": 1},
    "db": {"maxUnavailable": 1},
}
NODE_CPU_MILLI, POD_CPU_MILLI, SPARE_CPU_MILLI = 8000, 500, 200
FILLER = "filler"  # the namespace of what fills nodes in S2
NEW, NEW_SECONDS = ("new-0", "new-1"), 40.0
SINGLE_ON = {"solo": "spot-0", "solo-pdb": "spot-1"}


def a_template(name: str) -> Json:
    spec: Json = {
        "terminationGracePeriodSeconds": STOP_SECONDS,
        "containers": [{"name": "app", "image": "app:1", "resources": {"requests": {"cpu": "500m"}}}],
    }
    if name == "spread":
        term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": name}}}
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    annotations = {
        "sim.novasphere.dev/ready-seconds": str(READY_SECONDS),
        "sim.novasphere.dev/stop-seconds": str(STOP_SECONDS),
    }
    return {"metadata": {"labels": {"app": name}, "annotations": annotations}, "spec": spec}


def a_workload(name: str) -> tuple[str, Json]:
    """Where it is created, and what: without pods at first."""
    kind = "StatefulSet" if name == "db" else "Deployment"
    spec: Json = {"replicas": 0, "selector": {"matchLabels": {"app": name}}, "template": a_template(name)}
    if name == "db":
        spec["serviceName"] = name
    body = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
    return f"/apis/apps/v1/namespaces/{NAMESPACE}/{kind.lower()}s", body


def list_fillers() -> list[Json]:
    """Pods that leave no room for another one on all nodes that stay."""
    fillers = []
    for node in (*SPOT, *ON_DEMAND):
        if node in DOOMED:
            continue
        pods = 1 + (sum(name not in SINGLE_ON for name in REPLICAS) if node in ROUNDS else 0)  # the agent's, and ours
        cpu = NODE_CPU_MILLI - pods * POD_CPU_MILLI - SPARE_CPU_MILLI
        container = {"name": "app", "image": "app:1", "resources": {"requests": {"cpu": f"{cpu}m"}}}
        spec = {"nodeName": node, "containers": [container]}
        fillers.append({"metadata": {"name": f"fill-{node}", "labels": {"app": FILLER}}, "spec": spec})
    return fillers


def a_daemon_set() -> Json:
    template = a_template("agent")
    return {
        "metadata": {"name": "agent"},
        "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": template},
    }


def a_budget(name: str) -> Json:
    return {
        "metadata": {"name": name},
        "spec": {**BUDGETS[name], "selector": {"matchLabels": {"app": name}}},
    }
