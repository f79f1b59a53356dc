"""Sets of uids as values: what was in one at some time can still be asked when it has changed a thousand times since.

Made of a large set that many share and of the few that differ from it, so that a change, and to keep the value of a
moment, costs the same however many there are. Used by covered_pods and budgets.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

_MOST_DIFFERENCES = 64
_NONE: frozenset[str] = frozenset()


class UidSet(Collection[str]):
    """Never changes."""

    __slots__ = ("_added", "_base", "_removed")

    def __init__(
        self, base: frozenset[str] = _NONE, added: frozenset[str] = _NONE, removed: frozenset[str] = _NONE
    ) -> None:
        """`added` has none that is in `base`, and `removed` only such."""
        if len(added) + len(removed) > _MOST_DIFFERENCES:
            base, added, removed = (base - removed) | added, _NONE, _NONE
        self._base, self._added, self._removed = base, added, removed

    def __len__(self) -> int:
        return len(self._base) + len(self._added) - len(self._removed)

    def __contains__(self, uid: object) -> bool:
        return uid in self._added or (uid in self._base and uid not in self._removed)

    def __iter__(self) -> Iterator[str]:
        return iter((self._base - self._removed) | self._added)

    def union(self, uid: str) -> UidSet:
        if uid in self:
            return self
        if uid in self._removed:
            return UidSet(self._base, self._added, self._removed - {uid})
        return UidSet(self._base, self._added | {uid}, self._removed)

    def without(self, uids: Collection[str]) -> UidSet:
        gone = {uid for uid in uids if uid in self}
        return UidSet(self._base, self._added - gone, self._removed | (gone & self._base)) if gone else self
