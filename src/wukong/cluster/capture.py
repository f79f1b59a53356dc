"""Takes a snapshot of a live cluster: what decides placement, page by page, and nothing else.

Called by `wukong snapshot` and by the verbs that work on the current context. Secrets and config maps are never asked
for; of the objects that are, only the fields our structs model are kept, and no annotations but the notice on a node
that it is about to go (placement.leaving_nodes).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from wukong.api.kinds import KINDS, Kind
from wukong.api.objects import Objects
from wukong.cluster.interning import Interner
from wukong.cluster.reduction import reduce_document
from wukong.errors import ClusterError, Denied, NotFound
from wukong.ports import Cluster, Document

PAGE = 500
Tell = Callable[[int, int], object]


async def capture(
    cluster: Cluster, tell: Tell = lambda done, total: None, note: Callable[[str], object] = lambda text: None
) -> Objects:
    """All objects of the kinds that placement reads. A kind we may not list is left out, and noted."""
    objects, interner = Objects(), Interner()
    kinds = KINDS.deciding()
    for number, kind in enumerate(kinds, start=1):
        try:
            await _capture_kind(cluster, kind, objects, interner)
        except (Denied, NotFound) as error:
            if is_not_installed(kind, error):
                continue
            note(f"{kind.resource.plural} were left out: {error}")
        tell(number, len(kinds))
    return objects


async def capture_documents(
    cluster: Cluster, tell: Tell = lambda done, total: None, note: Callable[[str], object] = lambda text: None
) -> AsyncIterator[Document]:
    """The same and more, for playing on with it: what Kubernetes' controllers go by, Jobs, ControllerRevisions."""
    kinds = [kind for kind in KINDS if kind.snapshot is not None]
    for number, kind in enumerate(kinds, start=1):
        token, resource = "", kind.resource
        try:
            while True:
                page = await cluster.list(resource, dict, limit=PAGE, token=token)
                for document in page.items:
                    yield reduce_document({**document, "kind": resource.kind, "apiVersion": resource.api_version})
                token = page.token
                if not token:
                    break
        except (Denied, NotFound) as error:
            if not is_not_installed(kind, error):
                note(f"{resource.plural} were left out: {error}")
        tell(number, len(kinds))


def is_not_installed(kind: Kind, error: ClusterError) -> bool:
    """Whether a cluster lacks this kind because nobody has installed its CRD there."""
    return not kind.is_built_in and isinstance(error, NotFound)


async def _capture_kind(cluster: Cluster, kind: Kind, objects: Objects, interner: Interner) -> None:
    token = ""
    while True:
        page = await cluster.list(kind.resource, kind.struct, limit=PAGE, token=token)
        for subject in page.items:
            subject.kind, subject.api_version = kind.resource.kind, kind.resource.api_version
            subject.metadata.resource_version = ""
            interner.put(subject)
            objects.add(subject)
        token = page.token
        if not token:
            return
