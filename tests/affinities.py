"""Thirty affinities as templates have them, for tests that put a rule of ours beside them: nothing of them may change.

`AFFINITIES` by what each is about; None is a template without one. All are accepted by a real API server.
"""

from __future__ import annotations

from itertools import product
from typing import Any

Document = dict[str, Any]
HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def term(topology: str = HOSTNAME, app: str = "other", **more: Any) -> Document:
    return {"topologyKey": topology, "labelSelector": {"matchLabels": {"app": app}}, **more}


def weighted(weight: int = 50, **more: Any) -> Document:
    return {"weight": weight, "podAffinityTerm": term(**more)}


def expression(key: str, operator: str, *values: str) -> Document:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


NODE_REQUIRED: Document = {
    REQUIRED: {
        "nodeSelectorTerms": [
            {"matchExpressions": [expression("disk", "In", "ssd", "nvme"), expression("arm", "DoesNotExist")]},
            {"matchFields": [expression("metadata.name", "In", "node-1")]},
        ]
    }
}
NODE_PREFERRED: Document = {
    PREFERRED: [
        {"weight": 7, "preference": {"matchExpressions": [expression("cores", "Gt", "4")]}},
        {"weight": 100, "preference": {"matchExpressions": [expression("zone", "NotIn", "c")]}},
    ]
}
POD_SIDES: dict[str, Document] = {
    "required": {REQUIRED: [term()]},
    "preferred": {PREFERRED: [weighted(1), weighted(99, topology=ZONE)]},
    "both lists": {REQUIRED: [term(ZONE)], PREFERRED: [weighted()]},
    "expressions": {
        REQUIRED: [
            {
                "topologyKey": "example.com/rack",
                "namespaces": ["a", "b"],
                "namespaceSelector": {"matchLabels": {"team": "x"}},
                "labelSelector": {
                    "matchExpressions": [expression("app", "NotIn", "x", "y"), expression("tier", "Exists")]
                },
            }
        ]
    },
    "a term like ours": {REQUIRED: [term(app="web"), term(ZONE, app="web", matchLabelKeys=["pod-template-hash"])]},
}
NODE_SIDES: dict[str, Document | None] = {
    "": None,
    "node required": NODE_REQUIRED,
    "node preferred": NODE_PREFERRED,
}


def _list_affinities() -> dict[str, Document | None]:
    affinities: dict[str, Document | None] = {
        "none": None,
        "empty": {},
        "an empty side": {"podAntiAffinity": {}},
        "node only": {"nodeAffinity": {**NODE_REQUIRED, **NODE_PREFERRED}},
        "all three": {
            "nodeAffinity": NODE_REQUIRED,
            "podAffinity": POD_SIDES["both lists"],
            "podAntiAffinity": POD_SIDES["expressions"],
        },
    }
    for node, side, kind in product(NODE_SIDES, POD_SIDES, ("podAntiAffinity", "podAffinity")):
        if kind == "podAffinity" and node == "node required":
            continue
        part = NODE_SIDES[node]
        name = " and ".join(filter(None, (node, f"{kind} {side}")))
        affinities[name] = {**({"nodeAffinity": part} if part is not None else {}), kind: POD_SIDES[side]}
    return affinities


AFFINITIES = _list_affinities()
assert len(AFFINITIES) == 30


def a_workload(affinity: Document | None = None, kind: str = "Deployment", name: str = "web") -> Document:
    """A workload as an API server gives it, with this affinity in its template."""
    pod: Document = {"containers": [{"name": name, "image": "web:1", "resources": {"requests": {"cpu": "500m"}}}]}
    if affinity is not None:
        pod["affinity"] = affinity
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default", "resourceVersion": "7"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod},
        },
    }
