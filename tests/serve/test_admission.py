"""The webhooks' shell: whatever is sent, an API server gets an answer that it understands, or one that it ignores."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from aiohttp import ClientSession

from admission_reviews import UID, a_new_pod, a_review, encode, patch_of, read_answer
from serve.test_extender import Noon
from wukong.placement.slices import Slices
from wukong.replies.admission.reply import ObjectRequest, PodRequest, Reply
from wukong.runtime.metrics import AdmissionMetrics, Metrics
from wukong.serve.admission import server
from wukong.serve.admission.server import build_admission_app
from wukong.serve.site import serve

POLICY = {"kind": "PlacementPolicy", "apiVersion": "placement.novasphere.dev/v1alpha1", "metadata": {"name": "web"}}


class Reviewers:
    """Adds an annotation to every pod, and denies every object."""

    def __init__(self) -> None:
        self.pods: list[PodRequest] = []

    def review_pod(self, request: PodRequest, now: float) -> Slices[Reply]:
        self.pods.append(request)
        yield
        if request.meta.labels.get("app") == "broken":
            raise ZeroDivisionError("a mistake of ours")
        return Reply("patched", b'[{"op":"add","path":"/x","value":1}]', warnings=("well",), reasons=("because",))

    def review_object(self, request: ObjectRequest) -> Reply:
        return Reply("denied", message=f'{request.group_kind}: "no"')


class Site:
    def __init__(self, client: ClientSession, metrics: Metrics, reviewers: Reviewers) -> None:
        self.client, self.metrics, self.reviewers = client, metrics, reviewers

    async def post(self, path: str, body: Any, **more: Any) -> tuple[int, bytes]:
        data = body if isinstance(body, bytes) else encode(body)
        async with self.client.post(path, data=data, **more) as answer:
            return answer.status, await answer.read()

    async def review(self, body: Any, path: str = "/mutate") -> dict[str, Any]:
        status, data = await self.post(path, body)
        assert status == 200, data
        return read_answer(data)

    def count(self, result: str) -> float:
        return self.metrics.registry.get_sample_value("wukong_admission_requests_total", {"result": result}) or 0.0


@asynccontextmanager
async def a_site(*, is_synced: bool = True, answer_seconds: float = 1.5) -> AsyncIterator[Site]:
    reviewers, metrics, noon = Reviewers(), Metrics(), Noon(is_synced)
    app = build_admission_app(reviewers, noon, AdmissionMetrics(metrics), noon, answer_seconds=answer_seconds)
    async with AsyncExitStack() as stack:
        port = await serve(stack, app, "127.0.0.1", 0)
        client = await stack.enter_async_context(ClientSession(f"http://127.0.0.1:{port}"))
        yield Site(client, metrics, reviewers)


async def test_a_pod_is_answered_with_a_patch() -> None:
    async with a_site() as site:
        response = await site.review(a_review(a_new_pod()))
        assert response["allowed"] is True
        assert patch_of(response) == [{"op": "add", "path": "/x", "value": 1}]
        assert response["warnings"] == ["well"]
        (request,) = site.reviewers.pods
        assert request.namespace == "shop"
        assert request.meta.labels["app"] == "web"
        assert not request.is_dry_run
        assert site.count("patched") == 1


async def test_an_object_of_our_own_is_denied_with_the_reason() -> None:
    async with a_site() as site:
        response = await site.review(a_review(POLICY), "/validate")
        assert response["allowed"] is False
        assert response["status"]["message"] == 'PlacementPolicy.placement.novasphere.dev: "no"'
        assert response["status"]["code"] == 422


@pytest.mark.parametrize(
    "review",
    [
        a_review(a_new_pod(), operation="UPDATE"),
        a_review(a_new_pod(), operation="DELETE", object=None),
        a_review(a_new_pod(), operation="CONNECT", subResource="exec"),
        a_review(a_new_pod(), subResource="eviction"),
        a_review({"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {}}),
        a_review(a_new_pod(), kind=None),
    ],
)
async def test_what_is_no_new_pod_passes(review: dict[str, Any]) -> None:
    async with a_site() as site:
        assert await site.review(review) == {"uid": UID, "allowed": True}
        assert site.reviewers.pods == []
        assert site.count("left-alone") == 1


@pytest.mark.parametrize("operation", ["DELETE", "CONNECT"])
async def test_our_own_kinds_can_always_be_deleted(operation: str) -> None:
    async with a_site() as site:
        assert (await site.review(a_review(POLICY, operation=operation), "/validate"))["allowed"] is True


@pytest.mark.parametrize(
    "broken",
    [
        {"kind": "Pod"},  # of the kind
        {"operation": 3},
        {"namespace": ["shop"]},
        {"dryRun": "maybe"},
        {"object": "nonsense"},
        {"object": {"metadata": "nonsense"}},
        {"object": {"metadata": {"labels": {"app": 3}}}},
        {"object": {"spec": []}},
    ],
)
async def test_a_review_that_cannot_be_read_but_has_a_uid_is_allowed(broken: dict[str, Any]) -> None:
    async with a_site() as site:
        assert await site.review(a_review(a_new_pod(), **broken)) == {"uid": UID, "allowed": True}
        assert site.count("unreadable") == 1


async def test_nulls_mean_that_nothing_is_there() -> None:
    async with a_site() as site:
        pod = a_new_pod()
        pod["metadata"] |= {"labels": None, "annotations": None, "ownerReferences": None}
        assert patch_of(await site.review(a_review(pod)))
        assert site.reviewers.pods[0].meta.labels == {}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"nonsense",
        b"[]",
        b"{}",
        b'{"request": null}',
        b'{"request": {}}',
        b'{"request": {"uid": ""}}',
        b'{"request": {"uid": 7}}',
        b'{"request": {"uid": "\xff"}}',
        encode(a_review(a_new_pod(), uid="x" * 2000)),
        b'{"request":' + b'{"object":' * 5000,
    ],
)
@pytest.mark.parametrize("path", ["/mutate", "/validate"])
async def test_what_is_no_review_is_told_so(path: str, body: bytes) -> None:
    async with a_site() as site:
        status, data = await site.post(path, body)
        assert status == 400
        assert json.loads(data)["error"]
        assert site.count("malformed") == 1


async def test_a_mistake_of_ours_admits_the_pod_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    async with a_site() as site:
        pod = a_new_pod()
        pod["metadata"]["labels"]["app"] = "broken"
        assert await site.review(a_review(pod)) == {"uid": UID, "allowed": True}
        assert site.count("failed") == 1
        assert "a review failed" in caplog.text


async def test_before_the_cluster_is_known_pods_pass_as_they_are() -> None:
    async with a_site(is_synced=False) as site:
        assert await site.review(a_review(a_new_pod())) == {"uid": UID, "allowed": True}
        assert site.count("unsynced") == 1


async def test_a_reason_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    async with a_site() as site:
        for _ in range(3):
            await site.review(a_review(a_new_pod()))
        assert [record.message for record in caplog.records] == ["not everything was added"]


async def test_other_ways_and_places_are_refused() -> None:
    async with a_site() as site:
        for path, status in (("/mutate", 405), ("/", 404), ("/metrics", 404)):
            async with site.client.get(path) as answer:
                assert answer.status == status
                assert (await answer.json())["error"]
        async with site.client.get("/healthz") as answer:
            assert answer.status == 200
        assert (await site.post("/other", b"{}"))[0] == 404
        assert (await site.post("/mutate", b"x", headers={"Content-Encoding": "gzip"}))[0] == 415


async def test_a_body_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "LIMIT_BYTES", 100_000)
    monkeypatch.setattr(server, "TOTAL_BYTES", 150_000)
    async with a_site() as site:
        assert (await site.post("/mutate", b" " * 100_001))[0] == 413

        async def dribble() -> AsyncIterator[bytes]:
            for _ in range(3):
                yield b" " * 50_000

        async with site.client.post("/mutate", data=dribble()) as answer:
            assert answer.status == 413
        assert site.count("too-large") == 2


async def test_a_body_that_does_not_come_is_given_up() -> None:
    async with a_site(answer_seconds=0.05) as site:
        ended = asyncio.Event()

        async def hang() -> AsyncIterator[bytes]:
            yield b" "
            await ended.wait()

        async with site.client.post("/mutate", data=hang()) as answer:
            assert answer.status == 408
        ended.set()


async def test_a_decision_that_takes_too_long_admits_the_pod_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def ponder(self: Reviewers, request: PodRequest, now: float) -> Slices[Reply]:
        while True:
            yield

    monkeypatch.setattr(Reviewers, "review_pod", ponder)
    async with a_site(answer_seconds=0.05) as site:
        assert await site.review(a_review(a_new_pod())) == {"uid": UID, "allowed": True}
        assert site.count("late") == 1
