"""The API server of the embedded cluster, synchronous: what `Store` is a port to, and what actors and tests call.

Reads and writes plain documents; every rule is in the modules beside this one. Deterministic: versions, uids and
generated names come from counters, the time from the clock it is given, and every list is sorted. What it returns is
what is stored: callers copy before they change anything (`Store` does so for its callers).
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple, TypeAlias

import msgspec

from wukong.admission.priority import BUILT_IN_CLASSES
from wukong.api.crds import crds
from wukong.api.resources import RESOURCES, Key, Resource
from wukong.embedded.store import binding_and_scale, custom_resources, deletion, eviction, namespaces, selectors
from wukong.embedded.store.admission import Mutator
from wukong.embedded.store.api_errors import bad_request, expired_token, no_such_kind, no_version, not_found, too_large
from wukong.embedded.store.database import KEPT, Database, key_of
from wukong.embedded.store.deletion import Options
from wukong.embedded.store.garbage_collection import Doubts
from wukong.embedded.store.kinds import BUDGETS, DEFINITIONS, NAMESPACES, PODS, Kind, Kinds
from wukong.embedded.store.ownership import field_managers
from wukong.embedded.store.ownership.field_managers import Writer
from wukong.embedded.store.patch.patch import patched
from wukong.embedded.store.writes import ObjectWriter
from wukong.errors import Gone
from wukong.ports import EVERYTHING, Clock, Document, PatchBody, Selection

FIRST_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_SYSTEM = Writer("kube-apiserver")
Documents: TypeAlias = list[Document]  # for Server, whose own `list` hides the type


class Listed(NamedTuple):
    items: list[Document]
    version: int
    token: str = ""


class _Token(msgspec.Struct):
    """Where a list goes on: its moment, and the last object given."""

    version: int
    namespace: str
    name: str


class Server:
    """`kept` bounds the history of each kind; `mutators` see every new object, as mutating webhooks do."""

    def __init__(
        self,
        clock: Clock,
        *,
        mutators: Sequence[Mutator] = (),
        definitions: Iterable[Document] | None = None,
        kept: int = KEPT,
        seed: int = 0,
    ) -> None:
        self.clock, self.kinds, self.database = clock, Kinds(), Database(kept, seed)
        self._writing = ObjectWriter(self.database, self.kinds, mutators)
        self._begin(crds() if definitions is None else definitions)

    @cached_property
    def doubts(self) -> Doubts:
        """What garbage collection has to look at; kept once, however many collectors there are or have been."""
        return Doubts(self.database)

    def _begin(self, definitions: Iterable[Document]) -> None:
        for name in FIRST_NAMESPACES:
            self.create(NAMESPACES, {"metadata": {"name": name}}, writer=_SYSTEM)
        for name, value in sorted(BUILT_IN_CLASSES.items()):
            self.create(RESOURCES["PriorityClass"], {"metadata": {"name": name}, "value": value}, writer=_SYSTEM)
        for definition in definitions:
            self.create(DEFINITIONS, definition, writer=_SYSTEM)

    # Read ----------------------------------------------------------------------------------------------------------

    def get(self, resource: Resource, key: Key) -> Document:
        kind = self.kinds.of(resource)
        found = self.database.get(kind.name, _placed(kind, key))
        if found is None:
            raise not_found(kind.name, key)
        return found

    def list(
        self,
        resource: Resource,
        selection: Selection = EVERYTHING,
        *,
        limit: int = 0,
        token: str = "",
        resource_version: str | None = None,
    ) -> Listed:
        kind = self.kinds.of(resource)
        selector = selectors.read(kind, selection)
        limit = 0 if resource_version == "0" and not token else limit  # a cache answers whole
        version, after = self._moment(limit, token, resource_version)
        namespace = selection.namespace if kind.resource.namespaced else ""
        if version == self.database.version:
            found = self.database.all(kind.name, namespace)
        else:
            found = self._past(kind, namespace, version, token)
        chosen = [each for each in found if selector.selects(each) and (not after or str(key_of(each)) > after)]
        if not limit or len(chosen) <= limit:
            return Listed(chosen, version)
        last = key_of(chosen[limit - 1])
        return Listed(chosen[:limit], version, _written(_Token(version, last.namespace, last.name)))

    def _moment(self, limit: int, token: str, resource_version: str | None) -> tuple[int, str]:
        """The version a list is about, and the last object of the page before."""
        current = self.database.version
        if token:
            read = _read(token)
            return read.version, str(Key(read.namespace, read.name))
        if not (resource_version or "0").isdigit():
            raise no_version(str(resource_version))
        asked = int(resource_version or "0")
        if asked > current:
            raise too_large(asked, current)
        return (asked if limit and asked else current), ""

    def _past(self, kind: Kind, namespace: str, version: int, token: str) -> Documents:
        try:
            return self.database.all_at(kind.name, namespace, version)
        except Gone:
            if token:
                raise expired_token() from None
            raise

    def restore(self, resource: Resource, documents: Iterable[Document]) -> None:
        """Objects of a snapshot as they were: nothing is filled in but what the store itself needs, nothing refused."""
        kind = self.kinds.of(resource)
        for document in documents:
            self.database.pass_over(document)
            self.database.put(kind.name, self._writing.restored(kind, document, self.clock.now()))

    # Write ---------------------------------------------------------------------------------------------------------

    def create(self, resource: Resource, body: Document, namespace: str = "", writer: Writer | None = None) -> Document:
        return self._create(self.kinds.of(resource), body, namespace, writer or Writer("wukong"))

    def _create(
        self, kind: Kind, body: Document, namespace: str, writer: Writer, *, is_applied: bool = False
    ) -> Document:
        now = self.clock.now()
        if kind.resource == DEFINITIONS:
            custom_resources.check(body)
        made = self._writing.create(kind, body, namespace, writer, now, is_applied=is_applied)
        if kind.resource == DEFINITIONS:
            made = self.database.put(kind.name, custom_resources.established(made, now))
            custom_resources.serve(self.kinds, made, self.database.version)
        return made

    def patch(self, resource: Resource, key: Key, patch: PatchBody, subresource: str = "") -> Document:
        kind = self.kinds.of(resource)
        key = _placed(kind, key)
        if subresource not in ("", *(["status"] if kind.has_status else []), *(["scale"] if kind.has_scale else [])):
            raise no_such_kind()
        live = self.database.get(kind.name, key)
        if patch.type == "apply" and subresource != "scale":
            return self._apply(kind, key, live, patch, subresource)
        if live is None:
            raise not_found(kind.name, key)
        writer, now = Writer(patch.manager, subresource=subresource), self.clock.now()
        if subresource == "scale":
            after = binding_and_scale.scaled(kind, live, patched(kind, binding_and_scale.scale_of(live), patch))
            return binding_and_scale.scale_of(self._writing.update(kind, live, after, writer, now))
        after = self._writing.update(kind, live, patched(kind, live, patch), writer, now)
        self._redefine(kind, after)
        return after

    def _apply(self, kind: Kind, key: Key, live: Document | None, patch: PatchBody, subresource: str) -> Document:
        writer, now = Writer(patch.manager, "Apply", subresource), self.clock.now()
        head = {"apiVersion": kind.resource.api_version, "kind": kind.resource.kind}
        given = dict(patch.body.get("metadata") or {})
        for name, value in (("name", key.name), ("namespace", key.namespace)):
            if given.setdefault(name, value) != value:
                told = f"the {name} of the object ({given[name]}) does not match the {name} on the URL ({value})"
                raise bad_request(told)
        if "managedFields" in given:
            raise bad_request("metadata.managedFields must be nil")
        configuration = {**head, **patch.body, "metadata": {name: value for name, value in given.items() if value}}
        if live is None and subresource:
            raise not_found(kind.name, key)
        made = field_managers.applied(kind, live, configuration, writer, force=patch.force, now=now)
        if live is None:
            return self._create(kind, made, key.namespace, writer, is_applied=True)
        after = self._writing.update(kind, live, made, writer, now, is_applied=True)
        self._redefine(kind, after)
        return after

    def delete(self, resource: Resource, key: Key, options: Options | None = None) -> None:
        kind = self.kinds.of(resource)
        key = _placed(kind, key)
        before = self.database.get(kind.name, key)
        deletion.delete(self.database, kind, key, options or Options(), self.clock.now())
        if kind.resource == DEFINITIONS and before and self.database.get(kind.name, key) is None:
            custom_resources.withdraw(self.database, self.kinds, before)

    def evict(self, key: Key, options: Options | None = None) -> None:
        pods, budgets = self.kinds.of(PODS), self.kinds.of(BUDGETS)
        eviction.evict(self.database, pods, budgets, key, options or Options(), self.clock.now())

    def bind(self, key: Key, node: str, uid: str = "") -> None:
        binding_and_scale.bind(self.database, self.kinds.of(PODS), key, node, uid, self.clock.now())

    def finalize(self, namespace: str) -> None:
        """The namespace controller's last word. The namespace goes, unless it has finalizers of others."""
        kind, key = self.kinds.of(NAMESPACES), Key("", namespace)
        writer = Writer("kube-controller-manager", subresource="finalize")
        found = self.get(NAMESPACES, key)
        self._writing.update(kind, found, namespaces.finalized(found), writer, self.clock.now())

    def _redefine(self, kind: Kind, after: Document) -> None:
        """A definition that changed, or went with its last finalizer, changes what is served."""
        if kind.resource != DEFINITIONS:
            return
        if self.database.get(kind.name, key_of(after)) is None:
            custom_resources.withdraw(self.database, self.kinds, after)
        else:
            custom_resources.serve(self.kinds, after, self.database.version)


def _placed(kind: Kind, key: Key) -> Key:
    """What is not namespaced has no namespace, whatever the caller says: so it is with paths, too."""
    return key if kind.resource.namespaced else Key("", key.name)


def _written(token: _Token) -> str:
    return urlsafe_b64encode(msgspec.json.encode(token)).decode()


def _read(token: str) -> _Token:
    try:
        return msgspec.json.decode(urlsafe_b64decode(token.encode()), type=_Token)
    except (ValueError, msgspec.DecodeError):
        raise bad_request("continue key is not valid") from None
