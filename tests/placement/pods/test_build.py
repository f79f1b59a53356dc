"""What a policy makes of a pod: what its author wrote stays, what the policy says is added, once."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import msgspec
import pytest

from policies import policy_of
from wukong.api.core import PriorityClass
from wukong.api.meta import ObjectMeta
from wukong.placement.capacity import SPOT_LABELS
from wukong.placement.compile import Plan, compile_policy
from wukong.placement.matching import NO_POLICY
from wukong.placement.pods import MARK, PodChange, build_pod
from wukong.placement.pods.rules import ON_DEMAND_TERM, SPOT_TERMS, SPOT_TOLERATIONS
from wukong.placement.rules import BUILT_IN
from wukong.ports import Document

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
HOSTNAME = "kubernetes.io/hostname"
SELECTOR = {"matchLabels": {"app": "web"}}
TITLE = "PlacementPolicy default/web"


def a_plan(**spec: Any) -> Plan:
    policy = policy_of({"selector": SELECTOR, **spec})
    policy.metadata.generation = 3
    return compile_policy(policy, BUILT_IN)


def a_class(name: str, value: int, **more: Any) -> PriorityClass:
    return PriorityClass(metadata=ObjectMeta(name=name), value=value, **more)


CLASSES = {
    priority_class.metadata.name: priority_class
    for priority_class in (
        a_class("high", 2000),
        a_class("usual", 7, global_default=True),
        a_class("placement-1000", 1000),
        a_class("placement-5-never", 5, preemption_policy="Never"),
    )
}


def a_document(
    labels: Mapping[str, str] | None = None, owner: str = "", annotations: Mapping[str, str] | None = None, **spec: Any
) -> Document:
    metadata: Document = {"name": "web-1", "namespace": "default", "labels": {"app": "web", **(labels or {})}}
    if annotations is not None:
        metadata["annotations"] = dict(annotations)
    if owner:
        reference = {"apiVersion": "apps/v1", "kind": owner, "name": "web", "uid": "1", "controller": True}
        metadata["ownerReferences"] = [reference]
    return {"metadata": metadata, "spec": {"containers": [{"name": "main", "image": "app"}], **spec}}


def build(plan: Plan, pod: Document, capacity: str = "") -> PodChange:
    """As it is called; and what must hold of every call is checked."""
    before = deepcopy(pod)
    change = build_pod(pod, plan, capacity, CLASSES)
    assert pod == before
    again = build_pod(change.document, plan, capacity, CLASSES)
    assert again.document == change.document
    return change


def on_nodes(*keys: str) -> Document:
    terms = [{"matchExpressions": [{"key": key, "operator": "Exists"}]} for key in keys]
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}


def node_terms(document: Document) -> list[Document]:
    terms: list[Document] = document["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    return terms


def node_wishes(document: Document) -> list[Document]:
    wishes: list[Document] = document["spec"]["affinity"]["nodeAffinity"][PREFERRED]
    return wishes


def apart(document: Document, how: str = REQUIRED) -> list[Document]:
    terms: list[Document] = document["spec"]["affinity"]["podAntiAffinity"][how]
    return terms


def mark_of(document: Document) -> dict[str, Any]:
    mark: dict[str, Any] = msgspec.json.decode(document["metadata"]["annotations"][MARK])
    return mark


# ---- capacity


@pytest.mark.parametrize(
    ("strategy", "capacity", "required", "wishes", "weight", "tolerates"),
    [
        ("spot-first", "", (), SPOT_TERMS, 100, True),
        ("spot-preferred", "", (), SPOT_TERMS, 50, True),
        ("on-demand-first", "", (), (ON_DEMAND_TERM,), 100, True),
        ("on-demand-only", "", (ON_DEMAND_TERM,), (), 0, False),
        ("spot-only", "", SPOT_TERMS, (), 0, True),
        ("spot-first", "spot", (), SPOT_TERMS, 100, True),
        ("spot-preferred", "spot", (), SPOT_TERMS, 100, True),
        ("spot-first", "on-demand", (ON_DEMAND_TERM,), (), 0, False),
        ("on-demand-first", "spot", (), SPOT_TERMS, 100, True),
    ],
)
def test_capacity_is_said_by_every_label_that_is_known(
    strategy: str,
    capacity: str,
    required: tuple[Document, ...],
    wishes: tuple[Document, ...],
    weight: int,
    tolerates: bool,
) -> None:
    split = {"onDemandBase": 1} if capacity else {}
    document = build(a_plan(capacity={"strategy": strategy, **split}), a_document(), capacity).document
    affinity = document["spec"]["affinity"]["nodeAffinity"]
    assert (affinity.get(REQUIRED) or {}).get("nodeSelectorTerms", []) == list(required)
    assert affinity.get(PREFERRED, []) == [{"weight": weight, "preference": term} for term in wishes]
    assert document["spec"].get("tolerations", []) == (list(SPOT_TOLERATIONS) if tolerates else [])


def test_spot_that_is_waited_for_is_required() -> None:
    plan = a_plan(capacity={"strategy": "spot-first", "spotPercent": 50, "fallback": "Wait"})
    assert node_terms(build(plan, a_document(), "spot").document) == list(SPOT_TERMS)
    assert node_terms(build(plan, a_document(), "on-demand").document) == [ON_DEMAND_TERM]


def test_a_required_rule_is_anded_into_every_term_of_the_author() -> None:
    plan = a_plan(capacity={"strategy": "on-demand-only"})
    affinity = on_nodes("a", "b")
    affinity["nodeAffinity"][REQUIRED]["nodeSelectorTerms"][1]["matchFields"] = [
        {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    ]
    terms = node_terms(build(plan, a_document(affinity=affinity)).document)
    own_terms = affinity["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    assert terms == [
        {**term, "matchExpressions": [*term["matchExpressions"], *ON_DEMAND_TERM["matchExpressions"]]}
        for term in own_terms
    ]


def test_alternatives_of_ours_multiply_with_those_of_the_author() -> None:
    plan = a_plan(capacity={"strategy": "spot-only"})
    terms = node_terms(build(plan, a_document(affinity=on_nodes("a", "b"))).document)
    assert len(terms) == 2 * len(SPOT_LABELS)
    assert [term["matchExpressions"][0]["key"] for term in terms] == ["a"] * len(SPOT_LABELS) + ["b"] * len(SPOT_LABELS)


def test_a_term_that_matches_no_node_matches_none_afterwards() -> None:
    affinity: Document = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{}]}}}
    change = build(a_plan(capacity={"strategy": "on-demand-only"}), a_document(affinity=affinity))
    assert change.document["spec"]["affinity"] == affinity


def test_an_affinity_without_terms_stays_what_the_api_server_refuses() -> None:
    affinity: Document = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}}
    pod = a_document(affinity=affinity)
    assert build(a_plan(capacity={"strategy": "on-demand-only"}), pod).document["spec"]["affinity"] == affinity


def test_what_makes_too_many_terms_is_skipped_and_said() -> None:
    keys = [f"k{number}" for number in range(6)]
    affinity = on_nodes(*keys)
    change = build(a_plan(capacity={"strategy": "spot-only"}), a_document(affinity=affinity))
    assert change.skipped == ("capacity: 66 node terms, more than 64",)
    assert node_terms(change.document) == affinity["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    assert change.document["spec"]["tolerations"] == list(SPOT_TOLERATIONS)


def test_one_alternative_fits_into_any_number_of_terms() -> None:
    """It adds none: an author with a hundred terms is still kept off spot nodes."""
    affinity = on_nodes(*(f"k{number}" for number in range(100)))
    change = build(a_plan(capacity={"strategy": "on-demand-only"}), a_document(affinity=affinity))
    assert change.skipped == ()
    assert len(node_terms(change.document)) == 100
    assert all(
        ON_DEMAND_TERM["matchExpressions"][0] in term["matchExpressions"] for term in node_terms(change.document)
    )


@pytest.mark.parametrize(
    ("spec", "pod_spec", "expected"),
    [
        ({"capacity": {"strategy": "spot-first"}}, {"priorityClassName": "high", "priority": 2000}, [ON_DEMAND_TERM]),
        ({"capacity": {"strategy": "spot-first"}}, {"priorityClassName": "usual", "priority": 7}, list(SPOT_TERMS)),
        ({"capacity": {"strategy": "spot-first"}, "priority": {"value": 1000}}, {}, [ON_DEMAND_TERM]),
        ({"capacity": {"strategy": "spot-first"}, "priority": {"className": "high"}}, {}, [ON_DEMAND_TERM]),
        ({"critical": True}, {}, [ON_DEMAND_TERM]),
    ],
)
def test_critical_pods_go_on_demand_first(
    spec: dict[str, Any], pod_spec: dict[str, Any], expected: list[Document]
) -> None:
    wishes = node_wishes(build(a_plan(**spec), a_document(**pod_spec)).document)
    assert [wish["preference"] for wish in wishes] == expected


def test_a_pod_without_a_policy_or_on_a_node_stays_as_it_is() -> None:
    pod = a_document()
    assert build_pod(pod, Plan(name=NO_POLICY, strategy="spot-first"), "", {}) == PodChange(pod)
    assert build_pod(pod, a_plan(), "", {}).document is pod
    bound = a_document(nodeName="n1")
    change = build(a_plan(capacity={"strategy": "on-demand-only"}), bound)
    assert change == PodChange(bound, ("the pod names its node, n1",))


def test_a_daemon_sets_pod_goes_to_its_node_whatever_its_capacity() -> None:
    plan = a_plan(
        capacity={"strategy": "spot-first", "onDemandBase": 1},
        scheduling={
            "tolerations": [{"key": "team", "operator": "Exists"}],
            "nodeAffinity": {"required": [ON_DEMAND_TERM]},
        },
    )
    by_name = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    affinity: Document = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [by_name]}}}
    change = build(plan, a_document(owner="DaemonSet", affinity=affinity), "on-demand")
    assert change.document["spec"]["affinity"] == affinity
    assert change.document["spec"]["tolerations"] == [{"key": "team", "operator": "Exists"}]
    assert "capacity" not in mark_of(change.document)
    assert change.skipped == ("nodes and capacity: a DaemonSet's pod goes to its node",)


# ---- what is appended


BLOCK: dict[str, Any] = {
    "podAffinity": {"required": [{"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "cache"}}}]},
    "podAntiAffinity": {
        "preferred": [{"weight": 5, "podAffinityTerm": {"topologyKey": HOSTNAME, "labelSelector": SELECTOR}}]
    },
    "nodeAffinity": {
        "required": [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}],
        "preferred": [{"weight": 9, "preference": {"matchExpressions": [{"key": "fast", "operator": "Exists"}]}}],
    },
    "tolerations": [{"key": "team", "operator": "Equal", "value": "shop", "effect": "NoSchedule"}],
    "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "labelSelector": SELECTOR}],
}


def test_a_block_is_written_in_the_words_of_pods() -> None:
    spec = build(a_plan(scheduling=BLOCK), a_document()).document["spec"]
    assert spec["affinity"] == {
        "nodeAffinity": {
            REQUIRED: {"nodeSelectorTerms": BLOCK["nodeAffinity"]["required"]},
            PREFERRED: BLOCK["nodeAffinity"]["preferred"],
        },
        "podAffinity": {REQUIRED: BLOCK["podAffinity"]["required"]},
        "podAntiAffinity": {PREFERRED: BLOCK["podAntiAffinity"]["preferred"]},
    }
    assert spec["tolerations"] == BLOCK["tolerations"]
    assert spec["topologySpreadConstraints"] == [
        {**BLOCK["topologySpreadConstraints"][0], "whenUnsatisfiable": "DoNotSchedule"}
    ]


def test_what_the_author_wrote_comes_first_and_is_not_repeated() -> None:
    own_term = {"topologyKey": "rack", "labelSelector": {}}
    own_toleration = {"key": "own", "operator": "Exists"}
    pod = a_document(
        affinity={"podAffinity": {REQUIRED: [own_term, *BLOCK["podAffinity"]["required"]]}},
        tolerations=[*BLOCK["tolerations"], own_toleration],
    )
    spec = build(a_plan(scheduling=BLOCK), pod).document["spec"]
    assert spec["affinity"]["podAffinity"] == pod["spec"]["affinity"]["podAffinity"]
    assert spec["tolerations"] == pod["spec"]["tolerations"]


def test_the_authors_spread_stays_where_both_have_one() -> None:
    own = {"maxSkew": 5, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
    change = build(a_plan(scheduling=BLOCK), a_document(topologySpreadConstraints=[own]))
    assert change.document["spec"]["topologySpreadConstraints"] == [own]
    assert change.skipped == ("topologySpreadConstraints: the pod has one of its own for zone, DoNotSchedule",)


def test_resource_affinity_is_terms_on_labels_as_virtual_machines_have_them() -> None:
    resources = {
        "preferredCPU": {"weight": 80, "threshold": "70%"},
        "requiredResources": [{"resourceType": "memory", "minAvailable": "4Gi"}],
    }
    document = build(a_plan(scheduling={"resourceAffinity": resources}), a_document()).document
    memory = "free.novasphere.dev/memory"
    assert node_terms(document) == [
        {"matchExpressions": [{"key": memory, "operator": "Gt", "values": ["4095"]}]},
        {"matchExpressions": [{"key": memory, "operator": "DoesNotExist"}]},
    ]
    assert [
        (wish["weight"], wish["preference"]["matchExpressions"][0]["operator"]) for wish in node_wishes(document)
    ] == [
        (80, "Lt"),
        (40, "DoesNotExist"),
    ]


# ---- versions


@pytest.mark.parametrize(
    ("owner", "labels", "key"),
    [
        ("ReplicaSet", {"pod-template-hash": "1"}, "pod-template-hash"),
        (
            "ReplicaSet",
            {"pod-template-hash": "1", "rollouts-pod-template-hash": "2"},
            "rollouts-pod-template-hash",
        ),
        ("StatefulSet", {"controller-revision-hash": "web-1"}, "controller-revision-hash"),
        ("DaemonSet", {"controller-revision-hash": "1"}, "controller-revision-hash"),
    ],
)
def test_versions_are_kept_apart_by_the_label_of_the_owner(owner: str, labels: dict[str, str], key: str) -> None:
    document = build(a_plan(versionAntiAffinity={"required": True}), a_document(labels, owner)).document
    assert apart(document) == [
        {
            "labelSelector": {**SELECTOR, "matchExpressions": [{"key": key, "operator": "Exists"}]},
            "topologyKey": HOSTNAME,
            "mismatchLabelKeys": [key],
        }
    ]


def test_a_wish_to_be_apart_has_its_weight_and_its_domain() -> None:
    plan = a_plan(versionAntiAffinity={"preferred": {"weight": 7}, "topologyKey": "zone"})
    (term,) = apart(build(plan, a_document({"pod-template-hash": "1"}, "ReplicaSet")).document, PREFERRED)
    assert (term["weight"], term["podAffinityTerm"]["topologyKey"]) == (7, "zone")


@pytest.mark.parametrize(
    ("owner", "labels"),
    [
        ("ReplicaSet", {}),
        ("ReplicaSet", {"controller-revision-hash": "1"}),
        ("StatefulSet", {"pod-template-hash": "1"}),
        ("Job", {"pod-template-hash": "1"}),
        ("", {"pod-template-hash": "1"}),
    ],
)
def test_the_label_of_a_version_is_never_guessed(owner: str, labels: dict[str, str]) -> None:
    pod = a_document(labels, owner)
    change = build(a_plan(versionAntiAffinity={"required": True}), pod)
    assert change.document is pod
    assert change.skipped == ("versionAntiAffinity: the pod has no label of its controller that tells its version",)


# ---- priority


@pytest.mark.parametrize(
    ("spec", "pod_spec", "expected", "reason"),
    [
        ({"priority": {"value": 1000}}, {"priority": 0}, {"priorityClassName": "placement-1000"}, ""),
        (
            {"priority": {"value": 5, "preemptionPolicy": "Never"}},
            {"priority": 7, "priorityClassName": "usual", "preemptionPolicy": "PreemptLowerPriority"},
            {"priorityClassName": "placement-5-never"},
            "",
        ),
        ({"priority": {"className": "high"}}, {"priority": 0}, {"priorityClassName": "high"}, ""),
        (
            {"priority": {"className": "usual"}},
            {"priority": 2000, "priorityClassName": "high"},
            {"priority": 2000, "priorityClassName": "high"},
            "priority: the pod names a PriorityClass of its own",
        ),
        (
            {"priority": {"value": 9}},
            {"priority": 0},
            {"priority": 0},
            "priority: there is no PriorityClass placement-9",
        ),
        (
            {"priority": {"className": "lost"}},
            {"priority": 7, "priorityClassName": "usual"},
            {"priority": 7, "priorityClassName": "usual"},
            "priority: there is no PriorityClass lost",
        ),
        ({"critical": True}, {"priority": 0}, {"priorityClassName": "placement-1000"}, ""),
        ({"critical": True, "priority": {"className": "high"}}, {}, {"priorityClassName": "high"}, ""),
    ],
)
def test_a_class_is_named_only_if_it_exists_and_what_contradicts_it_goes(
    spec: dict[str, Any], pod_spec: dict[str, Any], expected: dict[str, Any], reason: str
) -> None:
    change = build(a_plan(**spec), a_document(**pod_spec))
    fields = ("priority", "priorityClassName", "preemptionPolicy")
    assert {name: value for name, value in change.document["spec"].items() if name in fields} == expected
    assert change.skipped == ((reason,) if reason else ())


# ---- the mark


def test_a_changed_pod_says_by_which_policy_and_what_was_decided() -> None:
    plan = a_plan(capacity={"strategy": "spot-first", "onDemandBase": 1})
    document = build(plan, a_document(annotations={"note": "mine"}), "on-demand").document
    assert document["metadata"]["annotations"]["note"] == "mine"
    assert mark_of(document) == {"policy": TITLE, "generation": 3, "capacity": "on-demand"}
    plain = build(a_plan(scheduling=BLOCK), a_document()).document
    assert mark_of(plain) == {"policy": TITLE, "generation": 3}


def test_a_decision_that_is_marked_stands() -> None:
    """The same pod is admitted twice, and the counts are others the second time."""
    plan = a_plan(capacity={"strategy": "spot-first", "onDemandBase": 1})
    first = build_pod(a_document(), plan, "spot", CLASSES).document
    second = build_pod(first, plan, "on-demand", CLASSES)
    assert second == PodChange(first)


def test_a_mark_of_another_policy_decides_nothing() -> None:
    plan = a_plan(capacity={"strategy": "spot-first", "onDemandBase": 1})
    mark = '{"policy":"PlacementPolicy default/other","capacity":"spot"}'
    document = build(plan, a_document(annotations={MARK: mark}), "on-demand").document
    assert mark_of(document)["capacity"] == "on-demand"


@pytest.mark.parametrize(
    "mark", ["", "{", "[]", "{}", '{"policy":1}', '{"policy":"x","capacity":"both"}', "x" * 5000, "\ud800", "[" * 600]
)
def test_a_mark_that_cannot_be_read_is_none(mark: str) -> None:
    document = build_pod(a_document(annotations={MARK: mark}), a_plan(critical=True), "", CLASSES).document
    assert mark_of(document)["policy"] == TITLE


# ---- what is not sure to be accepted


@pytest.mark.parametrize(
    "pod",
    [
        {},
        {"spec": None},
        {"spec": []},
        {"spec": {"affinity": "x"}},
        {"spec": {"tolerations": {}}},
        {"spec": {"affinity": {"nodeAffinity": {REQUIRED: []}}}},
        {"metadata": {"labels": 5}, "spec": {"containers": []}},
        {"metadata": {"annotations": []}, "spec": {}},
    ],
)
def test_a_pod_that_cannot_be_read_stays_as_it_is(pod: Document) -> None:
    plan = a_plan(scheduling=BLOCK, critical=True)
    change = build(plan, pod)
    assert change.document is pod
    assert change.skipped[0].startswith(("the pod cannot be read: ", "the pod would be refused: "))


def test_a_pod_that_would_be_refused_stays_as_it_is() -> None:
    pod = a_document(tolerations=[{"key": "a b", "operator": "Exists"}])
    change = build(a_plan(scheduling=BLOCK), pod)
    assert change.document is pod
    assert change.skipped == (
        'the pod would be refused: $.spec.tolerations[0].key: expected a label key such as "app" or '
        '"example.com/app", got "a b". Mend the key.',
    )


def test_nulls_are_read_as_absent_and_left_where_they_are() -> None:
    pod = a_document(affinity=None, tolerations=None, nodeSelector=None, overhead=None)
    pod["metadata"]["annotations"] = None
    spec = build(a_plan(scheduling=BLOCK), pod).document["spec"]
    assert spec["tolerations"] == BLOCK["tolerations"]
    assert spec["nodeSelector"] is None


def test_building_a_pod_changes_nobody_elses_parts() -> None:
    """What is added belongs to the plan, and the rest to whoever gave it."""
    plan = a_plan(scheduling=BLOCK, capacity={"strategy": "spot-only"}, versionAntiAffinity={"required": True})
    given = a_document()
    first = build_pod(given, plan, "", CLASSES).document
    expected = deepcopy(first)
    for pod in (given, expected):  # the second has all of it already, and more than one term
        build_pod(pod, plan, "spot", CLASSES)
    assert given == a_document()
    assert first == expected
    assert build_pod(a_document(), plan, "", CLASSES).document == expected
