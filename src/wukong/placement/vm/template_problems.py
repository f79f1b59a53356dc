"""What a vmTemplate may not say at all, whatever the other fields are. Pure; for problems.py.

What it says otherwise than the other fields is found by merge.find_conflicts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wukong.admission.problem_text import describe_problem
from wukong.api.documents import path_of
from wukong.errors import nearest
from wukong.placement.vm.machine_problems import is_reserved_label
from wukong.ports import Document

_PARTS = ("apiVersion", "kind", "metadata", "spec")
_METADATA = ("labels", "annotations")
_NOT_TOGETHER = {
    "running": "runStrategy says when it runs, and KubeVirt takes only one of the two. Set $.spec.runStrategy.",
    "instancetype": "cpu and memory are given by the Wukong, and KubeVirt takes only one of the two. Remove it.",
}


def find_template_problems(template: Document, path: str) -> Iterator[str]:
    yield from _find_unknown_fields(template, _PARTS, path)
    metadata, spec = template.get("metadata", {}), template.get("spec", {})
    yield from _find_shape_problems(metadata, f"{path}.metadata")
    yield from _find_shape_problems(spec, f"{path}.spec")
    if isinstance(metadata, dict):
        yield from _find_unknown_fields(metadata, _METADATA, f"{path}.metadata")
    if isinstance(spec, dict):
        for name, why in _NOT_TOGETHER.items():
            if name in spec:
                yield f"{path}.spec.{name}: expected none: {why}"
        yield from _find_machine_template_problems(spec.get("template", {}), f"{path}.spec.template")


def _find_machine_template_problems(template: Any, path: str) -> Iterator[str]:
    yield from _find_shape_problems(template, path)
    metadata = template.get("metadata", {}) if isinstance(template, dict) else {}
    yield from _find_shape_problems(metadata, f"{path}.metadata")
    labels = metadata.get("labels", {}) if isinstance(metadata, dict) else {}
    for key in labels if isinstance(labels, dict) else ():
        if is_reserved_label(key):
            place = path_of(f"{path}.metadata.labels", key)
            yield describe_problem(place, "no label that KubeVirt or Wukong sets", labels[key], "Remove it.")


def _find_shape_problems(value: Any, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield describe_problem(path, "a map of fields", value, "Mend it, or remove it.")


def _find_unknown_fields(value: Document, known: tuple[str, ...], path: str) -> Iterator[str]:
    for name in value:
        if name not in known:
            hint = nearest(name, known) or f" It may have {', '.join(known)}."
            yield f"{path_of(path, name)}: unknown field.{hint}"
