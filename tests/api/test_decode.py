"""Reading objects: JSON, YAML, Lists, documents; unknown fields ignored, nulls absent, problems named by place."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from wukong.api.core import Node, Pod
from wukong.api.decode import decode_objects
from wukong.api.kinds import KINDS
from wukong.api.objects import Objects
from wukong.api.resources import plural_of
from wukong.errors import InputError

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "labels": {"app": "web"}, "creationTimestamp": None, "managedFields": [{"x": 1}]},
    "spec": {"containers": [{"name": "c", "env": [{"name": "A", "value": "1"}]}], "futureField": {"a": [1]}},
    "status": None,
}


def read(text: str | bytes) -> list[object]:
    return list(decode_objects(text.encode() if isinstance(text, str) else text))


def test_unknown_fields_are_ignored_and_nulls_count_as_absent() -> None:
    (pod,) = read(json.dumps(POD))
    assert isinstance(pod, Pod)
    assert pod.key == "default/web"
    assert pod.spec.containers[0].name == "c"


def test_a_list_of_mixed_kinds_is_unfolded_in_order() -> None:
    items = [POD, {"kind": "Node", "metadata": {"name": "n1"}}, {"kind": "Event", "metadata": {"name": "e"}}]
    text = json.dumps({"kind": "List", "items": items}).encode()
    skipped: Counter[str] = Counter()
    assert [type(subject) for subject in decode_objects(text, skipped=skipped)] == [Pod, Node]
    assert skipped == {"Event": 1}


@pytest.mark.parametrize(
    ("kind", "api_version", "is_skipped"),
    [
        ("Event", "v1", True),  # a kind of Kubernetes that we do not read
        ("Secret", "v1", True),
        ("Service", "serving.knative.dev/v1", True),  # of somebody's group
        ("Podd", "v1", False),  # a typo: we know all kinds of this group
        ("Deploymnet", "apps/v1", False),
        ("PlacementPolicies", "placement.novasphere.dev/v1alpha1", False),
    ],
)
def test_kinds_of_others_are_skipped_and_typos_are_not(kind: str, api_version: str, is_skipped: bool) -> None:
    skipped: Counter[str] = Counter()
    text = json.dumps({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}}).encode()
    if is_skipped:
        assert list(decode_objects(text, skipped=skipped)) == []
        assert skipped == {kind: 1}
    else:
        with pytest.raises(InputError, match=f'unknown kind "{kind}"'):
            list(decode_objects(text, skipped=skipped))
        assert not skipped


def test_items_of_a_typed_list_need_no_kind_of_their_own() -> None:
    (node,) = read(json.dumps({"kind": "NodeList", "items": [{"metadata": {"name": "n1"}}]}))
    assert isinstance(node, Node)


@pytest.mark.parametrize("is_yaml", [False, True])
def test_items_of_a_typed_list_of_others_are_theirs(is_yaml: bool) -> None:
    document = {"kind": "ServiceList", "apiVersion": "serving.knative.dev/v1", "items": [{"metadata": {"name": "s"}}]}
    text = json.dumps(document)
    skipped: Counter[str] = Counter()
    assert list(decode_objects(f"# yaml\n{text}".encode() if is_yaml else text.encode(), skipped=skipped)) == []
    assert skipped == {"Service": 1}


def test_yaml_documents_and_lists_read_like_json() -> None:
    text = "kind: Pod\nmetadata: {name: a}\n---\n---\nkind: List\nitems:\n- kind: Node\n  metadata: {name: n}\n"
    assert [type(subject) for subject in read(text)] == [Pod, Node]


def test_go_writes_null_for_empty_lists_and_maps() -> None:
    pod = {
        **POD,
        "spec": {"containers": [{"name": "c", "ports": None, "resources": {"requests": None}}], "tolerations": None},
    }
    (subject,) = read(json.dumps(pod))
    assert isinstance(subject, Pod)
    assert subject.spec.tolerations == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"kind": "Pod"', "broken JSON"),
        ("kind: Pod\n  metadata: [", "broken YAML: line 2"),
        ("kind: Pood\nmetadata: {name: a}", 'unknown kind "Pood". Did you mean "Pod"?'),
        ("metadata: {name: a}", 'with a "kind"'),
        ("just text", "expected a Kubernetes object"),
        ("kind: Pod\nmetadata: {name: a, labels: {tier: 1}}", "Put the value in quotes"),
        ("kind: Pod\nspec: {containers: {}}", "$.spec.containers"),
        (
            "kind: Pod\n---\nkind: Node\nspec: {taints: [{}]}",
            "document 2: Node: $.spec.taints[0]: object missing required field key",
        ),
        (
            '{"kind": "List", "items": [{"kind": "Node"}, {"kind": "Nod"}]}',
            'items[1]: $.kind: unknown kind "Nod". Did you mean "Node"?',
        ),
    ],
)
def test_broken_input_names_the_place_and_the_fix(text: str, expected: str) -> None:
    with pytest.raises(InputError) as caught:
        read(text)
    assert expected in str(caught.value)


def spread(**fields: str) -> dict[str, object]:
    return {"kind": "Pod", "spec": {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "z", **fields}]}}


def affinity(kind: str, term: dict[str, object]) -> dict[str, object]:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": term}
    return {"kind": "Pod", "spec": {"affinity": {kind: required}}}


EXPRESSION = {"matchExpressions": [{"key": "a", "operator": "in", "values": ["b"]}]}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (
            affinity("nodeAffinity", {"nodeSelectorTerms": [EXPRESSION]}),
            "operator: expected one of In, NotIn, Exists, DoesNotExist, Gt, Lt, got 'in'.",
        ),
        (
            {"kind": "Deployment", "apiVersion": "apps/v1", "spec": {"selector": EXPRESSION}},
            "operator: expected one of In, NotIn, Exists, DoesNotExist, got 'in'.",
        ),
        (spread(whenUnsatisfiable="Never"), "expected one of DoNotSchedule, ScheduleAnyway, got 'Never'."),
        (spread(nodeAffinityPolicy="Honour"), "expected one of Honor, Ignore, got 'Honour'. Did you mean \"Honor\"?"),
        (spread(nodeTaintsPolicy="ignored"), "expected one of Honor, Ignore, got 'ignored'. Did you mean \"Ignore\"?"),
        (
            {
                "kind": "PodDisruptionBudget",
                "apiVersion": "policy/v1",
                "spec": {"unhealthyPodEvictionPolicy": "Always"},
            },
            "$.spec.unhealthyPodEvictionPolicy: expected one of IfHealthyBudget, AlwaysAllow, got 'Always'.",
        ),
    ],
)
def test_where_only_some_words_are_taken_they_are_listed(document: dict[str, object], expected: str) -> None:
    with pytest.raises(InputError) as caught:
        read(json.dumps(document))
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("field", "hint"),
    [
        ({"metadata": {"annotations": {"a": 1}}}, " Put the value in quotes."),
        ({"spec": {"nodeSelector": {"a": 1}}}, " Put the value in quotes."),
        ({"spec": {"nodeName": 1}}, ""),
    ],
)
def test_a_number_where_a_text_is_due_is_told_to_be_quoted_where_people_forget_it(
    field: dict[str, object], hint: str
) -> None:
    with pytest.raises(InputError) as caught:
        read(json.dumps({"kind": "Pod", **field}))
    assert str(caught.value).endswith(f"expected str, got int.{hint}")


def test_every_kind_has_a_list_of_its_own_and_what_is_missing_is_known() -> None:
    objects = Objects()
    assert objects.missing_kinds() == KINDS.list_deciding()
    for kind in KINDS.list_deciding():
        objects.add(kind.struct(kind=kind.resource.kind))
    assert objects.missing_kinds() == []
    assert plural_of("PriorityClass") == "priorityclasses"
