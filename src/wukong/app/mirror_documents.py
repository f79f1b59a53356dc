"""A mirror that keeps whole documents, so that a world is made of it without a detour by a file.

A component that plays forecasts sets `keeps_documents`: then live.py hands the loop `follow_whole` instead of
`list_watch.follow`, and objects are read as in an embedded cluster. Elsewhere documents would only cost memory.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing

import msgspec

from wukong.api.kinds import KINDS
from wukong.api.meta import Object, ObjectMeta
from wukong.api.resources import Resource
from wukong.api.unreadable import Unreadable
from wukong.cluster.list_watch import follow
from wukong.embedded.world import objects
from wukong.errors import InputError
from wukong.ports import Cluster, Document, Event, Listing, Selection, WatchUpdate
from wukong.state import State
from wukong.state.controller import Watch, no_keys

# All that a forecast loads. What is installed beside Kubernetes' own kinds may be missing.
WATCHES = tuple(
    Watch(kind.resource, no_keys, optional=not kind.is_built_in)
    for kind in KINDS
    if kind.loads and kind.origin != "internal"
)


async def follow_whole(
    cluster: Cluster, resource: Resource, read: type[Object], selection: Selection, optional: bool = False
) -> AsyncGenerator[WatchUpdate[Object], None]:
    """`follow`, with objects that also hold their documents."""
    kind = resource.group_kind
    async with aclosing(follow(cluster, resource, dict, selection, optional)) as stream:
        async for update in stream:
            if isinstance(update, Listing):
                yield read_page(update, objects.read_all(kind, update.items, read))
            elif isinstance(update, Event):
                yield read_event(update, kind, read)
            else:
                yield update


def read_page(page: Listing[Document], items: Iterable[Object]) -> Listing[Object]:
    """The page with these items, those that cannot be read told from the others."""
    subjects = list(items)
    readable = [subject for subject in subjects if not isinstance(subject, Unreadable)]
    unreadable = [subject for subject in subjects if isinstance(subject, Unreadable)]
    return Listing(readable, page.resource_version, page.unreadable + unreadable, page.is_first, page.is_last)


def read_event(
    event: Event[Document] | Event[Unreadable], kind: str, struct: type[Object] | None = None
) -> Event[Object]:
    """The event of a document as that of the object that is read from it."""
    document = event.object
    if isinstance(document, Unreadable):
        return Event(event.type, document)
    if event.type == "BOOKMARK":
        return Event(event.type, Object(metadata=msgspec.convert(document.get("metadata", {}), ObjectMeta)))
    return Event(event.type, objects.read(kind, document, struct))


def list_documents(state: State) -> list[Document]:
    """The documents of all that a forecast loads, for `snapshots.load`. Raises InputError where they were not kept."""
    documents: list[Document] = []
    for watch in WATCHES:
        for key, subject in sorted(state.objects.get(watch.resource.group_kind, {}).items()):
            document: Document = getattr(subject, "document", {})
            if not document:
                raise InputError(
                    f"{watch.resource.kind} {key}: the mirror holds no document of it. "
                    "Have the component keep documents."
                )
            documents.append({"kind": watch.resource.kind, "apiVersion": watch.resource.api_version, **document})
    return documents
