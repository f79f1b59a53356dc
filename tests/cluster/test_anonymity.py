"""Nothing private is left in an anonymous snapshot: markers in every text of every field of every kind are gone.

The other half, that the same is decided on it, is in test_anonymize.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import inspect

from wukong.api.core import PodTemplateSpec
from wukong.api.kind_table import Kind
from wukong.api.kinds import KINDS
from wukong.cluster.anonymize import anonymize_documents, choose_names, texts_in
from wukong.cluster.public_vocabulary import ANNOTATIONS, collect_vocabulary
from wukong.cluster.reduction import reduce_document
from wukong.embedded.actors.kubelet.behaviour import FORMER_PREFIX, PREFIX, Behaviour
from wukong.ports import Document

MARK = "zqx"
# What a marker may look like: forms that the anonymizer keeps something of, or lets through.
FORMS = (
    "{}", "{}/{}", "{}.kubernetes.io/{}", "kubernetes.io/{}", "hugepages-{}", "requests.{}/{}", "attachable-volumes-{}",
    "{}:latest", "registry.{}.example/{}:1@sha256:{}", "v1.35.8-{}", "{}-0", "10{}", "{}%", "2026-01-01T00:00:00Z{}",
    "node is shutting down, {}", "{}: node is shutting down", "10.0.0.7/{}", "true{}", "SPOT-{}", "x-0001{}",
    "m6i.xlarge.{}", "topology.kubernetes.io/zone-{}", "sim.novasphere.dev/{}", "deployment.kubernetes.io/{}",
    "placement.novasphere.dev/notice{}", "1,2,{}", "$patch{}", "Ready{}", "ReplicaSet{}", "apps/{}",
)  # fmt: skip
SNAPSHOT_KINDS = [kind for kind in KINDS if kind.snapshot is not None]


@cache
def type_of(struct: type[Any]) -> inspect.Type:
    return inspect.type_info(struct)


class Planter:
    """Fills structs with markers, each another, in the forms by turns."""

    def __init__(self, first_form: int) -> None:
        self._numbers = count()
        self._first_form = first_form

    def mark(self) -> str:
        number = next(self._numbers)
        form = FORMS[(number + self._first_form) % len(FORMS)]
        return form.replace("{}", f"{MARK}{number}")

    def fill(self, info: Any) -> Any:
        match info:
            case inspect.Metadata(type=inner):
                return self.fill(inner)
            case inspect.UnionType(types=types):
                return self.fill(next(part for part in types if not isinstance(part, inspect.NoneType)))
            case inspect.StructType(fields=fields):
                return {field.encode_name: self.fill(field.type) for field in fields}
            case inspect.ListType(item_type=item):
                return [self.fill(item), self.fill(item)]
            case inspect.DictType(value_type=value):
                return {self.mark(): self.fill(value) for _ in range(2)}
            case inspect.LiteralType(values=values):
                return values[0]
            case inspect.StrType():
                return self.mark()
            case inspect.IntType() | inspect.FloatType():
                return 1
            case inspect.BoolType():
                return True
        return self.fill_freely()

    def fill_freely(self) -> Document:
        """Where a struct reads anything, and where a snapshot keeps more than the struct reads."""
        conditions = [{"type": self.mark(), "status": self.mark(), "reason": self.mark(), "message": self.mark()}]
        return {
            self.mark(): self.mark(),
            "secretRef": {"name": self.mark()},
            "conditions": conditions,
            "labels": {self.mark(): self.mark()},
            "annotations": {self.mark(): self.mark(), **{name: self.mark() for name in sorted(ANNOTATIONS)}},
            "list": [self.mark(), {self.mark(): [self.mark()]}],
            "completedIndexes": self.mark(),
        }

    def build(self, kind: Kind) -> Document:
        assert kind.snapshot is not None
        document: Document = self.fill(type_of(kind.struct))
        for path in kind.snapshot.more:
            self.put(document, path, self.fill_freely())
            self.put(document, path, self.mark()) if path.endswith(("reason", "Policy", "Time", "Added")) else None
        if kind.snapshot.template_in:
            template = self.fill(type_of(PodTemplateSpec))
            self.put(document, f"{kind.snapshot.template_in}.template", template)
        document["metadata"]["annotations"] |= {name: self.mark() for name in sorted(ANNOTATIONS)}
        return {**document, "kind": kind.resource.kind, "apiVersion": kind.resource.api_version}

    def put(self, document: Any, path: str, value: Any) -> None:
        step, _, rest = path.partition(".")
        name = step.removesuffix("[]")
        if not rest:
            document[name] = value
        elif step.endswith("[]"):
            for item in document[name]:
                self.put(item, rest, value)
        else:
            self.put(document.setdefault(name, {}), rest, value)


def marks_in(documents: Any) -> list[str]:
    return [text for text in texts_in(documents) if MARK in text.lower()]


@pytest.mark.parametrize(
    "form", [form if form % 6 == 0 else pytest.param(form, marks=pytest.mark.slow) for form in range(len(FORMS))]
)
def test_markers_in_every_field_of_every_kind_are_gone(form: int) -> None:
    planter = Planter(form)
    documents = [planter.build(kind) for kind in SNAPSHOT_KINDS]
    assert len(marks_in(documents)) > 500
    assert marks_in(anonymize_documents(documents)) == []


@pytest.mark.parametrize("form", range(0, len(FORMS), 5))
def test_markers_in_what_a_snapshot_keeps_are_gone(form: int) -> None:
    planter = Planter(form)
    documents = [reduce_document(planter.build(kind)) for kind in SNAPSHOT_KINDS]
    assert len(marks_in(documents)) > 300
    assert marks_in(anonymize_documents(documents)) == []


def places_in(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container and the key or index of a text in it."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in entries:
        if isinstance(entry, str):
            yield value, key
        yield from places_in(entry)


def plant(documents: list[Document], place: int, form: str, *, as_key: bool) -> None:
    """Put a marker in the place of one text of real objects, or of its key."""
    container, key = list(places_in(documents))[place]
    mark = form.replace("{}", MARK)
    if as_key and isinstance(container, dict):
        container[mark] = container.pop(key)
    else:
        container[key] = mark


CLUSTER = Path("examples/cluster.yaml").read_text("utf-8")
EXAMPLE = [document for document in yaml.load_all(CLUSTER, Loader=yaml.CSafeLoader) if document]
TEXTS = len(list(places_in(EXAMPLE)))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, TEXTS - 1), st.sampled_from(FORMS), st.booleans())
def test_a_marker_anywhere_in_real_objects_is_gone(place: int, form: str, as_key: bool) -> None:
    documents = json.loads(json.dumps(EXAMPLE))
    plant(documents, place, form, as_key=as_key)
    assert marks_in(documents)
    assert marks_in(anonymize_documents(documents)) == []


# ---- the vocabulary


@pytest.mark.parametrize(
    "text",
    ["", "5", "-0.5", "25%", "500m", "4Gi", "1e3", "2026-03-01T00:00:00Z", "NoSchedule", "In", "Ready", "ReplicaSet",
     "apps/v1", "topology.kubernetes.io/zone", "node.kubernetes.io/not-ready", "nvidia.com/gpu", "hugepages-2Mi",
     "SPOT", "m6i.xlarge", "cost-aware", "kube-system", "DoNotSchedule", "spot-preferred", "0.0.0.0"],
)  # fmt: skip
def test_public_words_stay(text: str) -> None:
    assert collect_vocabulary().is_public(text)


@pytest.mark.parametrize(
    "text",
    ["web", "shop", "our-merger.kubernetes.io/x", "kubernetes.io/our-merger", "node-role.kubernetes.io/payroll", "data",
     "name", "spec", "example.com/gpu", "hugepages-ours", "10.1.2.3", "v1.35.8", "5 Mi", "2026-03-01T00:00:00Z-us",
     "efs.csi.aws.com", "argoproj.io/v1alpha1", "HouseRollout", "TARGET-ready", "-", "%", "Insufficient house-brand"],
)  # fmt: skip
def test_other_words_do_not(text: str) -> None:
    assert not collect_vocabulary().is_public(text)


def test_annotations_of_simulated_kubelets_are_all_known() -> None:
    names = {field.encode_name for field in msgspec.structs.fields(Behaviour)} | {"silent"}
    assert {f"{prefix}{name}" for prefix in (PREFIX, FORMER_PREFIX) for name in names} <= ANNOTATIONS


def test_every_field_that_a_snapshot_keeps_is_known_by_its_name() -> None:
    """Else its name would be changed, and nobody would read it again."""
    for kind in SNAPSHOT_KINDS:
        for path in kind.snapshot.more if kind.snapshot is not None else ():
            assert {step.removesuffix("[]") for step in path.split(".")} <= collect_vocabulary().fields


# ---- forms


def named(*texts: str) -> list[str]:
    node: Document = {"kind": "Node", "metadata": {"labels": dict.fromkeys(texts, "1")}}
    names = choose_names([node], collect_vocabulary())
    return [names[text] for text in texts]


def test_a_name_keeps_what_its_resource_is_known_by() -> None:
    assert named("example.com/a", "b", "c.kubernetes.io/d", "hugepages-e", "requests.f/g") == [
        "x-3/x",
        "x-1",
        "kubernetes.io/x-2",
        "hugepages-x-5",
        "requests.x-4/x",
    ]


def test_a_quota_on_a_resource_is_named_after_it() -> None:
    quota, resource = named("requests.example.com/a", "example.com/a")
    assert quota == f"requests.{resource}"


def test_names_are_in_the_order_of_the_originals() -> None:
    texts = [f"node-{letter}{number}" for letter in "abc" for number in range(10)]
    assert sorted(named(*texts)) == named(*texts)


def test_pods_of_a_stateful_set_keep_their_numbers() -> None:
    owner = {"kind": "StatefulSet", "apiVersion": "apps/v1", "name": "db", "uid": "u", "controller": True}
    labels = {"statefulset.kubernetes.io/pod-name": "db-3"}
    pod = {"kind": "Pod", "metadata": {"name": "db-3", "labels": labels, "ownerReferences": [owner]}}
    other = {"kind": "Pod", "metadata": {"name": "web-3"}}
    renamed, alone = anonymize_documents([pod, other])
    name = renamed["metadata"]["ownerReferences"][0]["name"]
    assert (
        renamed["metadata"]["name"]
        == f"{name}-3"
        == renamed["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"]
    )
    assert not alone["metadata"]["name"].endswith("-3") or "web" not in alone["metadata"]["name"]


def test_selectors_still_select_under_private_keys() -> None:
    term = {"key": "example.com/team", "operator": "In", "values": ["payroll"]}
    documents: list[Document] = [
        {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n", "labels": {"example.com/team": "payroll"}}},
        {"kind": "Service", "apiVersion": "v1", "spec": {"selector": {"example.com/team": "payroll"}}},
        {"kind": "PodDisruptionBudget", "apiVersion": "policy/v1", "spec": {"selector": {"matchExpressions": [term]}}},
        {
            "kind": "Pod",
            "apiVersion": "v1",
            "spec": {"topologySpreadConstraints": [{"topologyKey": "example.com/team"}]},
        },
    ]
    node, service, budget, pod = anonymize_documents(documents)
    ((key, value),) = node["metadata"]["labels"].items()
    assert service["spec"]["selector"] == {key: value}
    assert budget["spec"]["selector"]["matchExpressions"] == [{"key": key, "operator": "In", "values": [value]}]
    assert pod["spec"]["topologySpreadConstraints"] == [{"topologyKey": key}]


def test_lists_among_the_data_of_a_rule_stay_lists_of_renamed_texts() -> None:
    config = {"labels": {"team": ["payroll", {"office": ["vienna", 3]}]}, "zones": ["vienna", ["payroll"]]}
    rules = [{"name": "house-rule", "type": "score", "config": config}]
    spec = {"scheduling": {"schedulingPolicy": {"rules": rules}}}
    policy = {"kind": "PlacementPolicy", "apiVersion": "placement.novasphere.dev/v1alpha1", "spec": spec}
    node = {"kind": "Node", "apiVersion": "v1", "metadata": {"labels": {"team": "payroll", "office": "vienna"}}}
    renamed_policy, renamed_node = anonymize_documents([policy, node])
    (team, payroll), (office, vienna) = renamed_node["metadata"]["labels"].items()
    renamed_config = renamed_policy["spec"]["scheduling"]["schedulingPolicy"]["rules"][0]["config"]
    assert list(renamed_config.values()) == [{team: [payroll, {office: [vienna, 3]}]}, [vienna, [payroll]]]
    assert len({team, payroll, office, vienna} & {"team", "payroll", "office", "vienna"}) == 0


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"kind": "Pod", "metadata": {"finalizers": ["a"], "resourceVersion": "7", "managedFields": []}}, "metadata"),
        ({"kind": "PodDisruptionBudget", "status": {"disruptedPods": {"web": "2026-01-01T00:00:00Z"}}}, "status"),
        ({"kind": "Job", "status": {"uncountedTerminatedPods": {"failed": ["u"]}}}, "status"),
    ],
)
def test_what_only_the_original_cluster_knows_is_left_out(document: Document, field: str) -> None:
    assert anonymize_documents([document])[0][field] == {}


@pytest.mark.parametrize(("field", "text"), [("completedIndexes", "1,3-5"), ("failedIndexes", "0")])
def test_the_indexes_of_a_job_stay(field: str, text: str) -> None:
    job = {"kind": "Job", "apiVersion": "batch/v1", "status": {field: text, "other": "1,3-5"}}
    status = anonymize_documents([job])[0]["status"]
    assert status.pop(field) == text
    assert "1,3-5" not in str(status)


def test_of_a_version_only_the_numbers_stay() -> None:
    def version(text: str) -> str:
        node = {"kind": "Node", "apiVersion": "v1", "status": {"nodeInfo": {"kubeletVersion": text}}}
        return str(anonymize_documents([node])[0]["status"]["nodeInfo"]["kubeletVersion"])

    assert [version(text) for text in ("v1.35.8-eks-113cf36", "v1.35.8", "ours")] == ["v1.35.8", "v1.35.8", ""]
