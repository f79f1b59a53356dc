"""CustomResourceDefinitions: a new one adds its kinds; a deleted one removes them, and their objects with them.

Called by server.py. A real server needs a moment for both; here it is done before the answer.
"""

from __future__ import annotations

from wukong.embedded.store.api_errors import invalid
from wukong.embedded.store.database import Database, key_of
from wukong.embedded.store.documents import format_time
from wukong.embedded.store.kinds import Kinds, ServedKind, custom
from wukong.ports import Document

_REQUIRED_FIELDS = ("group", "names", "scope", "versions")


def check_definition(definition: Document) -> None:
    """Raise Invalid where a required field is missing or the name does not fit the names in the spec."""
    spec, name = definition.get("spec") or {}, (definition.get("metadata") or {}).get("name", "")
    missing = [f"spec.{field}: Required value" for field in _REQUIRED_FIELDS if not spec.get(field)]
    if missing:
        raise invalid("CustomResourceDefinition.apiextensions.k8s.io", name, missing)
    expected_name = f"{spec['names'].get('plural', '')}.{spec['group']}"
    if name != expected_name:
        problem = f'metadata.name: Invalid value: "{name}": must be spec.names.plural+"."+spec.group'
        raise invalid("CustomResourceDefinition.apiextensions.k8s.io", name, [problem])


def establish(definition: Document, now: float) -> Document:
    """Return the definition with the status of one whose names are accepted and whose kinds are served."""
    conditions = [
        {
            "type": type_,
            "status": "True",
            "lastTransitionTime": format_time(now),
            "reason": reason,
            "message": message,
        }
        for type_, reason, message in (
            ("NamesAccepted", "NoConflicts", "no conflicts found"),
            ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        )
    ]
    spec = definition["spec"]
    stored_versions = [version["name"] for version in spec["versions"] if version.get("storage")]
    return {
        **definition,
        "status": {"conditions": conditions, "acceptedNames": spec["names"], "storedVersions": stored_versions},
    }


def serve(kinds: Kinds, definition: Document, version: int) -> None:
    """Serve the kinds of a new or changed definition. From `version` on a new kind can be watched."""
    before = _served_kinds_of(kinds, definition)
    for kind in before:
        kinds.remove(kind)
    for kind in custom(definition, min((kind.since for kind in before), default=version)):
        kinds.add(kind)


def stop_serving(database: Database, kinds: Kinds, definition: Document) -> None:
    """Remove the kinds of a deleted definition and all their objects."""
    for kind in _served_kinds_of(kinds, definition):
        for document in database.list_objects(kind.name):
            database.remove(kind.name, key_of(document))
        kinds.remove(kind)


def _served_kinds_of(kinds: Kinds, definition: Document) -> list[ServedKind]:
    return [kind for kind in kinds if kind.name == definition["metadata"]["name"]]
