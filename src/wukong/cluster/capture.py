"""Takes a snapshot of a live cluster: what decides placement, page by page, and nothing else.

Called by `wukong snapshot` and by the verbs that work on the current context. Secrets are never read, nor config maps
but the one in which cluster-autoscaler tells its node groups; of the objects that are, only the fields our structs
model are kept, and no annotations but the notice on a node that it is about to go (placement.leaving_nodes), and on a
pod what was decided at admission (placement.pods.mark).

A kind comes whole or not at all. Without nodes and pods there is no snapshot, and none with a login that is refused:
only other kinds that we may not list, or that the cluster lacks, are left out and noted. So are objects that cannot be
read: each kind's are counted in one note.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import TypeVar

from wukong.api.kind_table import Kind
from wukong.api.kinds import CONFIG_MAPS, KINDS, NODES, PODS
from wukong.api.objects import Objects
from wukong.api.unreadable import Unreadable, read_document
from wukong.cluster.interning import Interner
from wukong.cluster.reduction import reduce_document
from wukong.errors import ClusterError, Denied, NotFound
from wukong.placement.node_groups.cluster import STATUS_KEY
from wukong.ports import Cluster, Document

PAGE = 500
MANDATORY = (NODES, PODS)
_MOST_CHARACTERS = 500  # of a name or a problem: anybody may call an object anything
T = TypeVar("T")
ReportProgress = Callable[[int, int], object]
Note = Callable[[str], object]


async def capture(
    cluster: Cluster,
    report_progress: ReportProgress = lambda done, total: None,
    note: Note = lambda text: None,
    left_out: set[str] | None = None,
) -> Objects:
    """Return all objects of the kinds that placement reads. Raises ClusterError where one that it needs is missing.

    `left_out` gets the group and kind of those that may not be listed, or that the cluster lacks.
    """
    objects, interner = Objects(), Interner()
    kinds = KINDS.list_deciding()
    for number, kind in enumerate(kinds, start=1):
        unreadable: list[Unreadable] = []
        async for subject in _list_kind(cluster, kind, kind.struct, note, unreadable, left_out):
            subject.kind, subject.api_version = kind.resource.kind, kind.resource.api_version
            subject.metadata.resource_version = ""
            try:
                interner.intern_object(subject)
            except OverflowError:
                unreadable.append(Unreadable(metadata=subject.metadata, problem="a number is larger than 64 bits."))
                continue
            objects.add(subject)
        _note_unreadable(kind, unreadable, note)
        report_progress(number, len(kinds))
    return objects


async def capture_documents(
    cluster: Cluster,
    report_progress: ReportProgress = lambda done, total: None,
    note: Note = lambda text: None,
    keep: Callable[[Document], Document] = reduce_document,
) -> AsyncIterator[Document]:
    """Yield what a simulation needs: also Jobs, ControllerRevisions and what Kubernetes' controllers read.

    `keep` makes of an object what is kept of it: all of it only where it does not leave the process.
    What was yielded is no snapshot before this has ended: it raises ClusterError where something it needs is missing.
    """
    kinds = [kind for kind in KINDS if kind.snapshot is not None]
    for number, kind in enumerate(kinds, start=1):
        head = {"kind": kind.resource.kind, "apiVersion": kind.resource.api_version}
        unreadable: list[Unreadable] = []
        async for document in _list_kind(cluster, kind, dict, note, unreadable):
            # What our own structs cannot read would keep everybody from reading the snapshot.
            if isinstance(subject := read_document(document, kind.struct), Unreadable):
                unreadable.append(subject)
                continue
            yield keep({**document, **head})
        _note_unreadable(kind, unreadable, note)
        report_progress(number, len(kinds))


async def capture_autoscaler_status(cluster: Cluster, note: Note = lambda text: None) -> Document | None:
    """Return what cluster-autoscaler tells of its node groups, in the one ConfigMap that is ever read; None without it.

    Only the text that it writes is kept.
    """
    try:
        document = await cluster.get(CONFIG_MAPS, STATUS_KEY, dict)
    except (Denied, NotFound) as error:
        if not may_be_left_out(error):
            raise
        if not isinstance(error, NotFound):
            note(f"configmap {STATUS_KEY} was left out: {error}")
        return None
    status = (document.get("data") or {}).get("status")
    if not isinstance(status, str):
        return None
    head = {"kind": CONFIG_MAPS.kind, "apiVersion": CONFIG_MAPS.api_version}
    metadata = {"namespace": STATUS_KEY.namespace, "name": STATUS_KEY.name}
    return {**head, "metadata": metadata, "data": {"status": status}}


def _note_unreadable(kind: Kind, unreadable: list[Unreadable], note: Note) -> None:
    if unreadable:
        first = unreadable[0]
        note(
            f"{len(unreadable)} {kind.resource.plural} could not be read and were left out. "
            f"The first is {first.key or 'without a name':.{_MOST_CHARACTERS}}: {first.problem:.{_MOST_CHARACTERS}}"
        )


async def _list_kind(
    cluster: Cluster,
    kind: Kind,
    read: type[T],
    note: Note,
    unreadable: list[Unreadable],
    left_out: set[str] | None = None,
) -> AsyncIterator[T]:
    """Yield all objects of a kind, or none and note why. Those that cannot be read are added to `unreadable`."""
    if kind.resource in MANDATORY:  # page by page: these are the many
        try:
            async for item in _list_pages(cluster, kind, read, unreadable):
                yield item
        except Denied as error:
            if error.reason != "Forbidden":
                raise
            problem = f"not allowed to list {kind.resource.plural}, without which there is no answer: {error}"
            raise Denied(f"{problem}. `wukong manifests reader` has the rights.", reason=error.reason) from None
        return
    try:
        items = [item async for item in _list_pages(cluster, kind, read, unreadable)]
    except (Denied, NotFound) as error:
        if not may_be_left_out(error):
            raise
        if not is_not_installed(kind, error):
            note(f"{kind.resource.plural} were left out: {error}")
            if left_out is not None:
                left_out.add(kind.group_kind)
        return
    for item in items:
        yield item


async def _list_pages(cluster: Cluster, kind: Kind, read: type[T], unreadable: list[Unreadable]) -> AsyncIterator[T]:
    token = ""
    while True:
        page = await cluster.list(kind.resource, read, limit=PAGE, token=token)
        unreadable += page.unreadable
        for item in page.items:
            yield item
        token = page.token
        if not token:
            return


def may_be_left_out(error: ClusterError) -> bool:
    """Tell whether this is about a kind alone: the API server has none such, or says that we may not list it.

    A login that is refused (401), or for which its plugin gives no credentials, is about everything.
    """
    return isinstance(error, NotFound) or error.reason == "Forbidden"


def is_not_installed(kind: Kind, error: ClusterError) -> bool:
    """Tell whether the cluster lacks this kind because its CRD is not installed."""
    return not kind.is_built_in and isinstance(error, NotFound)
