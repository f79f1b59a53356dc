"""Patches and selectors one at a time, without a server. The comparison with a real one is in test_against_kube.py."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from embedded.random_patches import a_workload
from embedded.store_fixtures import DEPLOYMENTS, NAMESPACE, a_server, key
from wukong.api.field_types import struct_named
from wukong.api.kinds import PODS
from wukong.embedded.store.kinds import Kinds
from wukong.embedded.store.ownership.field_sets import diff_fields, format_path, leaf_paths_of, merge_applied
from wukong.embedded.store.patch import json_patch, merge_patch, strategic_merge
from wukong.embedded.store.patch.merge_keys import typed_shape
from wukong.embedded.store.selectors import parse_selection
from wukong.errors import Invalid
from wukong.ports import Document, PatchBody, Selection

POD = struct_named("Pod")


def a_spec(*names: str) -> Document:
    return {"spec": {"containers": [{"name": name, "image": f"{name}:1"} for name in names]}}


def patch_containers(patch: Document, *names: str) -> list[str]:
    patched = strategic_merge.apply_strategic_patch(POD, a_spec(*names), {"spec": patch})
    return [f"{container['name']}={container.get('image', '')}" for container in patched["spec"]["containers"]]


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        ({"containers": [{"name": "b", "image": "b:2"}]}, ["a=a:1", "b=b:2"]),
        ({"containers": [{"name": "c", "image": "c:1"}]}, ["c=c:1", "a=a:1", "b=b:1"]),  # new ones come first
        ({"containers": [{"name": "a", "$patch": "delete"}]}, ["b=b:1"]),
        ({"containers": [{"name": "c", "image": "c:1"}, {"$patch": "replace"}]}, ["c=c:1"]),
        ({"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}, ["b=b:1", "a=a:1"]),
        ({"$retainKeys": ["containers"], "containers": [{"name": "a", "image": None}]}, ["a=", "b=b:1"]),
    ],
)
def test_a_strategic_patch_merges_containers(patch: Document, expected: list[str]) -> None:
    assert patch_containers(patch, "a", "b") == expected


def test_finalizers_are_added_and_taken_away_one_by_one() -> None:
    before: Document = {"metadata": {"finalizers": ["a", "b"]}}
    added = strategic_merge.apply_strategic_patch(POD, before, {"metadata": {"finalizers": ["c"]}})
    assert sorted(added["metadata"]["finalizers"]) == ["a", "b", "c"]
    reduced = strategic_merge.apply_strategic_patch(
        POD, added, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a", "c"]}}
    )
    assert reduced["metadata"]["finalizers"] == ["b"]


def test_the_selector_of_a_budget_is_replaced_and_a_deployments_is_merged() -> None:
    patch = {"spec": {"selector": {"matchLabels": {"b": "2"}}}}
    for kind, expected in (("PodDisruptionBudget.policy", {"b": "2"}), ("Deployment.apps", {"a": "1", "b": "2"})):
        patched = strategic_merge.apply_strategic_patch(
            struct_named(kind), {"spec": {"selector": {"matchLabels": {"a": "1"}}}}, patch
        )
        assert patched["spec"]["selector"]["matchLabels"] == expected


def test_a_merge_key_is_needed() -> None:
    with pytest.raises(Invalid, match="merge key: name"):
        strategic_merge.apply_strategic_patch(POD, a_spec("a"), {"spec": {"containers": [{"image": "x"}]}})


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([{"op": "add", "path": "/list/1", "value": 9}], {"list": [1, 9, 2], "map": {"a/b": 1}}),
        ([{"op": "add", "path": "/list/-", "value": 9}], {"list": [1, 2, 9], "map": {"a/b": 1}}),
        ([{"op": "remove", "path": "/map/a~1b"}], {"list": [1, 2], "map": {}}),
        ([{"op": "move", "from": "/list/0", "path": "/map/x"}], {"list": [2], "map": {"a/b": 1, "x": 1}}),
        ([{"op": "replace", "path": "/missing", "value": 1}], {"list": [1, 2], "map": {"a/b": 1}, "missing": 1}),
        ([{"op": "test", "path": "/missing", "value": None}], {"list": [1, 2], "map": {"a/b": 1}}),
        ([{"op": "copy", "from": "/map", "path": "/list/0"}], {"list": [{"a/b": 1}, 1, 2], "map": {"a/b": 1}}),
    ],
)
def test_json_operations(operations: list[Document], expected: Document) -> None:
    assert json_patch.apply_json_patch({"list": [1, 2], "map": {"a/b": 1}}, operations) == expected


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/missing"},
        {"op": "add", "path": "/list/7", "value": 1},
        {"op": "add", "path": "/no/such/place", "value": 1},
        {"op": "replace", "path": "/list/7", "value": 1},
        {"op": "test", "path": "/list/0", "value": 5},
        {"op": "add", "path": "/list/x", "value": 1},
        {"op": "replace", "path": "", "value": 5},
    ],
)
def test_json_operations_that_do_not_fit(operation: Document) -> None:
    with pytest.raises(Invalid):
        json_patch.apply_json_patch({"list": [1, 2]}, [operation])


def test_a_merge_patch_keeps_no_null_not_even_in_a_list() -> None:
    patched = merge_patch.apply_merge_patch(
        {"a": {"b": 1}}, {"a": {"b": None, "c": {"d": None}}, "e": [{"f": None, "g": 1}, None]}
    )
    assert patched == {"a": {"c": {}}, "e": [{"g": 1}]}


# Fields and their owners -----------------------------------------------------------------------------------------


def test_fields_are_named_as_managed_fields_name_them() -> None:
    document = {"metadata": {"finalizers": ["x/y"]}, **a_spec("main")}
    assert sorted("/".join(path) for path in leaf_paths_of(document, typed_shape(POD))) == [
        'f:metadata/f:finalizers/v:"x/y"',
        'f:spec/f:containers/k:{"name":"main"}/.',
        'f:spec/f:containers/k:{"name":"main"}/f:image',
        'f:spec/f:containers/k:{"name":"main"}/f:name',
    ]
    [(path, is_set)] = diff_fields(
        a_spec("main"), {"spec": {"containers": [{"name": "main", "image": "x"}]}}, typed_shape(POD)
    )
    assert (format_path(path), is_set) == ('.spec.containers[name="main"].image', True)


@pytest.mark.parametrize(
    ("live", "applied", "expected"),
    [("abc", "c", "abc"), ("abc", "d", "abcd"), ("abc", "ca", "bca"), ("ab", "xb", "axb"), ("", "ba", "ba")],
)
def test_applied_items_stand_in_their_order_among_those_that_were_there(live: str, applied: str, expected: str) -> None:
    merged = merge_applied(a_spec(*live)["spec"], a_spec(*applied)["spec"], typed_shape(struct_named("PodSpec")))
    assert "".join(container["name"] for container in merged["containers"]) == expected


def test_an_item_goes_with_who_applied_it_though_others_wrote_into_it() -> None:
    server = a_server()
    server.create(DEPLOYMENTS, a_workload(Random(1), "web"), NAMESPACE)

    def apply(manager: str, *keys: str) -> list[str]:
        spread = [{"topologyKey": each, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"} for each in keys]
        body = {"spec": {"template": {"spec": {"topologySpreadConstraints": spread}}}}
        applied = server.patch(DEPLOYMENTS, key("web"), PatchBody("apply", body, manager=manager))
        constraints: list[Document] = applied["spec"]["template"]["spec"].get("topologySpreadConstraints", [])
        return [each["topologyKey"] for each in constraints]

    assert apply("alice", "zone", "rack") == ["zone", "rack"]
    change = [{"op": "replace", "path": "/spec/template/spec/topologySpreadConstraints/0/maxSkew", "value": 5}]
    server.patch(DEPLOYMENTS, key("web"), PatchBody("json", change, manager="bob"))
    assert apply("alice", "rack") == ["rack"]
    assert apply("carol", "rack") == ["rack"]
    assert apply("alice") == ["rack"]  # it is carol's, too
    assert apply("carol") == []


# Selectors -------------------------------------------------------------------------------------------------------


def is_selected(document: Document, **selection: Any) -> bool:
    return parse_selection(Kinds().of(PODS), Selection(**selection)).selects(document)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ("", True), ("a=1", True), ("a==1", True), ("a!=1", False), ("a=2", False), ("b", False), ("!b", True),
        ("b!=1", True), ("a in (1,2)", True), ("a notin (1,2)", False), ("b notin (1)", True), (" a = 1 , !b ", True),
        ("a>0", True), ("a<1", False), ("a in (1),!b,a!=2", True), ("b=", False), ("b in ()", False),
    ],
)  # fmt: skip
def test_label_selectors(labels: str, expected: bool) -> None:
    assert is_selected({"metadata": {"labels": {"a": "1"}}}, labels=labels) == expected


@pytest.mark.parametrize("labels", ["a b", "a in (b", "a,", "=a", "a in b", "a=b=c", "a/b/c=d", "!a=b"])
def test_label_selectors_that_are_none(labels: str) -> None:
    with pytest.raises(Invalid):
        is_selected({}, labels=labels)


def test_absent_fields_are_selected_as_what_go_reads_from_nothing() -> None:
    assert is_selected({"metadata": {}, "spec": {}}, fields="spec.hostNetwork=false,spec.nodeName=")
    assert not is_selected({"metadata": {}, "spec": {"hostNetwork": True}}, fields="spec.hostNetwork!=true")
