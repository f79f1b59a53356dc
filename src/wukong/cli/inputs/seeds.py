"""The option --seeds: one seed, or a range."""

from __future__ import annotations

import re

from wukong.errors import InputError

MOST_SEEDS = 10_000
_SEEDS = re.compile(r"(\d+)(?:-(\d+))?")


def read_seeds(text: str) -> range:
    """Raises InputError for anything but `7` or `1-1000`."""
    match = _SEEDS.fullmatch(text)
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
    if last < first:
        raise InputError(f'--seeds: expected a seed such as 7, or a range such as 1-1000, got "{text}".')
    return range(first, last + 1)


def choose_seeds(text: str) -> range:
    """`16` is how many, from 1 on; `7-9` are those."""
    seeds = read_seeds(text)
    if "-" not in text:
        seeds = range(1, seeds.start + 1)
    if not 1 <= len(seeds) <= MOST_SEEDS:
        raise InputError(f'--seeds: expected 1 to {MOST_SEEDS:,} of them, got "{text}".')
    return seeds
