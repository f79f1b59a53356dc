"""Counts what is available from outside: pods that are ready, are not being deleted, and whose node is alive."""

from __future__ import annotations

import time
from typing import Any

import msgspec

from spot_comparison.workloads import DOOMED, NAMESPACE, REPLICAS
from testbed.client import Client, Listed, as_json

Json = dict[str, Any]
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"


class Loss(msgspec.Struct):
    """What a workload went through since the notice."""

    fewest: int
    short_seconds: float = 0.0
    missing_seconds: float = 0.0  # replicas missing, times seconds


class Watcher:
    """`begin` starts counting; `kill` counts the pods of the doomed nodes as gone."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.pods: dict[str, Json] = {}
        self.dead: tuple[str, ...] = ()
        self.losses: dict[str, Loss] = {}
        self.began = self._at = 0.0
        self.last_left = 0.0  # seconds after the notice at which the last pod left a doomed node
        self._available: dict[str, int] = {}

    async def look(self) -> None:
        """For ever."""
        async for change in self.client.follow(PODS):
            if isinstance(change, Listed):
                self.pods = {pod["metadata"]["uid"]: pod for pod in map(as_json, change.items)}
            else:
                pod = as_json(change.object)
                uid = pod["metadata"]["uid"]
                if change.type == "DELETED":
                    self.pods.pop(uid, None)
                    if self.began and not self.dead and is_doomed(pod):
                        self.last_left = time.monotonic() - self.began
                else:
                    self.pods[uid] = pod
            self.count()

    def begin(self) -> None:
        self.began = self._at = time.monotonic()
        self._available = self.list_available()
        self.losses = {name: Loss(count) for name, count in self._available.items()}

    def kill(self) -> list[str]:
        """The doomed machines are gone. Returns the pods that went with them."""
        lost = [pod["metadata"]["name"] for pod in self.pods.values() if is_doomed(pod)]
        self.dead = DOOMED
        self.count()
        return sorted(lost)

    def count(self) -> None:
        if not self.began:
            return
        now, elapsed = time.monotonic(), 0.0
        elapsed, self._at = now - self._at, now
        for name, loss in self.losses.items():
            missing = max(0, REPLICAS[name] - self._available[name])
            loss.missing_seconds += missing * elapsed
            loss.short_seconds += elapsed if missing else 0.0
        self._available = self.list_available()
        for name, loss in self.losses.items():
            loss.fewest = min(loss.fewest, self._available[name])

    def list_available(self) -> dict[str, int]:
        counts = dict.fromkeys(REPLICAS, 0)
        for pod in self.pods.values():
            name = pod["metadata"]["labels"]["app"]
            counts[name] = counts.get(name, 0) + self._is_available(pod)
        return {name: counts[name] for name in REPLICAS}

    def _is_available(self, pod: Json) -> bool:
        if pod["metadata"].get("deletionTimestamp") or pod["spec"].get("nodeName") in self.dead:
            return False
        conditions = pod["status"].get("conditions") or ()
        return any(it["type"] == "Ready" and it["status"] == "True" for it in conditions)

    @property
    def is_whole(self) -> bool:
        return self.list_available() == REPLICAS and len(self.counted_pods()) == sum(REPLICAS.values())

    def counted_pods(self) -> list[Json]:
        return [pod for pod in self.pods.values() if pod["metadata"]["labels"]["app"] in REPLICAS]

    def nodes_of(self, name: str) -> list[str]:
        return sorted(
            pod["spec"].get("nodeName", "") for pod in self.pods.values() if pod["metadata"]["labels"]["app"] == name
        )


def is_doomed(pod: Json) -> bool:
    return pod["spec"].get("nodeName") in DOOMED and pod["metadata"]["labels"]["app"] in REPLICAS
