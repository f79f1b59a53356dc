"""Validates names, images, mounts and volumes of pods and pod templates.

These are not in rules.validate, for placement does not depend on them. Called by objects.py; pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from wukong.ports import Document

_MAX_SECONDS = 2**31 - 1
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def find_pod_spec_problems(spec: Document, path: str) -> Iterator[str]:
    volumes = spec.get("volumes") or []
    yield from _find_duplicates(volumes, f"{path}.volumes")
    for index, volume in enumerate(volumes):
        if not volume.get("name"):
            yield f"{path}.volumes[{index}].name: Required value"
        if len([name for name, value in volume.items() if name != "name" and value is not None]) > 1:
            yield f"{path}.volumes[{index}]: Forbidden: may not specify more than 1 volume type"
    names = {volume.get("name") for volume in volumes}
    all_containers = [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]
    for field in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(field) or []):
            yield from _find_container_problems(container, names, f"{path}.{field}[{index}]")
    yield from _find_duplicates(all_containers, f"{path}.containers")
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or []):
        if not constraint.get("whenUnsatisfiable"):
            supported = '"DoNotSchedule", "ScheduleAnyway"'
            place = f"{path}.topologySpreadConstraints[{index}].whenUnsatisfiable"
            yield f'{place}: Unsupported value: "": supported values: {supported}'
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _MAX_SECONDS:
        range_ = f"must be between 1 and {_MAX_SECONDS}, inclusive"
        yield f"{path}.activeDeadlineSeconds: Invalid value: {deadline}: {range_}"


def _find_container_problems(container: Document, volumes: set[str | None], path: str) -> Iterator[str]:
    for field in ("name", "image"):
        if not container.get(field):
            yield f"{path}.{field}: Required value"
    if container.get("name") and not _LABEL.fullmatch(container["name"]):
        yield f'{path}.name: Invalid value: "{container["name"]}": a lowercase RFC 1123 label is needed'
    seen: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts") or []):
        if mount.get("name") not in volumes:
            yield f'{path}.volumeMounts[{index}].name: Not found: "{mount.get("name", "")}"'
        place = mount.get("mountPath", "")
        if place in seen:
            yield f'{path}.volumeMounts[{index}].mountPath: Invalid value: "{place}": must be unique'
        seen.add(place)


def _find_duplicates(items: list[Document], path: str) -> Iterator[str]:
    seen: set[str] = set()
    for index, item in enumerate(items):
        name = item.get("name", "")
        if name in seen:
            yield f'{path}[{index}].name: Duplicate value: "{name}"'
        seen.add(name)
