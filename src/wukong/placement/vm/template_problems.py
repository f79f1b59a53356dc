"""What a vmTemplate may not say at all, whatever the other fields are. Pure; for problems.py.

What it says otherwise than the other fields is found by merge.find_conflicts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from wukong.admission.problem_text import describe_problem
from wukong.api.documents import path_of
from wukong.errors import nearest
from wukong.placement.vm.machine_problems import is_reserved_label
from wukong.ports import Document

_PARTS = ("apiVersion", "kind", "metadata", "spec")
_METADATA = ("labels", "annotations")
_ABSENT: Any = msgspec.UNSET  # false, like nothing at all
_NOT_TOGETHER = {
    "running": "runStrategy says when it runs, and KubeVirt takes only one of the two. Set $.spec.runStrategy.",
    "instancetype": "cpu and memory are given by the Wukong, and KubeVirt takes only one of the two. Remove it.",
}


# What we look into ourselves, below a vmTemplate. Of everything else KubeVirt's own schema judges the shape.
_MAPS = (
    *("metadata", "metadata.labels", "metadata.annotations", "spec", "spec.template", "spec.template.metadata"),
    *("spec.template.metadata.labels", "spec.template.metadata.annotations", "spec.template.spec"),
    *("spec.template.spec.domain", "spec.template.spec.domain.devices", "spec.template.spec.domain.firmware"),
)
_LISTS = (
    *("spec.template.spec.volumes", "spec.template.spec.networks"),
    *(f"spec.template.spec.domain.devices.{name}" for name in ("disks", "interfaces", "gpus", "hostDevices")),
)


def find_template_problems(template: Document, path: str) -> Iterator[str]:
    yield from _find_unknown_fields(template, _PARTS, path)
    shape_problems = list(_find_shape_problems(template, path))
    yield from shape_problems
    if shape_problems:
        return
    yield from _find_unknown_fields(_dig(template, "metadata") or {}, _METADATA, f"{path}.metadata")
    for name, why in _NOT_TOGETHER.items():
        if name in template.get("spec", {}):
            yield f"{path}.spec.{name}: expected none: {why}"
    labels = _dig(template, "spec.template.metadata.labels") or {}
    for key, value in labels.items():
        if is_reserved_label(key):
            place = path_of(f"{path}.spec.template.metadata.labels", key)
            yield describe_problem(place, "no label that KubeVirt or Wukong sets", value, "Remove it.")


def _find_shape_problems(template: Document, path: str) -> Iterator[str]:
    for place in _MAPS:
        value = _dig(template, place)
        if value is not _ABSENT and not isinstance(value, dict):
            yield describe_problem(f"{path}.{place}", "a map of fields", value, "Mend it, or remove it.")
    for place in _LISTS:
        value = _dig(template, place)
        if value is not _ABSENT and not (isinstance(value, list) and all(map(_is_named, value))):
            yield describe_problem(f"{path}.{place}", "a list of entries with names", value, "Mend it, or remove it.")


def _dig(template: Document, place: str) -> Any:
    """What is at this place; _ABSENT where there is nothing, or nothing that could hold it."""
    value: Any = template
    for name in place.split("."):
        if not isinstance(value, dict) or name not in value:
            return _ABSENT
        value = value[name]
    return value


def _is_named(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("name"), str)


def _find_unknown_fields(value: Document, known: tuple[str, ...], path: str) -> Iterator[str]:
    for name in value:
        if name not in known:
            hint = nearest(name, known) or f" It may have {', '.join(known)}."
            yield f"{path_of(path, name)}: unknown field.{hint}"
