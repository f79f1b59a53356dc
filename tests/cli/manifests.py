"""Manifests as people write them, for the tests of the command line: plain mappings, dumped as JSON or YAML."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

Manifest = dict[str, Any]


def node(name: str, cpu: str = "4", pods: str = "10", kubelet: str = "v1.35.2", **labels: str) -> Manifest:
    room = {"cpu": cpu, "memory": "8Gi", "pods": pods}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "status": {"capacity": room, "allocatable": room, "nodeInfo": {"kubeletVersion": kubelet}},
    }


def pod(name: str = "web", cpu: str = "1", on: str = "", **spec: object) -> Manifest:
    placed = {"nodeName": on} if on else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "web"}},
        "spec": {
            "containers": [{"name": "main", "image": "web:1", "resources": {"requests": {"cpu": cpu}}}],
            **placed,
            **spec,
        },
    }


def deployment(name: str = "web", cpu: str = "1", **spec: object) -> Manifest:
    template_pod = pod(name, cpu, "", **spec)
    template = {"metadata": {"labels": {"app": "web"}}, "spec": template_pod["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    }


def kubectl_list(*items: Manifest) -> Manifest:
    return {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": list(items)}


def write_json(path: Path, *items: Manifest) -> Path:
    path.write_text(json.dumps(items[0] if len(items) == 1 else kubectl_list(*items), indent=4), "utf-8")
    return path


def write_yaml(path: Path, *items: Manifest) -> Path:
    path.write_text(yaml.safe_dump_all(items), "utf-8")
    return path
