"""Who owns the fields of a snapshot's objects, so that applying a manifest to them does what `kubectl apply` would.

Apply removes fields that its manager applied before and no longer applies. Snapshots seldom say who applied what:

    annotation last-applied-configuration    that was applied before
    nothing of the kind                      all of the spec was, but for replicas, which an autoscaler may own, and
                                             annotations of the template, which `kubectl rollout restart` adds;
                                             of pods and Jobs only what is applied now: servers and controllers write
                                             much of their specs, and next to nothing of them can change

Called by app/snapshots.py before a change is played.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from wukong.api.field_types import LIST, STRUCT, Field, Type
from wukong.api.json_values import check_depth, load_json
from wukong.api.resources import Key
from wukong.api.unknown_fields import drop_unknown_fields
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
            if kind.type is not None:
                before = _with_replaced_parts(before, live, document, kind.type)
            server.database.put(
                kind.name, claim_fields(kind, live, before, Writer(manager, "Apply"), server.clock.now())
            )


def _with_replaced_parts(before: Any, live: Any, wanted: Any, type_: Type) -> Any:
    """Return what was applied before, and with it all that `kubectl apply` replaces where the manifest says something.

    Of a volume, or a strategy, it keeps no field that the manifest does not name: their fields exclude each other, and
    defaults that nobody applied (a strategy's rollingUpdate) would stand in the way of another kind.
    """
    if type_.shape != STRUCT or not all(isinstance(value, dict) for value in (live, wanted)):
        return before
    result = dict(before) if isinstance(before, dict) else {}
    for name in wanted.keys() & live.keys():
        field = type_.fields.get(name)
        if field is None:
            continue
        values = result.get(name), live[name], wanted[name]
        if field.retains_keys:
            part: Any = _replaced_part(*values, field)
        elif field.type.shape == LIST:
            part = values[0]
        else:
            part = _with_replaced_parts(*values, field.type)
        if part is not None:
            result[name] = part
    return result


def _replaced_part(before: Any, live: Any, wanted: Any, field: Field) -> Any:
    if field.merge_key is None:
        return live
    names = {item.get(field.merge_key) for item in wanted if isinstance(item, dict)}
    applied = [item for item in before or () if item.get(field.merge_key) not in names]
    return [*applied, *(item for item in live if item.get(field.merge_key) in names)]


def _read_last_applied(live: Document) -> Document | None:
    text = str((meta_of(live).get("annotations") or {}).get(LAST_APPLIED, "")).encode()
    try:
        check_depth(text)
        applied = load_json(text)
    except InputError:
        return None
    return without_fields(applied, "status") if isinstance(applied, dict) else None


def _presume_applied(live: Document, wanted: Document) -> Document:
    if live["kind"] in ("Pod", "Job"):
        return drop_unknown_fields(without_fields(wanted, "status"))
    presumed = copy_document(without_fields(live, "status", "metadata"))
    if value_at(wanted, "spec.replicas") is None and isinstance(presumed.get("spec"), dict):
        presumed["spec"].pop("replicas", None)
    if isinstance(meta := value_at(presumed, "spec.template.metadata"), dict):
        meta.pop("annotations", None)
    return presumed
