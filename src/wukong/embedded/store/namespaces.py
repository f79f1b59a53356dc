"""What the namespace controller has to do about a terminating namespace: its content is deleted first.

`plan_deletions` returns the deletions still to be made; when the namespace is empty, `Server.finalize` ends it. Nothing
here writes; actors/namespace performs it.
"""

from __future__ import annotations

from wukong.actions import Delete
from wukong.embedded.store.database import Database, key_of
from wukong.embedded.store.documents import is_terminating, meta_of
from wukong.embedded.store.kinds import Kinds
from wukong.ports import Document


def list_terminating(database: Database) -> list[str]:
    """Return the names of the namespaces that are being deleted."""
    return [
        meta_of(namespace)["name"] for namespace in database.list_objects("namespaces") if is_terminating(namespace)
    ]


def plan_deletions(database: Database, kinds: Kinds, namespace: str) -> list[Delete]:
    """Return the deletions of all objects in the namespace that are not terminating yet."""
    return [
        Delete(kind.resource, key_of(document), uid=meta_of(document)["uid"], propagation="Background")
        for kind in kinds
        if kind.resource.namespaced
        for document in database.list_objects(kind.name, namespace)
        if not is_terminating(document)
    ]


def is_empty(database: Database, kinds: Kinds, namespace: str) -> bool:
    return not any(database.list_objects(kind.name, namespace) for kind in kinds if kind.resource.namespaced)


def without_finalizers(namespace: Document) -> Document:
    """Return the namespace without the finalizers in its spec, which the namespace controller holds."""
    return {**namespace, "spec": {**(namespace.get("spec") or {}), "finalizers": []}}
