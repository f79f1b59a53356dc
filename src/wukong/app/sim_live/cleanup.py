"""Takes back what a run did to a real cluster: objects, pods, claims, namespaces, nodes, cordons. However it ended.

Called by player.py while the mirror still follows the cluster, so nothing is polled: what shall go is waited for. Only
what the run made is removed, by its uid; what somebody else put in its place stays, and so does a cordon of others.
"""

from __future__ import annotations

from collections.abc import Callable

from wukong.actions import Delete
from wukong.api.core import Pod
from wukong.api.kinds import NAMESPACES, NODES, PODS, REPLICA_SETS
from wukong.api.meta import controller_of
from wukong.api.resources import Key, Resource, key_of
from wukong.app.sim_live.ownership import LEFT_BEHIND, RUN_LABEL, CreatedObject, carries_label, is_labelled, uid_of
from wukong.app.sim_live.plan import find_object
from wukong.app.sim_live.real_cluster import RealCluster
from wukong.errors import ClusterError, Conflict
from wukong.ports import Document, Propagation, Selection

REMOVAL_SECONDS = 60.0  # for pods with the usual grace of 30 s
LAST_KINDS = (NAMESPACES, NODES)


async def clean_up(real: RealCluster) -> list[str]:
    """Remove everything that the run created, and restore cordons. Returns what was not taken back, and why."""
    cleanup = _Cleanup(real)
    await cleanup.restore_cordons()
    await cleanup.remove_objects()
    await cleanup.remove_pods()
    await cleanup.remove_claims()
    await cleanup.remove_namespaces_and_nodes()
    return cleanup.problems


class _Cleanup:
    def __init__(self, real: RealCluster) -> None:
        self.real = real
        self.problems: list[str] = []

    async def restore_cordons(self) -> None:
        own_nodes = {created.key.name for created in self.real.created if created.resource == NODES}
        for name in sorted(set(self.real.cordons.records) - own_nodes):
            try:
                problem = await self.real.cordons.restore(name)
            except ClusterError as error:
                problem = f"the cordon of Node {name}: {error}"
            self.problems += [problem] if problem else []

    async def remove_objects(self) -> None:
        for created in reversed(self.real.created):
            if created.resource not in LAST_KINDS:
                await self._remove_created(created, "Background")

    async def remove_pods(self) -> None:
        """Wait for their kubelets, then end those that nobody ends: their node is gone, silent or slow.

        Until its ReplicaSets are gone, too, another pod may be made. Of the last ones the mirror may not know yet.
        """
        await self._wait_until(
            lambda: not self._has_replica_sets() and not any(map(self.real.has_kubelet, self._list_pods()))
        )
        for pod in self._list_pods():
            await self._remove(PODS, key_of(pod), pod.metadata.uid, grace_seconds=0)
        if self.real.created:
            for document in await self._list_labelled(PODS):
                meta = document["metadata"]
                await self._remove(PODS, Key(meta["namespace"], meta["name"]), meta["uid"], grace_seconds=0)

    async def remove_claims(self) -> None:
        """Claims of a StatefulSet stay when it goes; in namespaces that were there before nobody else removes them."""
        if not self.real.created:
            return
        for resource in LEFT_BEHIND:
            for document in await self._list_labelled(resource):
                meta = document["metadata"]
                await self._remove(resource, Key(meta["namespace"], meta["name"]), meta["uid"])

    async def remove_namespaces_and_nodes(self) -> None:
        for kind in LAST_KINDS:
            for created in self.real.created:
                if created.resource == kind:
                    await self._remove_created(created)
        await self._wait_until(lambda: not self._list_remaining())
        self.problems += [f"{created.resource.kind} {created.key} is still there" for created in self._list_remaining()]

    def _has_replica_sets(self) -> bool:
        """Whether one is left that a Deployment of the run has made."""
        replica_sets = self.real.state.objects.get(REPLICA_SETS.group_kind, {}).values()
        return any(
            controller_of(replica_set.metadata) and is_labelled(replica_set, self.real.plan.run)
            for replica_set in replica_sets
        )

    def _list_pods(self) -> list[Pod]:
        """Those of the workloads that the run created, and all in the namespaces it created."""
        run, own_namespaces = self.real.plan.run, self.real.own_namespaces()
        pods = self.real.state.all(Pod)
        return [pod for pod in pods if pod.metadata.namespace in own_namespaces or is_labelled(pod, run)]

    def _list_remaining(self) -> list[CreatedObject]:
        """The namespaces and nodes of the run that the mirror still has."""
        return [
            created
            for created in self.real.created
            if created.resource in LAST_KINDS and created.uid and created.uid == self._find_uid(created)
        ]

    def _find_uid(self, created: CreatedObject) -> str:
        subject = self.real.state.objects.get(created.resource.group_kind, {}).get(created.key)
        return subject.metadata.uid if subject is not None else ""

    async def _list_labelled(self, resource: Resource) -> list[Document]:
        """What carries the run's label in the namespaces that were there before; the others go as a whole."""
        documents: list[Document] = []
        try:
            for namespace in sorted(self.real.plan.namespaces - self.real.own_namespaces()):
                selection = Selection(namespace, f"{RUN_LABEL}={self.real.plan.run}")
                documents += (await self.real.cluster.list(resource, dict, selection)).items
        except ClusterError as error:
            self.problems.append(f"{resource.kind} of the run: {error}")
        return documents

    async def _remove_created(self, created: CreatedObject, propagation: Propagation = "") -> None:
        uid = created.uid or await self._look_for(created)
        if uid:
            await self._remove(created.resource, created.key, uid, propagation=propagation)

    async def _look_for(self, created: CreatedObject) -> str:
        """The uid of what the run may have created, when the answer got lost; "" if it is not there, or another's."""
        try:
            document = await find_object(self.real.cluster, created.resource, created.key)
        except ClusterError as error:
            self.problems.append(f"{created.resource.kind} {created.key}: {error}")
            return ""
        return uid_of(document) if document is not None and carries_label(document, self.real.plan.run) else ""

    async def _remove(
        self, resource: Resource, key: Key, uid: str, *, grace_seconds: int | None = None, propagation: Propagation = ""
    ) -> None:
        action = Delete(resource, key, uid=uid, grace_seconds=grace_seconds, propagation=propagation)
        try:
            await self.real.performer.perform(action, self.real.clock.now())
        except Conflict:
            pass  # gone: what has its name now is another's
        except ClusterError as error:
            self.problems.append(f"{resource.kind} {key}: {error}")

    async def _wait_until(self, holds: Callable[[], bool]) -> None:
        """Where the cluster cannot be followed any more, go on: what there is to remove is known."""
        try:
            await self.real.wait_until(holds, REMOVAL_SECONDS)
        except Exception as error:
            problem = f"nobody waited for what was removed, for the cluster cannot be followed any more: {error}"
            self.problems += [problem] if problem not in self.problems else []
