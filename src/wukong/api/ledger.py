"""What the ledger of replicas holds: a ReplicaRecord is a number of replicas that was truly available, and since when.

A WorkloadRecord is what the ledger says of one workload now. It is an internal kind: no API server has it. On a real
cluster a source puts it into the mirror; in an embedded one the ledger itself is made of such objects.
"""

from __future__ import annotations

import msgspec

from wukong.api.meta import Object

LEDGER_GROUP = "ledger.novasphere.dev"


class ReplicaRecord(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True, gc=False):
    """One generation of one workload, with all its replicas of that generation available.

    With `closed_at` it says instead that the workload of this uid is no more; the rest is what was last recorded of it.
    """

    cluster: str = ""
    namespace: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    created: str = ""  # the workload's creationTimestamp
    generation: int = 0
    revision: str = ""
    replicas: int = 0
    available: int = 0
    at: str = ""
    closed_at: str = ""

    @property
    def id(self) -> str:
        """Names it in the history: a generation of a workload is recorded once."""
        return f"{self.uid}-{self.generation}"

    @property
    def object_name(self) -> str:
        """The name of the WorkloadRecord that it belongs to."""
        return object_name_of(self.kind, self.namespace, self.name)

    @property
    def title(self) -> str:
        """`Deployment shop/web`: for people."""
        return f"{self.kind} {self.namespace}/{self.name}"


class WorkloadRecord(Object):
    """What the ledger says of a workload now: its latest record."""

    record: ReplicaRecord = msgspec.field(default_factory=ReplicaRecord)


def object_name_of(kind: str, namespace: str, name: str) -> str:
    """`deployment.shop.web`. Neither a kind nor a namespace has a dot in it, so that no two workloads share one."""
    return f"{kind.lower()}.{namespace}.{name}"
