"""The synchronous API server of the embedded cluster. `Store` is the port to it; actors and tests call it directly.

Reads and writes plain documents; the rules are in the modules beside this one. Deterministic: versions, uids and
generated names come from counters, the time comes from the given clock, and every list is sorted. It returns the stored
documents themselves: callers copy them before they change anything (`Store` does so for its callers).
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple, TypeAlias

import msgspec

from wukong.admission.priority import BUILT_IN_CLASSES
from wukong.api.crds import build_crds
from wukong.api.kinds import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, POD_DISRUPTION_BUDGETS, PODS, PRIORITY_CLASSES
from wukong.api.resources import Key, Resource
from wukong.embedded.store import binding_and_scale, custom_resources, deletion, eviction, namespaces, selectors
from wukong.embedded.store.admission import Mutator
from wukong.embedded.store.api_errors import (
    bad_request,
    expired_token,
    invalid,
    invalid_version,
    modified_conflict,
    no_such_kind,
    not_found,
    version_too_large,
)
from wukong.embedded.store.database import LOG_SIZE, Database, key_of
from wukong.embedded.store.deletion import DeleteOptions
from wukong.embedded.store.documents import meta_of, with_metadata
from wukong.embedded.store.garbage_collection import GarbageCandidates
from wukong.embedded.store.kinds import Kinds, ServedKind
from wukong.embedded.store.ownership import field_managers
from wukong.embedded.store.ownership.field_managers import Writer
from wukong.embedded.store.patch.patch import apply_patch
from wukong.embedded.store.stored_form import find_unknown_path
from wukong.embedded.store.validation.objects import refuse_wrong_types
from wukong.embedded.store.writes import ObjectWriter
from wukong.errors import Gone, ServerFailed
from wukong.ports import EVERYTHING, Clock, Document, PatchBody, Selection

FIRST_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_SYSTEM = Writer("kube-apiserver")
Documents: TypeAlias = list[Document]  # for Server, whose own `list` hides the type


class ListResult(NamedTuple):
    items: list[Document]
    version: int
    token: str = ""


class _Token(msgspec.Struct):
    """The continue token of a list: the version it shows, and the last object of the page before."""

    version: int
    namespace: str
    name: str


class Server:
    """`log_size` bounds the history of each kind; `mutators` change new objects, as mutating webhooks do."""

    def __init__(
        self,
        clock: Clock,
        *,
        mutators: Sequence[Mutator] = (),
        definitions: Iterable[Document] | None = None,
        log_size: int = LOG_SIZE,
        seed: int = 0,
    ) -> None:
        self.clock, self.kinds, self.database = clock, Kinds(), Database(log_size, seed)
        self._object_writer = ObjectWriter(self.database, self.kinds, mutators)
        self._create_first_objects(build_crds() if definitions is None else definitions)

    def set_mutators(self, mutators: Sequence[Mutator]) -> None:
        """From now on these change new objects, and no others."""
        self._object_writer.mutators = list(mutators)

    def fork(self, clock: Clock, seed: int | None = None) -> Server:
        """Return an independent copy with a clock of its own. What neither side writes they share.

        With a `seed` the uids and names that it generates next are shuffled anew.
        """
        copy = Server.__new__(Server)
        copy.clock, copy.kinds, copy.database = clock, self.kinds.fork(), self.database.fork(seed)
        copy._object_writer = self._object_writer.fork(copy.database, copy.kinds)
        if "garbage_candidates" in self.__dict__:
            copy.garbage_candidates = self.garbage_candidates.fork(copy.database)
        return copy

    @cached_property
    def garbage_candidates(self) -> GarbageCandidates:
        """What garbage collection has to look at. There is one index, however many collectors are started."""
        return GarbageCandidates(self.database)

    def _create_first_objects(self, definitions: Iterable[Document]) -> None:
        for name in FIRST_NAMESPACES:
            self.create(NAMESPACES, {"metadata": {"name": name}}, writer=_SYSTEM)
        for name, value in sorted(BUILT_IN_CLASSES.items()):
            self.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value}, writer=_SYSTEM)
        for definition in definitions:
            self.create(CUSTOM_RESOURCE_DEFINITIONS, definition, writer=_SYSTEM)

    # Read ----------------------------------------------------------------------------------------------------------

    def get(self, resource: Resource, key: Key) -> Document:
        kind = self.kinds.of(resource)
        document = self.database.get(kind.name, _scope_key(kind, key))
        if document is None:
            raise not_found(kind.name, key)
        return document

    def list(
        self,
        resource: Resource,
        selection: Selection = EVERYTHING,
        *,
        limit: int = 0,
        token: str = "",
        resource_version: str | None = None,
    ) -> ListResult:
        kind = self.kinds.of(resource)
        selector = selectors.parse_selection(kind, selection)
        limit = 0 if resource_version == "0" and not token else limit  # a cache answers whole
        version, after = self._list_start(limit, token, resource_version)
        namespace = selection.namespace if kind.resource.namespaced else ""
        if version == self.database.version:
            documents = self.database.list_objects(kind.name, namespace)
        else:
            documents = self._list_past(kind, namespace, version, token)
        selected = documents
        if after or not selector.selects_all:
            selected = [
                document
                for document in documents
                if selector.selects(document) and (not after or str(key_of(document)) > after)
            ]
        if not limit or len(selected) <= limit:
            return ListResult(selected, version)
        last = key_of(selected[limit - 1])
        return ListResult(selected[:limit], version, _encode_token(_Token(version, last.namespace, last.name)))

    def _list_start(self, limit: int, token: str, resource_version: str | None) -> tuple[int, str]:
        """Return the version that a list shows, and the last object of the page before."""
        current = self.database.version
        if token:
            position = _decode_token(token)
            return position.version, str(Key(position.namespace, position.name))
        version = parse_version(resource_version)
        if version > current:
            raise version_too_large(version, current)
        return (version if limit and version else current), ""

    def _list_past(self, kind: ServedKind, namespace: str, version: int, token: str) -> Documents:
        try:
            return self.database.list_objects_at(kind.name, namespace, version)
        except Gone:
            if token:
                raise expired_token() from None
            raise

    def restore(self, resource: Resource, documents: Iterable[Document]) -> None:
        """Store the objects of a snapshot as they are, before anybody watches: of these there is no history.

        Adds only what the store itself needs; refuses nothing. From now on nobody may change the documents in place.
        """
        kind, now = self.kinds.of(resource), self.clock.now()
        restored = [self._object_writer.complete_restored(kind, document, now) for document in documents]
        self.database.restore(kind.name, restored)

    # Write ---------------------------------------------------------------------------------------------------------

    def create(self, resource: Resource, body: Document, namespace: str = "", writer: Writer | None = None) -> Document:
        return self._create(self.kinds.of(resource), body, namespace, writer or Writer("wukong"))

    def _create(
        self, kind: ServedKind, body: Document, namespace: str, writer: Writer, *, is_applied: bool = False
    ) -> Document:
        now = self.clock.now()
        if kind.resource == CUSTOM_RESOURCE_DEFINITIONS:
            custom_resources.check_definition(body)
        created = self._object_writer.create(kind, body, namespace, writer, now, is_applied=is_applied)
        if kind.resource == CUSTOM_RESOURCE_DEFINITIONS:
            created = self.database.put(kind.name, custom_resources.establish(created, now))
            custom_resources.serve(self.kinds, created, self.database.version)
        return created

    def patch(self, resource: Resource, key: Key, patch: PatchBody, subresource: str = "") -> Document:
        if patch.is_dry_run:
            return self._try_patch(resource, key, patch, subresource)
        kind = self.kinds.of(resource)
        key = _scope_key(kind, key)
        if subresource and not _has_subresource(kind, subresource):
            raise no_such_kind()
        _check_patch(kind, patch)
        live = self.database.get(kind.name, key)
        if patch.type == "apply" and subresource != "scale":
            return self._apply(kind, key, live, patch, subresource)
        if live is None:
            raise not_found(kind.name, key)
        writer, now = Writer(patch.manager, subresource=subresource), self.clock.now()
        if subresource == "scale":
            after = binding_and_scale.apply_scale(live, apply_patch(kind, binding_and_scale.scale_of(live), patch))
            return binding_and_scale.scale_of(self._object_writer.update(kind, live, after, writer, now))
        after = self._object_writer.patch(kind, live, patch, writer, now)
        self._update_served_kinds(kind, after)
        return after

    def _try_patch(self, resource: Resource, key: Key, patch: PatchBody, subresource: str) -> Document:
        """What a patch would make of an object: made on a copy. The version stays that of the object as it is."""
        kind = self.kinds.of(resource)
        before = self.database.get(kind.name, _scope_key(kind, key))
        patch = msgspec.structs.replace(patch, is_dry_run=False)
        patched = self.fork(self.clock).patch(resource, key, patch, subresource)
        version = meta_of(before).get("resourceVersion") if before is not None else None
        return with_metadata(patched, resourceVersion=version)

    def _apply(self, kind: ServedKind, key: Key, live: Document | None, patch: PatchBody, subresource: str) -> Document:
        writer, now = Writer(patch.manager, "Apply", subresource), self.clock.now()
        head = {"apiVersion": kind.resource.api_version, "kind": kind.resource.kind}
        metadata = dict(patch.body.get("metadata") or {})
        for name, value in (("name", key.name), ("namespace", key.namespace)):
            if metadata.setdefault(name, value) != value:
                message = f"the {name} of the object ({metadata[name]}) does not match the {name} on the URL ({value})"
                raise bad_request(message)
        if "managedFields" in metadata:
            raise bad_request("metadata.managedFields must be nil")
        configuration = {**head, **patch.body, "metadata": {name: value for name, value in metadata.items() if value}}
        if live is None and subresource:
            raise not_found(kind.name, key)
        if live is not None and metadata.get("resourceVersion") not in (None, "", meta_of(live)["resourceVersion"]):
            raise modified_conflict(kind.name, key)
        if kind.type is not None and (unknown := find_unknown_path(kind.type, configuration)):
            subject = f"{key.namespace}/{key.name}; {kind.resource.api_version}, Kind={kind.resource.kind}"
            raise ServerFailed(
                f"failed to create typed patch object ({subject}): {unknown}: field not declared in schema"
            )
        with refuse_wrong_types(kind):
            applied = field_managers.apply_configuration(kind, live, configuration, writer, force=patch.force, now=now)
        if live is None:
            return self._create(kind, applied, key.namespace, writer, is_applied=True)
        after = self._object_writer.update(kind, live, applied, writer, now, is_applied=True)
        self._update_served_kinds(kind, after)
        return after

    def delete(self, resource: Resource, key: Key, options: DeleteOptions | None = None) -> None:
        kind = self.kinds.of(resource)
        key = _scope_key(kind, key)
        before = self.database.get(kind.name, key)
        deletion.delete(self.database, kind, key, options or DeleteOptions(), self.clock.now())
        if kind.resource == CUSTOM_RESOURCE_DEFINITIONS and before and self.database.get(kind.name, key) is None:
            custom_resources.stop_serving(self.database, self.kinds, before)

    def evict(self, key: Key, options: DeleteOptions | None = None) -> None:
        pods, budgets = self.kinds.of(PODS), self.kinds.of(POD_DISRUPTION_BUDGETS)
        eviction.evict(self.database, pods, budgets, key, options or DeleteOptions(), self.clock.now())

    def bind(self, key: Key, node: str, uid: str = "") -> None:
        binding_and_scale.bind(self.database, self.kinds.of(PODS), key, node, uid, self.clock.now())

    def finalize(self, namespace: str) -> None:
        """Remove the namespace controller's finalizer. The namespace is removed with it unless it has other ones."""
        kind, key = self.kinds.of(NAMESPACES), Key("", namespace)
        writer = Writer("kube-controller-manager", subresource="finalize")
        document = self.get(NAMESPACES, key)
        self._object_writer.update(kind, document, namespaces.without_finalizers(document), writer, self.clock.now())

    def _update_served_kinds(self, kind: ServedKind, after: Document) -> None:
        """Serve the kinds of a changed definition, or no longer those of one removed with its last finalizer."""
        if kind.resource != CUSTOM_RESOURCE_DEFINITIONS:
            return
        if self.database.get(kind.name, key_of(after)) is None:
            custom_resources.stop_serving(self.database, self.kinds, after)
        else:
            custom_resources.serve(self.kinds, after, self.database.version)


def parse_version(text: str | None) -> int:
    """Return the number that a resourceVersion is, 0 for none. Raises Invalid (400) for what is no 64-bit number."""
    digits = (text or "0").lstrip("0") or "0"
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 20 or int(digits) >= 2**64:
        raise invalid_version(str(text))
    return int(digits)


def _check_patch(kind: ServedKind, patch: PatchBody) -> None:
    """Raise Invalid for a body that is no patch of its type, or metadata that is no object, or a wrong option."""
    if patch.force and patch.type != "apply":
        problem = "force: Forbidden: may not be specified for non-apply patch"
        raise invalid("PatchOptions.meta.k8s.io", "", [problem])
    is_right = isinstance(patch.body, list if patch.type == "json" else dict)
    if patch.type == "json":
        is_right = is_right and all(
            isinstance(step, dict) and all(isinstance(step.get(name), str) for name in ("op", "path"))
            for step in patch.body
        )
    elif is_right:
        is_right = isinstance(patch.body.get("metadata") or {}, dict)
    if not is_right:
        raise bad_request(f"the body is no {patch.type} patch of a {kind.resource.kind}")


def _has_subresource(kind: ServedKind, name: str) -> bool:
    """Whether the kind has this subresource that can be patched."""
    return (name == "status" and kind.has_status) or (name == "scale" and kind.has_scale)


def _scope_key(kind: ServedKind, key: Key) -> Key:
    """Return the key without a namespace for a kind that has none, as a path to such an object has none."""
    return key if kind.resource.namespaced else Key("", key.name)


def _encode_token(token: _Token) -> str:
    return urlsafe_b64encode(msgspec.json.encode(token)).decode()


def _decode_token(token: str) -> _Token:
    try:
        return msgspec.json.decode(urlsafe_b64decode(token.encode()), type=_Token)
    except (ValueError, msgspec.DecodeError):
        raise bad_request("continue key is not valid") from None
