"""Of which type the parts of virtual machines must be that webhooks and actors read: what KubeVirt's schemas refuse.

Called by admission.py before anything else, so that nobody behind it meets a number where it reads a map. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wukong.api.kinds import VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES
from wukong.api.resources import Resource
from wukong.ports import Document

# A shape is a type, a map of known fields (others are free), a list with the shape of its entries, or TEXTS.
Shape = Any
TEXTS = {"*": str}  # a map of texts, whatever its keys
_EXPRESSION = {"key": str, "operator": str, "values": [str]}
_NODE_TERM = {"matchExpressions": [_EXPRESSION], "matchFields": [_EXPRESSION]}
_SELECTOR = {"matchLabels": TEXTS, "matchExpressions": [_EXPRESSION]}
_POD_TERM = {
    "labelSelector": _SELECTOR,
    "namespaceSelector": _SELECTOR,
    "namespaces": [str],
    "topologyKey": str,
    "matchLabelKeys": [str],
    "mismatchLabelKeys": [str],
}
_REQUIRED, _PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
_POD_RULES = {_REQUIRED: [_POD_TERM], _PREFERRED: [{"weight": int, "podAffinityTerm": _POD_TERM}]}
_INSTANCE = {
    "affinity": {
        "nodeAffinity": {
            _REQUIRED: {"nodeSelectorTerms": [_NODE_TERM]},
            _PREFERRED: [{"weight": int, "preference": _NODE_TERM}],
        },
        "podAffinity": _POD_RULES,
        "podAntiAffinity": _POD_RULES,
    },
    "tolerations": [{"key": str, "operator": str, "value": str, "effect": str, "tolerationSeconds": int}],
    "topologySpreadConstraints": [
        {"maxSkew": int, "topologyKey": str, "whenUnsatisfiable": str, "labelSelector": _SELECTOR}
    ],
    "nodeSelector": TEXTS,
    "schedulerName": str,
    "priorityClassName": str,
    "evictionStrategy": str,
    "architecture": str,
    "hostname": str,
    "terminationGracePeriodSeconds": int,
    "networks": [{"name": str, "pod": {}, "multus": {}}],
    "volumes": [{"name": str}],
    "domain": {
        "cpu": {"cores": int, "sockets": int, "threads": int},
        "memory": {"hugepages": {}},
        "resources": {"requests": {}, "limits": {}},
        "machine": {"type": str},
        "firmware": {},
        "devices": {
            "disks": [{"name": str}],
            "interfaces": [{"name": str}],
            "gpus": [{"deviceName": str}],
            "hostDevices": [{"deviceName": str}],
        },
    },
}
_STATUS = {"phase": str, "nodeName": str, "conditions": [{"type": str, "status": str}], "migrationState": {}}
_SHAPES: dict[Resource, Shape] = {
    VIRTUAL_MACHINES: {
        "spec": {
            "runStrategy": str,
            "running": bool,
            "template": {"metadata": {"labels": TEXTS, "annotations": TEXTS}, "spec": _INSTANCE},
        },
        "status": {"printableStatus": str, "conditions": [{"type": str, "status": str}]},
    },
    VIRTUAL_MACHINE_INSTANCES: {"spec": _INSTANCE, "status": _STATUS},
    VIRTUAL_MACHINE_INSTANCE_MIGRATIONS: {"spec": {"vmiName": str}, "status": {"phase": str}},
}
_TYPE_NAMES = {str: "string", int: "integer", bool: "boolean", dict: "object", list: "array"}


def find_type_problem(resource: Resource, document: Document) -> str:
    """The first part that is of a wrong type, as the API server says it; empty if there is none."""
    shape = _SHAPES.get(resource)
    return _find(document, shape, "") if shape is not None else ""


def _find(value: Any, shape: Shape, path: str) -> str:
    if value is None:
        return ""
    wanted = shape if isinstance(shape, type) else type(shape)
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        return f"{path}: Invalid value: must be of type {_TYPE_NAMES[wanted]}"
    return next((problem for part in _parts_of(value, shape, path) if (problem := _find(*part))), "")


def _parts_of(value: Any, shape: Shape, path: str) -> Iterator[tuple[Any, Shape, str]]:
    """The parts of a list or a map that has its type, each with its own shape and path."""
    if isinstance(shape, list):
        yield from ((entry, shape[0], f"{path}[{index}]") for index, entry in enumerate(value))
    elif shape is TEXTS:
        yield from ((entry, str, f"{path}.{name}") for name, entry in value.items())
    elif isinstance(shape, dict):
        yield from ((value.get(name), inner, f"{path}.{name}".lstrip(".")) for name, inner in shape.items())
