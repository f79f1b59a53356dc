"""What the embedded store makes of new objects: admission, our own kinds, snapshots. Beyond test_against_kube.py."""

from __future__ import annotations

import pytest

from embedded.store_fixtures import NAMESPACE, a_map, a_pod, a_server, key, merge_patch
from live.bad_policies import REFUSED, REPORTED, Bad
from live.bad_wukongs import CEL, CONDITION, KUBEVIRT, BadWukong, bad_wukongs_of
from wukong.api.core import Node
from wukong.api.crds import build_crds
from wukong.api.kinds import (
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    KINDS,
    NODES,
    PLACEMENT_POLICIES,
    PODS,
    PRIORITY_CLASSES,
    WUKONGS,
)
from wukong.api.resources import Key, Resource
from wukong.embedded.store import Server, Store
from wukong.embedded.store.normalize import format_quantity
from wukong.errors import Denied, Invalid, NotFound
from wukong.ports import Document, PatchBody

CLASSES = PRIORITY_CLASSES
POLICIES = PLACEMENT_POLICIES
TERM = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}, "matchLabelKeys": ["version"]}
APART = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}}


def create_pod(server: Server, pod: Document) -> Document:
    return server.create(PODS, pod, NAMESPACE)


# Pods ------------------------------------------------------------------------------------------------------------


def test_a_priority_class_becomes_a_number() -> None:
    server = a_server()
    server.create(CLASSES, {"metadata": {"name": "high"}, "value": 1000, "preemptionPolicy": "Never"})
    spec = create_pod(server, a_pod(priorityClassName="high"))["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (1000, "Never")
    with pytest.raises(Denied, match="priorityClassName"):
        create_pod(server, a_pod("other", priorityClassName="hihg"))


def test_the_global_default_holds_where_no_class_is_named() -> None:
    server = a_server()
    server.create(CLASSES, {"metadata": {"name": "usual"}, "value": 7, "globalDefault": True})
    spec = create_pod(server, a_pod())["spec"]
    assert (spec["priorityClassName"], spec["priority"]) == ("usual", 7)


def test_mutating_functions_come_before_label_keys_are_merged() -> None:
    def label(resource: Resource, document: Document) -> Document:
        if resource == PODS:
            document["metadata"]["labels"]["version"] = "v2"
        return document

    server = a_server(mutators=[label])
    [term] = create_pod(server, a_pod(affinity=APART))["spec"]["affinity"]["podAntiAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
    assert term["labelSelector"]["matchExpressions"] == [{"key": "version", "operator": "In", "values": ["v2"]}]


def test_mutating_functions_see_what_the_plugins_filled_in() -> None:
    seen: list[Document] = []

    def look(resource: Resource, document: Document) -> Document:
        seen.append(document)
        return document

    create_pod(a_server(mutators=[look]), a_pod())
    spec = seen[-1]["spec"]
    assert (spec["priority"], len(spec["tolerations"])) == (0, 2)


def test_a_templates_label_keys_are_left_alone() -> None:
    labels = {"app": "web", "version": "1"}
    template = {**a_pod(labels=labels, affinity=APART)}
    template["metadata"] = {"labels": labels}
    deployment = a_server().create(
        DEPLOYMENTS,
        {"metadata": {"name": "web"}, "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template}},
        NAMESPACE,
    )
    assert deployment["spec"]["template"]["spec"]["affinity"] == APART


def test_a_pods_affinity_cannot_be_changed_unless_it_is_gated() -> None:
    server = a_server()
    create_pod(server, a_pod())
    with pytest.raises(Invalid, match="pod updates may not change fields other than"):
        server.patch(PODS, key("web"), merge_patch(spec={"nodeSelector": {"zone": "a"}}))
    create_pod(server, a_pod("gated", schedulingGates=[{"name": "wukong.test/gate"}]))
    changed = server.patch(PODS, key("gated"), merge_patch(spec={"nodeSelector": {"zone": "a"}, "schedulingGates": []}))
    assert changed["spec"]["nodeSelector"] == {"zone": "a"}
    assert "schedulingGates" not in changed["spec"]


def test_a_new_node_is_not_ready_and_a_restored_one_is_as_it_was() -> None:
    server = a_server()
    created = server.create(NODES, {"metadata": {"name": "new"}})
    assert created["spec"]["taints"] == [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
    meta = {"name": "old", "uid": "its-own", "resourceVersion": "99", "creationTimestamp": "2020-01-01T00:00:00Z"}
    server.restore(NODES, [{"metadata": meta, "spec": {}, "status": {"capacity": {"cpu": "4"}}}])
    restored = server.get(NODES, Key("", "old"))
    assert (restored["metadata"]["uid"], restored["spec"], restored["kind"]) == ("its-own", {}, "Node")
    assert restored["metadata"]["resourceVersion"] == str(server.database.version)


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("1000m", "1"), ("0.5", "500m"), ("1024Mi", "1Gi"), (1024, "1024"), ("1000", "1k"), ("1500Mi", "1500Mi"),
        ("1.5Gi", "1536Mi"), ("0", "0"), ("100u", "100u"), ("1e3", "1e3"), ("2E", "2E"), ("512", "512"),
        ("-1000m", "-1"), ("1000Ki", "1000Ki"), ("0.5Ki", "512"),
    ],
)  # fmt: skip
def test_quantities_are_kept_in_their_shortest_form(written: str | int, kept: str) -> None:
    assert format_quantity(written) == kept


# Our own kinds ---------------------------------------------------------------------------------------------------


def create_policy(server: Server, bad: Bad) -> Document:
    resource = KINDS.resource_named(bad.kind)
    body: Document = {"metadata": {"name": bad.name}}
    if bad.spec is not None:
        body["spec"] = bad.spec
    return server.create(resource, body, NAMESPACE if resource.namespaced else "")


@pytest.mark.parametrize("bad", REFUSED, ids=lambda bad: bad.name)
def test_what_the_schema_and_its_rules_refuse_is_refused(bad: Bad) -> None:
    """The same table as for a real server, word for word."""
    with pytest.raises(Invalid) as caught:
        create_policy(a_server(), bad)
    assert bad.path in str(caught.value)
    assert bad.says in str(caught.value)


@pytest.mark.parametrize("bad", REPORTED, ids=lambda bad: bad.name)
def test_what_only_the_policy_controller_can_tell_is_stored(bad: Bad) -> None:
    assert create_policy(a_server(), bad)["metadata"]["generation"] == 1


@pytest.mark.parametrize("bad", bad_wukongs_of(CEL), ids=lambda bad: bad.name)
def test_what_the_rules_refuse_in_a_wukong_is_refused(bad: BadWukong) -> None:
    """The same table as for a real server, word for word."""
    with pytest.raises(Invalid) as caught:
        create_wukong(a_server(), bad)
    assert f"{bad.path}: " in str(caught.value)
    assert bad.says in str(caught.value)


@pytest.mark.parametrize("bad", [*bad_wukongs_of(CONDITION), *bad_wukongs_of(KUBEVIRT)], ids=lambda bad: bad.name)
def test_what_others_refuse_in_a_wukong_is_stored(bad: BadWukong) -> None:
    assert create_wukong(a_server(), bad)["spec"] == bad.spec


def create_wukong(server: Server, bad: BadWukong) -> Document:
    body: Document = {"metadata": {"name": bad.name}, **({} if bad.spec is None else {"spec": bad.spec})}
    return server.create(WUKONGS, body, NAMESPACE)


def test_replicas_of_a_wukong_can_be_changed_but_neither_added_nor_removed() -> None:
    server = a_server()
    for name, spec in (("one", {}), ("many", {"replicas": 1})):
        server.create(WUKONGS, {"metadata": {"name": name}, "spec": spec}, NAMESPACE)
    server.patch(WUKONGS, key("many"), merge_patch(spec={"replicas": 3}))
    for name, replicas in (("one", 1), ("many", None)):
        with pytest.raises(Invalid, match=r"spec\.replicas: .*expected replicas to stay given, or absent"):
            server.patch(WUKONGS, key(name), merge_patch(spec={"replicas": replicas}))


def test_unknown_fields_are_pruned_and_defaults_filled_in() -> None:
    server = a_server()
    spec = {"capacity": {"strategy": "spot-first", "typo": 1}, "unknown": {}}
    created = server.create(
        POLICIES, {"metadata": {"name": "web"}, "spec": spec, "status": {"conditions": []}}, NAMESPACE
    )
    assert created["spec"] == {"capacity": {"strategy": "spot-first"}, "mode": "Enforce"}
    assert "status" not in created


def test_the_generation_of_a_policy_counts_its_spec_and_status_is_apart() -> None:
    server = a_server()
    server.create(POLICIES, {"metadata": {"name": "web"}, "spec": {}}, NAMESPACE)
    condition: Document = {"type": "Accepted", "status": "True", "reason": "Fine", "message": ""}
    condition |= {"lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1}
    with_status = server.patch(
        POLICIES, key("web"), merge_patch(status={"conditions": [condition]}, spec={"mode": "Observe"}), "status"
    )
    assert (with_status["metadata"]["generation"], with_status["spec"]["mode"]) == (1, "Enforce")
    changed = server.patch(POLICIES, key("web"), merge_patch(spec={"mode": "Observe"}, status=None))
    assert (changed["metadata"]["generation"], len(changed["status"]["conditions"])) == (2, 1)


def test_custom_kinds_take_no_strategic_patches() -> None:
    server = a_server()
    server.create(POLICIES, {"metadata": {"name": "web"}, "spec": {}}, NAMESPACE)
    with pytest.raises(Invalid) as caught:
        server.patch(POLICIES, key("web"), PatchBody("strategic", {"spec": {"mode": "Observe"}}))
    assert caught.value.code == 415


def test_a_kind_goes_with_its_definition_and_its_objects_with_it() -> None:
    server = a_server()
    server.create(POLICIES, {"metadata": {"name": "web"}, "spec": {}}, NAMESPACE)
    server.delete(CUSTOM_RESOURCE_DEFINITIONS, Key("", "placementpolicies.placement.novasphere.dev"))
    with pytest.raises(NotFound, match="could not find the requested resource"):
        server.get(POLICIES, key("web"))
    assert server.database.list_objects("placementpolicies.placement.novasphere.dev") == []


def test_an_applied_definition_adds_its_kind_and_a_changed_one_changes_it() -> None:
    server = a_server(definitions=[])
    [definition] = [crd for crd in build_crds() if crd["spec"]["names"]["kind"] == "PlacementPolicy"]
    name = Key("", definition["metadata"]["name"])
    server.patch(CUSTOM_RESOURCE_DEFINITIONS, name, PatchBody("apply", definition))
    server.create(POLICIES, {"metadata": {"name": "web"}, "spec": {}}, NAMESPACE)
    served = [{**definition["spec"]["versions"][0], "served": False}]
    server.patch(CUSTOM_RESOURCE_DEFINITIONS, name, merge_patch(spec={"versions": served}))
    with pytest.raises(NotFound):
        server.get(POLICIES, key("web"))


def test_without_definitions_our_kinds_are_not_there() -> None:
    with pytest.raises(NotFound):
        Server(a_server().clock, definitions=[]).list(POLICIES)


# Names and reading -----------------------------------------------------------------------------------------------


def test_generated_names_differ_and_are_the_same_every_time() -> None:
    def generate_names() -> list[str]:
        server = a_server()
        body = {"metadata": {"generateName": "web-"}}
        return [server.create(CONFIG_MAPS, body, NAMESPACE)["metadata"]["name"] for _ in range(200)]

    first = generate_names()
    assert len(set(first)) == 200
    assert first == generate_names()


async def test_objects_are_read_into_structs() -> None:
    async with Store(server=a_server()) as store:
        await store.create(NODES, {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "4000m"}}})
        node = await store.get(NODES, Key("", "n"), Node)
    assert (node.status.capacity, node.status.allocatable) == ({"cpu": "4"}, {"cpu": "4"})


def test_a_map_that_is_immutable_stays() -> None:
    server = a_server()
    server.create(CONFIG_MAPS, {**a_map("fixed"), "immutable": True}, NAMESPACE)
    with pytest.raises(Invalid, match="immutable"):
        server.patch(CONFIG_MAPS, key("fixed"), merge_patch(data={"a": "2"}))
