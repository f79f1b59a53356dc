"""After a lost answer: what reading the object says about the write."""

from __future__ import annotations

from typing import Any

import pytest

from scripted import refuses, says, served
from wukong.actions import Bind, Create, Delete, Evict, Patch, Scale
from wukong.api.resources import RESOURCES, Key
from wukong.cluster.landed import Write, has_landed
from wukong.ports import PatchBody

PODS, DEPLOYMENTS = RESOURCES["Pod"], RESOURCES["Deployment"]
KEY = Key("shop", "web")
GONE = None


def found(deleted: bool = False, **spec: Any) -> dict[str, Any]:
    meta = {"name": "web", "uid": "u1", "labels": {"app": "web"}}
    return {"metadata": meta | ({"deletionTimestamp": "now"} if deleted else {}), "spec": {"paused": False, **spec}}


def patched(kind: str, body: Any, subresource: str = "") -> Patch:
    return Patch(DEPLOYMENTS, KEY, PatchBody(kind, body), subresource)  # type: ignore[arg-type]


def a_create(**spec: Any) -> Create:
    return Create(PODS, {"metadata": {"name": "web"}, "spec": spec}, "shop")


@pytest.mark.parametrize(
    ("write", "state", "expected"),
    [
        (a_create(hostNetwork=True), found(hostNetwork=True, added="by the server"), True),
        (a_create(hostNetwork=True), found(), False),
        (a_create(), GONE, False),
        (Delete(PODS, KEY, uid="u1"), GONE, True),
        (Delete(PODS, KEY, uid="u1"), found(deleted=True), True),
        (Delete(PODS, KEY, uid="u0"), found(), True),
        (Delete(PODS, KEY, uid="u1"), found(), False),
        (Evict(KEY, uid="u1"), found(), False),
        (Evict(KEY), found(deleted=True), True),
        (Bind(KEY, "n", uid="u1"), found(nodeName="n"), True),
        (Bind(KEY, "n", uid="u1"), found(), False),
        (Bind(KEY, "n", uid="u0"), found(nodeName="n"), None),
        (Bind(KEY, "n"), GONE, None),
        (Scale(DEPLOYMENTS, KEY, 3), found(replicas=3), True),
        (Scale(DEPLOYMENTS, KEY, 3), found(replicas=2), False),
        (patched("merge", {"metadata": {"resourceVersion": "7"}, "spec": {"replicas": 3, "paused": None}}), GONE, None),
        (patched("merge", {"metadata": {"resourceVersion": "7"}, "spec": {"replicas": 3}}), found(replicas=3), True),
        (patched("merge", {"spec": {"paused": None}}), found(paused=True), False),
        (patched("apply", {"metadata": {"labels": {"app": "web"}}}), found(), True),
        (patched("apply", {"metadata": {"labels": {"app": "db"}}}), found(), False),
        (patched("merge", {"spec": {"args": ["a", "b"]}}), found(args=["a"]), False),
        (patched("json", [{"op": "add", "path": "/spec/x", "value": 1}]), found(x=1), None),
        (patched("strategic", {"spec": {"x": 1}}), found(x=1), None),
        (patched("merge", {"spec": {"replicas": 3}}, "scale"), found(replicas=3), None),
    ],
)
async def test_reading_tells(write: Write, state: dict[str, Any] | None, expected: bool | None) -> None:
    async with served(says(state) if state else refuses(404, "NotFound")) as (kube, _):
        assert await has_landed(kube, write) is expected


async def test_a_name_the_server_chose_cannot_be_looked_up() -> None:
    async with served() as (kube, _):
        assert await has_landed(kube, Create(PODS, {"metadata": {"generateName": "web-"}}, "shop")) is None
