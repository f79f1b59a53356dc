"""Actions become calls of the embedded API server, at once. The world performs with it what controllers decide.

The twin of runtime.performer without a network. `perform` is for who sees every write at once; a `RetryingTransport` is
for a process whose answers may get lost: it looks and repeats as the live runtime does, by the same code. Raises the
ClusterErrors of errors.py; to remove what is gone already is no failure. Never decides what to do.
"""

from __future__ import annotations

from collections.abc import Callable

from wukong.actions import Action, Bind, Create, Delete, Evict, Note, Patch, Record, Scale
from wukong.api.resources import Key, Resource
from wukong.embedded.ledger import write_record
from wukong.embedded.store import Server
from wukong.embedded.store.deletion import DeleteOptions
from wukong.errors import ClusterError, NotFound
from wukong.ports import Document, PatchBody
from wukong.runtime.delivery import DO, Delivery, written_version_of
from wukong.runtime.effect_check import Write
from wukong.runtime.pending_writes import WrittenVersion

FINALIZE = "finalize"  # of a Namespace: the last word, which only its controller has
Do = Callable[[Write | Record], WrittenVersion | None]
Look = Callable[[Resource, Key], Document]


def perform(server: Server, action: Action) -> WrittenVersion | None:
    """Perform an action. Returns the version it wrote, where that is known."""
    document = write(server, action)
    if not isinstance(action, Create | Patch | Record) or not document:
        return None
    return written_version_of(action.resource, document)


def write(server: Server, action: Action) -> Document | None:
    """Do the same, and return the object that was created, patched or recorded in."""
    match action:
        case Create(resource, body, namespace):
            return server.create(resource, body, namespace or (body.get("metadata") or {}).get("namespace", ""))
        case Patch(_, key, _, subresource) if subresource == FINALIZE:
            server.finalize(key.name)
        case Patch(resource, key, patch, subresource):
            return server.patch(resource, key, patch, subresource)
        case Delete() | Evict():
            _remove(server, action)
        case Bind(key, node, uid):
            server.bind(key, node, uid)
        case Scale(resource, key, replicas, version, manager):
            meta = {"metadata": {"resourceVersion": version}} if version else {}
            body = {**meta, "spec": {"replicas": replicas}}
            server.patch(resource, key, PatchBody("merge", body, manager=manager), "scale")
        case Record(record):
            return write_record(server, record)
        case Note():
            pass  # an Event changes nothing that happens; the world's trace has it
    return None


class RetryingTransport:
    """A process's way to the server. `do` and `look` are the server's own, or have faults in them."""

    def __init__(self, do: Do, look: Look) -> None:
        self._do, self._look = do, look

    def perform(self, action: Action) -> WrittenVersion | None:
        if isinstance(action, Note):
            return None
        # A record may be written again and again, so nobody looks whether it is there: its key comes back.
        return self._do(action) if isinstance(action, Record) else self._deliver(Delivery(action))

    def look_again(self, action: Action) -> WrittenVersion | None:
        """After an unknown outcome: the version to wait for if it has happened. OutcomeUnknown if none can tell yet."""
        return None if isinstance(action, Note | Record) else self._deliver(Delivery(action, only_looks=True))

    def _deliver(self, delivery: Delivery) -> WrittenVersion | None:
        while delivery.step is not None:
            try:
                answer = self._do(delivery.action) if delivery.step is DO else self._look(*delivery.place)
            except ClusterError as error:
                delivery.fail(error)
            else:
                delivery.answer(answer)
        return delivery.written


def _remove(server: Server, action: Delete | Evict) -> None:
    try:
        if isinstance(action, Evict):
            server.evict(action.key, DeleteOptions(uid=action.uid, grace_seconds=action.grace_seconds))
        else:
            options = DeleteOptions(action.uid, action.resource_version, action.grace_seconds, action.propagation)
            server.delete(action.resource, action.key, options)
    except NotFound:
        return
