"""What differs between a VirtualMachine as we build it and what KubeVirt makes of it: as stored, and as a pod. Pure.

It shares no code with what it judges: the vm controller has a comparison of its own.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

Json = dict[str, Any]
ABSENT = object()
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
# What the webhooks of virt-api add to a VirtualMachine where nobody has said anything.
DEFAULTS = {
    "$.spec.template.metadata.creationTimestamp",
    "$.spec.template.spec.architecture",
    "$.spec.template.spec.domain.machine",
    "$.spec.template.spec.domain.resources",
    "$.spec.template.spec.domain.firmware",
    "$.spec.template.spec.domain.firmware.uuid",
    "$.spec.template.spec.domain.firmware.serial",
}
# What virt-controller adds to every required node selector term of a machine with the CPU model of its host.
OBSOLETE_HOST_MODEL = {"key": "node-labeller.kubevirt.io/obsolete-host-model", "operator": "DoesNotExist"}
_UNITS = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "k": 10**3, "M": 10**6, "G": 10**9}


def find_stored_differences(built: Json, stored: Json) -> list[str]:
    """Paths at which the stored VirtualMachine is not what we built, but for KubeVirt's defaults."""
    labels = _compare(built["metadata"]["labels"], stored["metadata"]["labels"], "$.metadata.labels")
    return [*labels, *_compare(built["spec"], stored["spec"], "$.spec")]


def find_pod_differences(built: Json, pod: Json) -> list[str]:
    """Rules of the template that the virt-launcher pod lacks or has otherwise."""
    template, spec = built["spec"]["template"], pod["spec"]
    wanted = template["spec"]
    return [
        *_lacks(template["metadata"]["labels"], pod["metadata"]["labels"], "labels"),
        *_lacks(wanted.get("nodeSelector", {}), spec.get("nodeSelector", {}), "nodeSelector"),
        *(
            f"tolerations: lacks {toleration}"
            for toleration in wanted.get("tolerations", [])
            if toleration not in spec.get("tolerations", [])
        ),
        *_compare(_with_addition(wanted.get("affinity", {})), spec.get("affinity", {}), "affinity"),
        *_compare(wanted.get("topologySpreadConstraints", []), spec.get("topologySpreadConstraints", []), "spread"),
        *_compare(wanted.get("priorityClassName", ""), spec.get("priorityClassName", ""), "priorityClassName"),
        *_compare(wanted.get("schedulerName", "default-scheduler"), spec["schedulerName"], "schedulerName"),
    ]


def _with_addition(affinity: Json) -> Json:
    """Where there is no required term KubeVirt makes one."""
    node_affinity = affinity.get("nodeAffinity", {})
    terms = [
        {**term, "matchExpressions": [*term.get("matchExpressions", []), OBSOLETE_HOST_MODEL]}
        for term in node_affinity.get(REQUIRED, {}).get("nodeSelectorTerms", [{}])
    ]
    return {**affinity, "nodeAffinity": {**node_affinity, REQUIRED: {"nodeSelectorTerms": terms}}}


def _lacks(wanted: Json, present: Json, place: str) -> list[str]:
    return [f"{place}: lacks {name}={value}" for name, value in wanted.items() if present.get(name) != value]


def _compare(wanted: Any, present: Any, path: str) -> list[str]:
    """Both must say the same; in maps the other one may say more where KubeVirt has a default."""
    if isinstance(wanted, dict) and isinstance(present, dict):
        more = [name for name in present.keys() - wanted.keys() if f"{path}.{name}" not in DEFAULTS]
        return [
            *(f"{path}.{name}: is there, and nobody asked for it" for name in sorted(more)),
            *(
                line
                for name, value in wanted.items()
                for line in _compare(value, present.get(name, ABSENT), f"{path}.{name}")
            ),
        ]
    if isinstance(wanted, list) and isinstance(present, list) and len(wanted) == len(present):
        pairs = enumerate(zip(wanted, present, strict=True))
        return [line for index, (left, right) in pairs for line in _compare(left, right, f"{path}[{index}]")]
    if wanted == present or _amount(wanted) == _amount(present) is not None:
        return []
    return [f"{path}: expected {wanted!r}, got {'nothing' if present is ABSENT else repr(present)}"]


def _amount(value: Any) -> Decimal | None:
    """A quantity as a number: the API server may write 1.5Gi as 1536Mi."""
    text = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
    unit = next((unit for unit in _UNITS if text.endswith(unit)), "")
    digits = text.removesuffix(unit)
    return Decimal(digits) * _UNITS.get(unit, 1) if digits.replace(".", "", 1).isdecimal() else None
