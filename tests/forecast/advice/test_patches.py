"""Patches between two versions of a document: the smallest, and made again they give the second version."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from forecast.situations import a_deployment, a_term, apart
from plan_comparison.changes import draw_change
from wukong.forecast.advice.patches import build_patch, count_fields, make_patch
from wukong.ports import Document

HEAD = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"}}


def with_value(document: Document, path: str, value: Any) -> Document:
    """A copy with another value at a dotted path; None removes it."""
    changed = copy.deepcopy(document)
    *parents, name = path.split(".")
    place: Any = changed
    for parent in parents:
        place = place[int(parent)] if isinstance(place, list) else place.setdefault(parent, {})
    if value is None:
        del place[name]
    else:
        place[name] = value
    return changed


@pytest.mark.parametrize(
    ("path", "value", "patch"),
    [
        ("spec.replicas", 2, {"spec": {"replicas": 2}}),
        ("spec.replicas", None, {"spec": {"replicas": None}}),
        (
            "spec.template.spec.containers.0.image",
            "web:2",
            {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "web:2"}]}}}},
        ),
        (
            "spec.template.spec.tolerations",
            [{"key": "gpu", "operator": "Exists"}],
            {"spec": {"template": {"spec": {"tolerations": [{"key": "gpu", "operator": "Exists"}]}}}},
        ),
        ("spec.template.spec.affinity", None, {"spec": {"template": {"spec": {"affinity": None}}}}),
    ],
)
def test_a_patch_has_nothing_but_what_changes(path: str, value: Any, patch: Document) -> None:
    before = a_deployment(3, apart(a_term()))
    after = with_value(before, path, value)
    assert build_patch(before, after) == {**HEAD, **patch}
    assert make_patch(before, build_patch(before, after)) == after


def test_a_list_of_rules_is_written_whole_and_counts_by_its_items() -> None:
    before, after = a_deployment(3, apart(a_term())), a_deployment(2, apart(a_term(), a_term("rack")))
    patch = build_patch(before, after)
    assert make_patch(before, patch) == after
    assert count_fields(patch) == 3  # two rules, and replicas


def test_containers_that_come_or_go_are_written_whole() -> None:
    before = a_deployment()
    after = with_value(before, "spec.template.spec.containers", [{"name": "other", "image": "web:2"}])
    assert make_patch(before, build_patch(before, after)) == after


@given(st.integers(1, 400), st.integers(1, 400))
def test_a_patch_makes_any_version_of_any_other_and_survives_yaml(seed: int, other: int) -> None:
    before, after = (copy.deepcopy(draw_change(number).before[-1]) for number in (seed, other))
    for part in ("kind", "metadata"):  # of the same object
        after[part] = before[part]
    patch = yaml.safe_load(yaml.safe_dump(build_patch(before, after)))
    assert make_patch(before, patch) == after
