"""Objects by kind: lists that are equal by what they hold."""

from __future__ import annotations

import pytest

from builders import a_node, a_pod
from wukong.api.objects import Objects


def test_lists_without_anything_in_them_make_no_difference() -> None:
    asked = Objects(nodes=[a_node("a")])
    assert asked.of("Pod") == []
    assert asked == Objects(nodes=[a_node("a")])
    assert asked != Objects(nodes=[a_node("b")])
    assert asked != Objects(nodes=[a_node("a")], pods=[a_pod()])
    assert Objects() == Objects(pods=[])
    assert asked != [a_node("a")]
    assert (asked == 7) is False


def test_what_is_added_is_found_under_its_kind_in_the_order_of_the_table() -> None:
    objects = Objects(pods=[a_pod("first")])
    objects.add(a_pod("second"))
    objects.add(a_node("a"))
    assert [subject.metadata.name for subject in objects.everything()] == ["a", "first", "second"]
    assert [pod.metadata.name for pod in objects.pods] == ["first", "second"]
    missing = [kind.group_kind for kind in objects.missing_kinds()]
    assert "Pod" not in missing
    assert "Node" not in missing
    assert "Namespace" in missing


def test_there_are_lists_of_known_kinds_alone() -> None:
    with pytest.raises(TypeError, match="no list 'engines'"):
        Objects(engines=[])
    with pytest.raises(KeyError):
        Objects().of("Engine")
