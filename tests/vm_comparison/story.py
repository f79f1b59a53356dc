"""What became of virtual machines, told of the changes that a watch shows. Pure: the same for both clusters.

Who moved, who was started again, who waits or stays, in the order in which it happened to each. Which of several equal
machines came first, and which of several equal nodes was chosen, is chance and not told.
"""

from __future__ import annotations

from typing import NamedTuple

from testbed.client import Json

FINAL = ("Succeeded", "Failed")
TARGET_LABEL = "kubevirt.io/migrationJobUID"


class Story(NamedTuple):
    answers: dict[str, str]  # machine → what the first request for its eviction was answered
    courses: dict[str, tuple[str, ...]]  # machine → what happened to it, in order
    endings: dict[str, str]  # machine → how it stands in the end
    first_wave: int  # migrations that were begun before the first of them was over


class Observer:
    """Takes in every change of instances, migrations and pods; tells the story of it at any time."""

    def __init__(self) -> None:
        self.instances: dict[str, Json] = {}
        self.migrations: dict[str, Json] = {}
        self.pods: dict[str, Json] = {}
        self.courses: dict[str, list[str]] = {}
        self.answers: dict[str, str] = {}
        self.first_wave = 0
        self._running: dict[str, tuple[str, str]] = {}  # machine → uid and node of the instance that last ran
        self._starts: dict[str, str] = {}  # machine → its first node
        self._is_first_over = False

    def observe_instance(self, instance: Json, *, is_deleted: bool = False) -> None:
        name, uid = instance["metadata"]["name"], instance["metadata"]["uid"]
        if is_deleted:
            self.instances.pop(name, None)
            return
        self.instances[name] = instance
        status = instance.get("status", {})
        if status.get("phase") != "Running" or not status.get("nodeName"):
            return
        before, node = self._running.get(name), status["nodeName"]
        if before is None:
            self._starts[name] = node
        elif before[0] != uid:
            self.courses.setdefault(name, []).append("started again")
        elif before[1] != node:
            self.courses.setdefault(name, []).append("moved")
        self._running[name] = (uid, node)

    def observe_migration(self, migration: Json, *, is_deleted: bool = False) -> None:
        name, phase = migration["metadata"]["name"], migration.get("status", {}).get("phase", "")
        before = self.migrations.get(name)
        if is_deleted:
            self.migrations.pop(name, None)
            return
        self.migrations[name] = migration
        self._is_first_over = self._is_first_over or phase in FINAL
        if before is None and not self._is_first_over:
            self.first_wave += 1
        was = before.get("status", {}).get("phase", "") if before is not None else ""
        if phase == "Failed" != was:
            self.courses.setdefault(migration["spec"]["vmiName"], []).append("migration failed")

    def observe_pod(self, pod: Json, *, is_deleted: bool = False) -> None:
        name = pod["metadata"]["name"]
        if is_deleted:
            self.pods.pop(name, None)
        else:
            self.pods[name] = pod

    def node_of(self, machine: str) -> str:
        return str(self.instances.get(machine, {}).get("status", {}).get("nodeName", ""))

    def is_running(self, machine: str) -> bool:
        return bool(self.instances.get(machine, {}).get("status", {}).get("phase") == "Running")

    def pods_on(self, node: str) -> list[Json]:
        """Those of machines that have not ended."""
        return [
            pod
            for _, pod in sorted(self.pods.items())
            if pod["spec"].get("nodeName") == node and pod.get("status", {}).get("phase") not in FINAL
        ]

    def tell(self) -> Story:
        endings = {name: self._ending_of(name) for name in sorted(self._starts)}
        courses = {name: tuple(course) for name, course in sorted(self.courses.items())}
        return Story(dict(sorted(self.answers.items())), courses, endings, self.first_wave)

    def _ending_of(self, name: str) -> str:
        instance = self.instances.get(name)
        if instance is None:
            return "gone"
        waiting = [pod for pod in self.pods.values() if machine_of(pod) == name and is_refused(pod)]
        if any(TARGET_LABEL in pod["metadata"]["labels"] for pod in waiting):
            return "runs, its migration waits for a node"
        if waiting:
            return "waits for a node"
        status = instance.get("status", {})
        place = "where it was" if status.get("nodeName") == self._starts[name] else "elsewhere"
        if "started again" in self.courses.get(name, ()):
            place = "anew"  # by chance on the same node
        leaving = ", is to leave" if status.get("evacuationNodeName") else ""
        return f"{status.get('phase')} {place}{leaving}"


def machine_of(pod: Json) -> str:
    return str(pod["metadata"].get("annotations", {}).get("kubevirt.io/domain", ""))


def is_refused(pod: Json) -> bool:
    """Whether the scheduler has found no node for it."""
    status = pod.get("status", {})
    return status.get("phase") == "Pending" and any(
        condition["type"] == "PodScheduled" and condition["status"] == "False"
        for condition in status.get("conditions") or ()
    )
