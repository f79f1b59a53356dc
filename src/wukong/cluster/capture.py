"""Takes a snapshot of a live cluster: what decides placement, page by page, and nothing else.

Called by `wukong snapshot` and by the verbs that work on the current context. Secrets and config maps are never asked
for; of the objects that are, only the fields our structs model are kept, and no annotations but the notice on a node
that it is about to go (placement.leaving_nodes).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from wukong.api.kinds import KINDS, OURS, Objects
from wukong.api.meta import Object
from wukong.api.resources import RESOURCES, Resource
from wukong.cluster.interning import Interner
from wukong.cluster.reduction import kept
from wukong.cluster.snapshot_documents import MORE_KINDS
from wukong.errors import Denied, NotFound
from wukong.ports import Cluster, Document

PAGE = 500
MORE_RESOURCES = [
    Resource(kind=kind, group=version.partition("/")[0], plural=f"{kind.lower()}s")
    for kind, version in MORE_KINDS.items()
]
Tell = Callable[[int, int], object]


async def capture(
    cluster: Cluster, tell: Tell = lambda done, total: None, note: Callable[[str], object] = lambda text: None
) -> Objects:
    """All objects of all kinds we read. A kind we may not list is left out, and noted."""
    objects, sharing = Objects(), Interner()
    for number, (kind, struct) in enumerate(KINDS.items(), start=1):
        try:
            await _capture_kind(cluster, kind, struct, objects, sharing)
        except (Denied, NotFound) as error:
            if kind in OURS and isinstance(error, NotFound):
                continue  # this cluster has no policies
            note(f"{RESOURCES[kind].plural} were left out: {error}")
        tell(number, len(KINDS))
    return objects


async def capture_documents(
    cluster: Cluster, tell: Tell = lambda done, total: None, note: Callable[[str], object] = lambda text: None
) -> AsyncIterator[Document]:
    """The same and more, for playing on with it: what Kubernetes' controllers go by, Jobs, ControllerRevisions."""
    resources = [*RESOURCES.values(), *MORE_RESOURCES]
    for number, resource in enumerate(resources, start=1):
        token = ""
        try:
            while True:
                page = await cluster.list(resource, dict, limit=PAGE, token=token)
                for found in page.items:
                    yield kept({**found, "kind": resource.kind, "apiVersion": resource.api_version})
                token = page.token
                if not token:
                    break
        except (Denied, NotFound) as error:
            if resource.kind not in OURS or not isinstance(error, NotFound):
                note(f"{resource.plural} were left out: {error}")
        tell(number, len(resources))


async def _capture_kind(cluster: Cluster, kind: str, struct: type[Object], objects: Objects, sharing: Interner) -> None:
    token = ""
    while True:
        page = await cluster.list(RESOURCES[kind], struct, limit=PAGE, token=token)
        for found in page.items:
            found.kind, found.api_version = kind, RESOURCES[kind].api_version
            found.metadata.resource_version = ""
            sharing.put(found)
            objects.add(found)
        token = page.token
        if not token:
            return
