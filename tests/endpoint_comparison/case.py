"""A case by seed: a Service and a Deployment behind it that is rolled out, scaled and loses a pod.

What is compared: the endpoints in the end, without names and addresses, and the fewest that were ready in between.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

import msgspec

from wukong.ports import Document

LABELS = {"app": "web"}


class Case(msgspec.Struct, frozen=True):
    seed: int
    service: Document
    deployment: Document
    rollout: Document  # merge patch of the Deployment
    replicas: int  # it is scaled to this in the end


def draw_case(seed: int) -> Case:
    random = Random(f"endpoints {seed}")
    ports: list[Document] = [{"name": "web", "port": 80, "targetPort": random.choice(("http", 8080))}]
    if random.random() < 0.4:
        ports.append({"name": "metrics", "port": 9090, "targetPort": random.choice(("metrics", "nowhere"))})
    service: Document = {"selector": LABELS, "ports": ports}
    if random.random() < 0.25:
        service["publishNotReadyAddresses"] = True
    if random.random() < 0.25:
        service["clusterIP"] = "None"
    replicas = random.randint(1, 4)
    container_ports = [{"name": "http", "containerPort": 8080}, {"name": "metrics", "containerPort": 9100}]
    container = {"name": "main", "image": "app:1", "ports": container_ports}
    rolling = random.choice(({"maxSurge": 1, "maxUnavailable": 0}, {"maxSurge": 0, "maxUnavailable": 1}))
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": LABELS},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
        "template": {"metadata": {"labels": LABELS}, "spec": {"containers": [container]}},
    }
    changed = {**container, "image": "app:2"}
    if random.random() < 0.4:
        changed["ports"] = [{"name": "http", "containerPort": 8081}, *container_ports[1:]]
    return Case(
        seed,
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "labels": {"team": "a"}}, "spec": service},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec},
        {"spec": {"template": {"spec": {"containers": [changed]}}}},
        random.randint(0, 5),
    )


def read_endpoints(slices: Iterable[Document]) -> list[Any]:
    """What does not differ from cluster to cluster: ports and conditions, zone, and whether there is a node."""
    found = []
    for entry in slices:
        listed = entry.get("ports") or ()  # in any order: a real server has them by hash
        ports = sorted((port.get("name", ""), port.get("port"), port.get("protocol")) for port in listed)
        for endpoint in entry.get("endpoints") or ():
            conditions = endpoint["conditions"]
            states = tuple(conditions.get(name) for name in ("ready", "serving", "terminating"))
            found.append(
                (ports, states, endpoint.get("zone"), bool(endpoint.get("nodeName")), len(endpoint["addresses"]))
            )
    return sorted(found, key=str)


def count_ready(slices: Iterable[Document]) -> int:
    return sum(
        bool(endpoint["conditions"].get("ready")) for entry in slices for endpoint in entry.get("endpoints") or ()
    )


def read_slices(slices: Iterable[Document]) -> Any:
    """The slices themselves: how many endpoints, which labels, which type of addresses."""
    return sorted(
        (
            len(entry.get("endpoints") or ()),
            entry["addressType"],
            tuple(sorted(entry["metadata"].get("labels", {}).items())),
        )
        for entry in slices
    )
