"""CustomResourceDefinitions: a new one adds its kinds, established at once; a deleted one takes them and their objects.

Called by server.py. A real server needs a moment for both; here it is done when the answer comes.
"""

from __future__ import annotations

from wukong.embedded.store.api_errors import invalid
from wukong.embedded.store.database import Database, key_of
from wukong.embedded.store.documents import format_time
from wukong.embedded.store.kinds import Kind, Kinds, custom
from wukong.ports import Document

_NEEDED = ("group", "names", "scope", "versions")


def check(definition: Document) -> None:
    spec, name = definition.get("spec") or {}, (definition.get("metadata") or {}).get("name", "")
    missing = [f"spec.{field}: Required value" for field in _NEEDED if not spec.get(field)]
    if missing:
        raise invalid("CustomResourceDefinition.apiextensions.k8s.io", name, missing)
    wanted = f"{spec['names'].get('plural', '')}.{spec['group']}"
    if name != wanted:
        problem = f'metadata.name: Invalid value: "{name}": must be spec.names.plural+"."+spec.group'
        raise invalid("CustomResourceDefinition.apiextensions.k8s.io", name, [problem])


def established(definition: Document, now: float) -> Document:
    conditions = [
        {
            "type": kind,
            "status": "True",
            "lastTransitionTime": format_time(now),
            "reason": reason,
            "message": message,
        }
        for kind, reason, message in (
            ("NamesAccepted", "NoConflicts", "no conflicts found"),
            ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        )
    ]
    spec = definition["spec"]
    stored = [version["name"] for version in spec["versions"] if version.get("storage")]
    return {
        **definition,
        "status": {"conditions": conditions, "acceptedNames": spec["names"], "storedVersions": stored},
    }


def serve(kinds: Kinds, definition: Document, now: int) -> None:
    """As the definition says now; `now` is the version from which a new kind can be watched."""
    before = _served(kinds, definition)
    for kind in before:
        kinds.remove(kind)
    for kind in custom(definition, min((kind.since for kind in before), default=now)):
        kinds.add(kind)


def withdraw(database: Database, kinds: Kinds, definition: Document) -> None:
    for kind in _served(kinds, definition):
        for document in database.all(kind.name):
            database.remove(kind.name, key_of(document))
        kinds.remove(kind)


def _served(kinds: Kinds, definition: Document) -> list[Kind]:
    return [kind for kind in kinds if kind.name == definition["metadata"]["name"]]
