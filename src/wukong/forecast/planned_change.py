"""What somebody means to do to a cluster: manifests to apply, new nodes, and steps such as a drain. Only data.

Made by the command line of what a user asks for, and by advice for each candidate; played by play.py.
"""

from __future__ import annotations

import msgspec

from wukong.embedded.scenario import Scenario
from wukong.embedded.scenario.format.fields import TimelineEntry
from wukong.ports import Document


class PlannedChange(msgspec.Struct, frozen=True, kw_only=True):
    """All of it happens at once: nodes come first, then the documents are applied, then each step is taken.

    Documents are applied as `kubectl apply` would, in their order. Steps are entries of a scenario's timeline.
    """

    documents: tuple[Document, ...] = ()
    nodes: tuple[Document, ...] = ()  # whole Node objects, with their statuses
    steps: tuple[TimelineEntry, ...] = ()
    removed_nodes: frozenset[str] = frozenset()  # that are taken away once a step has drained them

    def scenario(self, until: str) -> Scenario:
        """The same as something to be played; it ends after `until` if it does not come to rest before."""
        manifests = [*self.nodes, *self.documents]
        return Scenario(manifests=manifests, timeline=list(self.steps), until=until)

    def with_documents(self, *documents: Document) -> PlannedChange:
        """The same change with these applied after its own documents."""
        return msgspec.structs.replace(self, documents=(*self.documents, *documents))

    def with_nodes(self, *nodes: Document) -> PlannedChange:
        """The same change with more nodes."""
        return msgspec.structs.replace(self, nodes=(*self.nodes, *nodes))
