"""Small clusters at rest to plan on: `a_baseline(nodes=3, deployments=[a_deployment(replicas=3, apart=REQUIRED)])`.

Pods that are not told where to run are placed while the cluster comes to rest, as kube-scheduler would.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any

from wukong.app.many_seeds import ProcessExecutor
from wukong.app.snapshots import Baseline, load, make_baseline
from wukong.embedded.scenario import Scenario
from wukong.forecast import Plan, PlannedChange, PlanOptions, make_plan

Document = dict[str, Any]
INLINE = ProcessExecutor(1)
HOSTNAME = "kubernetes.io/hostname"


def a_node(name: str, cpu: str = "4", **labels: str) -> Document:
    amounts = {"cpu": cpu, "memory": "16Gi", "pods": "110"}
    metadata = {"name": name, "labels": {HOSTNAME: name, **{key.replace("_", "/"): labels[key] for key in labels}}}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def nodes(count: int, cpu: str = "4") -> list[Document]:
    return [a_node(f"node-{number}", cpu) for number in range(1, count + 1)]


def a_term(app: str = "web", **more: object) -> Document:
    return {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": app}}, **more}


def required(*terms: Document) -> Document:
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms or [a_term()])}}


def preferred(*terms: Document) -> Document:
    weighted = [{"weight": 100, "podAffinityTerm": term} for term in terms or [a_term()]]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}


def a_deployment(
    name: str = "web",
    replicas: int = 3,
    *,
    image: str = "web:1",
    cpu: str = "500m",
    affinity: Document | None = None,
    strategy: Document | None = None,
    **spec: object,
) -> Document:
    pod: Document = {"containers": [{"name": name, "image": image, "resources": {"requests": {"cpu": cpu}}}]}
    if affinity is not None:
        pod["affinity"] = affinity
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod},
            **({"strategy": strategy} if strategy is not None else {}),
            **spec,
        },
    }


def rolling(surge: int | str, unavailable: int | str) -> Document:
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}


def a_budget(name: str = "web", **spec: object) -> Document:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": name}}, **spec},
    }


def running_on(deployment: Document, *hosts: str, version: str = "abc") -> list[Document]:
    """The ReplicaSet of a Deployment, and one ready pod on each of these nodes."""
    name, labels = deployment["metadata"]["name"], {"app": deployment["metadata"]["name"], "pod-template-hash": version}
    template = copy.deepcopy(deployment["spec"]["template"])
    template["metadata"]["labels"] = labels
    meta = {"namespace": "default", "labels": labels}
    replica_set = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {**meta, "name": f"{name}-{version}", "ownerReferences": [_owner("Deployment", name)]},
        "spec": {"replicas": len(hosts), "selector": {"matchLabels": labels}, "template": template},
    }
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                **meta,
                "name": f"{name}-{version}-{number}",
                "ownerReferences": [_owner("ReplicaSet", f"{name}-{version}")],
            },
            "spec": {**template["spec"], "nodeName": host},
        }
        for number, host in enumerate(hosts)
    ]
    return [replica_set, *pods]


def _owner(kind: str, name: str) -> Document:
    plural = {"Deployment": "deployments", "ReplicaSet": "replicasets"}[kind]
    uid = f"snapshot-{plural}-default-{name}"
    return {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": True}


def a_baseline(documents: Iterable[Document]) -> Baseline:
    return make_baseline(load(copy.deepcopy(list(documents))), Scenario())


def changed(document: Document, path: str, value: object) -> Document:
    """A copy of the document with another value at a path such as spec.template.spec.affinity."""
    copied = copy.deepcopy(document)
    *above, last = path.split(".")
    target = copied
    for name in above:
        target = target.setdefault(name, {})
    target[last] = value
    return copied


def with_image(deployment: Document, image: str = "web:2") -> Document:
    copied = copy.deepcopy(deployment)
    copied["spec"]["template"]["spec"]["containers"][0]["image"] = image
    return copied


def plan_on(
    documents: Iterable[Document],
    change: PlannedChange | Document,
    seeds: Sequence[int] = (1, 2),
    options: PlanOptions | None = None,
) -> Plan:
    """The plan of a change, or of applying a document."""
    planned = change if isinstance(change, PlannedChange) else PlannedChange(documents=(change,))
    plan = make_plan(a_baseline(documents), planned, seeds, INLINE, options)
    assert not plan.shown.findings, plan.shown.findings
    return plan
