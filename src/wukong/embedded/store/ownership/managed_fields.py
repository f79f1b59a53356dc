"""The managedFields of stored objects, worked out when somebody reads them. Made by writes.py.

Who owns which field follows from who wrote what. Hardly anybody asks: server-side apply does, and whoever reads whole
documents through the port. So a write only notes itself, and the owners are worked out from the writes up to there:

    create ─► update ─► update      each with the document before and after, who wrote, and when
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, overload

from wukong.embedded.store.documents import meta_of, with_metadata
from wukong.embedded.store.kinds import ServedKind
from wukong.embedded.store.ownership.field_managers import Writer, update_entries
from wukong.ports import Document

MOST_PENDING = 16  # writes of one object: they keep its earlier versions in memory


class _Write(NamedTuple):
    kind: ServedKind
    before: Document | None
    after: Document
    writer: Writer
    now: float


class ManagedFields(Sequence[Document]):
    """The entries after a write, like a list of them. Never changes; shared by all documents that hold it."""

    __slots__ = ("_entries", "_pending", "_write")

    def __init__(self, write: _Write) -> None:
        self._write: _Write | None = write
        self._entries: list[Document] = []
        earlier = _stored_entries_of(write.before)
        self._pending: int = earlier._pending + 1 if isinstance(earlier, ManagedFields) else 1
        if self._pending > MOST_PENDING:
            self._resolve()

    def _resolve(self) -> list[Document]:
        """Work the entries out once, and let go of the documents they follow from."""
        if self._write is not None:
            kind, before, after, writer, now = self._write
            entries = list(_stored_entries_of(before))
            self._entries = update_entries(kind, entries, before or {}, after, writer, now)
            self._write, self._pending = None, 0
        return self._entries

    def __len__(self) -> int:
        return len(self._resolve())

    @overload
    def __getitem__(self, index: int) -> Document: ...
    @overload
    def __getitem__(self, index: slice) -> list[Document]: ...
    def __getitem__(self, index: int | slice) -> Document | list[Document]:
        return self._resolve()[index]

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Sequence) and self._resolve() == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._resolve())


def note_write(kind: ServedKind, before: Document | None, after: Document, writer: Writer, now: float) -> Document:
    """Return `after` with the managedFields it has when `writer` changed `before` into it."""
    return with_metadata(after, managedFields=ManagedFields(_Write(kind, before, after, writer, now)))


def _stored_entries_of(document: Document | None) -> Sequence[Document]:
    entries: Sequence[Document] | None = meta_of(document).get("managedFields") if document else None
    return () if entries is None else entries  # whether there are any is not asked: that would work them out
