"""A layered dict is a dict: whatever is done to it and to its forks, each holds what a copied dict would, in order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wukong.engine import layered_dict
from wukong.engine.layered_dict import LayeredDict

KEYS = st.integers(0, 12)
STEPS = st.lists(
    st.tuples(st.sampled_from(["set", "set", "set", "pop", "del", "fork"]), st.integers(0, 20), KEYS), max_size=60
)
Pair = tuple[LayeredDict[int, int], dict[int, int]]


@pytest.fixture(autouse=True, params=[0, 3, 256])
def few(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layered_dict, "_FEW", request.param)


@given(STEPS)
def test_it_and_its_forks_hold_what_copies_of_a_dict_would(steps: list[tuple[str, int, int]]) -> None:
    pairs: list[Pair] = [(LayeredDict(), {})]
    for number, (act, which, key) in enumerate(steps):
        layered, plain = pairs[which % len(pairs)]
        match act:
            case "set":
                layered[key] = plain[key] = number
            case "pop":
                assert layered.pop(key, None) == plain.pop(key, None)
            case "del" if key in plain:
                del layered[key], plain[key]
            case "del":
                with pytest.raises(KeyError):
                    del layered[key]
            case "fork":
                pairs.append((layered.fork(), dict(plain)))
        check_alike(layered, plain)
    for pair in pairs:
        check_alike(*pair)


def check_alike(layered: LayeredDict[int, int], plain: dict[int, int]) -> None:
    assert list(layered.items()) == list(plain.items())
    assert (list(layered), list(layered.keys()), list(layered.values())) == (
        list(plain),
        list(plain),
        [*plain.values()],
    )
    assert (len(layered), bool(layered), {**layered}) == (len(plain), bool(plain), plain)
    assert layered == plain
    for key in range(13):
        assert (key in layered, layered.get(key), layered.get(key, -1)) == (
            key in plain,
            plain.get(key),
            plain.get(key, -1),
        )
        if key in plain:
            assert layered[key] == plain[key]
        else:
            with pytest.raises(KeyError):
                layered[key]


def test_a_fork_copies_nothing_of_what_is_shared() -> None:
    layered: LayeredDict[int, int] = LayeredDict()
    for number in range(1000):
        layered[number] = number
    fork = layered.fork()
    other = fork.fork()
    assert fork._shared is layered._shared
    assert other._shared is layered._shared


def test_a_shared_key_that_went_came_and_went_again_is_counted_once() -> None:
    layered: LayeredDict[int, int] = LayeredDict()
    layered[1] = layered[2] = 0
    fork = layered.fork()
    for value in (5, 6):
        assert fork.pop(1) in (0, 5)
        check_alike(fork, {2: 0})
        fork[1] = value
        check_alike(fork, {2: 0, 1: value})
    fork[3] = 7
    del fork[3], fork[1], fork[2]
    check_alike(fork, {})
    check_alike(layered, {1: 0, 2: 0})
