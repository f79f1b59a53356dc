"""The pods of each StatefulSet by ordinal, and how the ordinals stand, kept as they change: no sync walks all of them.

A derived index of the mirror (state/derived_indexes.py), read by controller.py. Pods are sorted by ordinal with every
change; ordinals of which a pod or a volume claim changed are marked anew when the StatefulSet is synced next.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Hashable
from enum import Enum, auto
from typing import ClassVar, NamedTuple, TypeVar

from wukong.api.kinds import PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS
from wukong.api.meta import Object, OwnerReference, controller_of
from wukong.api.resources import Key, key_of, refers_to
from wukong.embedded.actors import pods
from wukong.embedded.actors.controller_revisions import revision_of
from wukong.embedded.actors.marks import Marks
from wukong.embedded.actors.stateful_set import volume_claims
from wukong.embedded.actors.stateful_set.ordinals import parse_ordinal
from wukong.embedded.world.objects import Pod, StatefulSet
from wukong.engine.copy_on_write import CopyOnWriteEntries
from wukong.state import State

Entry = TypeVar("Entry", bound=Hashable)


class OrdinalMark(Enum):
    """What is true of an ordinal. Those without a pod are marked only if the StatefulSet asks for them."""

    CREATED = auto()  # its pod has a phase; the next two, and revisions, are of such pods
    READY = auto()
    AVAILABLE = auto()
    UNHEALTHY = auto()  # its pod is not available, or terminating
    CONDEMNED = auto()  # it has a pod, and is not asked for
    LACKING = auto()  # it is asked for, and lacks its pod or a claim, or its pod has finished
    STOPPING = auto()  # it is asked for, and higher ones wait for it where pods are managed in order
    HOLDING = auto()  # it is asked for, and lower ones wait for it to be updated or available
    MATURING = auto()  # its pod becomes available by waiting


class Revision(NamedTuple):
    """The mark of ordinals whose pod is of this revision and not terminating."""

    name: str


class Version(NamedTuple):
    """What the marks of all ordinals depend on."""

    generation: int
    update: str  # the revision that is asked for
    range: range


class OrderedPods:
    """The pods of one StatefulSet."""

    def __init__(self) -> None:
        self.marks: Marks[int, OrdinalMark | Revision] = Marks()
        self.pod_count = 0
        self.revisions: Tally[str] = Tally()  # of all pods, whatever their names
        self.claim_prefixes: tuple[Key, ...] = ()  # what the keys of its volume claims begin with, before the ordinal
        self._by_ordinal: dict[int, tuple[Pod, ...]] = {}  # sorted by key
        self._ready_times: Tally[float] = Tally()  # when pods became ready → how many, of whatever state
        self._changed: set[int] = set()  # ordinals that something happened to since they were marked
        self._version: Version | None = None

    def fork(self) -> OrderedPods:
        copy = OrderedPods()
        copy.marks, copy.pod_count, copy._version = self.marks.fork(), self.pod_count, self._version
        copy.revisions, copy.claim_prefixes = self.revisions.copy(), self.claim_prefixes
        copy._by_ordinal, copy._ready_times = dict(self._by_ordinal), self._ready_times.copy()
        copy._changed = set(self._changed)
        return copy

    def get(self, ordinal: int) -> Pod | None:
        """The pod of this ordinal. Two names may mean the same, such as web-1 and web-01: then the last counts."""
        named = self._by_ordinal.get(ordinal)
        return named[-1] if named else None

    def update_marks(self, stateful_set: StatefulSet, version: Version, state: State, now: float) -> None:
        """Mark the ordinals of which something changed, or all of them if the StatefulSet did."""
        if version != self._version:
            self._version, self.marks = version, Marks()
            self._changed = {*self._by_ordinal, *version.range}
            self.claim_prefixes = volume_claims.build_prefixes(stateful_set)
        for ordinal in sorted({*self._changed, *self.marks.names(OrdinalMark.MATURING)}):
            self.marks.put(ordinal, self._find_marks(ordinal, stateful_set, version, state, now))
        self._changed.clear()

    def _find_marks(
        self, ordinal: int, stateful_set: StatefulSet, version: Version, state: State, now: float
    ) -> set[OrdinalMark | Revision]:
        pod, is_wanted = self.get(ordinal), ordinal in version.range
        if pod is None:
            return {OrdinalMark.LACKING, OrdinalMark.STOPPING, OrdinalMark.HOLDING} if is_wanted else set()
        least = stateful_set.spec.min_ready_seconds
        is_available, is_created = pods.is_available(pod, least, now), bool(pod.status.phase)
        is_healthy, revision = is_available and not pod.is_terminating, revision_of(pod)
        is_settled = is_healthy and not pod.is_finished
        claims: dict[OrdinalMark, bool] = {
            OrdinalMark.CREATED: is_created,
            OrdinalMark.READY: pod.status.phase == "Running" and pods.is_ready(pod),
            OrdinalMark.AVAILABLE: is_created and is_available,
            OrdinalMark.UNHEALTHY: not is_healthy,
            OrdinalMark.CONDEMNED: not is_wanted,
            OrdinalMark.LACKING: is_wanted and needs_maintenance(stateful_set, pod, state),
            OrdinalMark.STOPPING: is_wanted and not is_settled,
            OrdinalMark.HOLDING: is_wanted and not (is_settled and revision == version.update),
            OrdinalMark.MATURING: pods.is_maturing(pod, least, now),
        }
        marks: set[OrdinalMark | Revision] = {mark for mark, is_true in claims.items() if is_true}
        return marks | {Revision(revision)} if is_created and not pod.is_terminating else marks

    def seconds_to_next_available(self, min_ready_seconds: int, now: float) -> float | None:
        """Seconds until the next of them becomes available by waiting alone. None if none will."""
        return pods.seconds_until_available(self._ready_times, min_ready_seconds, now)

    def add(self, pod: Pod, ordinal: int) -> None:
        self._count(pod, 1)
        if ordinal >= 0:
            self._changed.add(ordinal)
            self._by_ordinal[ordinal] = tuple(sorted((*self._by_ordinal.get(ordinal, ()), pod), key=key_of))

    def remove(self, pod: Pod, ordinal: int) -> None:
        self._count(pod, -1)
        if ordinal >= 0:
            self._changed.add(ordinal)
            remaining = tuple(other for other in self._by_ordinal[ordinal] if other is not pod)
            if remaining:
                self._by_ordinal[ordinal] = remaining
            else:
                del self._by_ordinal[ordinal]

    def note_claim(self, key: Key) -> None:
        """A volume claim came, changed or went: the ordinal that it is of is looked at again."""
        for prefix in self.claim_prefixes:
            if key.namespace == prefix.namespace and key.name.startswith(prefix.name):
                number = key.name.removeprefix(prefix.name)
                if number.isdecimal():
                    self._changed.add(int(number))

    def _count(self, pod: Pod, change: int) -> None:
        self.pod_count += change
        _add(self.revisions, revision_of(pod), change)
        if pods.is_ready(pod):
            _add(self._ready_times, pods.ready_since(pod), change)


class OrdinalIndex:
    kinds: ClassVar[frozenset[str]] = frozenset(
        {PODS.group_kind, PERSISTENT_VOLUME_CLAIMS.group_kind, STATEFUL_SETS.group_kind}
    )
    pod_controller: ClassVar[str] = STATEFUL_SETS.kind

    def __init__(self) -> None:
        self._sets: CopyOnWriteEntries[str, OrderedPods] = CopyOnWriteEntries()  # uid of a StatefulSet → its pods

    def of(self, stateful_set: StatefulSet) -> OrderedPods:
        """The pods of a StatefulSet, for its next sync."""
        return self._own(stateful_set.metadata.uid)

    def note(self, group_kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        if group_kind == PERSISTENT_VOLUME_CLAIMS.group_kind:
            for uid, ordered in self._sets.items():
                if ordered.claim_prefixes:
                    self._sets.own(uid).note_claim(key)
        elif group_kind == PODS.group_kind:
            if isinstance(old, Pod) and (owner := _stateful_set_of(old)) is not None:
                self._own(owner.uid).remove(old, parse_ordinal(owner.name, key.name))
                self._forget_if_empty(owner.uid)
            if isinstance(new, Pod) and (owner := _stateful_set_of(new)) is not None:
                self._own(owner.uid).add(new, parse_ordinal(owner.name, key.name))
        elif new is None and old is not None:
            self._forget_if_empty(old.metadata.uid)

    def fork(self) -> OrdinalIndex:
        copy = OrdinalIndex()
        copy._sets = self._sets.fork()
        return copy

    def _own(self, uid: str) -> OrderedPods:
        if uid not in self._sets:
            self._sets[uid] = OrderedPods()
        return self._sets.own(uid)

    def _forget_if_empty(self, uid: str) -> None:
        """Without pods nothing is lost: all ordinals are marked when the StatefulSet is asked about again."""
        ordered = self._sets.get(uid)
        if ordered is not None and not ordered.pod_count:
            del self._sets[uid]


def needs_maintenance(stateful_set: StatefulSet, pod: Pod, state: State) -> bool:
    """Whether an ordinal that has a pod needs anything else: another pod, or a claim."""
    if pod.is_finished:
        return not pod.is_terminating
    return bool(volume_claims.maintain_claims(stateful_set, pod, state))


def _stateful_set_of(pod: Pod) -> OwnerReference | None:
    owner = controller_of(pod.metadata)
    return owner if owner is not None and refers_to(owner, STATEFUL_SETS) else None


def _add(tally: Tally[Entry], entry: Entry, change: int) -> None:
    """Change a count. An entry whose count is 0 is removed."""
    tally[entry] += change
    if not tally[entry]:
        del tally[entry]
