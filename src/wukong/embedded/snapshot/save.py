"""The cluster that a scenario has come to, as the objects of a snapshot: load.py in reverse.

Called for `wukong sim run --save`. It keeps what `wukong snapshot` keeps of a real cluster, and nothing of what only an
embedded one has: usage that a timeline told, and drains that are under way.
"""

from __future__ import annotations

from collections.abc import Iterator

from wukong.api.kinds import KINDS
from wukong.cluster.reduction import reduce_document
from wukong.embedded.store import Server
from wukong.embedded.store.documents import meta_of, without_fields
from wukong.ports import Document


def list_snapshot(server: Server) -> Iterator[Document]:
    """Yield every object that a snapshot holds, as it keeps it."""
    for kind in KINDS:
        if kind.snapshot is not None:
            head = {"kind": kind.resource.kind, "apiVersion": kind.resource.api_version}
            for document in server.list(kind.resource).items:
                metadata = without_fields(meta_of(document), "managedFields")  # values of the store, not texts
                yield reduce_document({**document, **head, "metadata": metadata})
