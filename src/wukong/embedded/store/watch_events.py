"""Changes of a kind as the watch events of a selection. Pure; called by store.py.

An object that enters the selection is ADDED, one that leaves it is DELETED.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from wukong.embedded.store.database import Change
from wukong.embedded.store.documents import with_metadata
from wukong.embedded.store.kinds import ServedKind
from wukong.embedded.store.selectors import Selector
from wukong.ports import Document, Event


def build_events(changes: Iterable[Change], selector: Selector) -> Iterator[Event[Document]]:
    for change in changes:
        was_selected = change.before is not None and selector.selects(change.before)
        if change.type != "DELETED" and selector.selects(change.document):
            yield Event("MODIFIED" if was_selected else "ADDED", change.document)
        elif was_selected:
            yield Event("DELETED", _last_state_of(change))


def build_bookmark(kind: ServedKind, version: int) -> Event[Document]:
    resource = kind.resource
    document = {
        "kind": resource.kind,
        "apiVersion": resource.api_version,
        "metadata": {"resourceVersion": str(version)},
    }
    return Event("BOOKMARK", document)


def _last_state_of(change: Change) -> Document:
    """Return the object of a DELETED event: its last state, or its last state within the selection."""
    if change.type == "DELETED" or change.before is None:
        return change.document
    return with_metadata(change.before, resourceVersion=str(change.version))
