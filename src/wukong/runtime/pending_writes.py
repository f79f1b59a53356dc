"""Our own writes until the watch has shown them: a key rests so long, lest it be decided on a state before its own act.

Kept by `dispatch`. Versions are opaque, so an echo is recognized by equality: the version the API server gave our write
comes by in the watch. Where a list skipped it, or the watch is late, the key rests for PATIENCE seconds and no longer.
A write that has not shown by then is overdue, until it shows or a list comes: one that a list passes over may have been
undone unseen, and that shows in no change.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from typing import Generic, NamedTuple, TypeVar

from wukong.api.resources import Key
from wukong.state import Change

Item = TypeVar("Item", bound=Hashable)
Place = tuple[str, Key]  # group and kind, and key
PATIENCE = 5.0
_MOST_OVERDUE = 1 << 14  # objects; the oldest is not waited for any longer
_REMEMBERED = 4096  # versions seen lately: an echo may come before the answer to the write


class WrittenVersion(NamedTuple):
    group_kind: str
    key: Key
    version: str
    uid: str = ""  # tells it from an earlier object of the same name

    @property
    def kind(self) -> str:
        """Without its group, for messages."""
        return self.group_kind.partition(".")[0]


class PendingWrites(Generic[Item]):
    def __init__(self) -> None:
        self._seen: OrderedDict[tuple[str, Key, str], None] = OrderedDict()
        self._missing: dict[Item, set[WrittenVersion]] = {}
        self._until: dict[Item, float] = {}  # oldest first, for PATIENCE is the same for all
        self._places: dict[Item, set[Place]] = {}
        self._by_object: dict[Place, dict[Item, None]] = {}
        self._overdue: dict[Place, dict[WrittenVersion, Item]] = {}

    def fork(self) -> PendingWrites[Item]:
        copy: PendingWrites[Item] = PendingWrites()
        copy._seen, copy._until = self._seen.copy(), dict(self._until)
        copy._missing = {item: set(missing) for item, missing in self._missing.items()}
        copy._places = {item: set(places) for item, places in self._places.items()}
        copy._by_object = {place: dict(items) for place, items in self._by_object.items()}
        copy._overdue = {place: dict(writes) for place, writes in self._overdue.items()}
        return copy

    def hold(self, item: Item, written: Iterable[WrittenVersion], now: float) -> bool:
        """Whether this item must rest until all of these have been seen."""
        missing = {write for write in written if write[:3] not in self._seen}
        if not missing:
            return False
        self._missing[item], self._until[item] = missing, now + PATIENCE
        self._places[item] = {write[:2] for write in missing}
        for place in self._places[item]:
            self._by_object.setdefault(place, {})[item] = None
        return True

    def observe(self, changes: Iterable[Change]) -> list[Item]:
        """The items that need not rest any longer."""
        released = []
        for change in changes:
            version = None if change.new is None else change.new.metadata.resource_version
            if version is not None:
                self._remember((change.group_kind, change.key, version))
            if self._overdue:
                self._forget_overdue(change, version)
            if not self._by_object:
                continue
            for item in list(self._by_object.get((change.group_kind, change.key), ())):
                missing = self._missing[item]
                missing -= {write for write in missing if _is_echo(write, change, version)}
                if not missing:
                    self._release(item)
                    released.append(item)
        return released

    def expire(self, now: float) -> list[Item]:
        """The items that have rested long enough. What they wrote is overdue."""
        expired = [item for item, until in self._until.items() if until <= now]
        for item in expired:
            self._keep_overdue(item, sorted(self._missing[item]))
            self._release(item)
        return expired

    def _keep_overdue(self, item: Item, missing: list[WrittenVersion]) -> None:
        """What an item wrote to an object before is past: of its writes there the latest are enough."""
        for place in dict.fromkeys(write[:2] for write in missing):
            writes = self._overdue.pop(place, {})
            self._overdue[place] = {write: owner for write, owner in writes.items() if owner != item}
        for write in missing:
            self._overdue[write[:2]][write] = item
        while len(self._overdue) > _MOST_OVERDUE:
            del self._overdue[next(iter(self._overdue))]

    def take_overdue(self, group_kind: str) -> list[Item]:
        """The items with an overdue write to this kind, which is not waited for any longer."""
        places = [place for place in self._overdue if place[0] == group_kind]
        items = [item for place in places for item in self._overdue.pop(place).values()]
        return list(dict.fromkeys(items))

    def has_expired(self, now: float) -> bool:
        """Whether `expire` would return any."""
        return bool(self._until) and any(until <= now for until in self._until.values())

    def next_expiry(self) -> float | None:
        return next(iter(self._until.values()), None)

    def _remember(self, write: tuple[str, Key, str]) -> None:
        self._seen[write] = None
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)

    def _forget_overdue(self, change: Change, version: str | None) -> None:
        """Overdue writes that this change shows are so no longer."""
        place = (change.group_kind, change.key)
        if place not in self._overdue:
            return
        writes = self._overdue.pop(place)
        unseen = {write: item for write, item in writes.items() if not _is_echo(write, change, version)}
        if unseen:
            self._overdue[place] = unseen

    def _release(self, item: Item) -> None:
        del self._missing[item], self._until[item]
        for place in self._places.pop(item):
            self._by_object[place].pop(item)
            if not self._by_object[place]:
                del self._by_object[place]


def _is_echo(write: WrittenVersion, change: Change, version: str | None) -> bool:
    """An object that is gone shows no version any more; one that had the name before ours says nothing of ours."""
    if write[:2] != (change.group_kind, change.key):
        return False
    if version is not None or change.old is None:
        return version == write.version
    return write.uid in ("", change.old.metadata.uid)
