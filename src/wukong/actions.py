"""What a controller wants done, as data. Controllers return these; only the runtime performs them.

So dry-run, recording and replay are one feature: an Outcome can be looked at, kept, or performed on any Cluster.
"""

from __future__ import annotations

import msgspec

from wukong.api.kinds import WORKLOAD_RECORDS
from wukong.api.ledger import ReplicaRecord
from wukong.api.resources import Key, Resource
from wukong.ports import FIELD_MANAGER, Document, PatchBody, Propagation


class Create(msgspec.Struct, frozen=True, tag=True):
    resource: Resource
    body: Document
    namespace: str = ""


class Patch(msgspec.Struct, frozen=True, tag=True):
    resource: Resource
    key: Key
    patch: PatchBody
    subresource: str = ""


class Delete(msgspec.Struct, frozen=True, tag=True):
    resource: Resource
    key: Key
    uid: str = ""
    resource_version: str = ""
    grace_seconds: int | None = None
    propagation: Propagation = ""


class Evict(msgspec.Struct, frozen=True, tag=True):
    key: Key
    uid: str = ""
    grace_seconds: int | None = None


class Bind(msgspec.Struct, frozen=True, tag=True):
    key: Key
    node: str
    uid: str = ""


class Scale(msgspec.Struct, frozen=True, tag=True):
    resource: Resource
    key: Key
    replicas: int
    resource_version: str = ""
    manager: str = FIELD_MANAGER  # who is noted as the field manager of the size


class Note(msgspec.Struct, frozen=True, tag=True):
    """A Kubernetes Event about an object: reason CamelCase, at most 128 characters; text at most 1024.

    `action` is what was done or tried, the reason where it is not said. `reporter` is who says so, Wukong unless named.
    """

    about: Resource
    key: Key
    reason: str
    text: str
    uid: str = ""
    is_warning: bool = False
    action: str = ""
    reporter: str = ""


class Record(msgspec.Struct, frozen=True, tag=True):
    """Have the ledger take in a record. To repeat it changes nothing, and to be late takes nothing back."""

    record: ReplicaRecord

    @property
    def resource(self) -> Resource:
        return WORKLOAD_RECORDS

    @property
    def key(self) -> Key:
        return Key("", self.record.object_name)


Action = Create | Patch | Delete | Evict | Bind | Scale | Note | Record


class Outcome(msgspec.Struct, frozen=True):
    """What to do now, in order, and when to look again (seconds; None: only when something changes)."""

    actions: tuple[Action, ...] = ()
    requeue_after: float | None = None
    assumed: tuple[Bind, ...] = ()  # pods that count on a node from now on although they are not to be bound yet


DONE = Outcome()
