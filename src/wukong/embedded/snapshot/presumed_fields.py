"""Who owns the fields of a snapshot's objects, so that applying a manifest to them does what `kubectl apply` would.

Apply removes fields that its manager applied before and no longer applies. Snapshots seldom say who applied what:

    annotation last-applied-configuration    that was applied before
    nothing of the kind                      all of the spec was, but for replicas, which an autoscaler may own, and
                                             annotations of the template, which `kubectl rollout restart` adds

Called by app/snapshots.py before a change is played.
"""

from __future__ import annotations

from collections.abc import Iterable

from wukong.api.json_values import check_depth, load_json
from wukong.api.resources import Key
from wukong.embedded.snapshot.load import kind_of
from wukong.embedded.store import Server
from wukong.embedded.store.documents import copy_document, meta_of, value_at, without_fields
from wukong.embedded.store.ownership.field_managers import Writer, claim_fields
from wukong.errors import InputError
from wukong.ports import Document

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def presume_fields(server: Server, documents: Iterable[Document], manager: str) -> None:
    """Make `manager` the owner of what it presumably applied, in the objects these documents will be applied to."""
    for document in documents:
        resource, meta = kind_of(document).resource, meta_of(document)
        kind = server.kinds.of(resource)
        namespace = meta.get("namespace") or "default" if resource.namespaced else ""
        live = server.database.get(kind.name, Key(namespace, meta["name"]))
        if live is not None:
            before = _read_last_applied(live) or _presume_applied(live, document)
            server.database.put(
                kind.name, claim_fields(kind, live, before, Writer(manager, "Apply"), server.clock.now())
            )


def _read_last_applied(live: Document) -> Document | None:
    text = str((meta_of(live).get("annotations") or {}).get(LAST_APPLIED, "")).encode()
    try:
        check_depth(text)
        applied = load_json(text)
    except InputError:
        return None
    return without_fields(applied, "status") if isinstance(applied, dict) else None


def _presume_applied(live: Document, wanted: Document) -> Document:
    presumed = copy_document(without_fields(live, "status", "metadata"))
    if value_at(wanted, "spec.replicas") is None and isinstance(presumed.get("spec"), dict):
        presumed["spec"].pop("replicas", None)
    if isinstance(meta := value_at(presumed, "spec.template.metadata"), dict):
        meta.pop("annotations", None)
    return presumed
