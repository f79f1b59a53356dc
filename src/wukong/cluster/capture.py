"""Takes a snapshot of a live cluster: what decides placement, page by page, and nothing else.

Called by `wukong snapshot` and by the verbs that work on the current context. Secrets and config maps are never
read; of the objects that are, only the fields our structs model are kept, and no annotations but the notice on a node
that it is about to go (placement.leaving_nodes).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from wukong.api.kind_table import Kind
from wukong.api.kinds import KINDS
from wukong.api.objects import Objects
from wukong.api.unreadable import Unreadable, read_document
from wukong.cluster.interning import Interner
from wukong.cluster.reduction import reduce_document
from wukong.errors import ClusterError, Denied, NotFound
from wukong.ports import Cluster, Document

PAGE = 500
ReportProgress = Callable[[int, int], object]


async def capture(
    cluster: Cluster,
    report_progress: ReportProgress = lambda done, total: None,
    note: Callable[[str], object] = lambda text: None,
) -> Objects:
    """Return all objects of the kinds that placement reads. A kind we may not list is left out and noted.

    So are objects that cannot be read: each kind's are counted in one note.
    """
    objects, interner = Objects(), Interner()
    kinds = KINDS.list_deciding()
    for number, kind in enumerate(kinds, start=1):
        try:
            unreadable = await _capture_kind(cluster, kind, objects, interner)
            note_unreadable(kind, unreadable, note)
        except (Denied, NotFound) as error:
            if is_not_installed(kind, error):
                continue
            note(f"{kind.resource.plural} were left out: {error}")
        report_progress(number, len(kinds))
    return objects


async def capture_documents(
    cluster: Cluster,
    report_progress: ReportProgress = lambda done, total: None,
    note: Callable[[str], object] = lambda text: None,
) -> AsyncIterator[Document]:
    """Yield what a simulation needs: also Jobs, ControllerRevisions and what Kubernetes' controllers read."""
    kinds = [kind for kind in KINDS if kind.snapshot is not None]
    for number, kind in enumerate(kinds, start=1):
        token, resource, unreadable = "", kind.resource, list[Unreadable]()
        try:
            while True:
                page = await cluster.list(resource, dict, limit=PAGE, token=token)
                unreadable += page.unreadable
                for document in page.items:
                    # What our own structs cannot read would keep everybody from reading the snapshot.
                    if isinstance(subject := read_document(document, kind.struct), Unreadable):
                        unreadable.append(subject)
                        continue
                    yield reduce_document({**document, "kind": resource.kind, "apiVersion": resource.api_version})
                token = page.token
                if not token:
                    break
        except (Denied, NotFound) as error:
            if not is_not_installed(kind, error):
                note(f"{resource.plural} were left out: {error}")
        note_unreadable(kind, unreadable, note)
        report_progress(number, len(kinds))


def note_unreadable(kind: Kind, unreadable: list[Unreadable], note: Callable[[str], object]) -> None:
    if unreadable:
        first = unreadable[0]
        note(
            f"{len(unreadable)} {kind.resource.plural} could not be read and were left out. "
            f"The first is {first.key or 'without a name'}: {first.problem}"
        )


def is_not_installed(kind: Kind, error: ClusterError) -> bool:
    """Tell whether the cluster lacks this kind because its CRD is not installed."""
    return not kind.is_built_in and isinstance(error, NotFound)


async def _capture_kind(cluster: Cluster, kind: Kind, objects: Objects, interner: Interner) -> list[Unreadable]:
    """Return those that could not be read."""
    token, unreadable = "", list[Unreadable]()
    while True:
        page = await cluster.list(kind.resource, kind.struct, limit=PAGE, token=token)
        unreadable += page.unreadable
        for subject in page.items:
            subject.kind, subject.api_version = kind.resource.kind, kind.resource.api_version
            subject.metadata.resource_version = ""
            try:
                interner.intern_object(subject)
            except OverflowError:
                unreadable.append(Unreadable(metadata=subject.metadata, problem="a number is larger than 64 bits."))
                continue
            objects.add(subject)
        token = page.token
        if not token:
            return unreadable
