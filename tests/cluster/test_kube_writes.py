"""Every write is sent to the path, with the parameters and the body that the API server takes for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import pytest

from scripted_api_server import says, served
from wukong.api.kinds import DEPLOYMENTS, NODES, PODS
from wukong.api.resources import Key
from wukong.cluster.kube import Kube
from wukong.errors import ClusterError, OutcomeUnknown
from wukong.ports import PatchBody

WEB, N1 = Key("shop", "web"), Key("", "n1")
POD, NODE = "/api/v1/namespaces/shop/pods/web", "/api/v1/nodes/n1"
DEPLOYMENT = "/apis/apps/v1/namespaces/shop/deployments/web"
OURS = {"fieldManager": "wukong"}
SPEC = {"spec": {"paused": True}}
APPLY, STRATEGIC = "application/apply-patch+yaml", "application/strategic-merge-patch+json"
MERGE, JSON_PATCH = "application/merge-patch+json", "application/json-patch+json"


class Write(NamedTuple):
    send: Callable[[Kube], Awaitable[Any]]
    method: str
    path: str
    query: dict[str, str]
    body: Any
    content_type: str = "application/json"


def delete_options(**more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "DeleteOptions", **more}


def an_eviction(options: dict[str, Any]) -> dict[str, Any]:
    meta = {"name": "web", "namespace": "shop"}
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta, "deleteOptions": options}


def a_binding(**uid: str) -> dict[str, Any]:
    meta, target = {"name": "web", "namespace": "shop", **uid}, {"apiVersion": "v1", "kind": "Node", "name": "n1"}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target}


WRITES = {
    "a create in a namespace": Write(
        lambda kube: kube.create(DEPLOYMENTS, SPEC, "shop"),
        "POST",
        "/apis/apps/v1/namespaces/shop/deployments",
        OURS,
        {"apiVersion": "apps/v1", "kind": "Deployment", **SPEC},
    ),
    "a create of what has no namespace": Write(
        lambda kube: kube.create(NODES, {"metadata": {"name": "n1"}}),
        "POST",
        "/api/v1/nodes",
        OURS,
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}},
    ),
    "a merge patch": Write(
        lambda kube: kube.patch(DEPLOYMENTS, WEB, PatchBody("merge", SPEC)), "PATCH", DEPLOYMENT, OURS, SPEC, MERGE
    ),
    "a patch of what has no namespace": Write(
        lambda kube: kube.patch(NODES, N1, PatchBody("strategic", SPEC)), "PATCH", NODE, OURS, SPEC, STRATEGIC
    ),
    "a patch of a status": Write(
        lambda kube: kube.patch(PODS, WEB, PatchBody("strategic", SPEC), "status"),
        "PATCH",
        f"{POD}/status",
        OURS,
        SPEC,
        STRATEGIC,
    ),
    "an apply": Write(
        lambda kube: kube.patch(DEPLOYMENTS, WEB, PatchBody("apply", SPEC, "me")),
        "PATCH",
        DEPLOYMENT,
        {"fieldManager": "me"},
        {"apiVersion": "apps/v1", "kind": "Deployment", **SPEC},
        APPLY,
    ),
    "a forced apply of a status": Write(
        lambda kube: kube.patch(DEPLOYMENTS, WEB, PatchBody("apply", SPEC, "me", force=True), "status"),
        "PATCH",
        f"{DEPLOYMENT}/status",
        {"fieldManager": "me", "force": "true"},
        {"apiVersion": "apps/v1", "kind": "Deployment", **SPEC},
        APPLY,
    ),
    "a scale": Write(
        lambda kube: kube.scale(DEPLOYMENTS, WEB, 3),
        "PATCH",
        f"{DEPLOYMENT}/scale",
        OURS,
        {"spec": {"replicas": 3}},
        MERGE,
    ),
    "a scale of one version": Write(
        lambda kube: kube.scale(DEPLOYMENTS, WEB, 3, resource_version="7"),
        "PATCH",
        f"{DEPLOYMENT}/scale",
        OURS,
        {"spec": {"replicas": 3}, "metadata": {"resourceVersion": "7"}},
        MERGE,
    ),
    "a delete": Write(lambda kube: kube.delete(PODS, WEB), "DELETE", POD, {}, delete_options()),
    "a delete of what has no namespace": Write(
        lambda kube: kube.delete(NODES, N1, uid="u1"),
        "DELETE",
        NODE,
        {},
        delete_options(preconditions={"uid": "u1"}),
    ),
    "a delete at once, with all that depends on it": Write(
        lambda kube: kube.delete(PODS, WEB, uid="u1", resource_version="7", grace_seconds=0, propagation="Foreground"),
        "DELETE",
        POD,
        {},
        delete_options(
            preconditions={"uid": "u1", "resourceVersion": "7"}, gracePeriodSeconds=0, propagationPolicy="Foreground"
        ),
    ),
    "an eviction": Write(lambda kube: kube.evict(WEB), "POST", f"{POD}/eviction", {}, an_eviction(delete_options())),
    "an eviction of this very pod": Write(
        lambda kube: kube.evict(WEB, uid="u1", grace_seconds=5),
        "POST",
        f"{POD}/eviction",
        {},
        an_eviction(delete_options(preconditions={"uid": "u1"}, gracePeriodSeconds=5)),
    ),
    "a binding": Write(lambda kube: kube.bind(WEB, "n1"), "POST", f"{POD}/binding", {}, a_binding()),
    "a binding of this very pod": Write(
        lambda kube: kube.bind(WEB, "n1", uid="u1"), "POST", f"{POD}/binding", {}, a_binding(uid="u1")
    ),
}


@pytest.mark.parametrize("name", WRITES)
async def test_a_write_is_sent_as_the_api_server_takes_it(name: str) -> None:
    write = WRITES[name]
    async with served(says({})) as (kube, script):
        await write.send(kube)
    (request,) = script.asked
    assert (request.method, request.path, request.query) == (write.method, write.path, write.query)
    assert request.body == write.body
    assert request.headers["Content-Type"] == write.content_type


async def test_a_json_patch_is_sent_as_its_list() -> None:
    operations = [{"op": "remove", "path": "/spec/paused"}]
    async with served(says({"kind": "Deployment"})) as (kube, script):
        answer = await kube.patch(DEPLOYMENTS, WEB, PatchBody("json", operations))
    assert answer == {"kind": "Deployment"}
    assert (script.asked[0].body, script.asked[0].headers["Content-Type"]) == (operations, JSON_PATCH)


@pytest.mark.parametrize(
    "answer", [b"<html>", b"[]", {"metadata": []}, {"metadata": {"name": {}}}, {"metadata": {"uid": 7}}]
)
async def test_an_answer_to_a_write_that_is_no_object_leaves_its_outcome_unknown(answer: Any) -> None:
    async with served(says(answer), says(answer)) as (kube, _):
        with pytest.raises(OutcomeUnknown):
            await kube.create(PODS, {"metadata": {"name": "web"}}, "shop")
        with pytest.raises(ClusterError):
            await kube.get(PODS, Key("shop", "web"), dict)
