"""Creating and changing objects: what happens between a request and the database, in the API server's order.

    create: head, name, namespace ─► defaults ─► admission ─► validation ─► status reset, generation ─► stored
    update: head kept ─► defaults ─► spec or status, not both ─► validation ─► generation, owners ─► stored, or removed

Called by server.py and the subresources. Never looks at a clock: `now` is given.
"""

from __future__ import annotations

from collections.abc import Sequence

from wukong.api.resources import Key
from wukong.embedded.store import defaults
from wukong.embedded.store.admission import Mutator, admitted, mutated, not_ready, prepared, readmitted
from wukong.embedded.store.api_errors import (
    already_exists,
    bad_request,
    forbidden,
    invalid,
    modified,
    not_found,
    unfit_patch,
    unsupported,
)
from wukong.embedded.store.database import Database, key_of
from wukong.embedded.store.documents import (
    copy_document,
    format_time,
    is_terminating,
    meta_of,
    with_metadata,
    without_fields,
)
from wukong.embedded.store.kinds import NAMESPACES, Kind, Kinds
from wukong.embedded.store.normalize import normal
from wukong.embedded.store.ownership import field_managers
from wukong.embedded.store.ownership.field_managers import Writer
from wukong.embedded.store.pod_cache import PodCache
from wukong.embedded.store.validation import custom_schemas
from wukong.embedded.store.validation.objects import (
    check_changed,
    check_new,
    check_new_meta,
    check_types,
    reading,
    wants_the_same,
)
from wukong.errors import Invalid, ServerFailed
from wukong.ports import Document

_GIVEN_AT_BIRTH = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")
_DEFAULTED_BEYOND_SPEC = frozenset({"Node", "Namespace", "ReplicationController"})  # see defaults.py
_NAME_LENGTH = 63 - 5
_TRIES = 8


class ObjectWriter:
    def __init__(self, database: Database, kinds: Kinds, mutators: Sequence[Mutator] = ()) -> None:
        self.database, self.kinds, self.mutators = database, kinds, list(mutators)
        self._recipes = PodCache(database)
        self._unread: set[str] = set()  # uids of objects that came as they were, and were never looked at

    # Create --------------------------------------------------------------------------------------------------------

    def create(
        self, kind: Kind, body: Document, namespace: str, writer: Writer, now: float, *, is_applied: bool = False
    ) -> Document:
        """`is_applied`: the body has its managedFields already."""
        document = self._headed(kind, body, namespace, now)
        if self.mutators:
            self._unread.add(document["metadata"]["uid"])  # they may leave anything
        key = Key(namespace, document["metadata"]["name"])
        if self.database.get(kind.name, key) is not None:
            raise already_exists(kind.name, key)
        self._check_namespace(kind, key)
        if kind.resource.kind == "Pod":
            return self._create_pod(kind, document, writer, now, is_applied=is_applied)
        document = self._filled(kind, copy_document(document))
        if kind.resource.kind == "Node":
            document = mutated(kind.resource, not_ready(document), self.mutators)
        elif self.mutators:
            document = self._filled(kind, mutated(kind.resource, document, self.mutators))
        check_new(kind, document)
        document = _with_first_status(kind, document)
        if kind.is_counted:
            document = with_metadata(document, generation=1)
        if not is_applied:
            document = field_managers.updated(kind, None, document, writer, now)
        return self.database.put(kind.name, document)

    def _create_pod(self, kind: Kind, document: Document, writer: Writer, now: float, *, is_applied: bool) -> Document:
        recipe = self._recipes.find(document) if not self.mutators else None
        if recipe is not None:
            meta = normal(copy_document({"metadata": document["metadata"]}))
            check_types(kind, meta)
            check_new_meta(kind, meta)
            document = {**document, **meta, "spec": recipe.spec, "status": recipe.status}
        else:
            given, document = document, self._filled(kind, copy_document(document))
            document = admitted(document, self.database, self.mutators)
            check_new(kind, document)
            document = prepared(document)
            if not self.mutators:
                recipe = self._recipes.note(kind, given, document)
        document = with_metadata(document, generation=1)
        if not is_applied:
            known = recipe.fields if recipe is not None else {}
            document = field_managers.created(kind, document, writer, now, known)
        return self.database.put(kind.name, document)

    def restored(self, kind: Kind, document: Document, now: float) -> Document:
        """An object that lived elsewhere: what it lacks to live here is added, with its uid and generation kept."""
        meta = dict(meta_of(document))
        meta.setdefault("uid", self.database.new_uid())
        meta.setdefault("creationTimestamp", format_time(now))
        if kind.resource.namespaced:
            meta.setdefault("namespace", "default")
        if kind.is_counted:
            meta.setdefault("generation", 1)
        head = {"kind": kind.resource.kind, "apiVersion": kind.resource.api_version}
        self._unread.add(meta["uid"])
        return copy_document({**head, **_body(document), "metadata": without_fields(meta, "resourceVersion")})

    def _headed(self, kind: Kind, document: Document, namespace: str, now: float) -> Document:
        if kind.resource.namespaced and not namespace:
            raise unsupported(
                "the server does not allow this method on the requested resource", 405, "MethodNotAllowed"
            )
        meta = without_fields(meta_of(document), *_GIVEN_AT_BIRTH, "selfLink")
        if meta.pop("resourceVersion", ""):
            raise ServerFailed("resourceVersion should not be set on objects to be created")
        if meta.get("namespace", namespace) != namespace and kind.resource.namespaced:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        meta.pop("namespace", None)
        meta |= {"namespace": namespace} if kind.resource.namespaced else {}
        meta["name"] = meta.get("name") or self._generated(kind, meta, namespace)
        meta |= {"uid": self.database.new_uid(), "creationTimestamp": format_time(now)}
        return {
            "kind": kind.resource.kind,
            "apiVersion": kind.resource.api_version,
            **_body(document),
            "metadata": meta,
        }

    def _generated(self, kind: Kind, meta: Document, namespace: str) -> str:
        prefix = meta.get("generateName")
        if not prefix:
            raise invalid(kind.resource.kind, "", ["metadata.name: Required value: name or generateName is required"])
        for _ in range(_TRIES):
            name = f"{prefix[:_NAME_LENGTH]}{self.database.new_suffix()}"
            if self.database.get(kind.name, Key(namespace, name)) is None:
                return name
        raise already_exists(kind.name, Key(namespace, name))

    def _check_namespace(self, kind: Kind, key: Key) -> None:
        if not kind.resource.namespaced:
            return
        found = self.database.get("namespaces", Key("", key.namespace))
        if found is None:
            raise not_found("namespaces", Key("", key.namespace))
        if is_terminating(found):
            why = f"unable to create new content in namespace {key.namespace} because it is being terminated"
            raise forbidden(kind.name, key.name, why)

    def _filled(self, kind: Kind, document: Document, known: Document | None = None) -> Document:
        """As it looks when it is written: normal and with its defaults. What it shares with `known` is so already."""
        if kind.schema is not None:
            meta = normal({"metadata": document["metadata"]})
            return custom_schemas.filled({**document, **meta}, kind.schema)
        document = normal(document, known)
        document.setdefault("metadata", {})
        if known is not None and kind.resource.kind not in _DEFAULTED_BEYOND_SPEC and wants_the_same(known, document):
            check_types(kind, {name: document[name] for name in ("metadata", "status") if name in document})
            return document
        check_types(kind, document)
        with reading(kind):
            defaults.fill(kind.resource.kind, document)
        return document

    # Update --------------------------------------------------------------------------------------------------------

    def update(
        self, kind: Kind, before: Document, after: Document, writer: Writer, now: float, *, is_applied: bool = False
    ) -> Document:
        """`after` is a document of its own. Gives what is stored, or was last: an object let go may end here."""
        after = _with_head(kind, before, after)
        known = None if before["metadata"]["uid"] in self._unread else before
        try:
            after = self._filled(kind, after, known)
        except Invalid as error:  # the same that is a bad request for a new object is an unfit patch of an old one
            raise unfit_patch(str(error)) from None
        if kind.resource.kind == "Pod" and not writer.subresource:
            after = readmitted(before, after)
        after = (
            _only_status(kind, before, after)
            if writer.subresource == "status"
            else _all_but_status(kind, before, after)
        )
        check_changed(kind, before, after, is_known=known is not None)
        if writer.subresource != "status":  # the Deployment controller writes its revision through that door
            after = _counted(kind, before, after)
        if not is_applied:
            after = with_metadata(after, managedFields=meta_of(before).get("managedFields"))
            after = field_managers.updated(kind, before, after, writer, now)
        if after == before:
            return before
        self._unread.discard(before["metadata"]["uid"])
        if _ends(before, after):
            self.database.remove(kind.name, key_of(after))
            return after
        return self.database.put(kind.name, after)


def _body(document: Document) -> Document:
    return without_fields(document, "kind", "apiVersion", "metadata")


def _with_first_status(kind: Kind, document: Document) -> Document:
    """A new object says nothing about itself yet, but for nodes, which come with their capacity."""
    if kind.resource == NAMESPACES:
        spec = {**(document.get("spec") or {}), "finalizers": ["kubernetes"]}
        return {**document, "spec": spec, "status": {"phase": "Active"}}
    if kind.resource.kind == "Node" or not kind.has_status:
        return document
    rest = without_fields(document, "status")
    return rest if kind.is_custom else {**rest, "status": {}}


def _with_head(kind: Kind, before: Document, after: Document) -> Document:
    """What a change cannot touch. Raises where it names another object, or another version of it."""
    old, new = meta_of(before), meta_of(after)
    key = Key(old.get("namespace", ""), old["name"])
    for field in ("name", "namespace"):
        if new.get(field, old.get(field)) != old.get(field):
            given, own = new.get(field), old.get(field)
            raise bad_request(f"the {field} of the object ({given}) does not match the {field} on the URL ({own})")
    if new.get("uid", old["uid"]) != old["uid"]:
        raise invalid(kind.title, key.name, [f'metadata.uid: Invalid value: "{new["uid"]}": field is immutable'])
    if new.get("resourceVersion") not in (None, "", old["resourceVersion"]):
        raise modified(kind.name, key)
    kept = {name: old[name] for name in (*_GIVEN_AT_BIRTH, "name", "namespace", "resourceVersion") if name in old}
    meta = {**without_fields(new, *_GIVEN_AT_BIRTH), **kept}
    return {**after, "kind": before["kind"], "apiVersion": kind.resource.api_version, "metadata": meta}


def _all_but_status(kind: Kind, before: Document, after: Document) -> Document:
    if not kind.has_status:
        return after
    rest = without_fields(after, "status")
    return {**rest, "status": before["status"]} if "status" in before else rest


def _only_status(kind: Kind, before: Document, after: Document) -> Document:
    """Through this door labels and annotations of Kubernetes' own kinds can be changed, too: some kubelets need it."""
    old, new = meta_of(before), meta_of(after)
    meta = old
    if not kind.is_custom:
        kept = ("ownerReferences", "labels") if kind.resource.group == "apps" else ("ownerReferences",)
        meta = {**without_fields(new, *kept), **{name: old[name] for name in kept if name in old}}
    made = {**without_fields(before, "status"), "metadata": meta}
    return {**made, "status": after["status"]} if "status" in after else made


def _counted(kind: Kind, before: Document, after: Document) -> Document:
    """The generation counts changes of what is wanted. A Deployment's annotations are: they flow to its ReplicaSets."""
    if not kind.is_counted or kind.resource.kind == "PriorityClass":
        return after
    is_same = _wanted(kind, before) == _wanted(kind, after)
    if kind.resource.kind == "Deployment":
        is_same = is_same and meta_of(before).get("annotations") == meta_of(after).get("annotations")
    return after if is_same else with_metadata(after, generation=meta_of(before).get("generation", 0) + 1)


def _wanted(kind: Kind, document: Document) -> Document:
    if not kind.is_custom:
        return {"spec": document.get("spec")}
    return without_fields(document, "apiVersion", "kind", "metadata", *(("status",) if kind.has_status else ()))


def _ends(before: Document, after: Document) -> bool:
    """Whether this was the last thing a deleted object waited for."""
    if meta_of(after).get("finalizers") or not is_terminating(before):
        return False
    if after["kind"] == "Namespace" and (after.get("spec") or {}).get("finalizers"):
        return False
    return not meta_of(before).get("deletionGracePeriodSeconds")
