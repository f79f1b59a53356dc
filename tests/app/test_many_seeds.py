"""Many seeds on several processes: each is played once, by whoever is free, and errors come out."""

from __future__ import annotations

import os

import pytest

from wukong.app.many_seeds import play_seeds
from wukong.app.shared_pages import prepare_fork

PAGE = 4096


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_every_seed_is_played_once(jobs: int) -> None:
    assert sorted(play_seeds(lambda seed: seed, range(40), jobs)) == list(range(40))


def test_this_process_plays_seeds_beside_the_others() -> None:
    assert os.getpid() in set(play_seeds(lambda _: os.getpid(), range(40), 2))


def test_fewer_seeds_than_processes_are_all_played() -> None:
    assert list(play_seeds(lambda seed: seed, [7], 3)) == [7]


@pytest.mark.parametrize("wrong", [0, 39])
def test_what_a_play_raises_comes_out_whoever_played_it(wrong: int) -> None:
    def play(seed: int) -> int:
        if seed == wrong:
            raise ValueError(f"seed {seed}")
        return seed

    with pytest.raises(ValueError, match=f"seed {wrong}"):
        list(play_seeds(play, range(40), 2))


def test_what_is_created_after_the_preparation_lies_together() -> None:
    blocks = [bytes(150) for _ in range(20_000)]
    del blocks[::7]  # free blocks all over the pages that would be shared
    scattered = {id(block) // PAGE for block in [bytes(150) for _ in range(200)]}
    fillers = prepare_fork()
    together = {id(block) // PAGE for block in [bytes(150) for _ in range(200)]}
    assert len(together) < len(scattered) / 2, (len(together), len(scattered), len(fillers), len(blocks))
