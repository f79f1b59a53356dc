"""The embedded cluster, as story_play.py wants one: virtual time, KubeVirt played by actors."""

from __future__ import annotations

from collections.abc import Callable

from testbed.client import Json
from vm_comparison.story import Observer
from wukong.api.kinds import NAMESPACES, NODES, VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, VIRTUAL_MACHINES
from wukong.api.resources import Key
from wukong.app.embedded import Settings, build_cluster
from wukong.embedded.scenario.play.steps import Drains
from wukong.embedded.world.objects import Pod, VirtualMachineInstance, VirtualMachineInstanceMigration
from wukong.errors import ClusterError
from wukong.ports import PatchBody
from wukong.state import Change

NAMESPACE = "shop"


class EmbeddedCluster:
    def __init__(self, seed: int) -> None:
        self.observer = Observer()
        self.world = build_cluster(Settings(seed), Drains()).world
        self.world.listen(self._observe)
        self.world.server.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})

    def _observe(self, change: Change) -> None:
        subject = change.new if change.new is not None else change.old
        is_deleted = change.new is None
        match subject:
            case VirtualMachineInstance():
                self.observer.observe_instance(subject.document, is_deleted=is_deleted)
            case VirtualMachineInstanceMigration():
                self.observer.observe_migration(subject.document, is_deleted=is_deleted)
            case Pod():
                self.observer.observe_pod(subject.document, is_deleted=is_deleted)

    async def add_node(self, name: str, labels: dict[str, str]) -> None:
        status = {
            "capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        }
        meta = {"name": name, "labels": {"kubernetes.io/hostname": name, "kubernetes.io/arch": "amd64", **labels}}
        self.world.server.create(NODES, {"metadata": meta, "status": status})
        self.world.run(seconds=5)

    async def set_cordon(self, node: str, is_cordoned: bool) -> None:
        self._patch_node(node, {"spec": {"unschedulable": is_cordoned or None}})

    async def add_taint(self, node: str, key: str) -> None:
        self._patch_node(node, {"spec": {"taints": [{"key": key, "effect": "NoSchedule"}]}})

    def _patch_node(self, node: str, body: Json) -> None:
        self.world.server.patch(NODES, Key("", node), PatchBody("merge", body))
        self.world.run(seconds=1)

    async def create_vm(self, vm: Json) -> None:
        self.world.server.create(VIRTUAL_MACHINES, vm, NAMESPACE)

    async def create_migration(self, machine: str) -> str:
        body = {"metadata": {"generateName": "move-"}, "spec": {"vmiName": machine}}
        try:
            self.world.server.create(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, body, NAMESPACE)
        except ClusterError as error:
            return words_of(str(error), NAMESPACE)
        return ""

    async def evict(self, pod: Json) -> str:
        try:
            self.world.server.evict(Key(NAMESPACE, pod["metadata"]["name"]))
        except ClusterError as error:
            return words_of(str(error), NAMESPACE)
        return ""

    async def wait(self, seconds: float, until: Callable[[], bool] | None = None) -> bool:
        return self.world.run((lambda _: until()) if until is not None else None, seconds=seconds) == "held"


def words_of(message: str, namespace: str) -> str:
    """A refusal without what differs from cluster to cluster."""
    return message.replace(f"{namespace}/", "NAMESPACE/").partition("denied the request: ")[2] or message
