"""What a watch sees of the embedded server: the objects and the changes of its selection. Used by the world.

To enter a selection looks like being added, to leave it like being deleted, as on a real API server.
"""

from __future__ import annotations

from wukong.embedded.store import Server, selectors, watch_events
from wukong.embedded.store.database import Change
from wukong.errors import NotFound
from wukong.ports import EVERYTHING, Document, EventType
from wukong.state.controller import Watch


def list_selected(server: Server, watch: Watch) -> list[Document]:
    """The documents of the selection; none if the kind is optional and not installed."""
    try:
        return list(server.list(watch.resource, watch.selection).items)
    except NotFound:
        if not watch.optional:
            raise
        return []


def selected_type(server: Server, watch: Watch, change: Change) -> EventType | None:
    """As what the watch sees a change; None if it does not see it."""
    if watch.selection == EVERYTHING:
        return change.type
    selector = selectors.parse_selection(server.kinds.of(watch.resource), watch.selection)
    return next((event.type for event in watch_events.build_events([change], selector)), None)
