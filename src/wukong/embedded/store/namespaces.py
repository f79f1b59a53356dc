"""What the namespace controller would do about a namespace that is being deleted: what is in it goes first.

`content_due` lists the deletions still to be made; when nothing is left, `Server.finalize` ends the namespace. Lists
and never writes; an actor performs it.
"""

from __future__ import annotations

from wukong.actions import Delete
from wukong.embedded.store.database import Database, key_of
from wukong.embedded.store.documents import is_terminating, meta_of
from wukong.embedded.store.kinds import Kinds
from wukong.ports import Document


def leaving(database: Database) -> list[str]:
    """Names of the namespaces that are being deleted."""
    return [meta_of(each)["name"] for each in database.all("namespaces") if is_terminating(each)]


def content_due(database: Database, kinds: Kinds, namespace: str) -> list[Delete]:
    """Deletions that nobody has asked for yet."""
    return [
        Delete(kind.resource, key_of(each), uid=meta_of(each)["uid"], propagation="Background")
        for kind in kinds
        if kind.resource.namespaced
        for each in database.all(kind.name, namespace)
        if not is_terminating(each)
    ]


def is_empty(database: Database, kinds: Kinds, namespace: str) -> bool:
    return not any(database.all(kind.name, namespace) for kind in kinds if kind.resource.namespaced)


def finalized(namespace: Document) -> Document:
    """The namespace without the finalizer that the namespace controller holds."""
    return {**namespace, "spec": {**(namespace.get("spec") or {}), "finalizers": []}}
