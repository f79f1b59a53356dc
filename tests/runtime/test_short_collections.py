"""Pauses of the garbage collector: what outlived one is not looked at again, and nothing is lost for good."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import msgspec
import pytest

from builders import a_pod
from wukong.runtime import short_collections
from wukong.runtime.short_collections import _Freezer, keep_collections_short


class Knot:
    """Refers to itself, so that only the collector can free it."""

    def __init__(self) -> None:
        self.own = self


@pytest.fixture(autouse=True)
def thaw() -> Iterator[None]:
    thresholds = gc.get_threshold()
    gc.unfreeze()
    yield
    gc.unfreeze()
    assert gc.get_threshold() == thresholds


@pytest.mark.slow
def test_what_outlives_a_full_collection_is_frozen_until_the_end() -> None:
    kept = [[number] for number in range(1000)]
    with keep_collections_short():
        gc.collect()
        assert gc.get_freeze_count() > len(kept)
        assert not any(entry is kept for entry in gc.get_objects())
        young = Knot()
        reference = weakref.ref(young)
        del young
        gc.collect()
        assert reference() is None
    assert gc.get_freeze_count() == 0
    assert gc.callbacks == [callback for callback in gc.callbacks if getattr(callback, "__name__", "") != "observe"]


@pytest.mark.slow
def test_everything_is_looked_at_again_when_twice_as_much_is_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short_collections, "_COUNTED_EVERY", 2)
    monkeypatch.setattr(short_collections, "_FEWEST", 1)
    with keep_collections_short():
        knot = Knot()
        reference = weakref.ref(knot)
        gc.collect()
        del knot  # frozen, and garbage
        gc.collect()
        assert reference() is not None
        grown = [[number] for number in range(2 * gc.get_freeze_count())]
        for _ in range(4):
            gc.collect()
        assert reference() is None
        assert grown


def test_only_full_collections_freeze() -> None:
    freezer = _Freezer()
    for phase, generation in (("start", 2), ("stop", 0), ("stop", 1)):
        freezer.observe(phase, {"generation": generation})
    assert gc.get_freeze_count() == 0


def test_objects_of_the_api_are_none_of_the_collectors_business() -> None:
    pod = a_pod()
    assert not gc.is_tracked(pod)
    assert not gc.is_tracked(pod.spec)
    assert not gc.is_tracked(msgspec.structs.replace(pod))
