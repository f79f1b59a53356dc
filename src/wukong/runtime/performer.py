"""Actions become calls of a Cluster, or of a Ledger. The one place that writes on behalf of controllers.

Called by `loop`, one action at a time; raises the ClusterErrors of errors.py. When an answer got lost it reads the
object and repeats the action only if it has not happened (`delivery`). It never decides what to do.
"""

from __future__ import annotations

from wukong.actions import Action, Bind, Create, Delete, Evict, Note, Patch, Record, Scale
from wukong.api.kinds import WORKLOAD_RECORDS
from wukong.api.resources import Key, Resource
from wukong.errors import ClusterError, NotFound
from wukong.ports import Cluster, Document, Ledger
from wukong.runtime.delivery import DO, Delivery, describe_action, object_of, written_version_of
from wukong.runtime.effect_check import Write
from wukong.runtime.event_writer import EventWriter
from wukong.runtime.pending_writes import WrittenVersion

__all__ = ["Performer", "describe_action", "object_of"]


class Performer:
    def __init__(self, cluster: Cluster, identity: str = "wukong", ledger: Ledger | None = None) -> None:
        self.cluster, self.ledger = cluster, ledger
        self.notes = EventWriter(cluster, identity)

    async def perform(self, action: Action, now: float) -> WrittenVersion | None:
        """Returns the version it wrote, where the API server says."""
        if isinstance(action, Note):
            await self.notes.write(action, now)
            return None
        if isinstance(action, Record):
            return await self._record(action)
        return await self._deliver(Delivery(action))

    async def look_again(self, action: Action) -> WrittenVersion | None:
        """After an unknown outcome: the version to wait for if it has happened. OutcomeUnknown if none can tell yet."""
        if isinstance(action, Note | Record):  # a record is written again, which changes nothing
            return None
        return await self._deliver(Delivery(action, only_looks=True))

    async def _record(self, action: Record) -> WrittenVersion | None:
        assert self.ledger is not None, "a component that records brings a ledger"
        meta = (await self.ledger.write(action.record)).metadata
        return WrittenVersion(WORKLOAD_RECORDS.group_kind, action.key, meta.resource_version)

    async def _deliver(self, delivery: Delivery) -> WrittenVersion | None:
        while delivery.step is not None:
            try:
                answer = await (self._do(delivery.action) if delivery.step is DO else self._look(*delivery.place))
            except ClusterError as error:
                delivery.fail(error)
            else:
                delivery.answer(answer)
        return delivery.written

    async def _do(self, action: Write) -> WrittenVersion | None:
        cluster = self.cluster
        match action:
            case Create(resource, body, namespace):
                return written_version_of(resource, await cluster.create(resource, body, namespace))
            case Patch(resource, key, patch, subresource):
                return written_version_of(resource, await cluster.patch(resource, key, patch, subresource))
            case Delete() | Evict():
                await self._remove(action)
            case Bind(key, node, uid):
                await cluster.bind(key, node, uid=uid)
            case Scale(resource, key, replicas, version, manager):
                await cluster.scale(resource, key, replicas, resource_version=version, manager=manager)
        return None

    async def _remove(self, action: Delete | Evict) -> None:
        """Gone already is as good as removed."""
        try:
            if isinstance(action, Evict):
                await self.cluster.evict(action.key, uid=action.uid, grace_seconds=action.grace_seconds)
                return
            await self.cluster.delete(
                action.resource,
                action.key,
                uid=action.uid,
                resource_version=action.resource_version,
                grace_seconds=action.grace_seconds,
                propagation=action.propagation,
            )
        except NotFound:
            return

    async def _look(self, resource: Resource, key: Key) -> Document:
        """The object as it is now, after an answer got lost."""
        document: Document = await self.cluster.get(resource, key, dict)
        return document
