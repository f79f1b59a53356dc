"""What the embedded API server refuses to store, with every problem and its place."""

from __future__ import annotations

from typing import Any

import pytest

from wukong.api.kinds import (
    CONFIG_MAPS,
    DAEMON_SETS,
    DEPLOYMENTS,
    NAMESPACES,
    POD_DISRUPTION_BUDGETS,
    PRIORITY_CLASSES,
    REPLICA_SETS,
    SECRETS,
    STATEFUL_SETS,
    WUKONGS,
)
from wukong.api.resources import Key, Resource
from wukong.embedded.store import Server
from wukong.embedded.world.clock import VirtualClock
from wukong.errors import Invalid
from wukong.ports import Document, PatchBody

LABELS = {"app": "web"}
TEMPLATE: Document = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "main", "image": "app:1"}]}}
NEGATIVE = "must be greater than or equal to 0"
PERCENT = "a valid percent string must be a numeric string followed by an ending '%'"


def a_server() -> Server:
    server = Server(VirtualClock())
    server.create(NAMESPACES, {"metadata": {"name": "shop"}})
    return server


def refusal(resource: Resource, document: Document) -> str:
    """What the server says to a new object; nothing if it takes it."""
    namespace = "" if not resource.namespaced else "shop"
    try:
        a_server().create(resource, {"metadata": {"name": "web"}, **document}, namespace)
    except Invalid as error:
        return str(error)
    return ""


def workload(**spec: Any) -> Document:
    return {"spec": {"selector": {"matchLabels": LABELS}, "template": TEMPLATE, **spec}}


def rolling(**parameters: Any) -> Document:
    return workload(strategy={"type": "RollingUpdate", "rollingUpdate": parameters})


def updating(type_: str | None = "RollingUpdate", **parameters: Any) -> Document:
    return workload(updateStrategy={"type": type_, "rollingUpdate": parameters})


@pytest.mark.parametrize(
    ("resource", "document", "problem"),
    [
        *((kind, workload(**{field: -1}), f"spec.{field}: Invalid value: -1: {NEGATIVE}")
          for kind in (DEPLOYMENTS, STATEFUL_SETS)
          for field in ("replicas", "minReadySeconds")),
        (DEPLOYMENTS, workload(revisionHistoryLimit=-1), f"spec.revisionHistoryLimit: Invalid value: -1: {NEGATIVE}"),
        (REPLICA_SETS, workload(replicas=-1), f"spec.replicas: Invalid value: -1: {NEGATIVE}"),
        (DAEMON_SETS, workload(minReadySeconds=-1), f"spec.minReadySeconds: Invalid value: -1: {NEGATIVE}"),
        (DEPLOYMENTS, workload(selector=None), "spec.selector: Required value"),
        (DEPLOYMENTS, workload(selector={"matchLabels": {"app": "other"}}),
         'spec.template.metadata.labels: Invalid value: {"app": "web"}: `selector` does not match template `labels`'),
        (DEPLOYMENTS, workload(strategy={"type": "Both"}),
         'spec.strategy: Unsupported value: "Both": supported values: "Recreate", "RollingUpdate"'),
        (DEPLOYMENTS, workload(strategy={"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}),
         "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"),
        (DEPLOYMENTS, rolling(maxSurge=0, maxUnavailable="0%"),
         'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "0%": may not be 0 when `maxSurge` is 0'),
        (DEPLOYMENTS, rolling(maxSurge=-1),
         f"spec.strategy.rollingUpdate.maxSurge: Invalid value: -1: {NEGATIVE}"),
        (DEPLOYMENTS, rolling(maxUnavailable="25"),
         f'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "25": {PERCENT}'),
        (DEPLOYMENTS, rolling(maxUnavailable="101%"),
         'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "101%": must not be greater than 100%'),
        (DAEMON_SETS, updating("Never"),
         'spec.updateStrategy: Unsupported value: "Never": supported values: "RollingUpdate", "OnDelete"'),
        (DAEMON_SETS, updating(maxUnavailable="101%"),
         'spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: "101%": must not be greater than 100%'),
        (DAEMON_SETS, updating(maxUnavailable=0, maxSurge=-1),
         f"spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: -1: {NEGATIVE}"),
        (STATEFUL_SETS, updating(partition=-1),
         f"spec.updateStrategy.rollingUpdate.partition: Invalid value: -1: {NEGATIVE}"),
        (DEPLOYMENTS, workload(template={**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}),
         'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"'),
        (DEPLOYMENTS, workload(template={**TEMPLATE, "spec": {"containers": []}}),
         "spec.template.spec.containers: Required value"),
        (POD_DISRUPTION_BUDGETS, {"spec": {"minAvailable": 1, "maxUnavailable": 1}},
         "spec: Invalid value: minAvailable and maxUnavailable cannot be both set"),
        (POD_DISRUPTION_BUDGETS, {"spec": {"minAvailable": -1}}, f"spec.minAvailable: Invalid value: -1: {NEGATIVE}"),
        (POD_DISRUPTION_BUDGETS, {"spec": {"maxUnavailable": "x%"}},
         f'spec.maxUnavailable: Invalid value: "x%": {PERCENT}'),
        (POD_DISRUPTION_BUDGETS, {"spec": {"minAvailable": "101%"}},
         'spec.minAvailable: Invalid value: "101%": must not be greater than 100%'),
        (PRIORITY_CLASSES, {"metadata": {"name": "system-own"}, "value": 1},
         "metadata.name: Forbidden: names with 'system-' prefix are reserved for system use only"),
        (PRIORITY_CLASSES, {"value": 1_000_000_001},
         "value: Forbidden: maximum allowed value of a user defined priority is 1000000000"),
        (CONFIG_MAPS, {"data": {"a b": "c"}}, 'data[a b]: Invalid value: "a b": a valid config key must consist of'),
        (SECRETS, {"data": {"a/b": "YQ=="}}, 'data[a/b]: Invalid value: "a/b": a valid config key must consist of'),
        (CONFIG_MAPS, {"data": {"a": 1}},
         "cannot unmarshal number into Go struct field ConfigMap.data.a of type string"),
        (CONFIG_MAPS, {"metadata": {"name": "Web"}},
         'metadata.name: Invalid value: "Web": a lowercase RFC 1123 subdomain'),
        (NAMESPACES, {"metadata": {"name": "a.b"}}, 'metadata.name: Invalid value: "a.b": a lowercase RFC 1123 label'),
        (NAMESPACES, {"metadata": {"name": "a" * 64}}, "a lowercase RFC 1123 label is needed"),
        (CONFIG_MAPS, {"metadata": {"name": "web", "labels": {"a": "-"}}},
         "metadata.labels: Invalid value: \"-\": a valid label"),
        (CONFIG_MAPS, {"metadata": {"name": "web", "labels": {"a": 1}}}, "labels"),
        (CONFIG_MAPS, {"metadata": {"name": "web", "annotations": {"a": 1}}}, "annotations"),
        (CONFIG_MAPS, {"metadata": {"name": "web", "finalizers": ["held"]}},
         'metadata.finalizers: Invalid value: "held": name is neither a standard finalizer name'),
        (CONFIG_MAPS, {"metadata": {"name": "web", "ownerReferences": [{"kind": "Pod", "name": "a", "uid": "u"}]}},
         'metadata.ownerReferences[0].apiVersion: Invalid value: "": must not be empty'),
        (CONFIG_MAPS, {"metadata": {"name": "web", "ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name, "controller": True} for name in "ab"]}},
         "metadata.ownerReferences: Invalid value: Only one reference can have Controller set to true"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_with_its_place(resource: Resource, document: Document, problem: str) -> None:
    assert problem in refusal(resource, document)


@pytest.mark.parametrize(
    ("resource", "document"),
    [
        (DEPLOYMENTS, workload(replicas=0, minReadySeconds=0, revisionHistoryLimit=0)),
        (DAEMON_SETS, workload(replicas=-1)),  # it has no such field
        (DEPLOYMENTS, workload(strategy={"type": "Recreate"})),
        (DEPLOYMENTS, rolling(maxSurge="200%", maxUnavailable="100%")),
        (DEPLOYMENTS, rolling(maxSurge=1, maxUnavailable=0)),
        (DEPLOYMENTS, rolling(maxSurge=0, maxUnavailable=1)),
        (DAEMON_SETS, updating("OnDelete")),
        (DAEMON_SETS, updating(maxUnavailable="100%", maxSurge=0)),
        (STATEFUL_SETS, updating(partition=0)),
        (POD_DISRUPTION_BUDGETS, {"spec": {"minAvailable": 0}}),
        (POD_DISRUPTION_BUDGETS, {"spec": {"maxUnavailable": "100%"}}),
        (PRIORITY_CLASSES, {"value": 1_000_000_000}),
        (PRIORITY_CLASSES, {"value": -5}),
        (CONFIG_MAPS, {"data": {"a-._B9": "c"}}),
        (NAMESPACES, {"metadata": {"name": "a" * 63}}),
        (CONFIG_MAPS, {"metadata": {"name": "a.b"}}),
        *((CONFIG_MAPS, {"metadata": {"name": "web", "finalizers": [name]}})
          for name in ("orphan", "foregroundDeletion", "kubernetes", "example.com/held")),
    ],
)  # fmt: skip
def test_what_is_just_within_bounds_is_stored(resource: Resource, document: Document) -> None:
    assert refusal(resource, document) == ""


def test_an_object_that_is_being_deleted_gets_no_new_finalizer() -> None:
    server, key = a_server(), Key("shop", "web")
    server.create(CONFIG_MAPS, {"metadata": {"name": "web", "finalizers": ["a.com/x", "a.com/y"]}}, "shop")
    server.delete(CONFIG_MAPS, key)
    with pytest.raises(Invalid, match="no new finalizers can be added if the object is being deleted"):
        server.patch(CONFIG_MAPS, key, PatchBody("merge", {"metadata": {"finalizers": ["a.com/x", "a.com/z"]}}))
    server.patch(CONFIG_MAPS, key, PatchBody("merge", {"metadata": {"finalizers": ["a.com/x"]}}))
    assert server.get(CONFIG_MAPS, key)["metadata"]["finalizers"] == ["a.com/x"]


def test_a_generated_name_that_is_taken_is_drawn_anew() -> None:
    def generate(server: Server) -> str:
        document = server.create(CONFIG_MAPS, {"metadata": {"generateName": "web-"}}, "shop")
        return str(document["metadata"]["name"])

    plain = a_server()
    first, second = generate(plain), generate(plain)
    busy = a_server()
    busy.create(CONFIG_MAPS, {"metadata": {"name": first}}, "shop")
    assert generate(busy) == second
    busy.create(NAMESPACES, {"metadata": {"name": "other"}})
    assert len({first, second}) == 2


@pytest.mark.parametrize("prefix", ["", None])
def test_an_object_needs_a_name_or_the_beginning_of_one(prefix: str | None) -> None:
    with pytest.raises(Invalid, match=r"metadata\.name: Required value: name or generateName is required"):
        a_server().create(CONFIG_MAPS, {"metadata": {"generateName": prefix}}, "shop")


def test_a_generated_name_has_room_for_its_suffix() -> None:
    document = a_server().create(CONFIG_MAPS, {"metadata": {"generateName": "a" * 63}}, "shop")
    name = document["metadata"]["name"]
    assert (len(name), name[:58]) == (63, "a" * 58)


def test_what_a_new_object_of_a_custom_kind_says_of_its_status_is_not_even_looked_at() -> None:
    """The API server takes it away before it validates; of what it has a struct for, it must be readable."""
    twice = [{"type": "Accepted", "status": "True"}] * 2
    document: Document = {"metadata": {"name": "web"}, "spec": {}, "status": {"conditions": twice, "replicas": "many"}}
    created = a_server().create(WUKONGS, document, "shop")
    assert "status" not in created
