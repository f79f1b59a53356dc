"""Timeline entries that select nodes, as entries that name them: by the nodes that are there when it happens.

Pure, called by course.py. `lose` kills every node of a zone, or with some labels, at once.
"""

from __future__ import annotations

from msgspec.structs import replace

from wukong.api.core import Node
from wukong.embedded.scenario.format.fields import NODE_ACTIONS, NodeSelection, TimelineEntry
from wukong.errors import InputError
from wukong.state import State


def name_nodes(entry: TimelineEntry, state: State) -> list[TimelineEntry]:
    """Return an entry for each node that is selected, by name; the entry itself where it selects none by labels.

    Raises InputError if no node is like that.
    """
    action, selection = selection_of(entry)
    if selection is None:
        return [entry]
    names = [node.metadata.name for node in state.all(Node) if selection.selects(node.metadata.labels)]
    if not names:
        raise InputError(f"there is no node {selection.describe()}. Name labels that a node has by then.")
    empty = replace(entry, **{action: None})
    return [replace(empty, **{"kill" if action == "lose" else action: name}) for name in names]


def selection_of(entry: TimelineEntry) -> tuple[str, NodeSelection | None]:
    """The action that selects nodes, and how; None if the entry has none such."""
    for action in NODE_ACTIONS:
        value = getattr(entry, action)
        if isinstance(value, NodeSelection):
            return action, value
    return "", None
