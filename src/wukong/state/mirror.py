"""The mirror: every object Wukong watches, as the API server last showed it, with indexes and the live snapshot.

The runtime feeds it events and lists, controllers and replies read it. Objects in it are never changed in place. It
knows no time but what it is told, and asks nobody anything.

Versions are opaque, so only equality tells: an event with the uid and resourceVersion we hold is a duplicate, one with
another uid is the same name created again, and a deletion of another uid than we hold is old news.

An object that cannot be read is not mirrored, and one that was leaves the mirror when it becomes so: what it says now
nobody knows, and what it said before is no longer so. A policy then holds for nobody, nothing is placed on such a node,
and what a pod asks for is not counted: the same as after a restart. `unreadable` has them, for those who report it.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple, TypeVar

from wukong.api.core import Pod
from wukong.api.kinds import KINDS, PODS, group_kind_of
from wukong.api.meta import Object, ObjectMeta, OwnerReference
from wukong.api.objects import Objects
from wukong.api.resources import Key, key_of
from wukong.api.unreadable import READ_ERRORS, Unreadable, describe_read_error
from wukong.engine import Snapshot
from wukong.engine.layered_dict import LayeredDict
from wukong.engine.requests import is_resize_infeasible
from wukong.ports import EventType
from wukong.state.assumed_placements import AssumedPlacements
from wukong.state.attempts import Attempts
from wukong.state.derived_indexes import DerivedIndexes, I
from wukong.state.indexes import OwnerIndex, PodIndex
from wukong.state.live_snapshot import LiveSnapshot, in_order
from wukong.state.recent_bindings import RecentBindings
from wukong.state.sharing import PartSharer

O = TypeVar("O", bound=Object)  # noqa: E741
_PODS = PODS.group_kind
_MOST_UNREPORTED = 1000


class Change(NamedTuple):
    """What an event really did. `old` is None for ADDED; for DELETED `new` is None."""

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    group_kind: str
    key: Key
    old: Object | None
    new: Object | None

    @property
    def kind(self) -> str:
        """Without its group, for messages."""
        return self.group_kind.partition(".")[0]


class State:
    def __init__(self) -> None:
        self._objects: dict[str, LayeredDict[Key, Object]] = {}  # group and kind → key → object
        self.objects: Mapping[str, Mapping[Key, Object]] = self._objects
        self.unreadable: dict[str, dict[Key, Unreadable]] = {}  # group and kind → key → what is known of it
        self.missing_kinds: set[str] = set()  # optional kinds (group and kind) that the API server does not have
        self.pods = PodIndex()
        self.owners = OwnerIndex()
        self.placements = AssumedPlacements()
        self.attempts = Attempts()
        self.recent = RecentBindings()
        self.versions: Tally[str] = Tally()  # group and kind → how often something of it changed
        self._live = LiveSnapshot(self.objects)
        self._derived_indexes = DerivedIndexes()
        self._sharing = PartSharer()
        self._unreported: deque[tuple[str, Key]] = deque(maxlen=_MOST_UNREPORTED)
        self._unlisted: dict[str, dict[Key, None]] = {}  # of a list that has begun: mirrored, and in no page so far

    # ---- reading

    def get(self, read: type[O], key: Key) -> O | None:
        """The object of this struct's kind, if there is one."""
        of_kind = self.objects.get(KINDS.group_kinds[read])
        mirrored = of_kind.get(key) if of_kind is not None else None
        return mirrored if isinstance(mirrored, read) else None

    def all(self, read: type[O]) -> list[O]:
        """Every object of this struct's kind, sorted by key."""
        mirrored = self.objects.get(KINDS.group_kinds[read], {})
        return [subject for _, subject in sorted(mirrored.items()) if isinstance(subject, read)]

    def of(self, read: type[Object]) -> Mapping[Key, Object]:
        """Every object of this struct's kind, by key."""
        return self.objects.get(KINDS.group_kinds[read], {})

    def owner(self, namespace: str, reference: OwnerReference) -> Object | None:
        """The object that an owner reference in this namespace names, if it is the very one: names come again."""
        owners = self.objects.get(KINDS.group_kind_named(reference.kind, reference.api_version), {})
        mirrored = owners.get(Key(namespace, reference.name))
        return mirrored if mirrored is not None and mirrored.metadata.uid == reference.uid else None

    def get_unreadable(self, read: type[Object], key: Key) -> Unreadable | None:
        """The object of this struct's kind, if it is there and cannot be read."""
        return self.unreadable.get(KINDS.group_kinds[read], {}).get(key)

    def pods_on(self, node: str) -> list[Pod]:
        """The pods bound to a node, or to none (""), finished ones too. Assumed ones are only in the snapshot."""
        return [pod for key in self.pods.on_node(node) if (pod := self.get(Pod, key)) is not None]

    def index_of(self, make: type[I]) -> I:
        """The index of this class, current with every change; made when first asked for."""
        by_class = self._derived_indexes.by_class
        if make not in by_class:
            self._derived_indexes.make(make, self.objects)
        return by_class[make]  # type: ignore[return-value]

    @property
    def snapshot(self) -> Snapshot:
        """The engine's snapshot, current with every event and assumed placement so far. Fork it to try things out."""
        return self._live.current()

    def list_objects(self) -> Objects:
        """Everything the engine's own reader takes, as a value: for snapshots on disk and for comparing."""
        return in_order(self.objects, [kind.group_kind for kind in KINDS.list_deciding()])

    def fork(self) -> State:
        """An independent copy for what-if. Objects are shared: neither side changes them in place."""
        copy = State()
        copy._objects = {group_kind: mirrored.fork() for group_kind, mirrored in self._objects.items()}
        copy.objects = copy._objects
        copy.unreadable = {group_kind: dict(subjects) for group_kind, subjects in self.unreadable.items()}
        copy.missing_kinds = set(self.missing_kinds)
        copy._unlisted = {group_kind: dict(keys) for group_kind, keys in self._unlisted.items()}
        copy.pods, copy.owners = self.pods.fork(), self.owners.fork()
        copy.placements, copy.attempts = self.placements.fork(), self.attempts.fork()
        copy.recent, copy.versions = self.recent.fork(), Tally(self.versions)
        copy._live, copy._derived_indexes = self._live.fork(copy.objects), self._derived_indexes.fork()
        return copy

    # ---- events

    def apply(self, event_type: EventType, subject: Object, group_kind: str = "") -> list[Change]:
        """Take in one watch event; gives what it changed: nothing, one thing, or two when a name was created again.

        `group_kind` is for objects read into a struct that the table of kinds does not have.
        """
        if event_type == "BOOKMARK":
            return []
        group_kind, key = group_kind or group_kind_of(subject), key_of(subject)
        if event_type == "DELETED":
            self._forget_unreadable(group_kind, key)
            mirrored = self.objects.get(group_kind, {}).get(key)
            is_old_news = mirrored is None or _is_another(mirrored, subject)
            return [] if is_old_news else [self._set(group_kind, key, None)]
        return self._upsert(group_kind, key, subject)

    def replace(self, group_kind: str, items: Iterable[Object]) -> list[Change]:
        """Take in a whole list, first or again; gives the changes that watching would have shown."""
        listed = self._by_key(group_kind, items)
        self._unlisted.pop(group_kind, None)
        changes = self._remove_all(group_kind, [key for key in self.objects.get(group_kind, {}) if key not in listed])
        for key in [key for key in self.unreadable.get(group_kind, {}) if key not in listed]:
            self._forget_unreadable(group_kind, key)
        for key, subject in listed.items():
            changes += self._upsert(group_kind, key, subject)
        return changes

    def take_page(self, group_kind: str, items: Iterable[Object], *, is_first: bool, is_last: bool) -> list[Change]:
        """Take in one page of a list. What was in no page is removed with the last: until then it is still there."""
        if is_first and is_last:
            return self.replace(group_kind, items)
        if is_first:
            held = (*self.objects.get(group_kind, ()), *self.unreadable.get(group_kind, ()))
            self._unlisted[group_kind] = dict.fromkeys(held)
        unlisted, changes = self._unlisted[group_kind], list[Change]()
        for key, subject in self._by_key(group_kind, items).items():
            unlisted.pop(key, None)
            changes += self._upsert(group_kind, key, subject)
        if is_last:
            del self._unlisted[group_kind]
            for key in unlisted:
                self._forget_unreadable(group_kind, key)
            mirrored = self.objects.get(group_kind, {})
            changes += self._remove_all(group_kind, [key for key in unlisted if key in mirrored])
        return changes

    def _by_key(self, group_kind: str, items: Iterable[Object]) -> dict[Key, Object]:
        listed = {key_of(subject): subject for subject in items}
        for struct in {type(subject) for subject in listed.values()} - {Unreadable}:
            entry = KINDS.of_struct(struct)
            assert entry is None or entry.group_kind == group_kind, f"{group_kind} holds no {entry.group_kind}"
        return listed

    def _remove_all(self, group_kind: str, keys: list[Key]) -> list[Change]:
        return [self._set(group_kind, key, None) for key in keys]

    def _forget_unreadable(self, group_kind: str, key: Key) -> None:
        if group_kind in self.unreadable:
            self.unreadable[group_kind].pop(key, None)

    def _upsert(self, group_kind: str, key: Key, subject: Object) -> list[Change]:
        mirrored = self.objects.get(group_kind, {}).get(key)
        version = subject.metadata.resource_version
        is_known = mirrored is not None and not _is_another(mirrored, subject)
        if is_known and mirrored is not None and version and version == mirrored.metadata.resource_version:
            return []
        try:
            is_alike = self._prepare(key, mirrored if is_known else None, subject)
            unreadable = subject if isinstance(subject, Unreadable) else None
        except READ_ERRORS as error:
            unreadable = Unreadable(metadata=subject.metadata, problem=describe_read_error(error))
        if unreadable is not None:
            self._note_unreadable(group_kind, key, unreadable)
            return [] if mirrored is None else [self._set(group_kind, key, None)]
        self._forget_unreadable(group_kind, key)
        gone = [] if mirrored is None or is_known else [self._set(group_kind, key, None)]
        return [*gone, self._set(group_kind, key, subject, is_counted_alike=is_alike)]

    def _prepare(self, key: Key, mirrored: Object | None, subject: Object) -> bool:
        """Share what the object has in common with others, and tell whether it counts as the one mirrored does.

        Whatever the engine could not count is raised here, before anything is changed: no failure about one object
        leaves the mirror half changed.
        """
        if isinstance(subject, Unreadable):
            return False
        self._sharing.share(subject, mirrored)
        is_alike = self._is_counted_alike(key, mirrored, subject)
        if not is_alike:
            self._live.check(subject)
        return is_alike

    def _note_unreadable(self, group_kind: str, key: Key, unreadable: Unreadable) -> None:
        of_kind = self.unreadable.setdefault(group_kind, {})
        known = of_kind.get(key)
        if known is None or known.metadata.uid != unreadable.metadata.uid or known.problem != unreadable.problem:
            self._unreported.append((group_kind, key))
        of_kind[key] = unreadable

    def take_unreported(self) -> list[tuple[str, Unreadable]]:
        """The objects, with group and kind, that became unreadable since this was asked, or for another reason."""
        unreported = [
            (group_kind, unreadable)
            for group_kind, key in self._unreported
            if (unreadable := self.unreadable.get(group_kind, {}).get(key)) is not None
        ]
        self._unreported.clear()
        return unreported

    def _set(self, group_kind: str, key: Key, new: Object | None, *, is_counted_alike: bool = False) -> Change:
        mirrored = self._objects.get(group_kind)
        if mirrored is None:
            mirrored = self._objects[group_kind] = LayeredDict()
        old = mirrored.pop(key, None) if new is None else mirrored.get(key)
        if new is not None:
            mirrored[key] = new
        self.versions[group_kind] += 1
        self._index(group_kind, key, old, new)
        self._derived_indexes.note(group_kind, key, old, new)
        if group_kind == _PODS:
            self.recent.note(key, old if isinstance(old, Pod) else None, new if isinstance(new, Pod) else None)
            self.placements.settle(key, new if isinstance(new, Pod) else None)
            if not is_counted_alike:
                self._count(key)
        else:
            self._live.note(group_kind, old, new)
        return Change("ADDED" if old is None else "DELETED" if new is None else "MODIFIED", group_kind, key, old, new)

    def _index(self, group_kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        if old is None or new is None or not _has_same_owners(old.metadata, new.metadata):
            if old is not None:
                self.owners.remove(group_kind, key, old)
            if new is not None:
                self.owners.add(group_kind, key, new)
        if group_kind == _PODS:
            self._index_pod(key, old if isinstance(old, Pod) else None, new if isinstance(new, Pod) else None)

    def _index_pod(self, key: Key, old: Pod | None, new: Pod | None) -> None:
        if old is not None and new is not None and _has_same_labels(old.metadata, new.metadata):
            if old.spec is not new.spec and old.spec.node_name != new.spec.node_name:
                self.pods.move(key, old.spec.node_name, new.spec.node_name)
            return
        if old is not None:
            self.pods.remove(key, old)
        if new is not None:
            self.pods.add(key, new)

    # ---- assumed placements

    def assume(self, key: Key, node: str, now: float, ttl: float, pod: Pod | None = None) -> bool:
        """Count a pod on a node from now on, until the watch says or `ttl` seconds have passed.

        `pod` is for one the watch has not shown yet. False if it is bound or finished: then the watch has spoken.
        """
        mirrored = self.get(Pod, key)
        pod = mirrored or pod
        if pod is None:
            raise KeyError(f"no pod {key} to assume on {node}")
        if pod.is_finished or (mirrored is not None and mirrored.spec.node_name):
            return False
        self.placements.assume(key, pod, node, now + ttl)
        self._count(key)
        return True

    def keep_assumed(self, key: Key, node: str) -> None:
        """The API server has taken the binding: it counts until the watch shows the pod, however long that takes."""
        self.placements.keep(key, node)

    def forget(self, key: Key) -> None:
        """Take an assumed placement back, because binding failed."""
        if self.placements.drop(key) is not None:
            self._count(key)

    def expire(self, now: float) -> list[Change]:
        """Take back the assumed placements whose time is up. Their pods count as changed: somebody must look again."""
        changes = []
        self.recent.expire(now)
        for key in self.placements.expire(now):
            self._count(key)
            if (pod := self.get(Pod, key)) is not None:
                changes.append(Change("MODIFIED", _PODS, key, pod, pod))
        return changes

    def has_expired(self, now: float) -> bool:
        """Whether there is an assumed placement whose time is up."""
        until = self.placements.next_expiry()
        return until is not None and until <= now

    def _count(self, key: Key) -> None:
        """Tell the live snapshot where this pod is: where the watch saw it, else where it is assumed to be."""
        pod, assumed = self.get(Pod, key), self.placements.get(key)
        if pod is not None:
            self._live.put(pod, pod.spec.node_name or (assumed.node if assumed else ""))
        elif assumed is not None:
            self._live.put(assumed.pod, assumed.node)
        else:
            self._live.remove(str(key))

    def _is_counted_alike(self, key: Key, old: Object | None, new: Object | None) -> bool:
        """Whether a bound pod changed in nothing that decisions read: most changes are news of its health."""
        if not isinstance(old, Pod) or not isinstance(new, Pod) or not new.spec.node_name:
            return False
        before, after = old.metadata, new.metadata
        return (
            (old.spec is new.spec or old.spec == new.spec)
            and (before.deletion_timestamp is None) == (after.deletion_timestamp is None)
            and old.is_finished == new.is_finished
            and _has_same_labels(before, after)
            and _has_same_owners(before, after)
            and (old.status is new.status or _has_same_requests(old, new))
            and self.placements.get(key) is None
        )


def _has_same_requests(old: Pod, new: Pod) -> bool:
    """Whether a status says the same of what a pod takes, and since when."""
    before, after = old.status, new.status
    return (
        before.start_time == after.start_time
        and before.container_statuses == after.container_statuses
        and before.init_container_statuses == after.init_container_statuses
        and is_resize_infeasible(old) == is_resize_infeasible(new)
    )


def _is_another(mirrored: Object, subject: Object) -> bool:
    return mirrored.metadata.uid != subject.metadata.uid


def _has_same_owners(before: ObjectMeta, after: ObjectMeta) -> bool:
    return before.owner_references is after.owner_references or before.owner_references == after.owner_references


def _has_same_labels(before: ObjectMeta, after: ObjectMeta) -> bool:
    return before.labels is after.labels or before.labels == after.labels
