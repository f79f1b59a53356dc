"""Creating and updating objects: what happens between a request and the database, in the API server's order.

    create: metadata, name, namespace ─► defaults ─► admission ─► validation ─► status reset ─► limits ─► stored
    update: metadata kept ─► defaults ─► spec or status, not both ─► validation ─► generation ─► stored, or removed

Called by server.py. Never looks at a clock: `now` is an argument.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wukong.api.field_types import struct_named
from wukong.api.kinds import (
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    PRIORITY_CLASSES,
    SERVICES,
)
from wukong.api.resources import Key
from wukong.embedded.store.admission import (
    Mutator,
    add_not_ready_taint,
    admit_claim,
    admit_pod,
    admit_pod_update,
    charge_quotas,
    check_limit_ranges,
    check_pod_security,
    check_resize,
    mutate,
    normalize_sources,
    prepare_pod_for_create,
    protect,
)
from wukong.embedded.store.api_errors import (
    already_exists,
    bad_request,
    forbidden,
    invalid,
    modified_conflict,
    not_found,
    unprocessable_patch,
    unsupported_request,
)
from wukong.embedded.store.database import Database, key_of
from wukong.embedded.store.documents import (
    copy_document,
    format_time,
    has_same_desired_state,
    is_terminating,
    meta_of,
    with_metadata,
    without_fields,
)
from wukong.embedded.store.generated_fields import add_job_selector, count_template
from wukong.embedded.store.kinds import Kinds, ServedKind
from wukong.embedded.store.kubevirt import admission as kubevirt_admission
from wukong.embedded.store.limits.limit_ranges import ANNOTATION
from wukong.embedded.store.normalize import normalize
from wukong.embedded.store.ownership.field_managers import Writer
from wukong.embedded.store.ownership.managed_fields import note_write
from wukong.embedded.store.patch.patch import apply_patch, apply_plain_patch
from wukong.embedded.store.pod_cache import PodCache
from wukong.embedded.store.semantic_equality import is_semantically_equal
from wukong.embedded.store.stored_form import complete_parts, store_form_of
from wukong.embedded.store.validation import custom_schemas
from wukong.embedded.store.validation.objects import (
    check_new,
    check_new_metadata,
    check_types,
    check_update,
    refuse_wrong_types,
)
from wukong.engine.layered_dict import LayeredDict
from wukong.errors import Invalid, ServerFailed
from wukong.ports import Document, PatchBody

_SET_ON_CREATE = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")
_METADATA = struct_named("ObjectMeta.meta")
_DEFAULTED_OUTSIDE_SPEC = frozenset({"Node", "Namespace", "ReplicationController", "Job"})  # see defaults.py
_MAX_PREFIX_LENGTH = 63 - 5
_NAME_ATTEMPTS = 8


class ObjectWriter:
    """Creates and updates objects of all kinds in one database."""

    def __init__(self, database: Database, kinds: Kinds, mutators: Sequence[Mutator] = ()) -> None:
        self.database, self.kinds, self.mutators = database, kinds, list(mutators)
        self._pod_cache, self._admitted_pod_cache = PodCache(database), PodCache(database)
        self._unchecked_uids: LayeredDict[str, None] = LayeredDict()  # of objects stored without validation

    def fork(self, database: Database, kinds: Kinds) -> ObjectWriter:
        """Return one that writes to a copy of the database."""
        copy = ObjectWriter(database, kinds, self.mutators)
        copy._pod_cache, copy._unchecked_uids = self._pod_cache.fork(database), self._unchecked_uids.fork()
        copy._admitted_pod_cache = self._admitted_pod_cache.fork(database)
        return copy

    # Create --------------------------------------------------------------------------------------------------------

    def create(
        self, kind: ServedKind, body: Document, namespace: str, writer: Writer, now: float, *, is_applied: bool = False
    ) -> Document:
        """Create an object and return it as stored. `is_applied`: the body has its managedFields already."""
        document = self._build_object(kind, body, namespace, now)
        if self.mutators and kind.resource != PODS:
            self._unchecked_uids[document["metadata"]["uid"]] = None  # mutators may leave anything behind
        key = Key(namespace, document["metadata"]["name"])
        if self.database.get(kind.name, key) is not None:
            raise already_exists(kind.name, key)
        self._check_namespace(kind, key)
        if kind.resource == PODS:
            return self._create_pod(kind, document, writer, now, is_applied=is_applied)
        document = self._complete(kind, copy_document(document))
        if kind.resource == NODES:
            document = mutate(kind.resource, add_not_ready_taint(document), self.mutators)
        elif self.mutators:
            document = self._complete(kind, mutate(kind.resource, document, self.mutators))
        if kind.resource == JOBS:
            document = add_job_selector(document)
        elif kind.resource == DAEMON_SETS:
            document = count_template(None, document)
        if kind.resource == PERSISTENT_VOLUME_CLAIMS:
            document = normalize_sources(admit_claim(document, self.database))
        document = protect(kind, document)
        if kubevirt_admission.is_webhooks_business(kind):
            document = kubevirt_admission.admit_new(kind, document, self.database)
        if kind.is_custom:  # their strategy takes the status away before anybody looks at it
            document = _with_initial_status(kind, document)
        check_new(kind, document)
        document = _with_initial_status(kind, document)
        check_limit_ranges(kind, document, self.database)
        charge_quotas(kind, None, document, self.database)
        if kind.has_generation:
            document = with_metadata(document, generation=1)
        if not is_applied:
            document = note_write(kind, None, document, writer, now)
        return self.database.put(kind.name, document)

    def _create_pod(
        self, kind: ServedKind, document: Document, writer: Writer, now: float, *, is_applied: bool
    ) -> Document:
        if self.mutators:
            admitted = self._admit_pod(kind, document, self._admitted_pod_cache, self._admit_first)
            document = without_fields(mutate(kind.resource, admitted, self.mutators), "status")
        document = self._admit_pod(kind, document, self._pod_cache, self._admit_finally)
        check_pod_security(document, self.database)
        charge_quotas(kind, None, document, self.database)
        document = with_metadata(document, generation=1)
        if not is_applied:
            document = note_write(kind, None, document, writer, now)
        return self.database.put(kind.name, document)

    def _admit_pod(
        self, kind: ServedKind, request: Document, cache: PodCache, admit: Callable[[ServedKind, Document], Document]
    ) -> Document:
        """What admission makes of a pod; of one like an earlier one, what became of that."""
        cached = cache.find(request)
        if cached is not None:
            meta = {"metadata": store_form_of(_METADATA, copy_document(request["metadata"]))}
            check_new_metadata(kind, meta)
            if cached.annotation:
                annotations = {**(meta["metadata"].get("annotations") or {}), ANNOTATION: cached.annotation}
                meta = with_metadata(meta, annotations=annotations)
            return {**request, **meta, "spec": cached.spec, "status": cached.status}
        document = admit(kind, self._complete(kind, copy_document(request)))
        cache.add(request, document)
        return document

    def _admit_first(self, kind: ServedKind, document: Document) -> Document:
        """As mutators see it."""
        return {**admit_pod(document, self.database), "status": {}}

    def _admit_finally(self, kind: ServedKind, document: Document) -> Document:
        document = admit_pod(document, self.database)
        check_new(kind, document)
        check_limit_ranges(kind, document, self.database)
        return prepare_pod_for_create(document)

    def complete_restored(self, kind: ServedKind, document: Document, now: float) -> Document:
        """Return an object of another cluster with what it lacks to be stored here. Keeps its uid and generation."""
        meta = dict(meta_of(document))
        meta.setdefault("uid", self.database.generate_uid())
        meta.setdefault("creationTimestamp", format_time(now))
        if kind.resource.namespaced:
            meta.setdefault("namespace", "default")
        if kind.has_generation:
            meta.setdefault("generation", 1)
        self._unchecked_uids[meta["uid"]] = None
        head = {"kind": kind.resource.kind, "apiVersion": kind.resource.api_version}
        return {**document, **head, "metadata": meta}

    def _build_object(self, kind: ServedKind, document: Document, namespace: str, now: float) -> Document:
        """Return a new object with its kind, name, namespace, uid and creation time. Raises where they do not fit."""
        if kind.resource.namespaced and not namespace:
            raise unsupported_request(
                "the server does not allow this method on the requested resource", 405, "MethodNotAllowed"
            )
        _check_names(kind, meta_of(document))
        meta = without_fields(meta_of(document), *_SET_ON_CREATE, "selfLink")
        if meta.pop("resourceVersion", ""):
            raise ServerFailed("resourceVersion should not be set on objects to be created")
        if meta.get("namespace", namespace) != namespace and kind.resource.namespaced:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        meta.pop("namespace", None)
        meta |= {"namespace": namespace} if kind.resource.namespaced else {}
        meta["name"] = meta.get("name") or self._generate_name(kind, meta, namespace)
        meta |= {"uid": self.database.generate_uid(), "creationTimestamp": format_time(now)}
        return {
            "kind": kind.resource.kind,
            "apiVersion": kind.resource.api_version,
            **_body_of(document),
            "metadata": meta,
        }

    def _generate_name(self, kind: ServedKind, meta: Document, namespace: str) -> str:
        prefix = meta.get("generateName")
        if not prefix:
            raise invalid(kind.resource.kind, "", ["metadata.name: Required value: name or generateName is required"])
        for _ in range(_NAME_ATTEMPTS):
            name = f"{prefix[:_MAX_PREFIX_LENGTH]}{self.database.generate_suffix()}"
            if self.database.get(kind.name, Key(namespace, name)) is None:
                return name
        raise already_exists(kind.name, Key(namespace, name))

    def _check_namespace(self, kind: ServedKind, key: Key) -> None:
        if not kind.resource.namespaced:
            return
        namespace = self.database.get("namespaces", Key("", key.namespace))
        if namespace is None:
            raise not_found("namespaces", Key("", key.namespace))
        if is_terminating(namespace):
            detail = f"unable to create new content in namespace {key.namespace} because it is being terminated"
            raise forbidden(kind.name, key.name, detail)

    def _complete(self, kind: ServedKind, document: Document, known: Document | None = None) -> Document:
        """Return the document as it is stored, with its defaults. What it shares with `known` is so already.

        Raises Invalid where a field has the wrong type.
        """
        if kind.schema is not None:
            meta = {"metadata": store_form_of(_METADATA, document["metadata"])}
            return custom_schemas.prune_and_default({**document, **meta}, kind.schema)
        if kind.type is None:
            document = {"metadata": {}, **normalize(document, known)}
            check_types(kind, document)
            return document
        return store_form_of(kind.type, document, known)

    # Update --------------------------------------------------------------------------------------------------------

    def patch(self, kind: ServedKind, before: Document, patch: PatchBody, writer: Writer, now: float) -> Document:
        """Store a patched object and return it; see `update`."""
        after = apply_plain_patch(kind, before, patch) if self._is_normal(kind, before) else None
        if after is None:
            with refuse_wrong_types(kind):
                after = apply_patch(kind, before, patch)
                _check_names(kind, meta_of(after))  # raises AttributeError for what is no object
            return self.update(kind, before, after, writer, now)
        if after is before:
            return before
        after = _keep_head(kind, before, after)
        try:
            if _has_all_defaults(kind, before, after):
                after = _complete_changed_parts(kind, before, after)
            else:
                after = self._complete(kind, after, before)
        except Invalid as error:
            raise _refuse_as_patch(error) from None
        return self._store_update(kind, before, after, writer, now, is_known=True)

    def _is_normal(self, kind: ServedKind, document: Document) -> bool:
        """Whether a stored object is in the normal form of a built-in kind, and its defaults are in its spec."""
        is_built_in = kind.schema is None and kind.resource.kind not in _DEFAULTED_OUTSIDE_SPEC
        return is_built_in and document["metadata"]["uid"] not in self._unchecked_uids

    def update(
        self,
        kind: ServedKind,
        before: Document,
        after: Document,
        writer: Writer,
        now: float,
        *,
        is_applied: bool = False,
    ) -> Document:
        """Store a changed object and return it, or remove it if its last finalizer went, and return its last state.

        `after` is a new document, which may share parts with `before`. `is_applied`: it has its managedFields already.
        """
        after = _keep_head(kind, before, after)
        known = None if before["metadata"]["uid"] in self._unchecked_uids else before
        try:
            after = self._complete(kind, after, known)
        except Invalid as error:
            raise _refuse_as_patch(error) from None
        return self._store_update(kind, before, after, writer, now, is_known=known is not None, is_applied=is_applied)

    def _store_update(
        self,
        kind: ServedKind,
        before: Document,
        after: Document,
        writer: Writer,
        now: float,
        *,
        is_known: bool,
        is_applied: bool = False,
    ) -> Document:
        if kind.resource == PODS and not writer.subresource:
            after = admit_pod_update(before, after)
        if kubevirt_admission.is_webhooks_business(kind) and not writer.subresource:
            after = kubevirt_admission.admit_update(kind, before, after)
        after = (
            _change_only_status(kind, before, after)
            if writer.subresource == "status"
            else _keep_status(kind, before, after)
        )
        if kind.resource == DAEMON_SETS:
            after = count_template(before, after)
        is_claim = kind.resource == PERSISTENT_VOLUME_CLAIMS and not writer.subresource
        if is_claim:
            after = normalize_sources(after, before)
        check_update(kind, before, after, is_known=is_known)
        if is_claim:
            check_resize(before, after, self.database)
        if writer.subresource != "status":  # the Deployment controller writes its revision with the status
            after = _bump_generation(kind, before, after)
        if not is_applied:
            after = _keep_managed_fields(before, after)
        if after == before:
            return before
        if _may_take_more(kind, before, after, writer):
            charge_quotas(kind, before, after, self.database)
        if not is_applied:
            after = note_write(kind, before, after, writer, now)
        self._unchecked_uids.pop(before["metadata"]["uid"], None)
        if _completes_deletion(before, after):
            self.database.remove(kind.name, key_of(after))
            return after
        return self.database.put(kind.name, after)


def _may_take_more(kind: ServedKind, before: Document, after: Document, writer: Writer) -> bool:
    """Whether a change may count for more of a quota: of a Service, a claim, or a pod that gets a deadline."""
    if kind.resource not in (PODS, SERVICES, PERSISTENT_VOLUME_CLAIMS) or writer.subresource:
        return False
    if kind.resource == PODS:
        deadlines = [(document.get("spec") or {}).get("activeDeadlineSeconds") for document in (before, after)]
        return (deadlines[0] is None) != (deadlines[1] is None)
    return before.get("spec") is not after.get("spec")


def _check_names(kind: ServedKind, meta: object) -> None:
    """Raise Invalid (400) for metadata that is no object, or whose names are no texts."""
    names = ("name", "generateName", "namespace", "resourceVersion")
    if not isinstance(meta, dict) or not all(isinstance(meta.get(name) or "", str) for name in names):
        raise bad_request(f"{kind.resource.kind} cannot be read: its metadata is no object, or its name no text")


def _refuse_as_patch(error: Invalid) -> Invalid:
    """Turn a bad request, as it would be of a new object, into an unprocessable patch of an old one."""
    return unprocessable_patch(str(error))


def _has_all_defaults(kind: ServedKind, before: Document, after: Document) -> bool:
    """Whether a change of a stored document leaves all that has defaults as it was."""
    return kind.resource.kind not in _DEFAULTED_OUTSIDE_SPEC and has_same_desired_state(before, after)


def _complete_changed_parts(kind: ServedKind, before: Document, after: Document) -> Document:
    """Return the document with its metadata and status as they are stored, where they changed; the rest did not."""
    if kind.type is None:
        check_types(kind, after)
        return after
    return complete_parts(kind.type, after, before, ("metadata", "status"))


def _body_of(document: Document) -> Document:
    return without_fields(document, "kind", "apiVersion", "metadata")


def _with_initial_status(kind: ServedKind, document: Document) -> Document:
    """Return a new object with an empty status, but for nodes, which come with their capacity."""
    if kind.resource == NAMESPACES:
        spec = {**(document.get("spec") or {}), "finalizers": ["kubernetes"]}
        return {**document, "spec": spec, "status": {"phase": "Active"}}
    if kind.resource in (PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES):
        return {**document, "status": {"phase": "Pending"}}
    if kind.resource == NODES or not kind.has_status:
        return document
    rest = without_fields(document, "status")
    return rest if kind.is_custom else {**rest, "status": {}}


def _keep_head(kind: ServedKind, before: Document, after: Document) -> Document:
    """Return `after` with the metadata that an update cannot change.

    Raises Invalid where it names another object, and Conflict where it names another version.
    """
    old, new = meta_of(before), meta_of(after)
    if old is new and after.get("kind") == before["kind"] and after.get("apiVersion") == kind.resource.api_version:
        return after
    _check_names(kind, new)
    key = Key(old.get("namespace", ""), old["name"])
    for field in ("name", "namespace"):
        if new.get(field, old.get(field)) != old.get(field):
            new_value, old_value = new.get(field), old.get(field)
            raise bad_request(
                f"the {field} of the object ({new_value}) does not match the {field} on the URL ({old_value})"
            )
    if new.get("uid", old["uid"]) != old["uid"]:
        raise invalid(kind.title, key.name, [f'metadata.uid: Invalid value: "{new["uid"]}": field is immutable'])
    if new.get("resourceVersion") not in (None, "", old["resourceVersion"]):
        raise modified_conflict(kind.name, key)
    kept_metadata = {
        name: old[name] for name in (*_SET_ON_CREATE, "name", "namespace", "resourceVersion") if name in old
    }
    meta = {**without_fields(new, *_SET_ON_CREATE), **kept_metadata}
    return {**after, "kind": before["kind"], "apiVersion": kind.resource.api_version, "metadata": meta}


def _keep_status(kind: ServedKind, before: Document, after: Document) -> Document:
    if not kind.has_status or after.get("status") is before.get("status"):
        return after
    rest = without_fields(after, "status")
    return {**rest, "status": before["status"]} if "status" in before else rest


def _change_only_status(kind: ServedKind, before: Document, after: Document) -> Document:
    """Return `before` with the status of `after`. For built-in kinds an update of the status may change labels and
    annotations, too: some kubelets need that.
    """
    old, new = meta_of(before), meta_of(after)
    if old is new and has_same_desired_state(before, after):
        return after
    meta = old
    if not kind.is_custom:
        kept_fields = ("ownerReferences", "labels") if kind.resource.group == "apps" else ("ownerReferences",)
        meta = {**without_fields(new, *kept_fields), **{name: old[name] for name in kept_fields if name in old}}
    changed = {**without_fields(before, "status"), "metadata": meta}
    return {**changed, "status": after["status"]} if "status" in after else changed


def _keep_managed_fields(before: Document, after: Document) -> Document:
    old = meta_of(before).get("managedFields")
    return after if meta_of(after).get("managedFields") is old else with_metadata(after, managedFields=old)


def _bump_generation(kind: ServedKind, before: Document, after: Document) -> Document:
    """Count a change of the desired state. A Deployment's annotations belong to it: its ReplicaSets get them."""
    if not kind.has_generation or kind.resource == PRIORITY_CLASSES:
        return after
    if kind.type is not None and "spec" in kind.type.fields:
        is_same = is_semantically_equal(kind.type.fields["spec"].type, before.get("spec"), after.get("spec"))
    else:
        is_same = _desired_state_of(kind, before) == _desired_state_of(kind, after)
    if kind.resource == DEPLOYMENTS:
        is_same = is_same and meta_of(before).get("annotations") == meta_of(after).get("annotations")
    return after if is_same else with_metadata(after, generation=meta_of(before).get("generation", 0) + 1)


def _desired_state_of(kind: ServedKind, document: Document) -> Document:
    if not kind.is_custom:
        return {"spec": document.get("spec")}
    return without_fields(document, "apiVersion", "kind", "metadata", *(("status",) if kind.has_status else ()))


def _completes_deletion(before: Document, after: Document) -> bool:
    """Whether this update removes the last thing that a terminating object waited for."""
    if meta_of(after).get("finalizers") or not is_terminating(before):
        return False
    if after["kind"] == "Namespace" and (after.get("spec") or {}).get("finalizers"):
        return False
    return not meta_of(before).get("deletionGracePeriodSeconds")
