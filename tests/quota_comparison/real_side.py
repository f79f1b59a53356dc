"""A case on a real control plane: the same requests, and how it ends.

Admission goes by informers of its own, which tell of objects in the order of their versions: once a last namespace,
made for nothing else, is known to it with its limit range and its quota, all that was made before is known, too.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from quota_comparison.answers import Answers, Ending, find_failure, read_amounts, read_answer, read_refusal
from quota_comparison.random_case import CLASSES, Case
from testbed.client import ApiError, Client, Json

_PATHS = {
    "Pod": ("/api/v1", "pods"),
    "Service": ("/api/v1", "services"),
    "PersistentVolumeClaim": ("/api/v1", "persistentvolumeclaims"),
    "LimitRange": ("/api/v1", "limitranges"),
    "ResourceQuota": ("/api/v1", "resourcequotas"),
    "Deployment": ("/apis/apps/v1", "deployments"),
    "ReplicaSet": ("/apis/apps/v1", "replicasets"),
    "StatefulSet": ("/apis/apps/v1", "statefulsets"),
    "Job": ("/apis/batch/v1", "jobs"),
}
_MARKER = "requests.example.com/marker"
WAIT_SECONDS = 120.0
_LOOK_SECONDS = 0.1


class RealSide:
    def __init__(self, client: Client) -> None:
        self.client = client
        self._namespaces: dict[int, str] = {}
        self._setup: dict[int, list[Any]] = {}

    async def prepare(self, cases: Sequence[Case]) -> None:
        """Make the namespaces of all cases, and wait until admission knows them."""
        for name, value in CLASSES.items():
            await self._create_class({"metadata": {"name": name}, "value": value})
        async with asyncio.TaskGroup() as group:
            for case in cases:
                group.create_task(self._furnish(case))
        await self._wait_for_admission()

    async def _create_class(self, body: Json) -> None:
        try:
            await self.client.create("/apis/scheduling.k8s.io/v1/priorityclasses", body)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise

    async def _furnish(self, case: Case) -> None:
        self._namespaces[case.seed] = namespace = f"quota-{case.seed}-{secrets.token_hex(3)}"
        meta = {"name": namespace, "labels": case.labels}
        await self.client.create("/api/v1/namespaces", {"metadata": meta})
        setup = [await self._create(namespace, "LimitRange", body) for body in case.limit_ranges]
        setup += [await self._create(namespace, "ResourceQuota", body) for body in case.quotas]
        self._setup[case.seed] = setup
        for quota in case.quotas:
            path = f"{path_of('ResourceQuota', namespace)}/{quota['metadata']['name']}"
            await self.client.wait_until(path, lambda seen: bool((seen.get("status") or {}).get("hard")))
        await self.client.wait_until(f"/api/v1/namespaces/{namespace}/serviceaccounts/default", lambda account: True)

    async def _wait_for_admission(self) -> None:
        namespace = f"quota-last-{secrets.token_hex(3)}"
        await self.client.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
        await self.client.wait_until(f"/api/v1/namespaces/{namespace}/serviceaccounts/default", lambda account: True)
        limits = [{"type": "Container", "max": {"memory": "1Gi"}}]
        await self._create(namespace, "LimitRange", {"metadata": {"name": "last"}, "spec": {"limits": limits}})
        quota = {"metadata": {"name": "last"}, "spec": {"hard": {_MARKER: "0"}}}
        await self._create(namespace, "ResourceQuota", quota)
        marker = {_MARKER.removeprefix("requests."): "1"}
        for amounts, expected in (({"memory": "2Gi"}, "maximum memory"), (marker, "exceeded quota")):
            container = {"name": "c", "image": "app:1", "resources": {"limits": amounts}}
            pod = {"metadata": {"name": "last"}, "spec": {"containers": [container], "schedulerName": "nobody"}}
            answer = await self._wait(partial(self._dry_run, namespace, pod), partial(_contains, expected))
            assert expected in answer, f"admission does not know {namespace} after {WAIT_SECONDS:g} s: {answer}"
        await self.client.delete(f"/api/v1/namespaces/{namespace}")

    async def _dry_run(self, namespace: str, pod: Json) -> str:
        try:
            await self.client.send("POST", path_of("Pod", namespace), pod, params={"dryRun": "All"})
        except ApiError as error:
            return str(error)
        return ""

    async def play(self, case: Case, expected: Sequence[Answers]) -> Answers:
        """`expected` is how it may end: until then is waited, or until the time is up."""
        namespace = self._namespaces[case.seed]
        objects = [await self._create(namespace, body["kind"], body) for body in case.objects]
        workload = await self._create(namespace, case.workload["kind"], case.workload)
        endings = [answers.ending for answers in expected]
        ending = await self._wait(partial(self._look, namespace, case), endings.__contains__)
        raised = None
        if case.raised:
            path = f"{path_of('ResourceQuota', namespace)}/{case.quotas[0]['metadata']['name']}"
            await self.client.patch(path, {"spec": {"hard": case.raised}})
            endings_after = [answers.raised for answers in expected]
            raised = await self._wait(partial(self._look, namespace, case), endings_after.__contains__)
        await self.client.delete(f"/api/v1/namespaces/{namespace}")
        return Answers(self._setup[case.seed], objects, workload, ending, raised)

    async def _create(self, namespace: str, kind: str, body: Json) -> Any:
        try:
            return read_answer(await self.client.create(path_of(kind, namespace), body))
        except ApiError as error:
            return read_refusal(str(error).partition(": ")[2])

    async def _look(self, namespace: str, case: Case) -> Ending:
        quotas, pods = await self._list(namespace, "ResourceQuota"), await self._list(namespace, "Pod")
        failing: set[str] = set()
        if case.workload["kind"] in ("StatefulSet", "Job"):
            failing = await self._list_failures(namespace, case)
        else:
            for kind in ("ReplicaSet", "Deployment"):
                failing |= {find_failure(item) for item in await self._list(namespace, kind)}
        return Ending(
            read_amounts(quotas, "used"),
            read_amounts(quotas, "hard"),
            len([pod for pod in pods if pod["metadata"].get("ownerReferences")]),
            frozenset(failing - {""}),
        )

    async def _list_failures(self, namespace: str, case: Case) -> set[str]:
        """The last FailedCreate of the workload's Events, unless it has all its pods."""
        events = (await self.client.get(f"/api/v1/namespaces/{namespace}/events"))["items"]
        failed = [event for event in events if event["reason"] == "FailedCreate"]
        wanted = case.workload["spec"].get("replicas", case.workload["spec"].get("parallelism"))
        pods = [pod for pod in await self._list(namespace, "Pod") if pod["metadata"].get("ownerReferences")]
        if not failed or len(pods) == wanted:
            return set()
        message = max(failed, key=_time_of)["message"]
        for prefix in ("Error creating: ", "failed error: "):
            message = message.partition(prefix)[2] or message
        return {read_refusal(message)}

    async def _list(self, namespace: str, kind: str) -> list[Json]:
        items: list[Json] = (await self.client.get(path_of(kind, namespace)))["items"]
        return items

    async def _wait(self, look: Callable[[], Any], is_so: Callable[[Any], bool]) -> Any:
        """What is seen once it is so, or when the time is up."""
        seen = await look()
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                while not is_so(seen):
                    await asyncio.sleep(_LOOK_SECONDS)
                    seen = await look()
        except TimeoutError:
            pass
        return seen


def _contains(word: str, text: str) -> bool:
    return word in text


def _time_of(event: Json) -> tuple[str, int]:
    return event.get("lastTimestamp") or "", int(event["metadata"]["resourceVersion"])


def path_of(kind: str, namespace: str) -> str:
    group, plural = _PATHS[kind]
    return f"{group}/namespaces/{namespace}/{plural}"
