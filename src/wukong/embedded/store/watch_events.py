"""Changes as watch events: what a selection sees of the log of a kind. Pure; called by store.py.

To enter a selection looks like being added, to leave it like being deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from wukong.embedded.store.database import Change
from wukong.embedded.store.documents import with_metadata
from wukong.embedded.store.kinds import Kind
from wukong.embedded.store.selectors import Selector
from wukong.ports import Document, Event


def events(changes: Iterable[Change], selector: Selector) -> Iterator[Event[Document]]:
    for change in changes:
        was = change.before is not None and selector.selects(change.before)
        if change.type != "DELETED" and selector.selects(change.document):
            yield Event("MODIFIED" if was else "ADDED", change.document)
        elif was:
            yield Event("DELETED", _last(change))


def bookmark(kind: Kind, version: int) -> Event[Document]:
    resource = kind.resource
    head = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": {"resourceVersion": str(version)}}
    return Event("BOOKMARK", head)


def _last(change: Change) -> Document:
    """What left: an object that is deleted as it was last; one that left the selection as it was while in it."""
    if change.type == "DELETED" or change.before is None:
        return change.document
    return with_metadata(change.before, resourceVersion=str(change.version))
