"""A dict whose forks share all that neither side has changed since: a fork costs what was changed, not what is there.

    shared entries (never changed)  +  own entries, set since  -  gone: keys of shared entries removed since

For dicts of as many entries as a cluster has objects; few entries are copied. In worker processes, which share memory
until one writes to it, that counts twice: copying a dict writes to every object in it. It holds its entries in the
order in which a dict would.
"""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Mapping, MutableMapping, Set, ValuesView
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

Key = TypeVar("Key")
Value = TypeVar("Value")
Default = TypeVar("Default")
_FEW = 256  # changes that every fork copies; more of them become part of what is shared
_MISSING: Any = object()


class LayeredDict(MutableMapping[Key, Value]):
    __slots__ = ("_added", "_gone", "_own", "_shared", "get")

    if TYPE_CHECKING:

        @overload
        def get(self, key: Key) -> Value | None: ...
        @overload
        def get(self, key: Key, default: Value | Default) -> Value | Default: ...
        def get(self, key: Key, default: Any = None) -> Any: ...

    def __init__(self, entries: Mapping[Key, Value] | Iterable[tuple[Key, Value]] = ()) -> None:
        self._shared: dict[Key, Value] = {}  # by all forks
        self._own: dict[Key, Value] = dict(entries)
        self._gone: set[Key] = set()  # may be in `_own` again: then they count as the latest to come
        self._added = len(self._own)  # entries of `_own` that take no place of a shared one
        self._build_get()

    @classmethod
    def over(cls, entries: dict[Key, Value]) -> Self:
        """One that holds these entries, and shares them: nobody may change them from now on."""
        layered = cls()
        layered._shared = entries
        layered._build_get()
        return layered

    def fork(self) -> Self:
        """An independent copy."""
        if not self._shared or len(self._own) + len(self._gone) > _FEW:
            self._shared = self._own if not self._shared else dict(self.items())
            self._own, self._gone, self._added = {}, set(), 0
            self._build_get()
        copy = type(self)()
        copy._shared, copy._own, copy._gone = self._shared, dict(self._own), set(self._gone)
        copy._added = self._added
        copy._build_get()
        return copy

    def _build_get(self) -> None:
        """Make `get` that of a dict where nothing is shared; most of what happens are look-ups. It refers to the
        layers and not to this, which would be a circle that only the garbage collector breaks."""
        get = _get_from_layers(self._own, self._shared, self._gone) if self._shared else self._own.get
        self.get = get  # type: ignore[assignment, method-assign]

    def __getitem__(self, key: Key) -> Value:
        value = self._own.get(key, _MISSING)
        if value is not _MISSING:
            return value  # type: ignore[no-any-return]
        if self._gone and key in self._gone:
            raise KeyError(key)
        return self._shared[key]

    def __contains__(self, key: object) -> bool:
        return key in self._own or (bool(self._shared) and key in self._shared and key not in self._gone)

    def __setitem__(self, key: Key, value: Value) -> None:
        before = len(self._own)
        self._own[key] = value
        if len(self._own) != before and (not self._shared or key not in self._shared or key in self._gone):
            self._added += 1

    def __delitem__(self, key: Key) -> None:
        self.pop(key)

    @overload
    def pop(self, key: Key) -> Value: ...
    @overload
    def pop(self, key: Key, default: Value | Default) -> Value | Default: ...
    def pop(self, key: Key, default: Any = _MISSING) -> Any:
        value = self.get(key, _MISSING)
        if value is _MISSING:
            if default is _MISSING:
                raise KeyError(key)
            return default
        is_shared = bool(self._shared) and key in self._shared and key not in self._gone
        if is_shared:
            self._gone.add(key)
        else:
            self._added -= 1
        self._own.pop(key, None)
        return value

    def __len__(self) -> int:
        return len(self._shared) - len(self._gone) + self._added

    def __bool__(self) -> bool:
        return bool(self._own) or len(self._shared) > len(self._gone)

    def __iter__(self) -> Iterator[Key]:
        if not self._shared:
            return iter(self._own)
        return self._iterate()

    def _iterate(self) -> Iterator[Key]:
        shared, gone = self._shared, self._gone
        yield from (key for key in shared if key not in gone) if gone else shared
        yield from (key for key in self._own if key not in shared or key in gone)

    def keys(self) -> KeysView[Key]:
        return super().keys() if self._shared else self._own.keys()

    def values(self) -> ValuesView[Value]:
        return _Values(self) if self._shared else self._own.values()

    def items(self) -> ItemsView[Key, Value]:
        return _Items(self) if self._shared else self._own.items()

    def iterate_items(self) -> Iterator[tuple[Key, Value]]:
        """Give each key with its value, without a look-up for each."""
        shared, own, gone = self._shared, self._own, self._gone
        if not own and not gone:
            yield from shared.items()
            return
        for key, value in shared.items():
            if key not in gone:
                yield key, own.get(key, value)
        for key, value in own.items():
            if key not in shared or key in gone:
                yield key, value

    def __repr__(self) -> str:
        return f"LayeredDict({dict(self.items())!r})"


def _get_from_layers(own: dict[Key, Value], shared: dict[Key, Value], gone: Set[Key]) -> Callable[..., Any]:
    get_own, get_shared = own.get, shared.get

    def get(key: Key, default: Any = None) -> Any:
        value = get_own(key, _MISSING)  # keys are tuples, which are hashed at every look
        if value is not _MISSING:
            return value
        if gone and key in gone:
            return default
        return get_shared(key, default)

    return get


class _Items(ItemsView[Key, Value]):
    _mapping: LayeredDict[Key, Value]

    def __iter__(self) -> Iterator[tuple[Key, Value]]:
        return self._mapping.iterate_items()


class _Values(ValuesView[Value]):
    _mapping: LayeredDict[Any, Value]

    def __iter__(self) -> Iterator[Value]:
        return (value for _, value in self._mapping.iterate_items())
