"""A sample of `make compare-manifests`: the same manifests and patches on a real API server and on the embedded one.

And the table of field types beside the fields that the real server itself publishes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest

from conftest import FIGURE
from manifest_comparison.comparison import Comparison
from manifest_comparison.objects import list_hand_table, list_refusals, make_subject
from small_cluster import ManualClock
from testbed.client import ApiError
from testbed.pytest_plugin import Bed
from wukong.api.field_types import ANY, LIST, MAP, STRUCT, Type, type_of
from wukong.api.kinds import CUSTOM_RESOURCE_DEFINITIONS, KINDS, NAMESPACES
from wukong.api.unknown_fields import find_unknown_fields
from wukong.cluster.credentials import load
from wukong.cluster.kube import Kube
from wukong.embedded.store import Store

SEEDS = range(1, 16)
EVERY = 9  # of the hand table, and of the refusals

pytestmark = pytest.mark.slow(waits=10)


async def test_manifests_are_stored_changed_and_refused_alike(
    bed: Bed, namespace: str, record_property: Callable[[str, object], None]
) -> None:
    async with Kube(load(str(bed.kubeconfig))) as real, Store(ManualClock()) as embedded:
        await embedded.create(NAMESPACES, {"metadata": {"name": "twin"}})
        comparison = Comparison(real, embedded, (namespace, "twin"))
        for table in (list_hand_table(), list_refusals()):
            for subject in islice(table, 0, None, EVERY):
                await comparison.play(subject, f"hand {subject.before['metadata']['name']}")
        for seed in SEEDS:
            await comparison.play(make_subject(seed), str(seed))
    assert not comparison.differences, "\n".join(map(str, comparison.differences))
    counts = comparison.counts
    assert counts["objects refused"] > 10
    assert counts["no change"] > 50
    assert counts["rollouts"] > 10
    record_property(FIGURE, f"{counts['objects']} manifests and {counts['changes']} changes alike on both API servers")


POD = {
    "nodeSelectr": {"disk": "ssd"},
    "containers": [
        {
            "name": "main",
            "image": "web:1",
            "ports": [{"containerPort": 80, "port": 80}],
            "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name", "field": "x"}}}],
            "resources": {"request": {"cpu": "1"}},
            "livenessProbe": {"httpGet": {"port": 80, "url": "/"}, "initialDelay": 3},
            "securityContext": {"runAsUsr": 1},
        }
    ],
    "volumes": [{"name": "a", "emptyDir": {"size": "1Gi"}}, {"name": "b", "projected": {"sources": [{"secrets": {}}]}}],
    "affinity": {"podAntiAffinity": {"required": []}},
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelectors": {}}
    ],
}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClas": "fast"}
TEMPLATE = {"metadata": {"labels": {"app": "web"}, "label": {}}, "spec": POD}
WORKLOAD = {"selector": {"matchLabels": {"app": "web"}, "matchLabel": {}}, "template": TEMPLATE, "replica": 9}
SLIPS: dict[str, dict[str, Any]] = {
    "Pod": POD,
    "Deployment": {**WORKLOAD, "strategy": {"rollingUpdate": {"maxsurge": 1}}},
    "StatefulSet": {**WORKLOAD, "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": CLAIM}]},
    "DaemonSet": {**WORKLOAD, "updateStrategy": {"rolling": {}}},
    "Job": {"template": {**TEMPLATE, "spec": {**POD, "restartPolicy": "Never"}}, "backoff": 1},
    "PodDisruptionBudget": {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 1, "max": 1},
    "PersistentVolumeClaim": CLAIM,
}


async def test_the_fields_that_we_call_unknown_are_those_that_the_server_does(bed: Bed, namespace: str) -> None:
    strictly = {"fieldValidation": "Strict", "dryRun": "All"}
    async with bed.client() as client:
        for kind, spec in SLIPS.items():
            resource = KINDS.resource_named(kind)
            manifest = {"apiVersion": resource.api_version, "kind": kind, "metadata": {"name": "web"}, "spec": spec}
            with pytest.raises(ApiError) as refused:
                await client.send("POST", resource.path(namespace), manifest, params=strictly)
            real = {f"$.{path}" for path in re.findall(r'unknown field "([^"]+)"', str(refused.value))}
            assert {problem.partition(":")[0] for problem in find_unknown_fields(manifest)} == real
            assert len(real) > (len(POD) if "template" in spec else 0)


async def test_the_table_of_fields_is_what_the_server_publishes(bed: Bed) -> None:
    async with bed.client() as client:
        documents: dict[str, Any] = {}
        for kind in KINDS:
            if kind.origin != "kubernetes" or kind.resource == CUSTOM_RESOURCE_DEFINITIONS:
                continue  # a definition's schema is a document of another kind
            resource = kind.resource
            path = f"apis/{resource.group}/{resource.version}" if resource.group else f"api/{resource.version}"
            if path not in documents:
                documents[path] = (await client.get(f"/openapi/v3/{path}"))["components"]["schemas"]
            schemas = documents[path]
            name = next(
                key
                for key, schema in schemas.items()
                if {"group": resource.group, "kind": resource.kind, "version": resource.version}
                in schema.get("x-kubernetes-group-version-kind", ())
            )
            type_ = type_of(resource)
            assert type_ is not None, resource.kind
            assert find_differences(type_, schemas[name], schemas, resource.kind, set()) == []


def find_differences(type_: Type, schema: Any, schemas: Any, path: str, seen: set[str]) -> list[str]:
    """What differs between a type of the table and the schema of a server: names, shapes, merge keys."""
    schema = resolve(schema, schemas)
    if type_.shape == LIST:
        assert type_.inner is not None
        return find_differences(type_.inner, schema["items"], schemas, f"{path}[]", seen)
    if type_.shape == MAP:
        assert type_.inner is not None
        return find_differences(type_.inner, schema["additionalProperties"], schemas, f"{path}{{}}", seen)
    if type_.shape != STRUCT:
        return [] if type_.shape == ANY or "properties" not in schema else [f"{path}: {type_.shape}"]
    if type_.name in seen:
        return []
    seen.add(type_.name)
    properties = schema.get("properties") or {}
    if set(properties) != set(type_.fields):
        return [f"{path}: {sorted(set(properties) ^ set(type_.fields))}"]
    problems = []
    for name, field in type_.fields.items():
        entry = properties[name]
        keys = tuple(entry.get("x-kubernetes-list-map-keys") or ())
        if field.keys != keys or (field.merge_key or "") != entry.get("x-kubernetes-patch-merge-key", ""):
            problems.append(f"{path}.{name}: keys {field.keys}, the server has {keys}")
        problems += find_differences(field.type, entry, schemas, f"{path}.{name}", seen)
    return problems


def resolve(schema: Any, schemas: Any) -> Any:
    for inner in (schema, *(schema.get("allOf") or ())):
        if "$ref" in inner:
            return schemas[inner["$ref"].rpartition("/")[2]]
    return schema
