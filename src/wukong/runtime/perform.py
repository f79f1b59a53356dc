"""Actions become calls of a Cluster. The one place that changes a cluster on behalf of controllers.

Called by `loop`, one action at a time; raises the ClusterErrors of errors.py. When an answer got lost it reads the
object and repeats the action only if it has not happened. It never decides what to do.
"""

from __future__ import annotations

from wukong.actions import Action, Bind, Create, Delete, Evict, Note, Patch, Scale
from wukong.api.resources import RESOURCES, Key, Resource
from wukong.errors import AlreadyExists, ClusterError, Conflict, NotFound, OutcomeUnknown
from wukong.ports import Cluster, Document
from wukong.runtime.echoes import Written
from wukong.runtime.happened import Write, has_happened
from wukong.runtime.notes import Notes

_TRIES = 3
_PODS = RESOURCES["Pod"]


class Performer:
    def __init__(self, cluster: Cluster, identity: str = "wukong") -> None:
        self.cluster = cluster
        self.notes = Notes(cluster, identity)

    async def perform(self, action: Action, now: float) -> Written | None:
        """Gives the version it wrote, where the API server says."""
        if isinstance(action, Note):
            await self.notes.write(action, now)
            return None
        is_in_doubt = False
        for _ in range(_TRIES):
            try:
                return await self._do(action)
            except OutcomeUnknown:
                is_in_doubt = True
                found = await self._look(action)
                if has_happened(action, found):
                    return _shown(action, found)
            except (AlreadyExists, Conflict):
                # After a lost answer this may be our own write: the first request arrived late.
                if is_in_doubt and has_happened(action, found := await self._look(action)):
                    return _shown(action, found)
                raise
        raise OutcomeUnknown(f"no answer {_TRIES} times to: {described(action)}")

    async def look_again(self, action: Action) -> Written | None:
        """After an unknown outcome: the version to wait for if it has happened. OutcomeUnknown if none can tell yet."""
        if isinstance(action, Note):
            return None
        found = await self._look(action)
        return _shown(action, found) if has_happened(action, found) else None

    async def _do(self, action: Write) -> Written | None:
        cluster = self.cluster
        match action:
            case Create(resource, body, namespace):
                return _written(resource, await cluster.create(resource, body, namespace))
            case Patch(resource, key, patch, subresource):
                return _written(resource, await cluster.patch(resource, key, patch, subresource))
            case Delete() | Evict():
                await self._remove(action)
            case Bind(key, node, uid):
                await cluster.bind(key, node, uid=uid)
            case Scale(resource, key, replicas, version):
                await cluster.scale(resource, key, replicas, resource_version=version)
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

    async def _look(self, action: Write) -> Document | None:
        """The object as it is now, after an answer got lost."""
        resource, key = subject(action)
        if not key.name:
            raise OutcomeUnknown(f"no answer, and no name to look for, after: {described(action)}")
        try:
            found: Document = await self.cluster.get(resource, key, dict)
        except NotFound:
            return None
        except ClusterError as error:
            raise OutcomeUnknown(f"no answer, and none when looking again ({error}): {described(action)}") from error
        return found


def subject(action: Action) -> tuple[Resource, Key]:
    """The object an action is about. A name still to be generated is ""."""
    if isinstance(action, Create):
        meta = action.body.get("metadata", {})
        return action.resource, Key(action.namespace or meta.get("namespace", ""), meta.get("name", ""))
    if isinstance(action, Evict | Bind):
        return _PODS, action.key
    if isinstance(action, Note):
        return action.about, action.key
    return action.resource, action.key


def _written(resource: Resource, found: Document) -> Written:
    meta = found.get("metadata", {})
    key = Key(meta.get("namespace", ""), meta.get("name", ""))
    return Written(resource.kind, key, meta.get("resourceVersion", ""))


def _shown(action: Write, found: Document | None) -> Written | None:
    """The version to wait for, as if the answer had come: our write is in it, and in the watch it is still to come."""
    if found is None or not isinstance(action, Create | Patch):
        return None
    return _written(action.resource, found)


def described(action: Action) -> str:
    """`Bind Pod shop/web-1`: for messages and logs."""
    resource, key = subject(action)
    return f"{type(action).__name__} {resource.kind} {key}"
