"""The ports: what Wukong needs from outside: a cluster, a clock, a meter, a ledger, an executor.

They are implemented in higher rows.

`cluster.kube` implements `Cluster` over HTTP for a real API server, `embedded.store` in one process without one. One
conformance suite (tests/conformance) holds for every implementation. Errors are the ClusterErrors of errors.py.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

import msgspec

from wukong.api.ledger import ReplicaRecord, WorkloadRecord
from wukong.api.resources import Key, Resource
from wukong.api.unreadable import Unreadable
from wukong.api.usage import NodeUsage
from wukong.errors import ClusterError

FIELD_MANAGER = "wukong"  # who is noted for the fields that we write, unless somebody else is named
Document = dict[str, Any]  # an object as JSON has it: what we write, and what we read where no struct is needed
T = TypeVar("T")
EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
PatchType = Literal["json", "merge", "strategic", "apply"]
Propagation = Literal["", "Background", "Foreground", "Orphan"]


class Selection(msgspec.Struct, frozen=True):
    """Which objects of a kind: by namespace ("" for all), labels and fields, in kubectl's own syntax."""

    namespace: str = ""
    labels: str = ""
    fields: str = ""


EVERYTHING = Selection()


class Page(msgspec.Struct, Generic[T], frozen=True):
    """One page of a list. `token` is "" on the last; pass it on to get the next.

    `unreadable` are the objects of it that could not be read, and so are not among the items.
    """

    items: list[T]
    resource_version: str
    token: str = ""
    unreadable: list[Unreadable] = []


class Event(msgspec.Struct, Generic[T], frozen=True):
    """One watch event. A BOOKMARK's object carries only its resourceVersion.

    Of an object that could not be read it is an Event[Unreadable].
    """

    type: EventType
    object: T


class Listing(msgspec.Struct, Generic[T], frozen=True):
    """A page of all objects of a kind, listed first or again. After the last page, what was in none is no more.

    A first page that comes before the last of the pages before it begins the list anew. Short lists have one page.
    """

    items: list[T]
    resource_version: str
    unreadable: list[Unreadable] = []
    is_first: bool = True
    is_last: bool = True


class WatchFailure(msgspec.Struct, frozen=True):
    """A list or a watch broke. It is begun again after `retry_seconds`."""

    error: ClusterError
    retry_seconds: float


class KindMissing(msgspec.Struct, frozen=True):
    """The API server answered that it has no such kind. It is asked again after `retry_seconds`."""

    retry_seconds: float


# What comes of following a kind: all there is, each watch event after it (bookmarks too), and what went wrong.
WatchUpdate: TypeAlias = Listing[T] | Event[T] | Event[Unreadable] | WatchFailure | KindMissing


class PatchBody(msgspec.Struct, frozen=True):
    """A patch and how to read it. `json` takes a list of operations; `force` and `manager` are for apply.

    With `is_dry_run` the API server answers with what would come of it, and nothing is stored.
    """

    type: PatchType
    body: Any
    manager: str = FIELD_MANAGER
    force: bool = False
    is_dry_run: bool = False


class Cluster(Protocol):
    """A Kubernetes API. `read` says what to decode objects into: a struct of wukong.api, or dict."""

    async def get(self, resource: Resource, key: Key, read: type[T]) -> T: ...

    async def list(
        self,
        resource: Resource,
        read: type[T],
        selection: Selection = EVERYTHING,
        *,
        limit: int = 0,
        token: str = "",
        resource_version: str | None = None,
    ) -> Page[T]:
        """One page. `resource_version="0"` accepts an answer from the server's cache; None asks for the newest."""
        ...

    def watch(
        self, resource: Resource, read: type[T], selection: Selection = EVERYTHING, *, resource_version: str
    ) -> AsyncGenerator[Event[T] | Event[Unreadable], None]:
        """Events after this version, bookmarks included, until the server ends the stream. Raises Gone when too old.

        Whoever stops before the end closes it (`contextlib.aclosing`).
        """
        ...

    async def create(self, resource: Resource, body: Document, namespace: str = "") -> Document: ...

    async def patch(self, resource: Resource, key: Key, patch: PatchBody, subresource: str = "") -> Document: ...

    async def delete(
        self,
        resource: Resource,
        key: Key,
        *,
        uid: str = "",
        resource_version: str = "",
        grace_seconds: int | None = None,
        propagation: Propagation = "",
    ) -> None: ...

    async def evict(self, key: Key, *, uid: str = "", grace_seconds: int | None = None) -> None:
        """Delete a pod through its disruption budgets. TooManyRequests: a budget says not now."""
        ...

    async def bind(self, key: Key, node: str, *, uid: str = "") -> None: ...

    async def scale(
        self, resource: Resource, key: Key, replicas: int, *, resource_version: str = "", manager: str = FIELD_MANAGER
    ) -> None: ...


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch."""
        ...


class Meter(Protocol):
    async def measure(self) -> list[NodeUsage]:
        """What is in use now, of the nodes that the meter knows."""
        ...


class Ledger(Protocol):
    """A store of replica records. Every store keeps the order of semantics/record_order.py, each write being one
    transaction. Raises LedgerFailed where it cannot read or write, and OutcomeUnknown where a write got no answer."""

    async def write(self, record: ReplicaRecord) -> WorkloadRecord:
        """Take in a record. Returns what is said of the workload now, be it this or a later one."""
        ...

    async def list_latest(self) -> list[WorkloadRecord]:
        """What is said of every workload of this cluster, closed ones too, sorted by name."""
        ...

    async def list_history(self, object_name: str) -> list[ReplicaRecord]:
        """All that is kept of one workload, the oldest first; empty if nothing was ever recorded."""
        ...


class Executor(Protocol):
    def run(self, work: Callable[[int], T], seeds: Iterable[int]) -> Iterator[T]:
        """Give what `work` returns for each seed, in whatever order they are done. Raises what it raises."""
        ...
